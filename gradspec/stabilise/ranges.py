"""Products that leave the range on the way, though their value is in it.

``(4 * x) * 0`` at 1e38 is infinity times 0, and ``4 * (x * 0)`` is 0: factors change their
order. ``x**2 * exp(-x**2)`` at 1e20 has only one order: there a factor that is 0 wins
(`vanishing`). An overflow is not made finite, since the difference of two such would be a
number, and a wrong one.

``c / (c*c + d*d)`` is infinite at 1e-30 and 0 at 1e30, where the quotient is neither:
``c / hypot(c, d) / hypot(c, d)`` has partial products of moderate size. The factors of a
product, above and below the line, are multiplied and divided one by one in the order that
leaves the range at the fewest points. Where a sum is a factor and one of its terms leaves
the range, the rest is multiplied into the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from gradspec.ir.expr import ONE, Apply, Const, Expr, Select
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, names
from gradspec.primitives.table_internal import VANISHING
from gradspec.stabilise.accuracy_model import Quantity, Trial
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.choice import Candidate
from gradspec.stabilise.matching import replaced

_ROWS, _TRIED, _REPLACED = 8, 16, 3
"""Points that take part, forms looked at, and products replaced in one form."""


def with_vanishing_products(quantity: Quantity, start: Candidate) -> Iterator[Expr]:
    """A form with products replaced until it is no NaN at the points where it was."""
    form = start.form
    for trial in quantity.trials:
        closed = quantity.close(form)
        lost = np.isnan(trial.values(closed)) & np.isfinite(trial.condition.value)
        if lost.any():
            yield from _tamed(form, quantity, trial, lost)


def _tamed(form: Expr, quantity: Quantity, trial: Trial, lost: Any) -> Iterator[Expr]:
    every = np.flatnonzero(lost)
    rows = every[:: max(1, len(every) // _ROWS)]
    columns = {name: column[rows] for name, column in trial.points.columns.items()}
    machine = Machine(columns, trial.machine.work)

    def value(expr: Expr) -> Any:
        return machine.run(quantity.close(expr))

    todo, number = [(form, 0)], 0
    while number < min(len(todo), _TRIED):
        current, changes = todo[number]
        number += 1
        bad = np.flatnonzero(np.isnan(value(current)))
        if not bad.size:
            yield current
        elif changes < _REPLACED:
            found = _replacements(current, value, int(bad[0]), trial.points.upstream)
            todo += [(new, changes + 1) for new in found]


def _replacements(
    form: Expr, value: Callable[[Expr], Any], row: int, upstream: frozenset[str]
) -> Iterator[Expr]:
    """The product at which the NaN arises, with its largest factor multiplied by what
    vanishes first; and with a factor of 0 winning. (Upstream gradients stand outside: a
    cotangent stays linear in them.)"""
    node = _origin(form, value, row)
    match node:
        case Apply(op="mul", args=(one, other)):
            for large, small in ((one, other), (other, one)):
                if not np.isinf(value(large)[row]):
                    continue
                parts = factors(large)
                sizes = [abs(float(value(part)[row])) for part in parts]
                if max(sizes) < np.inf:
                    largest = parts.pop(int(np.argmax(sizes)))
                    turned = product([Apply("mul", (largest, small)), *parts])
                    yield replaced(form, node, turned)
                ahead = [part for part in factors(large) if names(part) & upstream]
                rest = [part for part in factors(large) if part not in ahead]
                if rest and names(small) and not names(small) & upstream:
                    vanishing = Apply(VANISHING, (product(rest), small))
                    yield replaced(form, node, product([*ahead, vanishing]))


def factors(expr: Expr) -> list[Expr]:
    """The factors of a product, left to right."""
    match expr:
        case Apply(op="mul", args=(one, other)):
            return [*factors(one), *factors(other)]
        case Apply(op="div", args=(one, below)) if not names(below):
            return [*factors(one), Apply("div", (ONE, below))]
        case _:
            return [expr]


def product(parts: list[Expr]) -> Expr:
    return reduce(lambda one, other: Apply("mul", (one, other)), parts)


def _origin(form: Expr, value: Callable[[Expr], Any], row: int) -> Expr:
    """The innermost NaN on the way to the value."""
    node = form
    while True:
        below = (part for part in _used(node, value, row) if np.isnan(value(part)[row]))
        inner = next(below, None)
        if inner is None:
            return node
        node = inner


def _used(node: Expr, value: Callable[[Expr], Any], row: int) -> tuple[Expr, ...]:
    match node:
        case Select(condition=condition, then=then, other=other):
            return (then if value(condition)[row] else other,)
        case _:
            return children(node)


_FEWEST, _MOST = 3, 10  # factors of a product that is put in another order
_TERMS, _STARTS, _POWER, _BEAM = 3, 6, 4, 6
_OFF = 1e-3
"""Difference of logarithms from which on a product has left the range."""


@dataclass(frozen=True, slots=True)
class _Factor:
    expr: Expr
    is_above: bool


def with_ordered_products(quantity: Quantity, start: Candidate) -> Iterator[Expr]:
    """Forms with the products that leave the range put in another order: as they are,
    with squares of a norm apart, and multiplied into sums."""
    work = _Orders(quantity)
    if any(start.scores[n].bad for n in range(len(start.scores))):
        for is_apart, is_spread in ((False, False), (True, False), (True, True)):
            with np.errstate(all="ignore"):
                form = work.reordered(start.form, is_apart, is_spread)
            if form != start.form:
                yield form


class _Orders:
    def __init__(self, quantity: Quantity) -> None:
        self._quantity, self._trials = quantity, quantity.trials
        self._upstream = self._trials[0].points.upstream

    def reordered(self, form: Expr, is_apart: bool, is_spread: bool) -> Expr:
        for node in _products(form):
            every = _factors(node, True, is_apart)
            found = _without_common(every)
            if not _FEWEST <= len(every) <= _MOST or not self._leaves(node, found):
                continue
            new = self._spread(found) if is_spread else None
            new = new or self._ordered(found)
            if new is not None:
                form = replaced(form, node, new)
        return form

    def _spread(self, found: list[_Factor]) -> Expr | None:
        """The first sum among the factors, the others multiplied into its terms."""
        for place, factor in enumerate(found):
            terms = _terms(factor.expr) if factor.is_above else []
            if not 1 < len(terms) <= _TERMS:
                continue
            rest = found[:place] + found[place + 1 :]
            outside = [f for f in rest if names(f.expr) & self._upstream]
            inside = [f for f in rest if f not in outside]
            value: Expr | None = None
            for is_minus, term in terms:
                parts = [*_factors(term, True, True), *inside]
                made = self._ordered(parts) or _chain(parts)
                value = _joined(value, is_minus, made)
            assert value is not None
            return _chain([*outside, _Factor(value, True)])
        return None

    def _ordered(self, found: list[_Factor]) -> Expr | None:
        """The best order; None if the sizes are not known at any point."""
        logs, low, high = self._sizes(found)
        if not logs.shape[1]:
            return None
        first = [n for n, f in enumerate(found) if names(f.expr) & self._upstream]
        above = [n for n, f in enumerate(found) if f.is_above]
        starts = first[:1] or above[:_STARTS]
        if not starts:
            return None
        order = _best_order(logs, low, high, starts)
        return _chain([found[n] for n in order])

    def _sizes(self, found: list[_Factor]) -> tuple[Any, Any, Any]:
        """Logarithms of the factors (one row each), negative below the line, at the points
        where all are in range, and the range there."""
        columns, lows, highs = [], [], []
        for trial in self._trials:
            logs = np.array([self._size(trial, factor) for factor in found])
            low, high = _range(trial)
            total = logs.sum(axis=0)
            is_known = np.isfinite(logs).all(axis=0) & np.isfinite(
                trial.condition.value
            )
            is_known &= (total > low) & (total < high)
            columns.append(logs[:, is_known])
            lows.append(np.full(int(is_known.sum()), low))
            highs.append(np.full(int(is_known.sum()), high))
        joined = np.concatenate(columns, axis=1)
        return joined, np.concatenate(lows), np.concatenate(highs)

    def _size(self, trial: Trial, factor: _Factor) -> Any:
        value = np.abs(np.float64(trial.values(self._quantity.close(factor.expr))))
        size = np.log2(value)
        return size if factor.is_above else -size

    def _leaves(self, node: Expr, found: list[_Factor]) -> bool:
        """Whether ``node`` is not the product of its factors at some point, or a factor is
        no number there."""
        for trial in self._trials:
            total = sum(self._size(trial, factor) for factor in found)
            value = trial.values(self._quantity.close(node))
            off = np.abs(np.log2(np.abs(np.float64(value))) - total)
            low, high = _range(trial)
            has_left = (total > low) & (total < high) & ~(off < _OFF)
            has_left |= ~np.isfinite(total) & ~np.isfinite(value)
            if (has_left & np.isfinite(trial.condition.value)).any():
                return True
        return False


def _best_order(logs: Any, low: Any, high: Any, starts: list[int]) -> list[int]:
    """The order that leaves the range at the fewest points and, of these, stays nearest to
    the way from 1 to the product; looked for among a few that have been best so far."""
    total = logs.sum(axis=0)
    below, above = np.minimum(0, total), np.maximum(0, total)
    beam = [
        (0, 0.0, [start], logs[start], np.zeros(len(total), bool)) for start in starts
    ]
    for _ in range(len(logs) - 1):
        found = []
        for _, excess, order, here, has_left in beam:
            for n in range(len(logs)):
                if n not in order:
                    there = here + logs[n]
                    out = has_left | (there < low) | (there > high)
                    more = float(
                        np.maximum(there - above, below - there).clip(0).mean()
                    )
                    found.append(
                        (int(out.sum()), excess + more, [*order, n], there, out)
                    )
        beam = sorted(found, key=lambda one: one[:3])[:_BEAM]
    return beam[0][2]


def _range(trial: Trial) -> tuple[float, float]:
    limits = np.finfo(trial.machine.work)
    return float(np.log2(limits.tiny)), float(np.log2(limits.max))


def _products(expr: Expr) -> Iterator[Expr]:
    """Products that are no factors of a product, outer ones first."""
    todo, seen = [(expr, False)], set()
    while todo:
        node, is_factor = todo.pop()
        is_product = isinstance(node, Apply) and node.op in ("mul", "div", "neg")
        if is_product and not is_factor:
            if node in seen:
                continue
            seen.add(node)
            yield node
        below = (node.then, node.other) if isinstance(node, Select) else children(node)
        todo += [(part, is_product) for part in reversed(below)]


def _factors(expr: Expr, is_above: bool, is_apart: bool) -> list[_Factor]:
    """What is above and below the line; ``is_apart``: a sum of two squares is a norm
    twice."""
    match expr:
        case Apply(op="neg", args=(a,)):
            minus = _Factor(Const(Fraction(-1)), True)
            return [minus, *_factors(a, is_above, is_apart)]
        case Apply(op="mul", args=(a, b)):
            return [
                *_factors(a, is_above, is_apart),
                *_factors(b, is_above, is_apart),
            ]
        case Apply(op="div", args=(a, b)):
            return [
                *_factors(a, is_above, is_apart),
                *_factors(b, not is_above, is_apart),
            ]
        case Apply(op="square", args=(a,)):
            return 2 * _factors(a, is_above, is_apart)
        case Apply(op="pow", args=(a, Const(value=n))) if (
            n.denominator == 1 and 0 < n <= _POWER
        ):
            return int(n) * _factors(a, is_above, is_apart)
        case Apply(op="add", args=(a, b)) if is_apart and _root(a) and _root(b):
            norm = Apply("hypot", (_root(a), _root(b)))  # type: ignore[arg-type]
            return 2 * [_Factor(norm, is_above)]
        case _:
            return [_Factor(expr, is_above)]


def _without_common(found: list[_Factor]) -> list[_Factor]:
    """Without what is above and below the line."""
    left = list(found)
    for factor in found:
        other = _Factor(factor.expr, not factor.is_above)
        if factor.is_above and factor in left and other in left:
            left.remove(factor)
            left.remove(other)
    return left if any(f.is_above for f in left) else [_Factor(ONE, True), *left]


def _root(expr: Expr) -> Expr | None:
    """What ``expr`` is the square of."""
    match expr:
        case Apply(op="square", args=(a,)):
            return a
        case Apply(op="mul", args=(a, b)) if a == b:
            return a
        case Const(value=value) if value == 1:
            return expr
        case _:
            return None


def _terms(expr: Expr, is_minus: bool = False) -> list[tuple[bool, Expr]]:
    """The terms of a sum, and whether they are taken off."""
    match expr:
        case Apply(op="add", args=(a, b)):
            return [*_terms(a, is_minus), *_terms(b, is_minus)]
        case Apply(op="sub", args=(a, b)):
            return [*_terms(a, is_minus), *_terms(b, not is_minus)]
        case Apply(op="neg", args=(a,)):
            return _terms(a, not is_minus)
        case _:
            return [(is_minus, expr)]


def _joined(value: Expr | None, is_minus: bool, term: Expr) -> Expr:
    if value is None:
        return Apply("neg", (term,)) if is_minus else term
    return Apply("sub" if is_minus else "add", (value, term))


def _chain(found: list[_Factor]) -> Expr:
    """One after the other; numbers above are one, and stand first."""
    number, value = Fraction(1), None
    for factor in found:
        match factor.expr:
            case Const(value=n) if n:
                number = number * n if factor.is_above else number / n
            case expr if value is None:
                value = expr if factor.is_above else Apply("div", (ONE, expr))
            case expr:
                value = Apply("mul" if factor.is_above else "div", (value, expr))
    if value is None:
        return Const(number)
    if number == -1:
        return Apply("neg", (value,))
    return value if number == 1 else fold(Apply("mul", (Const(number), value)))
