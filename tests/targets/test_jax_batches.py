"""`jax.vmap` over some inputs of a rule that is a `jax.custom_vjp`: an output that depends on
none of them is in the batch all the same, or its upstream gradient would be summed over the
batch before the rule, which is not linear in it, sees it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import jax_module

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
pytestmark = pytest.mark.jax

RULES = """
rule gate(x, w) -> y:
    y = x
    override dx = dy * dy * w because "a marker"

rule pair(x, y) -> (z, w):
    z = x * y
    w = y**2
    override dy = dz * dz * x + 2 * dw * y because "a marker"
"""
EACH = jnp.array([1.0, 2.0, 4.0])
ABOVE = jnp.array([1.0, 10.0, 100.0])


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return jax_module(RULES)


@pytest.mark.parametrize("compiled", (False, True))
def test_a_gradient_around_a_batch(rules: ModuleType, compiled: bool) -> None:
    def gated(x: Any) -> Any:
        return (jax.vmap(rules.gate, in_axes=(None, 0))(x, EACH) * ABOVE).sum()

    def paired(y: Any) -> Any:
        z, w = jax.vmap(rules.pair, in_axes=(0, None))(EACH, y)
        return (z * ABOVE).sum() + (w * ABOVE).sum()

    def gradient(function: Any, x: float) -> Any:
        pulled = jax.grad(function)
        return (jax.jit(pulled) if compiled else pulled)(jnp.float32(x))

    assert gradient(gated, 1.0) == (ABOVE**2 * EACH).sum()
    assert gradient(paired, 5.0) == (ABOVE**2 * EACH + 10 * ABOVE).sum()


def test_a_batch_in_a_batch(rules: ModuleType) -> None:
    inner = jax.vmap(rules.gate, in_axes=(None, 0))

    def total(x: Any) -> Any:
        return (jax.vmap(inner, in_axes=(0, None))(x, EACH) * ABOVE).sum()

    slope = (ABOVE**2 * EACH).sum()
    assert np.allclose(jax.grad(total)(jnp.ones(2)), [slope, slope])


def test_values_stay(rules: ModuleType) -> None:
    """The sign of a zero, and NaN, beside inputs that are NaN, or have no elements."""
    x = jnp.array([-0.0, jnp.nan, jnp.inf])
    for w in (jnp.ones(3), jnp.full(3, jnp.nan), jnp.arange(3.0)):
        y = jax.jit(rules.gate)(x, w)
        assert np.array_equal(np.signbit(y), np.signbit(x))
        assert np.array_equal(y, x, equal_nan=True)
    assert rules.gate(jnp.zeros(0), jnp.zeros(0)).shape == (0,)


def test_a_surrogate_of_what_the_output_is_no_part_of_in_shard_map() -> None:
    """Its tangent differs along the devices, and so must the output."""
    rules = jax_module(
        "rule through(soft, hard: nograd) -> y:\n    y = hard\n    surrogate y = soft\n"
    )
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("d",))
    spec = jax.sharding.PartitionSpec("d")

    def total(soft: Any) -> Any:
        part = lambda s: rules.through(s, jnp.ones(3))  # noqa: E731
        return jax.shard_map(part, mesh=mesh, in_specs=spec, out_specs=spec)(soft).sum()

    assert np.array_equal(jax.grad(total)(jnp.zeros(3)), np.ones(3))
