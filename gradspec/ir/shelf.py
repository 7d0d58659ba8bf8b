"""Memo of a stage's results by the content of the rule, wherever the rule stands.

The driver installs a shelf (`driver/cache.py`); without one, everything is computed. A
result's name is the digest of everything that it depends on: the stage, its options and
the rule as data. Where a rule calls others, their places are part of it too:
expressions inlined from them keep their places in their texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from gradspec.ir.plain import Foreign, calls, frame_of, from_plain, sources, to_plain
from gradspec.ir.rule import Rule

T = TypeVar("T")


class Shelf(Protocol):
    """A memo of data by name."""

    def get(self, name: str, read: Callable[[Any], T]) -> T | None:
        """The result of ``read`` on the data; None if there are none that it can
        read."""

    def put(self, name: str, data: object) -> None:
        """Store plain data."""


_shelf: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


@contextmanager
def shelved(shelf: Shelf | None) -> Iterator[None]:
    """Context in which results are memoised on ``shelf``."""
    token = _shelf.set(shelf)
    try:
        yield
    finally:
        _shelf.reset(token)


def remembered(
    main: Rule,
    stage: tuple[str, ...],
    given: object,
    work: Callable[[], T],
    is_lasting: Callable[[object], bool],
) -> T:
    """The result of ``work`` on ``given``, which belongs to the rule ``main``; that of
    an earlier run if the shelf has it. Only results that satisfy ``is_lasting`` are
    stored (it is false of other values)."""
    shelf = _shelf.get()
    if shelf is None:
        return work()
    try:
        name = _name(main, stage, given)
    except Foreign:
        return work()
    found = _read(shelf, name, main)
    if found and is_lasting(found[0]):
        result: T = found[0]
        return result
    result = work()
    if is_lasting(result):
        _keep(shelf, name, main, result)
    return result


def _name(main: Rule, stage: tuple[str, ...], given: object) -> str:
    places: tuple[object, ...] = ()
    if calls(main):
        places = main.name_span.start, *(s.path for s in sources(main))
    text = json.dumps([stage, places, to_plain(given, frame_of(main))])
    return hashlib.sha256(text.encode()).hexdigest()


def _read(shelf: Shelf, name: str, main: Rule) -> tuple[Any, ...]:
    """The result in a tuple; empty if there is none that can be read."""
    return shelf.get(name, lambda data: (from_plain(data, frame_of(main)),)) or ()


def _keep(shelf: Shelf, name: str, main: Rule, result: object) -> None:
    try:
        shelf.put(name, to_plain(result, frame_of(main)))
    except Foreign:
        return
