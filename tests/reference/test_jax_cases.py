"""The published reference cases R1 to R14 on JAX, from the tutorial's rules."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.reference.conftest import TUTORIAL, tutorial
from tests.reference.test_torch_cases import PUBLISHED

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
pytestmark = pytest.mark.jax


def test_r1_log1pexp_at_100() -> None:
    y, dx = jax.value_and_grad(tutorial("log1pexp", "jax").log1pexp)(100.0)
    assert (float(y), float(dx)) == (100.0, 1.0)


def test_r2_square_composed() -> None:
    square = tutorial("square", "jax").square
    values = [square(2.0)]
    values += [square(values[0])]
    values += [square(values[1])]
    slope = jax.grad(lambda x: square(square(square(x))))(2.0)
    assert [float(v) for v in (*values, slope)] == [4.0, 16.0, 256.0, 1024.0]
    with pytest.raises(ValueError, match=r"square.*x"):
        square(jnp.ones(3))


def test_r3_trace(capfd: pytest.CaptureFixture[str]) -> None:
    square = gradspec.load(TUTORIAL / "square.grad", target="jax", trace=True).square
    jax.grad(lambda x: square(square(square(x))))(2.0)
    jax.effects_barrier()
    numbers = [_numbers(line) for line in capfd.readouterr().out.splitlines()]
    forward = [[2.0, 4.0], [4.0, 16.0], [16.0, 256.0]]
    backward = [
        [16.0, 1.0, 32.0, 32.0],
        [4.0, 32.0, 8.0, 256.0],
        [2.0, 256.0, 4.0, 1024.0],
    ]
    assert numbers == [*forward, *backward]


def test_r6_training() -> None:
    """L = (y - 1)²/2 by Adam as in Keras, learning rate 0.1."""
    sign_step = tutorial("sign_step", "jax").sign_step
    step = jax.jit(jax.value_and_grad(lambda x: (sign_step(x) - 1.0) ** 2 / 2))
    x, m, v, told = jnp.float32(-1.0), 0.0, 0.0, []
    for k in range(1, 101):
        loss, gradient = step(x)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        rate = 0.1 * np.sqrt(1 - 0.999**k) / (1 - 0.9**k)
        x = jnp.float32(x - rate * m / (np.sqrt(v) + 1e-7))
        told.append((float(loss), float(gradient), float(x)))
    assert told[0][:2] == (2.0, pytest.approx(-0.393223882, rel=1e-6))
    assert [t[2] for t in told[::10]] == pytest.approx(PUBLISHED, abs=3e-4)
    assert all(t[:2] == (0.0, 0.0) for t in told[10::10])


def test_r10_labels_stand_still() -> None:
    """JAX has no None: a gradient that there is not is zero, and no tangent counts."""
    rule = tutorial("labels", "jax").weighted_error
    found = jax.grad(rule, (0, 1, 2))(2.0, 1.0, 0.5)
    assert [float(g) for g in found] == [1.0, 0.0, 0.0]
    _, moved = jax.jvp(lambda t: rule(2.0, t, 0.5), (1.0,), (7.0,))
    assert float(moved) == 0.0


def test_r11_parameters_learn() -> None:
    affine = tutorial("affine", "jax").affine
    x = jnp.linspace(-1.0, 1.0, 32)

    @jax.jit
    def step(weights: Any) -> Any:
        def loss(weights: Any) -> Any:
            return jnp.mean((affine(x, *weights) - (3.0 * x - 2.0)) ** 2)

        gradients = jax.grad(loss)(weights)
        return tuple(w - 0.5 * g for w, g in zip(weights, gradients, strict=True))

    weights = (jnp.float32(0.0), jnp.float32(0.0))
    for _ in range(60):
        weights = step(weights)
    assert [float(w) for w in weights] == pytest.approx([3.0, -2.0], abs=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_r12_vjp_sums_over_outputs_in_shape_and_dtype(dtype: str) -> None:
    rule = tutorial("complex_op", "jax").complex_op
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        x, y = (jnp.asarray(rng.normal(size=s)).astype(dtype) for s in ((3, 4), (4,)))
        (z, w), pullback = jax.vjp(rule, x, y)
        dx, dy = pullback((0.5 * jnp.ones_like(z), 0.25 * jnp.ones_like(w)))
        wide_x, wide_y = x.astype("float64"), y.astype("float64")
        expected_x = 0.5 * (wide_y + jnp.cos(wide_x))
        expected_y = jnp.sum(0.5 * wide_x, 0) + 0.25 * 2 * wide_y
        assert (dx.dtype, dy.dtype) == (x.dtype, y.dtype)
        room = {"float16": 1e-3, "bfloat16": 1e-2}.get(dtype, 1e-6)
        for found, expected in ((dx, expected_x), (dy, expected_y)):
            assert np.allclose(found.astype("float64"), expected, room, room)


def test_r13_second_derivative() -> None:
    rule = tutorial("log1pexp", "jax").log1pexp
    for outer in (jax.grad, jax.jacfwd):
        assert float(outer(jax.grad(rule))(0.5)) == pytest.approx(0.2350037, rel=1e-6)


def test_r14_recomputing_gives_the_same_gradient_from_fewer_bytes() -> None:
    """What is kept is JAX's own decision; `jax.checkpoint` takes it back."""
    module = tutorial("checkpoint", "jax")
    x = jnp.linspace(-2.0, 2.0, 1000)
    gradients, kept = [], []
    for rule in (module.gate_recomputed, jax.checkpoint(module.gate_recomputed)):
        gradients.append(jax.grad(lambda x, rule=rule: jnp.sum(rule(x)))(x))
        _, pullback = jax.vjp(rule, x)
        kept.append(sum(leaf.nbytes for leaf in jax.tree.leaves(pullback)))
    assert np.allclose(*gradients)
    assert kept[1] == x.nbytes <= kept[0]


def _numbers(line: str) -> list[float]:
    text = re.sub(r"[A-Za-z_]\w*", " ", line)
    return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]
