"""A product in an order that stays inside the range.

``z * (x * x)`` overflows though ``z * x * x`` does not, and ``a / (b * c)`` is 0 where
``a / b / c`` is not. The factors of a product are sorted so that what stands on the way
leaves the range at the fewest points. Only the exponents of the factors are needed for
that: they are added up, not computed with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from gradspec.derive.build import plus, scale, times
from gradspec.ir.expr import ONE, Apply, Const, Expr, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names
from gradspec.stabilise.measure import Trial

_FEWEST, _MOST = 2, 840
"""Factors, and orders of them."""

_FORMS = 4
_HALF = Fraction(1, 2)
_DEEPEST = 3  # conditionals within one another

Factor: TypeAlias = tuple[Expr, int]
"""A factor, and 1 if it stands above the line, -1 if below."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ground:
    """Exponents of the factors at the points (a row for each factor, below the line
    negative), and where the range ends at each point."""

    exponents: Any
    least: Any
    most: Any


def reordered(expr: Expr, trials: tuple[Trial, ...]) -> Iterator[Expr]:
    """``expr`` with the product at its root (in each branch) in other orders, the safest
    first."""
    orders = [*_orders(expr, trials, _DEEPEST)]
    seen = {expr}
    for form in orders:
        if form not in seen:
            seen.add(form)
            yield form


def _orders(expr: Expr, trials: tuple[Trial, ...], depth: int) -> Iterator[Expr]:
    if isinstance(expr, Select):
        if depth:
            branches = (expr.then, expr.other)
            some = [[b, *_orders(b, trials, depth - 1)][:3] for b in branches]
            for then in some[0]:
                yield from (Select(expr.condition, then, other) for other in some[1])
        return
    number, every = factors(expr)
    upstream = trials[0].points.upstream
    plain = [f for f in every if names(f[0]) <= upstream]
    rest = [f for f in every if f not in plain]
    for part in dict.fromkeys((tuple(rest), tuple(_halved(rest)))):
        for order in _sorted(part, trials):
            yield _in_order(number, (*plain, *order))


def _sorted(
    factors: tuple[Factor, ...], trials: tuple[Trial, ...]
) -> list[tuple[Factor, ...]]:
    """The safest orders; none if there are too many."""
    if len(factors) < _FEWEST:
        return []
    found = [*islice(_arranged(factors), _MOST + 1)]
    if len(found) > _MOST:
        return []
    ground = _ground(factors, trials)
    return sorted(found, key=lambda order: _rank(order, factors, ground))[:_FORMS]


def _arranged(factors: tuple[Factor, ...]) -> Iterator[tuple[Factor, ...]]:
    """All orders, equal factors not told apart."""
    if not factors:
        yield ()
    for first in dict.fromkeys(factors):
        place = factors.index(first)
        rest = (*factors[:place], *factors[place + 1 :])
        yield from ((first, *order) for order in _arranged(rest))


def _halved(factors: list[Factor]) -> Iterator[Factor]:
    """Exponentials as squares of smaller ones, which stay in the range for twice as
    long; ``cosh`` through the exponential of a magnitude."""
    for factor, side in factors:
        match factor:
            case Apply(op="exp", args=(a,)):
                yield from [(_exp(a, _HALF), side)] * 2
            case Apply(op="cosh", args=(a,)):
                size = Apply("abs", (a,))
                rest = times(Const(_HALF), plus(ONE, _exp(size, Fraction(-2))))
                yield from [(_exp(size, _HALF), side)] * 2
                yield rest, side
            case _:
                yield factor, side


def _exp(argument: Expr, rate: Fraction) -> Expr:
    return Apply("exp", (scale(rate, argument),))


def factors(expr: Expr) -> tuple[Const, list[Factor]]:
    """What ``expr`` is a product of: a number and factors, squares twice."""
    number = ONE.value
    found: list[Factor] = []
    todo: list[Factor] = [(expr, 1)]
    while todo:
        node, side = todo.pop()
        match node:
            case Const(value=value) if value:
                number = number * value if side > 0 else number / value
            case Apply(op="neg", args=(a,)):
                number = -number
                todo.append((a, side))
            case Apply(op="mul", args=(a, b)):
                todo += ((b, side), (a, side))
            case Apply(op="div", args=(a, b)):
                todo += ((b, -side), (a, side))
            case Apply(op="square", args=(a,)):
                todo += ((a, side), (a, side))
            case _:
                found.append((node, side))
    return Const(number), found


def _ground(factors: tuple[Factor, ...], trials: tuple[Trial, ...]) -> _Ground:
    rows = []
    with np.errstate(all="ignore"):
        for factor, side in factors:
            values = np.concatenate([trial.sizes(factor) for trial in trials])
            rows.append(side * np.log2(values))
    sizes = [len(trial.points) for trial in trials]
    ends = [np.finfo(trial.dtype) for trial in trials]
    least = np.repeat([np.log2(float(end.tiny)) for end in ends], sizes)
    most = np.repeat([np.log2(float(end.max)) for end in ends], sizes)
    table = np.array(rows)
    sound = np.isfinite(table).all(axis=0)
    with np.errstate(all="ignore"):
        total = table.sum(axis=0)
        sound &= (total > least) & (total < most)
    return _Ground(table[:, sound], least[sound], most[sound])


def _rank(
    order: tuple[Factor, ...], factors: tuple[Factor, ...], ground: _Ground
) -> tuple[int, int, tuple[int, ...]]:
    """At how many points something leaves the range, how many divisions there are, and
    how far it is from the order as written."""
    places = tuple(factors.index(factor) for factor in order)
    sums = np.cumsum(ground.exponents[list(places)], axis=0)
    outside = ((sums <= ground.least) | (sums >= ground.most)).any(axis=0)
    return int(outside.sum()), int(order[0][1] < 0), places


def _in_order(number: Const, order: tuple[Factor, ...]) -> Expr:
    total: Expr = number
    for factor, side in order:
        total = fold(Apply("mul" if side > 0 else "div", (total, factor)))
    return tidy(total)


def is_product(expr: Expr) -> bool:
    """Whether there is anything to sort."""
    match expr:
        case Select(then=then, other=other):
            return is_product(then) or is_product(other)
        case Apply(op="mul" | "div", args=args):
            return any(names(arg) for arg in args)
        case _:
            return False
