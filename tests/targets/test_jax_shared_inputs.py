"""`jax.shard_map` over a rule that is a `jax.custom_vjp`, of an input that all devices share
beside one that they do not: its gradient is the sum over the devices, as in one process.
"""

from __future__ import annotations

from functools import partial
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
    y = x * w
    override dx = dy * abs(dy) * w because "a marker"
    override dw = dy * abs(dy) * x because "a marker"

rule rows(x[..., n], g[n]) -> y[..., n]:
    y[i] = x[i] * g[i]
    override dx[i] = dy[i] * abs(dy[i]) * g[i] + mean(dy[j] for j) because "a marker"
    override dg[i] = 2 * dy[i] * x[i] because "a marker"

rule taken(w, t: int) -> y:
    y = w**t
    override dw = dy * dy * t because "a marker"
"""
SPEC = jax.sharding.PartitionSpec
SHARED = jnp.array([1.5, 0.25, -0.5])
ROWS = jnp.arange(1.0, 25.0).reshape(8, 3) / 8
STEPS = jnp.arange(24).reshape(8, 3) % 3


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return jax_module(RULES)


def _total(rule: Any, shared: Any, rows: Any) -> Any:
    given = (shared, rows) if rows.dtype == STEPS.dtype else (rows, shared)
    return jnp.sum(rule(*given) * jnp.arange(1.0, 4.0))


@pytest.mark.parametrize("name", ["gate", "rows", "taken"])
@pytest.mark.parametrize("checked", [True, False])
def test_the_gradient_of_a_shared_input(
    rules: ModuleType, name: str, checked: bool
) -> None:
    total = partial(_total, getattr(rules, name))
    rows = STEPS if name == "taken" else ROWS
    whole = jax.grad(total)(SHARED, rows)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("i",))
    split = partial(
        jax.shard_map, mesh=mesh, in_specs=(SPEC(), SPEC("i")), check_vma=checked
    )
    outside = split(lambda *a: jax.lax.psum(total(*a), "i"), out_specs=SPEC())
    assert np.allclose(jax.jit(jax.grad(outside))(SHARED, rows), whole, rtol=2e-6)
    if checked:  # JAX sums over the devices where it knows who shares what
        inside = split(jax.grad(total), out_specs=SPEC())
        assert np.allclose(jax.jit(inside)(SHARED, rows), whole, rtol=2e-6)


def test_jax_0_8_says_it_in_another_word(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast = jax.lax.pcast
    monkeypatch.delattr(jax.lax, "pcast")
    monkeypatch.setattr(
        jax.lax, "pvary", lambda x, axes: cast(x, axes, to="varying"), raising=False
    )
    test_the_gradient_of_a_shared_input(rules, "gate", True)


def test_a_rule_of_one_input_has_nothing_of_it() -> None:
    text = 'rule f(x) -> y:\n    y = x\n    override dx = dy * dy because "a marker"\n'
    assert "_in_step" not in jax_module(text).__dict__
