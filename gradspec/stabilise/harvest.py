"""Evaluations read from an e-graph: bottom up, a few for each class, by measurement.

A class has one real value, so its truth is computed once; what an operator makes of the
float32 values of its arguments is compared with it. Kept are the most accurate, the
cheapest, and those that are right where the others are not: of two such a conditional on
the sign of an input is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, log2
from typing import Any
from zlib import crc32

import numpy as np

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.text import show
from gradspec.ir.walk import size
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.egraph import Classes, Form
from gradspec.stabilise.model import applied, rounded

GOOD = 2.5
"""ULP up to which an intermediate value is as good as any."""

_KEPT, _AT_ROOT = 4, 12
_ROUNDS = 4

_BY_BALLS = 30.0  # weight of a primitive that only balls know
_TINY = float(np.finfo(np.float32).tiny)
_CAP = 2.0**40
_GROWTH, _ROOM = 2.0, 6.0
"""How much larger than the whole a part may be."""

_ADDS = 0.04
"""Share of the points that a form must mend to be kept beside a better one."""


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """An evaluation of a class: its values at the points and how far they are ``off``
    (infinitely if they are bad)."""

    expr: Expr
    value: Any = field(repr=False)
    cost: float
    bad: int
    worst: float
    core: float
    off: Any = field(repr=False)
    mark: int
    """Tells evaluations of one rank apart, the same way every time."""
    rank: tuple[int, int, int, float]
    """Fewer bad points, then clearly smaller errors, then what costs less."""

    @property
    def good(self) -> Any:
        """The points at which it is right."""
        return self.off <= GOOD


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """The points: the inputs in float32, which of them are of ordinary size, and in what
    evaluations compute (they are rounded to float32 before they are compared)."""

    columns: Mapping[str, Any]
    core: Any
    work: Any = np.float32


def representatives(classes: Classes) -> tuple[Expr | None, ...]:
    """The smallest expression of each class; None for one that has none (a form of it
    was taken away)."""
    found: list[Expr | None] = [None] * len(classes.forms)
    sizes = [inf] * len(classes.forms)
    for number, value in classes.numbers.items():
        found[number], sizes[number] = Const(value), 1.0
    for number, name in classes.names.items():
        found[number], sizes[number] = Ref(name), 1.0
    changed = True
    while changed:
        changed = False
        for number, forms in enumerate(classes.forms):
            for op, parts in forms:
                total = 1.0 + sum(sizes[part] for part in parts)
                if total < sizes[number]:
                    args = tuple(e for p in parts if (e := found[p]) is not None)
                    found[number], sizes[number] = _node(op, args), total
                    changed = True
    return tuple(found)


def harvest(
    classes: Classes, truths: Sequence[Any], ground: Ground, work: float
) -> tuple[Built, ...]:
    """The evaluations kept of the root's class, the most accurate first. ``truths`` are
    the values of each class at the points, None for one that is left out; ``work`` is how
    many evaluations are tried, each weighed by what it costs."""
    done = _Harvest(classes, truths, ground, work)
    done.run()
    return done.kept[classes.root]


class _Harvest:
    def __init__(
        self,
        classes: Classes,
        truths: Sequence[Any],
        ground: Ground,
        work: float,
    ) -> None:
        self._classes, self._ground = classes, ground
        self._truths = [None if t is None else _Truth(t) for t in truths]
        self.kept: list[tuple[Built, ...]] = [()] * len(classes.forms)
        self._seen: set[tuple[int, int]] = set()
        self._looked: dict[tuple[int, Form], tuple[tuple[Built, ...], ...]] = {}
        self._values: list[dict[bytes, float]] = [{} for _ in classes.forms]
        self._left = work
        self._harms: dict[tuple[Built, str, bool], tuple[int, int, float]] = {}
        self._signs = [
            (name, column < 0, ~(column < 0))
            for name, column in sorted(ground.columns.items())
            if column.dtype != np.bool_ and name in classes.names.values()
            if (column < 0).any() and (column > 0).any()
        ]
        for number, value in classes.numbers.items():
            exact = rounded(value, ground.work)
            mark = crc32(str(value).encode())
            self.kept[number] = (self._built(number, Const(value), exact, 1.0, mark),)
        for number, name in classes.names.items():
            column = _as(ground.work, ground.columns[name])
            mark = crc32(name.encode())
            self.kept[number] = (self._built(number, Ref(name), column, 1.0, mark),)

    def run(self) -> None:
        order = _inner_first(self._classes)
        with np.errstate(all="ignore"):
            for _ in range(_ROUNDS):
                changed = False
                for number in order:
                    changed |= self._improved(number)
                if not changed or self._left < 0:
                    return

    def _improved(self, number: int) -> bool:
        if number in self._classes.names or number in self._classes.numbers:
            return False
        if self._truths[number] is None:
            return False
        new = [b for f in self._classes.forms[number] for b in self._made(number, f)]
        if not new:
            return False
        most = _AT_ROOT if number == self._classes.root else _KEPT
        before = self.kept[number]
        kept = _selected((*before, *new), most)
        halves = tuple(self._split(number, kept))
        kept = _selected((*kept, *halves), most) if halves else kept
        if kept == before:
            return False
        self.kept[number] = kept
        return True

    def _split(self, number: int, kept: tuple[Built, ...]) -> Iterator[Built]:
        """One evaluation for each sign of an input, where the two are better than any
        one."""
        best = kept[0]
        if len(kept) < 2 or _is_fine(best):
            return
        for name, is_minus, is_plus in self._signs:
            low = [self._harm(b, name, True, is_minus) for b in kept]
            high = [self._harm(b, name, False, is_plus) for b in kept]
            below, above = kept[low.index(min(low))], kept[high.index(min(high))]
            gain = low[0][:2] > min(low)[:2] or high[0][:2] > min(high)[:2]
            if below is above or not gain:
                continue
            is_none = self._ground.columns[name] == 0
            at_zero = [_harm(one, is_none) for one in (below, above)]
            op, is_below = ("lt", is_minus)
            if at_zero[0] < at_zero[1]:
                op, is_below = ("le", is_minus | is_none)
            test = Apply(op, (Ref(name), ZERO))
            mark = crc32(f"{op}{name}{below.mark}{above.mark}".encode())
            if (number, mark) not in self._seen:
                self._seen.add((number, mark))
                value = np.where(is_below, below.value, above.value)
                expr = Select(test, below.expr, above.expr)
                cost = 2.0 + _price("select") + below.cost + above.cost
                yield self._built(number, expr, value, cost, mark)

    def _harm(
        self, built: Built, name: str, is_below: bool, where: Any
    ) -> tuple[int, int, float]:
        """Bad points, then the largest error, on one side of an input's zero."""
        key = (built, name, is_below)
        if key not in self._harms:
            self._harms[key] = _harm(built, where)
        return self._harms[key]

    def _made(self, number: int, form: Form) -> Iterator[Built]:
        op, parts = form
        kept = tuple(self.kept[part] for part in parts)
        if number in parts or not all(kept):
            return
        if self._looked.get((number, form)) == kept:  # nothing new to make it of
            return
        self._looked[number, form] = kept
        for args in _choices(kept):
            mark = crc32(f"{op}{[arg.mark for arg in args]}".encode())
            if (number, mark) in self._seen or self._left < 0:
                continue
            self._seen.add((number, mark))
            weight, value = self._value(op, [arg.value for arg in args])
            self._left -= weight
            cost = 1.0 + _price(op) + sum(arg.cost for arg in args)
            if self._is_new(number, value, cost):
                expr = _node(op, tuple(arg.expr for arg in args))
                yield self._built(number, expr, value, cost, mark)

    def _is_new(self, number: int, value: Any, cost: float) -> bool:
        """Whether no evaluation gave the same numbers at that cost."""
        known, key = self._values[number], value.tobytes()
        if known.get(key, inf) <= cost:
            return False
        known[key] = cost
        return True

    def _value(self, op: str, args: list[Any]) -> tuple[float, Any]:
        if op == "select":
            return 1.0, np.where(*args)
        row = primitive(op)
        weight = 1.0 if row.model is not None else _BY_BALLS
        return weight, applied(row, args, self._ground.work)

    def _built(
        self, number: int, expr: Expr, value: Any, cost: float, mark: int
    ) -> Built:
        truth = self._truths[number]
        if np.asarray(value).dtype == np.bool_ or truth is None:
            none = np.zeros(len(self._ground.core))
            rank = (0, _step(0.0), _step(0.0), cost)
            return Built(expr, value, cost, 0, 0.0, 0.0, none, mark, rank)
        bad, error = truth.errors(np.float64(np.float32(value)))
        worst, core = float(error.max()), float(error[self._ground.core].max(initial=0))
        off = np.where(bad, inf, error)
        lost = int(bad.sum())
        rank = (lost, _step(worst), _step(core), cost)
        return Built(expr, value, cost, lost, worst, core, off, mark, rank)


