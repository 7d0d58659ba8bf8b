"""Results of contractions can be changed in place, as those of torch's own can."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from gradspec.targets import torch as target
from tests.targets.emission import imported, planned

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

RULES = """
rule matvec(a[..., m, n], x[..., n]) -> y[..., m]:
    y[i] = sum(a[i, j] * x[j] for j)

rule form(x[..., m], w[k, m, n], z[..., n]) -> y[..., k]:
    y[i] = sum(x[j] * w[i, j, l] * z[l] for j, l)

rule turned(a[..., m, n], b[..., n, k]) -> y[..., k, m]:
    y[i, j] = sum(a[j, l] * b[l, i] for l)
"""
SHAPES = {
    "matvec": ((2, 3, 4), (2, 4)),
    "form": ((2, 3), (5, 3, 4), (2, 4)),
    "turned": ((2, 3, 4), (2, 4, 5)),
}
PLAIN = {
    "matvec": "...ij,...j->...i",
    "form": "...j,ijl,...l->...i",
    "turned": "...jl,...li->...ij",
}


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(target.module(planned(RULES)), "torch_own_results")


def _inputs(name: str, *batch: int, dtype: Any) -> list[Any]:
    return [torch.randn(*batch, *shape).to(dtype) for shape in SHAPES[name]]


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_a_result_is_changed_in_place(rules: ModuleType, name: str, dtype: Any) -> None:
    inputs = _inputs(name, dtype=dtype)
    ours, plain = ([x.clone().requires_grad_() for x in inputs] for _ in "op")
    y = getattr(rules, name)(*ours)
    y += 1
    y.mul_(2).square().sum().backward()
    wide = torch.einsum(PLAIN[name], *(x.float() for x in plain)).to(dtype)
    (2 * (wide + 1)).square().sum().backward()
    for x, z in zip(ours, plain, strict=True):
        torch.testing.assert_close(x.grad, z.grad)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", SHAPES)
def test_batches_graphs_and_tangents(rules: ModuleType, name: str) -> None:
    function = getattr(rules, name)
    many = _inputs(name, 3, dtype=torch.float64)
    plain = torch.func.vmap(lambda *x: torch.einsum(PLAIN[name], *x))
    torch.testing.assert_close(torch.func.vmap(function)(*many), plain(*many))
    first = tuple(x[0] for x in many)
    call = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(call(*first), plain(*many)[0])
    second = tuple(x[1] for x in many)
    _, push = torch.func.jvp(function, first, second)
    _, expected = torch.func.jvp(
        lambda *x: torch.einsum(PLAIN[name], *x), first, second
    )
    torch.testing.assert_close(push, expected)
    grads = torch.func.vmap(torch.func.grad(lambda *x: function(*x).square().sum()))
    torch.testing.assert_close(
        grads(*many),
        torch.func.vmap(
            torch.func.grad(lambda *x: torch.einsum(PLAIN[name], *x).square().sum())
        )(*many),
    )


@pytest.mark.parametrize("name", SHAPES)
def test_a_batch_that_is_spread(rules: ModuleType, mesh: Any, name: str) -> None:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    inputs = _inputs(name, dtype=torch.float32)
    places = [Shard(0) if len(x) == 2 else Replicate() for x in inputs]
    pairs = zip(inputs, places, strict=True)
    y = getattr(rules, name)(*(distribute_tensor(x, mesh, [at]) for x, at in pairs))
    plain = torch.einsum(PLAIN[name], *inputs)
    torch.testing.assert_close(y.full_tensor(), plain)
