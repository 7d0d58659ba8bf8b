"""Where float64 is no number either or has lost all digits: the first terms about an end.

What cancels wholly in float64, too, does so where an input is small or large beside the
others, about 1, or nearly the other input. There the function is the first terms of its
expansion (`symbolic/expansion.py`), each a product; a term that is small beside the
first says how far they reach. What float64 makes of the form at hand is right from there on.

Which end it is the bad points tell: an end is tried if some of them are near it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import permutations
from typing import Any

import numpy as np

from gradspec.derive.build import plus, times
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select, const
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes, size, substitute
from gradspec.primitives.table_polynomials import NAMES as POLYNOMIALS
from gradspec.stabilise.measure import Trial
from gradspec.stabilise.search import replaced
from gradspec.symbolic.expansion import leading
from gradspec.symbolic.first_terms import Leading

_NEAR = 2.0**-6
_SOME = 0.2
"""Of the bad points, near an end that is tried."""

_MOST = 3
_LARGEST, _LONGEST = 160, 200
"""Ends that are tried, and nodes of a form that is expanded, and of what is made of it."""

_ORDER = 8
_WAYS = ((3, Fraction(1, 2**8)), (2, Fraction(1, 2**12)), (2, Fraction(1, 2**20)))
"""How many terms stand beside the first, and what share of it they may be."""


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """An input as an expression in its small ``distance`` (which has its name), and that
    in the inputs; ``near`` are the points at which it is small."""

    name: str
    inside: Expr
    distance: Expr
    near: Any


def about_ends(
    usual: Expr, lost: Any, trials: tuple[Trial, ...]
) -> Iterator[tuple[Expr, Expr]]:
    """Some first terms of the function about the ends near which points are ``lost``; and
    ``usual``, which is computed elsewhere, with them where they reach."""
    meaning = trials[0].meaning
    for end in _tried(trials, lost):
        for start in dict.fromkeys((meaning, usual)):
            found = _expanded(start, end)
            if found is not None:
                yield from _forms(found, end, usual)
                break


def _expanded(start: Expr, end: _End) -> Leading | None:
    if end.name not in names(start) or size(start) > _LARGEST:
        return None
    moved = substitute(start, {end.name: end.inside})
    return leading(moved, end.name, _ORDER, _WAYS[0][0])


def _forms(found: Leading, end: _End, usual: Expr) -> Iterator[tuple[Expr, Expr]]:
    for count, share in _WAYS:
        shares = [
            _put(times(term, _power(Ref(end.name), k)), end)
            for k, term in found.shares[:count]
        ]
        first = _put(times(found.first, _power(Ref(end.name), found.power)), end)
        whole: Expr = ONE
        series = tidy(times(first, reduce(plus, shares, whole)))
        nothing: Expr = ZERO
        sizes = (Apply("abs", (term,)) for term in shares[:2])
        reach = reduce(_larger, sizes, nothing)
        reached = Apply("lt", (tidy(reach), Const(share)))
        for form in _placed(reached, series, usual) if shares else ():
            if size(form) <= _LONGEST:
                yield series, form


def _larger(a: Expr, b: Expr) -> Expr:
    return b if a == ZERO else Apply("max", (a, b))


def _placed(condition: Expr, series: Expr, usual: Expr) -> Iterator[Expr]:
    """Before all, or after another condition."""
    yield Select(condition, series, usual)
    if isinstance(usual, Select):
        yield replace(usual, other=Select(condition, series, usual.other))


def _put(expr: Expr, end: _End) -> Expr:
    return substitute(expr, {end.name: end.distance})


def _power(base: Expr, exponent: int) -> Expr:
    if exponent == 0:
        return ONE
    whole = abs(exponent)
    found = base if whole == 1 else fold(Apply("pow", (base, const(whole))))
    return found if exponent > 0 else Apply("div", (ONE, found))


# --- which end -------------------------------------------------------------------------


def _tried(trials: tuple[Trial, ...], lost: Any) -> list[_End]:
    """Those near most of the points that are lost, compared with all points."""
    if not lost.any():
        return []
    ranked: list[tuple[float, int, _End]] = []
    for place, end in enumerate(_ends(trials)):
        share = float(end.near[lost].mean())
        if share >= _SOME:
            ranked.append((float(end.near.mean()) - share, place, end))
    ranked.sort(key=lambda one: one[:2])
    return [end for _, _, end in ranked[:_MOST]]


def _ends(trials: tuple[Trial, ...]) -> Iterator[_End]:
    first = trials[0]
    inputs = [
        name
        for name in sorted(first.variables)
        if first.points.columns[name].dtype != np.bool_
    ]
    columns = {name: _column(name, trials) for name in inputs}
    with np.errstate(all="ignore"):
        for name, column in columns.items():
            yield from _of_one(name, column)
        for one, other in permutations(inputs, 2):
            yield from _of_two(one, other, columns[one], columns[other])


def _column(name: str, trials: tuple[Trial, ...]) -> Any:
    return np.concatenate([np.float64(t.points.columns[name]) for t in trials])


def _of_one(name: str, column: Any) -> Iterator[_End]:
    x: Expr = Ref(name)
    over: Expr = Apply("div", (ONE, x))
    yield _End(name, x, x, np.abs(column) < _NEAR)
    yield _End(name, over, over, np.abs(column) > 1 / _NEAR)
    beside = Apply("add", (ONE, x))
    yield _End(name, beside, Apply("sub", (x, ONE)), np.abs(column - 1) < _NEAR)


def _of_two(name: str, other: str, column: Any, beside: Any) -> Iterator[_End]:
    x, z = Ref(name), Ref(other)
    limit = _NEAR * np.abs(beside)
    sums = Apply("add", (z, x)), Apply("sub", (x, z))
    yield _End(name, *sums, np.abs(column - beside) < limit)
    yield _End(name, sums[1], Apply("add", (x, z)), np.abs(column + beside) < limit)


# --- a conditional that float64 does not need ------------------------------------------


def undivided(form: Expr) -> Iterator[Expr]:
    """``form`` with one of its conditionals gone, in favour of either branch: it may have
    been made for what float32 loses. (A series is the function in its window alone.)"""
    for node in nodes(form):
        if isinstance(node, Select):
            some = (b for b in (node.then, node.other) if not _has_series(b))
            yield from (tidy(replaced(form, node, b)) for b in some)


def _has_series(branch: Expr) -> bool:
    return any(isinstance(n, Apply) and n.op in POLYNOMIALS for n in nodes(branch))
