"""Axes of size 0: what a rule's formula says of them, however it is evaluated.

A maximum that is taken out of a sum to keep it in range is no part of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import torch_module
from tests.targets.vjps import TARGETS, Array, upstream_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

RULES = """
rule length(x[..., n]) -> y:
    y = sqrt(sum(x[j]**2 for j))

rule lengths(x[..., m, n]) -> y:
    y = sqrt(sum(x[i, j]**2 for i, j))

rule direction(v[m, k], g[m]) -> w[m, k]:
    assume sum(v[i, l]**2 for l) > 0
    s[i] = sqrt(sum(v[i, l]**2 for l))
    w[i, j] = g[i] * v[i, j] / s[i]

rule softmax(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)

rule masked(x[..., n], keep[..., n]: bool) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j if keep[j]) if keep[i] else 0

rule log_of_sum(x[..., n]) -> y:
    y = log(sum(exp(x[j]) for j))

rule weighted(x[..., n], a[..., n]) -> y:
    assume a[i] > 0
    y = log(sum(a[j] * exp(x[j]) for j))

rule greatest(x[..., n]) -> y:
    y = max(abs(x[j]) for j)

rule rows(w[m, k], t[...]: int) -> y[..., k]:
    y[j] = w[t, j]

rule picked(x[..., n, k], t[..., p]: int) -> y[..., p, k]:
    y[i, j] = x[t[i], j]

rule columns(x[..., k, n], t[..., p]: int) -> y[..., k, p]:
    y[j, i] = x[j, t[i]]

rule labelled(x[..., n], t[...]: int) -> y:
    y = x[t]
"""

Call = Callable[[str, tuple[Array, ...]], tuple[Array, list[Array]]]


def _floats(arguments: tuple[Array, ...]) -> list[int]:
    return [k for k, array in enumerate(arguments) if array.dtype.kind == "f"]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    pytest.importorskip(TARGETS[name][0])
    return name


@pytest.fixture
def call(target: str) -> Call:
    """A rule's only output, and its gradients for an upstream gradient."""
    _, module, vjp = TARGETS[target]

    def called(rule: str, arguments: tuple[Array, ...]) -> tuple[Array, list[Array]]:
        with np.errstate(divide="ignore", invalid="ignore"):  # log(0), 0 / 0 outside
            (y,), found = vjp(module(RULES), rule, arguments)
        return y, [dx for dx in found if dx is not None]

    return called


def _empty(*shape: int) -> Array:
    return np.ones(shape)


NOTHING = {
    "length": ((_empty(0),), 0.0),
    "length of a batch": ((_empty(2, 0),), 0.0),
    "length of no batch": ((_empty(0, 3),), 0.0),
    "lengths": ((_empty(2, 0, 3),), 0.0),
    "direction": ((_empty(3, 0), _empty(3)), 0.0),
    "direction of none": ((_empty(0, 3), _empty(0)), 0.0),
    "softmax": ((_empty(2, 0),), 0.0),
    "masked": ((_empty(2, 0), np.ones((2, 0), bool)), 0.0),
    "log_of_sum": ((_empty(2, 0),), -math.inf),
    "weighted": ((_empty(2, 0), _empty(2, 0)), -math.inf),
}
"""By the rule's name: arguments, and what all elements of its result are."""


@pytest.mark.parametrize("name", NOTHING)
def test_what_is_taken_out_is_no_part_of_the_formula(call: Call, name: str) -> None:
    arguments, wanted = NOTHING[name]
    y, gradients = call(name.split(maxsplit=1)[0], arguments)
    assert np.all(y == wanted)
    shapes = [arguments[k].shape for k in _floats(arguments)]
    assert [dx.shape for dx in gradients] == shapes


def test_what_is_not_empty_is_as_it_was(call: Call) -> None:
    x = np.array([[3e300, 4e300], [0.0, 0.0], [3e-300, -4e-300]])
    y, (dx,) = call("length", (x,))
    np.testing.assert_allclose(y, [5e300, 0.0, 5e-300], rtol=1e-14)
    wanted = np.array([[0.6, 0.8], [0.0, 0.0], [0.6, -0.8]])
    np.testing.assert_allclose(dx, upstream_of(y)[:, None] * wanted, rtol=1e-14)


