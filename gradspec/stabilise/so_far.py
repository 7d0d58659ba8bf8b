"""What a search has found so far, for whoever stops it: the forms of some results
(`part_way.py`), then those of all, before what comes last (infinities, second forms for
float64) is looked at. Nothing is kept unless someone asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from gradspec.ir.rule import CheckedRule
from gradspec.stabilise.part_way import PartWay

Stage: TypeAlias = CheckedRule | PartWay

_kept: ContextVar[list[Stage] | None] = ContextVar("so_far", default=None)


@contextmanager
def keeping() -> Iterator[list[Stage]]:
    """The rule at each stage that is passed inside, the last one last."""
    stages: list[Stage] = []
    token = _kept.set(stages)
    try:
        yield stages
    finally:
        _kept.reset(token)


def keep(found: Stage) -> None:
    """A stage is passed."""
    stages = _kept.get()
    if stages is not None:
        stages.append(found)
