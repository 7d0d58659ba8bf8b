"""The published reference cases R1 to R14 on every target, from the tutorial's rules."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.calling import FRAMEWORKS, PACKAGES, by_target, called, cotangent

TUTORIAL = Path(__file__).parents[2] / "rules" / "tutorial"
pytestmark = pytest.mark.shared_cache


def tutorial(file: str, target: str, trace: bool = False) -> ModuleType:
    pytest.importorskip(PACKAGES[target])
    return gradspec.load(TUTORIAL / f"{file}.grad", target, trace=trace)


Numbers = tuple[list[float], ...]

CASES: dict[str, tuple[str, str, Numbers, Numbers, Numbers]] = {
    "R1": ("log1pexp", "log1pexp", ([100],), ([100],), ([1],)),
    "R4": ("product", "product", ([2], [3]), ([6],), ([3], [2])),
    "R5": ("sign_step", "sign_step", ([3],), ([1],), ([0.0451766551],)),
    "R5, loss": ("sign_step", "sign_step_loss", ([3],), ([2],), ([0.0903533101],)),
    "R7": (
        *("elementwise_square", "elementwise_square", ([1, 2, 3],)),
        *(([1, 4, 9],), ([2, 4, 6],)),
    ),
    "R8": (
        *("complex_op", "complex_op", ([2], [3])),
        *(([6.9092974], [9]), ([2.5838532], [8])),
    ),
    "R9": ("piecewise", "piecewise", ([-1, 0, 1],), ([-1, 0, 2],), ([1, 1, 2],)),
    "R10": ("labels", "weighted_error", ([2], [1], [0.5]), ([0.5],), ([1], [], [])),
}
"""File, rule, inputs, outputs, and gradients for cotangents of 1 (or that there is none)."""


@by_target
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, target: str) -> None:
    file, rule, inputs, outputs, gradients = CASES[name]
    given = [np.squeeze(np.array(x, np.float32)) for x in inputs]
    found, slopes = called(target, tutorial(file, target), rule, given)
    for one, other in zip(found, outputs, strict=True):
        np.testing.assert_allclose(one, np.squeeze(other), rtol=1e-6)
        assert one.dtype == np.float32
    for one, other in zip(slopes, gradients, strict=True):
        if not other:  # JAX has no None
            assert one is None or (target == "jax" and not one.any())
            continue
        wanted = np.squeeze(other) * cotangent(np.squeeze(other))
        np.testing.assert_allclose(one, wanted, rtol=1e-6)


# --- R2 and R3: the square of the square of the square -------------------------------------


def _on_numpy(module: ModuleType) -> Any:
    x, pullbacks = 2.0, []
    for _ in range(3):
        x, pullback = module.square_vjp(x)
        pullbacks.append(pullback)
    dy = 1.0
    for pullback in reversed(pullbacks):
        (dy,) = pullback(dy)
    return x, dy


def _on_torch(module: ModuleType) -> Any:
    import torch

    x = torch.tensor(2.0, requires_grad=True)
    y = module.square(module.square(module.square(x)))
    return y.detach(), *torch.autograd.grad(y, x)


def _on_tf(module: ModuleType) -> Any:
    import tensorflow as tf

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = module.square(module.square(module.square(x)))
    return y, tape.gradient(y, x)


def _on_jax(module: ModuleType) -> Any:
    import jax

    square = module.square
    found = jax.value_and_grad(lambda x: square(square(square(x))))(2.0)
    jax.effects_barrier()
    return found


COMPOSED = {"numpy": _on_numpy, "torch": _on_torch, "tf": _on_tf, "jax": _on_jax}


@by_target
def test_squares_composed_and_traced(
    target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    module = tutorial("square", target, trace=True)
    assert [float(v) for v in COMPOSED[target](module)] == [256.0, 1024.0]
    told = capfd.readouterr()
    lines = [_numbers(line) for line in (told.out + told.err).splitlines()]
    numbers = [found for found in lines if found]
    assert [n[-2:] for n in numbers[:3]] == [[2, 4], [4, 16], [16, 256]]
    backward = [[1, 32, 32], [32, 8, 256], [256, 4, 1024]]
    assert [n[-3:] for n in numbers[3:]] == backward
    with pytest.raises((ValueError, RuntimeError), match=r"square.*x"):
        module.square(np.ones(3, np.float32))


def _numbers(line: str) -> list[float]:
    text = re.sub(r"[A-Za-z_]\w*", " ", line)
    return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]


# --- R6 and R11: training ------------------------------------------------------------------

PUBLISHED = [
    *(-0.89999783, 0.0995881185, 0.6450876, 0.855591536, 0.938390434),
    *(0.970632374, 0.983009696, 0.987700462, 0.989459515, 0.990113616),
]


@by_target
def test_r6_training_by_adam(target: str) -> None:
    """L = (y - 1)²/2, with Adam as in Keras at a learning rate of 0.1."""
    module = tutorial("sign_step", target)
    x, m, v, told = np.float32(-1.0), 0.0, 0.0, []
    for k in range(1, 101):
        error = np.float32(1.0 if x > 0 else -1.0) - 1
        (y,), (slope,) = called(target, module, "sign_step", [x], [error])
        assert y == error + 1 and slope is not None
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        rate = 0.1 * np.sqrt(1 - 0.999**k) / (1 - 0.9**k)
        x = np.float32(x - rate * m / (np.sqrt(v) + 1e-7))
        told.append((float(slope), float(x)))
    assert told[0][0] == pytest.approx(-0.393223882, rel=1e-6)
    assert [x for _, x in told[::10]] == pytest.approx(PUBLISHED, abs=3e-4)
    assert all(slope == 0.0 for slope, _ in told[10::10])


@by_target
def test_r11_parameters_learn(target: str) -> None:
    module = tutorial("affine", target)
    x, weights = np.linspace(-1.0, 1.0, 32), [np.array(0.0), np.array(0.0)]
    error = -(3.0 * x - 2.0)
    for _ in range(60):
        (y,), (_, *slopes) = called(
            target, module, "affine", [x, *weights], [error / 16]
        )
        weights = [w - 0.5 * g for w, g in zip(weights, slopes, strict=True)]
        error = weights[0] * x + weights[1] - (3.0 * x - 2.0)
    np.testing.assert_allclose(weights, [3.0, -2.0], atol=1e-3)
    assert y.shape == (32,)


# --- R12 to R14: shapes and types, second derivatives, what is kept ------------------------


@by_target
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_r12_gradients_sum_over_outputs_in_shape_and_type(
    target: str, dtype: type
) -> None:
    draw = np.random.default_rng(1).normal
    x, y, dz, dw = (draw(size=s).astype(dtype) for s in ((3, 4), 4, (3, 4), 4))
    module = tutorial("complex_op", target)
    (z, w), (dx, dy) = called(target, module, "complex_op", [x, y], [dz, dw])
    wide = [v.astype(np.float64) for v in (x, y, dz, dw)]
    wanted_x = wide[2] * (wide[1] + np.cos(wide[0]))
    wanted_y = (wide[2] * wide[0]).sum(0) + wide[3] * 2 * wide[1]
    assert (z.shape, w.shape) == ((3, 4), (4,))
    room = 4e-3 if dtype is np.float16 else 1e-5
    for found, wanted in ((dx, wanted_x), (dy, wanted_y)):
        assert found is not None and found.dtype == dtype
        np.testing.assert_allclose(found, wanted, room, room)


def _bent(target: str, rule: Any) -> float:
    if target == "torch":
        import torch

        return torch.autograd.functional.hessian(rule, torch.tensor(0.5)).item()
    if target == "jax":
        import jax

        return float(jax.grad(jax.grad(rule))(0.5))
    import tensorflow as tf

    x = tf.Variable(0.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = rule(x)
        first = inner.gradient(y, x)
    return float(outer.gradient(first, x))


@pytest.mark.parametrize("target", FRAMEWORKS)
def test_r13_second_derivative(target: str) -> None:
    rule = tutorial("log1pexp", target).log1pexp
    assert _bent(target, rule) == pytest.approx(0.2350037, rel=1e-6)


@by_target
def test_r14_recomputing_gives_the_same_gradient(target: str) -> None:
    module, x = tutorial("checkpoint", target), np.linspace(-2.0, 2.0, 1000)
    (_, (one,)), (_, (other,)) = (
        called(target, module, f"gate_{how}", [x]) for how in ("recomputed", "saved")
    )
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.torch
def test_r14_recomputing_keeps_fewer_bytes() -> None:
    import torch

    module, kept = tutorial("checkpoint", "torch"), []
    for rule in (module.gate_recomputed, module.gate_saved):
        sizes: dict[int, int] = {}

        def pack(tensor: Any, sizes: dict[int, int] = sizes) -> Any:
            sizes[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            rule(torch.linspace(-2.0, 2.0, 1000).requires_grad_())
        kept.append(sum(sizes.values()))
    assert kept[0] < kept[1]
