"""Rules over named axes in PyTorch: values, derivatives, shapes, own results, DTensors."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.ir.rule import Rule
from gradspec.ir.unroll import axis_names
from tests.targets.emission import torch_module
from tests.targets.indexed_rules import RULES
from tests.targets.ranked_numpy import arguments, lowered, statics

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
F64 = torch.float64

Shapes = tuple[tuple[int, ...], ...]

LABELS = torch.tensor([0, 2])


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


def _inputs(shapes: Shapes) -> tuple[Any, ...]:
    made = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return tuple(
        torch.randn(shape, dtype=F64, generator=made, requires_grad=True)
        for shape in shapes
    )


@pytest.mark.parametrize(
    ("name", "shapes", "message"),
    [
        ("linear", ((2, 3), (4, 5), (4,)), r"w .* \[m, k\] with m = 4, k = 3, .*4, 5"),
        ("linear", ((2, 3), (3,), (4,)), r"w .* \[m, k\] with k = 3, not \(3,\)"),
        ("softmax", ((),), r"x must have the shape \[\.\.\., n\], not \(\)"),
        ("mse", ((2, 3), (3,)), r"x must have the shape \[n\], not \(2, 3\)"),
        ("third", ((2, 3),), r"x must have the shape \[\.\.\., 4\], not \(2, 3\)"),
        ("window", ((2, 3),), r"x must have the shape \[\.\.\., k\] with k = 2, not"),
        ("trace", ((2, 3),), r"x must have the shape \[\.\.\., n, n\] with n = 2, not"),
    ],
)
def test_shapes_other_than_declared_are_refused(
    rules: ModuleType, name: str, shapes: Shapes, message: str
) -> None:
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        getattr(rules, name)(*map(torch.ones, shapes))


@pytest.mark.parametrize("rule", lowered(RULES), ids=lambda rule: rule.name)
def test_values_and_gradients_under_vmap(rules: ModuleType, rule: Rule) -> None:
    """Both ways of batching: that of `torch.func` and that of `is_grads_batched`."""
    sizes = dict.fromkeys(axis_names(rule), 3) | {"m": 2, "k": 2}
    rng = np.random.default_rng(7)
    given = [torch.tensor(a) for a in arguments(rule, sizes, rng, {}).values()]
    rows = [torch.stack([x, x / 2]) if x.is_floating_point() else x for x in given]
    axes = tuple(0 if x.is_floating_point() else None for x in given)
    places = tuple(k for k, i in enumerate(rule.tensor_inputs) if i.takes_gradient)
    numbers = statics(rule, sizes)

    def total(*inputs: Any) -> Any:
        made = getattr(rules, rule.name)(*inputs, **numbers)
        outputs = made if isinstance(made, tuple) else (made,)
        return sum(y.cos().sum() for y in outputs)

    def each(k: int) -> list[Any]:
        return [x[k] if axis == 0 else x for x, axis in zip(rows, axes, strict=True)]

    gradients = torch.func.grad(total, places)
    alone = [gradients(*each(k)) for k in range(2)]
    together = torch.func.vmap(gradients, axes)(*rows)
    for found, wanted in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(found, torch.stack(wanted))
    leaves = [given[k].clone().requires_grad_() for k in places]
    inputs = [*given]
    for place, leaf in zip(places, leaves, strict=True):
        inputs[place] = leaf
    upstream = torch.tensor([1.0, 2.0], dtype=F64)
    batched = torch.autograd.grad(
        total(*inputs), leaves, upstream, is_grads_batched=True
    )
    for found, wanted in zip(batched, alone[0], strict=True):
        torch.testing.assert_close(found, torch.stack([wanted, 2 * wanted]))


# --- results that are the caller's own, and DTensors ---------------------------------------

OWN = """
rule matvec(a[..., m, n], x[..., n]) -> y[..., m]:
    y[i] = sum(a[i, j] * x[j] for j)

rule form(x[..., m], w[k, m, n], z[..., n]) -> y[..., k]:
    y[i] = sum(x[j] * w[i, j, l] * z[l] for j, l)

rule turned(a[..., m, n], b[..., n, k]) -> y[..., k, m]:
    y[i, j] = sum(a[j, l] * b[l, i] for l)

rule row(w[v, d], t[...]: int) -> y[..., d]:
    y[i] = w[t, i]

rule picked(x[..., n], k: int) -> y:
    y = x[k]**2
"""
PLAIN: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "matvec": (lambda a, x: (a @ x[..., None])[..., 0], ((2, 3, 4), (2, 4))),
    "form": (
        lambda x, w, z: torch.einsum("...j,ijl,...l->...i", x, w, z),
        ((2, 3), (5, 3, 4), (2, 4)),
    ),
    "turned": (lambda a, b: (a @ b).mT, ((2, 3, 4), (2, 4, 5))),
    "row": (lambda w: w[LABELS], ((5, 4),)),
}


@pytest.fixture(scope="module")
def own() -> ModuleType:
    return torch_module(OWN)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
@pytest.mark.parametrize("name", PLAIN)
def test_a_result_can_be_changed_in_place(
    own: ModuleType, name: str, dtype: Any
) -> None:
    plain, shapes = PLAIN[name]
    ours, theirs = ([i.detach().to(dtype) for i in _inputs(shapes)] for _ in "ot")
    for x in (*ours, *theirs):
        x.requires_grad_()
    y = getattr(own, name)(*ours, *[LABELS] * (name == "row"))
    y += 1
    y.mul_(2).square().sum().backward()
    wide = plain(*(x.float() for x in theirs)).to(dtype)
    (2 * (wide + 1)).square().sum().backward()
    for x, z in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.grad, z.grad)


@pytest.mark.parametrize("sharded", (False, True))
def test_dtensors(own: ModuleType, mesh: Any, sharded: bool) -> None:
    """Positions along an axis, too, with which no plain tensor may be compared."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    place = [Shard(0) if sharded else Replicate()]
    a, x = (i.detach() for i in _inputs(PLAIN["matvec"][1]))
    y = own.matvec(*(distribute_tensor(i, mesh, place) for i in (a, x)))
    torch.testing.assert_close(y.full_tensor(), own.matvec(a, x))
    k = torch.tensor([1, 0])
    spread, plain = distribute_tensor(x, mesh, place).requires_grad_(), x.clone()
    own.picked(spread, distribute_tensor(k, mesh, place)).sum().backward()
    own.picked(plain.requires_grad_(), k).sum().backward()
    assert torch.equal(spread.grad.full_tensor(), plain.grad)
