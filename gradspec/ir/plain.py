"""Rules, and what was found of them and of files, as plain data (JSON), and back.

Each node of an expression is written once, however often it is used, so trees that
share much stay small; nodes are told apart by identity, since equal ones may stand at
different places of the text. Spans are told relative to a start, such as the rule's own
name, and texts by number: what is read back stands where the rule stands now. Only the
classes named here, and those of the frame, are ever made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from enum import Enum
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from gradspec.diagnostics import Diagnostic, Fix, Label, Outcome, Severity
from gradspec.ir import expr, rule
from gradspec.ir.rule import Rule
from gradspec.source import Source, Span

_NODES = (
    *(expr.Const, expr.Ref, expr.Idx, expr.Size, expr.Apply, expr.Select),
    *(expr.Reduce, expr.Call),
)
_PARTS = (
    *(expr.Bound, rule.Shape, rule.Input, rule.Output, rule.Definition),
    *(
        rule.Assume,
        rule.Example,
        rule.Kernel,
        rule.Rule,
        rule.Complete,
        rule.Verdict,
        rule.Rewrite,
        rule.Hole,
    ),
    *(rule.AccuracyLoss, rule.Judged, rule.Chosen, Label, Diagnostic, Fix),
    Outcome,
)
_ENUMS = (rule.Kind, rule.Role, rule.Origin, rule.Status, Severity)
_CLASSES: Mapping[str, Any] = {c.__name__: c for c in (*_NODES, *_PARTS, *_ENUMS)}
_FIELDS: Mapping[Any, tuple[str, ...]] = {
    **{c: (*c.__match_args__, "span") for c in _NODES},
    **{c: tuple(f.name for f in fields(c) if f.init) for c in _PARTS},
}


@dataclass(frozen=True, slots=True)
class Frame:
    """The context of plain data: source texts by number, the offset that counts as 0,
    and the classes permitted beside those of rules."""

    sources: tuple[Source, ...]
    start: int = 0
    more: tuple[type[Any], ...] = ()


class Foreign(Exception):
    """A value that cannot be written as data, or an unknown source text."""


def sources(main: rule.Rule) -> tuple[Source, ...]:
    """The source texts of a rule and of all that it calls, its own first."""
    found = {main.source.path: main.source}
    for called in _callees(main):
        found.setdefault(called.source.path, called.source)
    return tuple(found.values())


def calls(main: rule.Rule) -> bool:
    """True if it calls another rule."""
    return next(_callees(main), None) is not None


def frame_of(main: rule.Rule) -> Frame:
    """The frame for results about a rule."""
    return Frame(sources(main), main.name_span.start)


def to_plain(value: object, frame: Frame) -> dict[str, Any]:
    """``value`` as data. Foreign if it has anything that is not in the frame."""
    writer = _Writer(frame)
    top = writer.plain(value)
    return {"nodes": writer.rows, "top": top}


def from_plain(data: Mapping[str, Any], frame: Frame) -> Any:
    """The inverse, for the texts as they are now. KeyError, TypeError and the like if
    the data has another form."""
    reader = _Reader(frame)
    for row in data["nodes"]:
        reader.nodes.append(reader.build(row))
    return reader.value(data["top"])


def _callees(main: rule.Rule) -> Iterator[rule.Rule]:
    todo: list[object] = [main]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        if isinstance(value, tuple):
            todo += value
        elif type(value) in _FIELDS and id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, expr.Call):
                yield value.rule
            todo += (getattr(value, name) for name in _FIELDS[type(value)])


def _fields_of(kind: Any) -> tuple[str, ...]:
    known = _FIELDS.get(kind)
    return known or tuple(f.name for f in fields(kind) if f.init)


class _Writer:
    def __init__(self, frame: Frame) -> None:
        self.rows: list[Any] = []
        self._base = frame.start
        self._sources = {s.path: n for n, s in enumerate(frame.sources)}
        self._parts = (*_PARTS, *frame.more)
        self._places: dict[int, int] = {}
        self._held: list[object] = []  # so that no number is given to two nodes

    def plain(self, value: object) -> Any:
        match value:
            case None | bool() | str() | int():
                return value
            case tuple():
                return [self.plain(part) for part in value]
            case frozenset():
                return {"z": sorted(map(self.plain, value))}
            case Fraction():
                return {"q": f"{value.numerator}/{value.denominator}"}
            case float():
                return {"f": value.hex()}
            case Enum() if type(value) in _ENUMS:
                return {"e": [type(value).__name__, value.value]}
            case Span():
                return {"s": [value.start - self._base, value.end - self._base]}
            case Source():
                return {"o": self._source(value)}
            case rule.Rule():
                return {"n": self._place(value)}
            case _ if type(value) in _NODES:
                return {"n": self._node(value)}
            case _ if type(value) in self._parts:
                return self._row(value)
            case _:
                raise Foreign(type(value).__name__)

    def _node(self, node: Any) -> int:
        """Its place; what it is made of comes first (no recursion: sums are deep)."""
        todo = [node]
        while todo:
            last = todo[-1]
            missing = [b for b in last.below if id(b) not in self._places]
            if id(last) in self._places:
                todo.pop()
            elif missing:
                todo += missing
            else:
                self._place(todo.pop())
        return self._places[id(node)]

    def _place(self, value: object) -> int:
        if id(value) not in self._places:
            row = self._row(value)
            self._held.append(value)
            self.rows.append(row)
            self._places[id(value)] = len(self.rows) - 1
        return self._places[id(value)]

    def _row(self, value: object) -> dict[str, Any]:
        names = _fields_of(type(value))
        parts = [self.plain(getattr(value, name)) for name in names]
        return {"d": [type(value).__name__, *parts]}

    def _source(self, source: Source) -> int:
        if source.path not in self._sources:
            raise Foreign(source.path)
        return self._sources[source.path]


class _Reader:
    def __init__(self, frame: Frame) -> None:
        self.nodes: list[Any] = []
        self._base = frame.start
        self._sources = frame.sources
        self._classes = {**_CLASSES, **{c.__name__: c for c in frame.more}}

    def value(self, data: Any) -> Any:
        match data:
            case None | bool() | str() | int():
                return data
            case list():
                return tuple(map(self.value, data))
            case {"n": int(place)}:
                return self.nodes[place]
            case {"z": list(parts)}:
                return frozenset(map(self.value, parts))
            case {"q": str(text)}:
                return Fraction(text)
            case {"f": str(text)}:
                return float.fromhex(text)
            case {"e": [str(name), value]}:
                return self._classes[name](value)
            case {"s": [int(start), int(end)]}:
                return Span(start + self._base, end + self._base)
            case {"o": int(number)}:
                return self._sources[number]
            case {"d": _}:
                return self.build(data)
            case _:
                raise ValueError("no data of this module")

    def build(self, row: Any) -> Any:
        name, *parts = row["d"]
        kind = self._classes[name]
        named = zip(_fields_of(kind), map(self.value, parts), strict=True)
        return kind(**dict(named))


# --- memo of results ------------------------------------------------------------------
#
# Results of a stage by the content of the rule, wherever the rule stands. The driver
# installs a shelf (`driver/cache.py`); without one, everything is computed. A result's name
# is the digest of everything that it depends on: the stage, its options and the rule as
# data. Where a rule calls others, their places are part of it too: expressions inlined from
# them keep their places in their texts.


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
def use_shelf(shelf: Shelf | None) -> Iterator[None]:
    """Context in which results are memoised on ``shelf``."""
    token = _shelf.set(shelf)
    try:
        yield
    finally:
        _shelf.reset(token)


def recall_or_compute(
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
