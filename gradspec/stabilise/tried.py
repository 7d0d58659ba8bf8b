"""The candidates that a choice has measured, for `gradspec audit --explain`.

Nothing is kept unless someone listens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from gradspec.stabilise.choice import Candidate, Choice


@dataclass(frozen=True, slots=True)
class Tried:
    """One choice, and all candidates that were measured for it."""

    choice: Choice
    measured: tuple[Candidate, ...]


_listener: ContextVar[list[Tried] | None] = ContextVar("tried", default=None)


@contextmanager
def listening() -> Iterator[list[Tried]]:
    """The choices that are made inside, in order."""
    heard: list[Tried] = []
    token = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(token)


def note(tried: Tried) -> None:
    """Keep a choice for whoever listens."""
    heard = _listener.get()
    if heard is not None:
        heard.append(tried)
