"""What a search has found so far, for whoever stops it: forms that are chosen, before what
comes last (infinities, second forms for float64) is looked at. Nothing is kept unless
someone asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gradspec.ir.rule import CheckedRule

_kept: ContextVar[list[CheckedRule] | None] = ContextVar("so_far", default=None)


@contextmanager
def keeping() -> Iterator[list[CheckedRule]]:
    """The rule at each stage that is passed inside, the last one last."""
    stages: list[CheckedRule] = []
    token = _kept.set(stages)
    try:
        yield stages
    finally:
        _kept.reset(token)


def keep(found: CheckedRule) -> None:
    """A stage is passed."""
    stages = _kept.get()
    if stages is not None:
        stages.append(found)
