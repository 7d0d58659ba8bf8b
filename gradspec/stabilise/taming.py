"""Infinite operands made finite, where 0 times infinity, infinity over infinity or the
difference of two has a limit (`infinite.py`).

``finite(u)`` is ``u`` at every finite number, with slope 1: no value changes there, nor a
derivative of any order. ``beta * x * t`` with ``t`` vanishing as an exponential is
``finite(beta * x) * t``; ``d / hypot(d, c)`` is ``finite(d) / finite(hypot(d, c))``. One
pass, or two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.expr import ZERO, Apply, Expr, Ref, Select
from gradspec.ir.walk import children, names, nodes, with_children
from gradspec.primitives.table_bounds import FINITE, GATED, NAMES, VANISHING
from gradspec.stabilise.bounding import End
from gradspec.stabilise.choose import cost
from gradspec.stabilise.model import Machine
from gradspec.stabilise.search import replaced

_TRIED = 24
"""Forms that are looked at for one end."""

_MOST, _EACH = 2, 32.0
"""What is done about infinities in one of them, and for how much cost once more."""

_Points: TypeAlias = tuple[tuple[tuple[str, Fraction], ...], ...]

_DEAR = 8.0
"""What a factor costs that may be asked whether it has vanished."""


def at_end(end: End, work: Any) -> Machine:
    """The model of the arithmetic at the end, the others as in its points."""
    points = tuple(tuple(point.items()) for point in end.points)
    return _machine(points, end.name, end.sign * math.inf, work)


@lru_cache(maxsize=16)
def _machine(points: _Points, name: str, infinity: float, work: Any) -> Machine:
    """One for all that is asked there: what it knows it need not compute again."""
    rows = [dict(point) for point in points]
    columns = {k: np.array([float(row[k]) for row in rows], work) for k in rows[0]}
    columns[name] = np.full(len(rows), infinity, work)
    return Machine(columns, work)


class Tamer:
    """Forms of a value that are no NaN at the points of a machine (at an end, mostly).
    ``upstream`` are the names in which a gradient is linear: nothing is asked of them."""

    def __init__(
        self,
        close: Callable[[Expr], Expr],
        machine: Machine,
        upstream: frozenset[str],
    ) -> None:
        self._close, self._machine, self._upstream = close, machine, upstream
        self._is_value = True

    def forms(self, form: Expr) -> Iterator[Expr]:
        """Those with fewest changes first."""
        self._is_value = self._upstream.isdisjoint(names(self._close(form)))
        todo, seen = [form], {form}
        most = _MOST + cost(self._close(form)) // _EACH
        for number in range(_TRIED):
            if number == len(todo):
                return
            current = todo[number]
            bad = np.flatnonzero(np.isnan(self._value(current)))
            if not bad.size:
                yield current
                continue
            if len(todo) < _TRIED:  # what comes after those is not looked at
                for other in self._changed(current, int(bad[0])):
                    if other not in seen and _count(other) <= most:
                        seen.add(other)
                        todo.append(other)
                        if len(todo) == _TRIED:
                            break

    def _value(self, expr: Expr) -> Any:
        return self._machine.run(self._close(expr))

    def _changed(self, form: Expr, row: int) -> Iterator[Expr]:
        """First what leaves the operands as they are, so that they are still shared."""
        guilty = self._guilty(form, row)
        if not isinstance(guilty, Apply) or guilty.op == FINITE:
            return
        for other in self._variants(guilty, row):
            yield replaced(form, guilty, other)
        for core in self._cores(guilty, row):
            yield _made_finite(form, core)

    def _guilty(self, form: Expr, row: int) -> Expr:
        """The innermost NaN on the way to the value."""
        node = form
        while True:
            below = (part for part in self._used(node, row) if self._is_nan(part, row))
            inner = next(below, None)
            if inner is None:
                return node
            node = inner

    def _used(self, node: Expr, row: int) -> tuple[Expr, ...]:
        match node:
            case Select(condition=condition, then=then, other=other):
                return (then if self._value(condition)[row] else other,)
            case _:
                return tuple(children(node))

    def _is_nan(self, node: Expr, row: int) -> bool:
        return bool(np.isnan(self._value(node)[row]))

    def _is_infinite(self, node: Expr, row: int) -> bool:
        return bool(np.isinf(self._value(node)[row])) and self._is_tame(node)

    def _is_tame(self, node: Expr) -> bool:
        """Nothing to be left alone: no upstream gradient, no number as it stands."""
        used = names(self._close(node))
        return bool(used) and not used & self._upstream

    def _variants(self, node: Expr, row: int) -> Iterator[Expr]:
        """The node with one of its infinite operands finite, or both of two."""
        parts = tuple(children(node))
        found = [n for n, part in enumerate(parts) if self._is_infinite(part, row)]
        for chosen in (*((n,) for n in found), tuple(found)):
            if chosen:
                changed = (
                    finite(part) if n in chosen else part
                    for n, part in enumerate(parts)
                )
                yield with_children(node, tuple(changed))
        match node:
            case Apply(op="mul", args=(one, other)):
                for big, small in ((one, other), (other, one)):
                    if self._is_infinite(big, row):
                        yield from self._products(big, small)

    def _products(self, big: Expr, small: Expr) -> Iterator[Expr]:
        """Products that give way: to a gate that is shut, or to what has vanished. (The
        slope of the first about 0 is another, and gradients have slopes.)"""
        shut = _gated(big, small)
        if shut is not None and self._is_value:
            yield shut
        if self._is_dear(small) or shut is not None:
            yield Apply(VANISHING, (big, small))

    def _is_dear(self, part: Expr) -> bool:
        """Whether asking costs little beside it."""
        return self._is_tame(part) and cost(self._close(part)) >= _DEAR

    def _cores(self, guilty: Expr, row: int) -> Iterator[Expr]:
        """What may be made finite wherever it stands: a sum with the input, or it."""
        for node in reversed(list(nodes(guilty))):
            match node:
                case Ref() | Apply(op="add" | "sub") if node != guilty:
                    if self._is_infinite(node, row):
                        yield node


def _gated(big: Expr, small: Expr) -> Expr | None:
    """``big * max(y, 0)`` and ``big * min(y, 0)``."""
    match small:
        case Apply(op="max" | "min" as op, args=(y, bound) | (bound, y)) if (
            bound == ZERO
        ):
            shown = y if op == "max" else Apply("neg", (y,))
            product = Apply(GATED, (big, shown))
            return product if op == "max" else Apply("neg", (product,))
        case Apply(op="relu", args=(y,)):
            return Apply(GATED, (big, y))
        case _:
            return None


def _count(form: Expr) -> int:
    return sum(isinstance(n, Apply) and n.op in NAMES for n in nodes(form))


def finite(part: Expr) -> Expr:
    return Apply(FINITE, (part,))


_KEPT = Ref("kept_")


def _made_finite(form: Expr, core: Expr) -> Expr:
    """``core`` finite wherever it stands, once."""
    done = finite(core)
    if done not in nodes(form):
        return replaced(form, core, done)
    kept = replaced(form, done, _KEPT)
    return replaced(replaced(kept, core, done), _KEPT, done)
