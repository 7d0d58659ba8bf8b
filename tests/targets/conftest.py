"""What tests of several files begin with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def mesh() -> Iterator[Any]:
    """One device, of one process, for torch's DTensor."""
    torch = pytest.importorskip("torch")
    distributed = pytest.importorskip("torch.distributed.tensor")
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield distributed.init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()
