"""Positions along an axis beside a DTensor, which no plain tensor may be compared with."""

from __future__ import annotations

from typing import Any

import pytest

from gradspec.targets import torch as target
from tests.targets.emission import imported, planned

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

RULE = """
rule picked(x[..., n], k: int) -> y:
    y = x[k]**2
"""


@pytest.mark.parametrize("sharded", (False, True))
def test_a_gradient_by_position(mesh: Any, sharded: bool) -> None:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    rules = imported(target.module(planned(RULE)), "torch_positions")
    x, k = torch.randn(3, 4), torch.tensor([1, 0, 3])
    place = Shard(0) if sharded else Replicate()
    spread = distribute_tensor(x, mesh, [place]).requires_grad_()
    rules.picked(spread, distribute_tensor(k, mesh, [place])).sum().backward()
    plain = x.clone().requires_grad_()
    plain.gather(-1, k[:, None]).square().sum().backward()
    assert torch.equal(spread.grad.full_tensor(), plain.grad)


TABLE = "rule row(t[...]: int, w[v, d]) -> y[..., d]:\n    y[i] = w[t, i]\n"


@pytest.mark.parametrize("shape", ((), (3,), (2, 3)))
def test_what_was_taken_can_be_changed_in_place(shape: tuple[int, ...]) -> None:
    """As a position is added to an embedding."""
    rules = imported(target.module(planned(TABLE)), "torch_table")
    w = torch.randn(5, 4, requires_grad=True)
    t = torch.randint(5, shape)
    y = rules.row(t, w)
    y += 1
    y.mul_(2).sum().backward()
    (expected,) = torch.autograd.grad(2 * w[t].sum(), w)
    torch.testing.assert_close(w.grad, expected)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_what_was_taken_in_batches_and_graphs() -> None:
    rules = imported(target.module(planned(TABLE)), "torch_table")
    w, t = torch.randn(2, 5, 4), torch.randint(5, (2, 3, 2))
    plain = torch.func.vmap(lambda t, w: w[t])(t, w)
    assert torch.equal(torch.func.vmap(rules.row)(t, w), plain)
    call = torch.compile(rules.row, fullgraph=True, backend="aot_eager")
    assert torch.equal(call(t[0], w[0]), plain[0])
    push = torch.func.jvp(lambda w: rules.row(t[0], w), (w[0],), (w[1],))[1]
    assert torch.equal(push, w[1][t[0]])