def _is_fine(built: Built) -> bool:
    return built.bad == 0 and built.worst <= GOOD


def _harm(built: Built, where: Any) -> tuple[int, int, float]:
    """Bad points, then the largest error, at some of the points."""
    off = built.off[where]
    is_bad = np.isinf(off)
    worst = np.where(is_bad, 0.0, off).max(initial=0.0)
    return int(is_bad.sum()), _step(float(worst)), built.cost


class _Truth:
    """The values of a class; how far an evaluation is off (as `measure.Trial` counts)."""

    def __init__(self, truth: Any) -> None:
        size = np.abs(truth)
        self._known = np.isfinite(truth) & (size <= float(np.finfo(np.float32).max))
        self._normal = self._known & (size >= _TINY)
        self._truth = np.where(self._known, truth, 0.0)
        limited = np.float32(np.where(self._normal, size, _TINY))
        with np.errstate(over="ignore"):  # beside the largest number
            self._per_unit = 1.0 / np.float64(np.spacing(limited))
        self._subnormal = bool((self._known & ~self._normal).any())

    def errors(self, value: Any) -> tuple[Any, Any]:
        """Which values are bad, and the errors of the others in ULP."""
        bad = self._known & ~np.isfinite(value)
        bad |= self._normal & (value == 0)
        off = np.minimum(np.abs(value - self._truth) * self._per_unit, _CAP)
        counted = self._known & ~bad
        if self._subnormal:
            counted &= self._normal | (np.abs(value) > _TINY)
        return bad, np.where(counted, off, 0.0)


