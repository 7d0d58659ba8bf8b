"""What a search has found so far, for whoever stops it (`part_way.py`). Nothing is kept
unless someone asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gradspec.stabilise.part_way import PartWay

_kept: ContextVar[list[PartWay] | None] = ContextVar("so_far", default=None)


@contextmanager
def keeping() -> Iterator[list[PartWay]]:
    """The forms at each stage that is passed inside, the last one last."""
    stages: list[PartWay] = []
    token = _kept.set(stages)
    try:
        yield stages
    finally:
        _kept.reset(token)


def keep(found: PartWay) -> None:
    """A stage is passed."""
    stages = _kept.get()
    if stages is not None:
        stages.append(found)
