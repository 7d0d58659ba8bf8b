"""Positions along an axis beside a DTensor, which no plain tensor may be compared with."""

from __future__ import annotations

from collections.abc import Iterator
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


@pytest.fixture
def mesh() -> Iterator[Any]:
    """One device, of one process."""
    distributed = pytest.importorskip("torch.distributed.tensor")
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield distributed.init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


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