def test_a_maximum_that_the_rule_has_is_the_framework_s(
    target: str, call: Call
) -> None:
    if target == "tf":
        assert call("greatest", (_empty(2, 0),))[0].tolist() == [-math.inf] * 2
    else:
        with pytest.raises((ValueError, IndexError), match="zero"):
            call("greatest", (_empty(2, 0),))


# --- positions ------------------------------------------------------------------------------

POSITIONS = {
    "rows": (((3, 0), ()), ((3, 0), (2, 2)), ((3, 2), (0,)), ((0, 2), (0,))),
    "picked": (((3, 0), (2,)), ((2, 3, 0), (2, 2)), ((2, 3, 0), (2,)), ((3, 2), (0,))),
    "picked in no batch": (((0, 3, 2), (0, 2)), ((3, 2), (0, 2)), ((3, 0), (0,))),
    "columns": (
        ((0, 3), (2,)),
        ((2, 0, 3), (2, 2)),
        ((0, 2, 3), (0, 2)),
        ((0, 3), (0,)),
    ),
    "labelled": (((0, 3), (0,)), ((3,), (0,)), ((0,), (0,))),
}
"""By the rule's name: shapes of what is picked from, and of the positions."""


@pytest.mark.parametrize("name", POSITIONS)
def test_sums_by_position_of_nothing(call: Call, name: str) -> None:
    for shape, places in POSITIONS[name]:
        rule = name.split(maxsplit=1)[0]
        y, (dx,) = call(rule, (_empty(*shape), np.zeros(places, np.int64)))
        assert y.size == 0
        assert dx.shape == shape and not dx.any()


# --- torch: without data, and in what is compiled -----------------------------------------


@pytest.fixture
def length() -> Any:
    pytest.importorskip("torch")
    return torch_module(RULES).length


@pytest.mark.torch
def test_torch_of_tensors_without_data(length: Any) -> None:
    import torch

    assert length(torch.zeros(2, 0, device="meta")).shape == (2,)


@pytest.mark.torch
def test_torch_under_vmap(length: Any) -> None:
    import torch

    x = torch.zeros(2, 0)
    assert torch.vmap(length)(x).tolist() == [0.0, 0.0]
    assert torch.vmap(torch.func.grad(length))(x).shape == (2, 0)
    y, y_dot = torch.func.jvp(length, (x,), (x,))
    assert (y.tolist(), y_dot.tolist()) == ([0.0, 0.0], [0.0, 0.0])


@pytest.mark.torch
def test_torch_compiled_and_exported_for_any_size(length: Any) -> None:
    import torch

    compiled = torch.compile(length, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (5, 7, 1):
        found = compiled(torch.ones(2, size)).tolist()
        assert found == pytest.approx([math.sqrt(size)] * 2)

    class Counted(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            """The length of as many ones as there are positive numbers."""
            return length(torch.nonzero(x > 0)[:, 0] * 0 + 1.0)

    shape = ({0: torch.export.Dim("n")},)
    saved = torch.export.export(Counted(), (torch.ones(8),), dynamic_shapes=shape)
    assert saved.module()(torch.tensor([1.0, -1.0, 2.0, 3.0, 4.0])).item() == 2.0


@pytest.mark.torch
@pytest.mark.parametrize("way", ["export", "strict export", "compile", "make_fx"])
@pytest.mark.parametrize("sizes", [(3, 0), (0, 3), (0, 0)])
def test_torch_graphs_of_an_empty_example(
    length: Any, sizes: tuple[int, int], way: str
) -> None:
    """A graph would keep a maximum that failed while it was traced."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    class Lengths(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return length(x)

    for batch in (None, torch.export.Dim.AUTO):
        x = torch.zeros(sizes)
        match way:
            case "compile":
                made = torch.compile(
                    length, fullgraph=True, dynamic=bool(batch), backend="aot_eager"
                )
            case "make_fx":
                made = make_fx(length, tracing_mode="symbolic" if batch else "real")(x)
            case _:
                made = torch.export.export(
                    Lengths(),
                    (x,),
                    dynamic_shapes=({0: batch},) if batch else None,
                    strict=way.startswith("strict"),
                ).module()
        assert made(x).tolist() == [0.0] * sizes[0]
        x.requires_grad_()
        if way != "make_fx":
            made(x).sum().backward()
            assert x.grad.shape == sizes