def _inner_first(classes: Classes) -> list[int]:
    """The classes of which the root is made, by the size of what represents them, then
    by its text. Those that only very long forms reach are left out."""
    exprs = representatives(classes)
    sizes = [inf if expr is None else size(expr) for expr in exprs]
    most = _GROWTH * sizes[classes.root] + _ROOM
    todo, found = [classes.root], {classes.root}
    while todo:
        for _, parts in classes.forms[todo.pop()]:
            new = [p for p in parts if p not in found]
            if all(sizes[p] <= most for p in parts):
                found.update(new)
                todo += new
    texts = [(sizes[n], show(expr), n) for n in found if (expr := exprs[n]) is not None]
    return [number for _, _, number in sorted(texts)]


def _choices(kept: tuple[tuple[Built, ...], ...]) -> Iterator[tuple[Built, ...]]:
    """The first of each, and each of the others with the first of the rest."""
    first = tuple(options[0] for options in kept)
    yield first
    for place, options in enumerate(kept):
        for other in options[1:]:
            yield (*first[:place], other, *first[place + 1 :])


def _selected(found: Iterable[Built], most: int) -> tuple[Built, ...]:
    """The most accurate (first), the cheapest, and what mends other points."""
    ranked = sorted(found, key=lambda b: (b.rank, b.mark))
    chosen = [ranked[0]]
    cheapest = min(ranked, key=lambda b: (b.cost, b.rank, b.mark))
    if cheapest is not chosen[0]:
        chosen.append(cheapest)
    covered = chosen[0].good
    for built in ranked:
        if len(chosen) >= most:
            break
        mends = (built.good & ~covered).sum() > _ADDS * len(covered)
        if built not in chosen and mends:
            chosen.append(built)
            covered = covered | built.good
    for built in ranked:
        if len(chosen) >= most:
            break
        if built not in chosen:
            chosen.append(built)
    return tuple(chosen)


def _node(op: str, args: tuple[Expr, ...]) -> Expr:
    match (op, args):
        case ("select", (condition, then, other)):
            return Select(condition, then, other)
        case _:
            return Apply(op, args)


def _as(work: Any, column: Any) -> Any:
    return column if column.dtype == np.bool_ else work(column)


def _price(op: str) -> float:
    return 3.7 if op == "select" else primitive(op).cost


def _step(error: float) -> int:
    """All that is good is equal; beyond, errors are told apart by factors."""
    return ceil(2.0 * log2(max(error, GOOD)))
