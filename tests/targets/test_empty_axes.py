"""Axes of size 0: what a rule's formula says of them, however it is evaluated.

A maximum that is taken out of a sum to keep it in range is no part of the formula. A
gradient that sums over an axis of size 0 is 0, also where a factor of it is made of a mean
over that axis, which is NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.calling import Array, Result, by_target, called, cotangent
from tests.targets.emission import module_of, own_rules

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy: the mean of nothing
]

RULES = own_rules("empty_axes")


def _call(target: str, rule: str, *arguments: Array) -> Result:
    with np.errstate(divide="ignore", invalid="ignore"):  # log(0), 0 / 0 outside
        return called(target, module_of(RULES, target), rule, arguments)


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
    **{
        name: ((_empty(0, 3), _empty(*shape)), 0.0)
        for name, shape in {
            **dict.fromkeys(("scaled", "declared", "shares"), (3,)),
            "mixed": (3, 2),
        }.items()
    },
}
"""By the rule's name: arguments, and what all elements of its result are."""


@by_target
@pytest.mark.parametrize("name", NOTHING)
def test_what_is_taken_out_is_no_part_of_the_formula(target: str, name: str) -> None:
    """But in `direction`, which assumes that there is something."""
    arguments, wanted = NOTHING[name]
    (y,), gradients = _call(target, name.split(maxsplit=1)[0], *arguments)
    assert np.all(y == wanted)
    for x, dx in zip(arguments, gradients, strict=True):
        if x.dtype == float:
            assert dx is not None and dx.shape == x.shape
            assert name == "direction" or not dx.any(), "a sum of nothing is 0"


@by_target
def test_what_is_not_empty_is_as_it_was(target: str) -> None:
    x = np.array([[3e300, 4e300], [0.0, 0.0], [3e-300, -4e-300]])
    (y,), (dx,) = _call(target, "length", x)
    np.testing.assert_allclose(y, [5e300, 0.0, 5e-300], rtol=1e-14)
    wanted = np.array([[0.6, 0.8], [0.0, 0.0], [0.6, -0.8]])
    np.testing.assert_allclose(dx, cotangent(y)[:, None] * wanted, rtol=1e-14)
    x, g = np.random.default_rng(1).normal(size=(5, 3)), np.array([0.5, -1.0, 2.0])
    (y,), (_, dg) = _call(target, "scaled", x, g)
    np.testing.assert_allclose(dg, np.sum(cotangent(y) * y / g, 0), rtol=1e-12)


@by_target
def test_a_maximum_that_the_rule_has_is_the_frameworks(target: str) -> None:
    if target == "tf":
        assert _call(target, "greatest", _empty(2, 0))[0][0].tolist() == [-math.inf] * 2
    else:
        with pytest.raises((ValueError, IndexError), match="zero"):
            _call(target, "greatest", _empty(2, 0))


POSITIONS = {
    "rows": (((3, 0), ()), ((3, 0), (2, 2)), ((3, 2), (0,)), ((0, 2), (0,))),
    "picked": (
        *(((3, 0), (2,)), ((2, 3, 0), (2, 2)), ((2, 3, 0), (2,)), ((3, 2), (0,))),
        *(((0, 3, 2), (0, 2)), ((3, 2), (0, 2)), ((3, 0), (0,))),
    ),
    "columns": (
        *(((0, 3), (2,)), ((2, 0, 3), (2, 2)), ((0, 2, 3), (0, 2)), ((0, 3), (0,))),
    ),
    "labelled": (((0, 3), (0,)), ((3,), (0,)), ((0,), (0,))),
}
"""By the rule's name: shapes of what is picked from, and of the positions."""


@by_target
@pytest.mark.parametrize("rule", POSITIONS)
def test_sums_by_position_of_nothing(target: str, rule: str) -> None:
    for shape, places in POSITIONS[rule]:
        (y,), (dx, _) = _call(target, rule, _empty(*shape), np.zeros(places, np.int64))
        assert y.size == 0
        assert dx is not None and dx.shape == shape and not dx.any()


# --- torch: without data, and in what is compiled -----------------------------------------


@pytest.mark.torch
def test_torch_without_data_and_under_vmap() -> None:
    torch = pytest.importorskip("torch")
    length, x = module_of(RULES, "torch").length, torch.zeros(2, 0)
    assert length(torch.zeros(2, 0, device="meta")).shape == (2,)
    assert torch.vmap(length)(x).tolist() == [0.0, 0.0]
    assert torch.vmap(torch.func.grad(length))(x).shape == (2, 0)
    y, y_dot = torch.func.jvp(length, (x,), (x,))
    assert (y.tolist(), y_dot.tolist()) == ([0.0, 0.0], [0.0, 0.0])


@pytest.mark.torch
def test_torch_exported_for_a_size_that_data_decide() -> None:
    torch = pytest.importorskip("torch")
    length = module_of(RULES, "torch").length

    class Counted(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            """The length of as many ones as there are positive numbers."""
            return length(torch.nonzero(x > 0)[:, 0] * 0 + 1.0)

    shape = ({0: torch.export.Dim("n")},)
    saved = torch.export.export(Counted(), (torch.ones(8),), dynamic_shapes=shape)
    assert saved.module()(torch.tensor([1.0, -1.0, 2.0, 3.0, 4.0])).item() == 2.0


@pytest.mark.torch
@pytest.mark.parametrize("way", ["export", "compile"])
@pytest.mark.parametrize("sizes", [(3, 0), (0, 3)])
def test_torch_graphs_of_an_empty_example(sizes: tuple[int, int], way: str) -> None:
    """A graph would keep a maximum that failed while it was traced."""
    torch = pytest.importorskip("torch")
    length = module_of(RULES, "torch").length

    class Lengths(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return length(x)

    x = torch.zeros(sizes)
    if way == "compile":
        made = torch.compile(length, fullgraph=True, backend="aot_eager")
    else:
        shapes = ({0: torch.export.Dim.AUTO},)
        made = torch.export.export(Lengths(), (x,), dynamic_shapes=shapes).module()
    assert made(x).tolist() == [0.0] * sizes[0]
    made(x.requires_grad_()).sum().backward()
    assert x.grad.shape == sizes
