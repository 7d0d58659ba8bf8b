"""Emitted recurrences, beside autograd over a loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gradspec

pytestmark = pytest.mark.filterwarnings("ignore:GS465")
"""A rule of the same file makes a larger array than its states."""

SEQUENCES = Path(__file__).parents[2] / "rules" / "sequences"
Tensors = list[torch.Tensor]


def linear_rnn(a: torch.Tensor, x: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
    return _run(lambda h, t: a[..., t] * h + x[..., t], h0, x.shape[-1], -1)


def _run(step: Callable[[Any, int], Any], h: Any, count: int, axis: int) -> Any:
    found = []
    for t in range(count):
        h = step(h, t)
        found.append(h)
    return torch.stack(found, axis)


def return_to_go(r: torch.Tensor) -> torch.Tensor:
    places = range(r.shape[-1])[::-1]
    back = _run(lambda g, t: r[..., places[t]] + 0.99 * g, 0.0, r.shape[-1], -1)
    return back.flip(-1)


def selective_scan(*inputs: torch.Tensor) -> torch.Tensor:
    x, z, a, b, c = inputs

    def step(h: Any, t: int) -> Any:
        decay = torch.exp(z[..., t, :, None] * a)
        return decay * h + z[..., t, :, None] * b[..., t, None, :] * x[..., t, :, None]

    h = _run(step, torch.zeros_like(a), x.shape[-2], -3)
    return (h * c[..., None, :]).sum(-1)


def all_pole(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    y: Tensors = []
    for t in range(x.shape[-1]):
        past = [a[t, j] * y[t - j - 1] for j in range(min(a.shape[1], t))]
        y.append(x[..., t] - sum(past))
    return torch.stack(y, -1)


def elman(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    zero = torch.zeros_like(x[..., 0, :])
    return _run(lambda h, t: torch.tanh(h @ w.mT + x[..., t, :]), zero, x.shape[-2], -2)


def lstm(*inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x, w, u, b = inputs
    h = c = x.new_zeros((*x.shape[:-2], w.shape[-1]))
    hs, cs = [], []
    for t in range(x.shape[-2]):
        s = torch.einsum("...j,jpi->...pi", x[..., t, :], w) + b
        s = s + torch.einsum("...j,jpi->...pi", h, u)
        i, f, g, o = s.unbind(-2)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        hs.append(h)
        cs.append(c)
    return torch.stack(hs, -2), torch.stack(cs, -2)


CASES: tuple[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]], ...] = (
    ("linear", linear_rnn, ((2, 5), (3, 1, 5), ())),
    ("linear", linear_rnn, ((1,), (1,), ())),
    ("linear", return_to_go, ((2, 6),)),
    ("linear", selective_scan, ((2, 4, 3), (4, 3), (3, 2), (2, 4, 2), (4, 2))),
    ("linear", all_pole, ((2, 6), (6, 3))),
    ("networks", elman, ((3, 3), (2, 4, 3))),
    ("networks", lstm, ((2, 4, 3), (3, 4, 2), (2, 4, 2), (4, 2))),
)
"""The file, the rule as a loop, and the shapes of its inputs."""


def _tupled(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _in_numpy(module: Any, name: str, given: list[Any], ups: list[Any]) -> Any:
    value, pullback = getattr(module, f"{name}_vjp")(*given)
    return value, pullback(*ups)


def _in_torch(module: Any, name: str, given: list[Any], ups: list[Any]) -> Any:
    leaves = [torch.tensor(one, requires_grad=True) for one in given]
    value = _tupled(getattr(module, name)(*leaves))
    found = torch.autograd.grad(value, leaves, [torch.tensor(up) for up in ups])
    return tuple(v.detach().numpy() for v in value), found


def _in_jax(module: Any, name: str, given: list[Any], ups: list[Any]) -> Any:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        value, pullback = jax.vjp(jax.jit(getattr(module, name)), *given)
        up = tuple(ups) if isinstance(value, tuple) else ups[0]
        return value, pullback(up)


def _in_tf(module: Any, name: str, given: list[Any], ups: list[Any]) -> Any:
    tf = pytest.importorskip("tensorflow")
    leaves = [tf.constant(one) for one in given]
    with tf.GradientTape() as tape:
        tape.watch(leaves)
        value = tf.function(getattr(module, name))(*leaves)
    up = tuple(ups) if isinstance(value, tuple) else ups[0]
    return value, tape.gradient(value, leaves, up)


RUNS = {"numpy": _in_numpy, "torch": _in_torch, "jax": _in_jax, "tf": _in_tf}


@pytest.mark.parametrize("target", RUNS)
def test_values_and_gradients_are_those_of_a_loop(target: str) -> None:
    generator = np.random.default_rng(1)
    for file, reference, shapes in CASES:
        module = gradspec.load(SEQUENCES / f"{file}.grad", target)
        given = [generator.normal(size=shape) for shape in shapes]
        leaves = [torch.tensor(one, requires_grad=True) for one in given]
        true = _tupled(reference(*leaves))
        ups = [generator.normal(size=one.shape) for one in true]
        slopes = torch.autograd.grad(true, leaves, [torch.tensor(up) for up in ups])
        value, found = RUNS[target](module, reference.__name__, given, ups)
        for got, wanted in zip(_tupled(value), true, strict=True):
            np.testing.assert_allclose(got, wanted.detach(), rtol=1e-9, atol=1e-12)
        for got, wanted in zip(_tupled(tuple(found)), slopes, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("target", RUNS)
def test_no_places(target: str) -> None:
    module = gradspec.load(SEQUENCES / "linear.grad", target)
    value, _ = RUNS[target](
        module,
        "linear_rnn",
        [np.ones((2, 0)), np.ones(0), np.ones(())],
        [np.ones((2, 0))],
    )
    assert np.shape(_tupled(value)[0]) == (2, 0)
    module = gradspec.load(SEQUENCES / "networks.grad", target)
    given = [np.ones((3, 3)), np.ones((2, 0, 3))]
    value, found = RUNS[target](module, "elman", given, [np.ones((2, 0, 3))])
    assert np.shape(_tupled(value)[0]) == (2, 0, 3)
    np.testing.assert_array_equal(found[0], np.zeros((3, 3)))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_one_place_is_no_view_of_the_input() -> None:
    module = gradspec.load(SEQUENCES / "linear.grad", "torch")
    r = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module.return_to_go, r, check_forward_ad=True)


def test_a_loop_keeps_no_more_than_its_states() -> None:
    """Memory is linear in the number of places: one array of each state."""
    module = gradspec.load(SEQUENCES / "networks.grad", "torch")
    w, x = torch.randn(8, 8), torch.randn(64, 8)
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module.elman(w.requires_grad_(), x.requires_grad_())
    assert sum(saved.values()) <= 4 * (8 * 8 + 2 * 64 * 8)
