"""Rules over named axes in PyTorch: values, derivatives, shapes, own results, DTensors."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import torch_module
from tests.targets.indexed_rules import RULES

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
