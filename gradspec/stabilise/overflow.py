"""Candidates for products that leave the range on the way to a value within it, or are 0
times infinity: other orders of the factors, and factors of 0 that win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.expr import (
    ONE,
    Apply,
    Const,
    Expr,
    Reduce,
    Select,
)
from gradspec.ir.products import (
    Product,
    base_of_square,
    product,
    product_of,
    terms,
    total,
)
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, names
from gradspec.primitives.table_operators import VANISHING
from gradspec.stabilise.accuracy_model import Trial
from gradspec.stabilise.choice import Candidate
from gradspec.stabilise.names import divisors, is_positive, signed
from gradspec.stabilise.rewriting import replace_in
from gradspec.symbolic.arithmetic_model import Machine

NORM = "hypot"  # of two numbers


# --- products that leave the range ----------------------------------------------------
# ``(4 * x) * 0`` at 1e38 is infinity times 0, and ``4 * (x * 0)`` is 0: the factors are
# reordered. ``x**2 * exp(-x**2)`` at 1e200 has only one order: there a factor that is 0
# wins (`vanishing`). An overflow is not made finite, since the difference of two such
# would be a number, and a wrong one.
#
# ``c / (c*c + d*d)`` is infinite at 1e-30 and 0 at 1e30, where the quotient is neither:
# ``c / hypot(c, d) / hypot(c, d)`` has partial products of moderate size. The factors of
# a product, above and below the line, are multiplied and divided one by one in the order
# that leaves the range at the fewest points. Where a sum is a factor and one of its terms
# leaves the range, the rest is multiplied into the terms.


_ROWS, _TRIED, _REPLACED = 8, 16, 3
"""Points used, candidates examined, and products replaced in one candidate."""


def with_vanishing_products(
    trials: tuple[Trial, ...], start: Candidate
) -> Iterator[Expr]:
    """A candidate with products replaced until it is not NaN at the points where it
    was.
    """
    for trial in trials:
        lost = np.isnan(trial.values(start.form)) & np.isfinite(trial.condition.value)
        if lost.any():
            yield from _without_nan(
                start.form, _at_some_rows(trial, np.flatnonzero(lost))
            )


def _at_some_rows(trial: Trial, rows: Any) -> Trial:
    """The trial restricted to a few of its points."""
    some = np.zeros(len(trial.points), dtype=bool)
    some[rows[:: max(1, len(rows) // _ROWS)]] = True
    points = trial.points.subset(some)
    machine = Machine(points.columns, trial.machine.work)
    return Trial(trial.meaning, points, machine, trial.close)


def _without_nan(form: Expr, trial: Trial) -> Iterator[Expr]:
    todo, number = [(form, 0)], 0
    while number < min(len(todo), _TRIED):
        current, changes = todo[number]
        number += 1
        bad = np.flatnonzero(np.isnan(trial.values(current)))
        if not bad.size:
            yield current
        elif changes < _REPLACED:
            found = _replacements(current, trial, int(bad[0]))
            todo += [(new, changes + 1) for new in found]


def _replacements(form: Expr, trial: Trial, row: int) -> Iterator[Expr]:
    """The product at which the NaN arises, with its largest factor multiplied by the
    one that vanishes first; and with a factor of 0 winning. (Cotangents stay outside: a
    gradient stays linear in them.)
    """
    node = _origin(form, trial, row)
    upstream = {name.partition("[")[0] for name in trial.points.upstream}
    if not isinstance(node, Apply) or node.op != "mul":
        return
    for large, small in (node.args, node.args[::-1]):
        if not np.isinf(trial.values(large)[row]):
            continue
        parts = _parts(large)
        sizes = [abs(float(trial.values(part)[row])) for part in parts]
        if max(sizes) < np.inf:
            at = int(np.argmax(sizes))
            first = Apply("mul", (parts[at], small))
            turned = product_of([first, *parts[:at], *parts[at + 1 :]])
            yield replace_in(form, node, turned)
        both = [*parts, *_parts(small)]
        ahead = [part for part in both if names(part) & upstream]
        rest, less = ([p for p in s if p not in ahead] for s in (parts, _parts(small)))
        if rest and any(map(names, less)) and not _has_pole(rest, less, trial):
            vanishing = Apply(VANISHING, (product_of(rest), product_of(less)))
            yield replace_in(form, node, product_of([*ahead, vanishing]))


def _has_pole(rest: list[Expr], less: list[Expr], trial: Trial) -> bool:
    """True if the rest may be infinite, not just large, where the other is 0. What is
    never 0 vanishes with the divisors that are in it, as in ``exp(-1 / x) / x**2``."""
    sides = (trial.close(product_of(side)) for side in (rest, less))
    large, small = (signed(side, trial.points.signs) for side in sides)
    bases = [base for base in divisors(large) if not is_positive(base)]
    is_safe = is_positive(small) and all(names(b) <= names(small) for b in bases)
    return bool(bases) and not is_safe


def _parts(expr: Expr) -> list[Expr]:
    """The factors, left to right."""
    match expr:
        case Apply(op="mul", args=(a, b)):
            return [*_parts(a), *_parts(b)]
        case Apply(op="div", args=(a, b)) if not names(b):
            return [*_parts(a), Apply("div", (ONE, b))]
        case _:
            return [expr]


def _origin(form: Expr, trial: Trial, row: int) -> Expr:
    """The innermost NaN on the path to the value."""
    node: Expr | None = form
    while node is not None:
        origin = node
        below = _used(node, trial, row)
        node = next((p for p in below if np.isnan(trial.values(p)[row])), None)
    return origin


def _used(node: Expr, trial: Trial, row: int) -> tuple[Expr, ...]:
    match node:
        case Select(condition=condition, then=then, other=other):
            return (then if trial.values(condition)[row] else other,)
        case Reduce():  # which has indices of its own
            return ()
        case _:
            return children(node)


# --- the order of factors ------------------------------------------------------------------

_FEWEST, _MOST_FACTORS = 2, 10  # factors of a product that is put in another order
_TERMS, _STARTS, _BEAM = 3, 6, 6
_OFF = 1e-3
"""The difference of logarithms beyond which a product counts as out of range."""


@dataclass(frozen=True, slots=True)
class _Factor:
    expr: Expr
    is_above: bool


def with_ordered_products(
    trials: tuple[Trial, ...], start: Candidate
) -> Iterator[Expr]:
    """Candidates with the out-of-range products reordered: as they are, with squares of
    a norm separated, of quotients by pairs, and multiplied into sums.
    """
    if any(score.bad for score in start.scores):
        for is_apart, order in (
            *((False, _best_of_orders), (True, _best_of_orders)),
            *((True, _ordered_in_pairs), (True, _spread)),
        ):
            with np.errstate(all="ignore"):
                form = _reorder(start.form, trials, is_apart, order)
            if form != start.form:
                yield form


_Order: TypeAlias = Callable[[list[_Factor], tuple[Trial, ...]], Expr | None]


def _reorder(
    form: Expr, trials: tuple[Trial, ...], is_apart: bool, order: _Order
) -> Expr:
    for node in _products(form):
        whole = _factors(node, is_apart)
        every, found = _factor_list(whole), _factor_list(whole.lowest_terms())
        if _FEWEST <= len(every) <= _MOST_FACTORS and _leaves(node, found, trials):
            new = order(found, trials) or _best_of_orders(found, trials)
            if new is not None:
                form = replace_in(form, node, new)
    return form


def _ordered_in_pairs(found: list[_Factor], trials: tuple[Trial, ...]) -> Expr | None:
    """The order of quotients, each of a denominator and the numerator that is nearest
    to it: ``z / h * (z / h) * (x / h)`` where ``z * z`` vanishes.
    """
    upstream = trials[0].points.upstream
    sizes = [np.concatenate([_size(t, f) for t in trials]) for f in found]
    left = [n for n, f in enumerate(found) if f.is_above and names(f.expr) - upstream]
    pairs: dict[int, _Factor] = {}
    for n, factor in enumerate(found):
        if not factor.is_above and left:
            gaps = [np.nan_to_num(np.abs(sizes[m] + sizes[n])).mean() for m in left]
            above = left.pop(int(np.argmin(gaps)))
            pairs[above] = _Factor(Apply("div", (found[above].expr, factor.expr)), True)
            pairs[n] = pairs[above]
    rest = [factor for n, factor in enumerate(found) if n not in pairs]
    every = [*rest, *(pairs[n] for n in pairs if found[n].is_above)]
    return _best_of_orders(every, trials) if pairs else None


def _spread(found: list[_Factor], trials: tuple[Trial, ...]) -> Expr | None:
    """The first sum among the factors, with the others multiplied into its terms."""
    upstream = trials[0].points.upstream
    for place, factor in enumerate(found):
        parts = terms(factor.expr) if factor.is_above else []
        if 1 < len(parts) <= _TERMS:
            rest = found[:place] + found[place + 1 :]
            inside = [f for f in rest if not names(f.expr) & upstream]
            made = []
            for is_minus, term in parts:
                every = [*_factor_list(_factors(term)), *inside]
                made.append((is_minus, _best_of_orders(every, trials) or _chain(every)))
            outside = [f for f in rest if f not in inside]
            return _chain([*outside, _Factor(total(made), True)])
    return None


def _best_of_orders(found: list[_Factor], trials: tuple[Trial, ...]) -> Expr | None:
    """The best order; None if the magnitudes are unknown at every point."""
    columns, ranges = [], []
    for trial in trials:
        logs = np.array([_size(trial, factor) for factor in found])
        low, high = _range(trial)
        whole = logs.sum(axis=0)
        is_known = np.isfinite(logs).all(axis=0) & np.isfinite(trial.condition.value)
        is_known &= (whole > low) & (whole < high)
        columns.append(logs[:, is_known])
        ranges.append(np.tile([[low], [high]], int(is_known.sum())))
    logs, (low, high) = np.concatenate(columns, 1), np.concatenate(ranges, 1)
    upstream = trials[0].points.upstream
    first = [n for n, f in enumerate(found) if names(f.expr) & upstream]
    above = [n for n, f in enumerate(found) if f.is_above]
    starts = first[:1] or above[:_STARTS]
    if not logs.shape[1] or not starts:
        return None
    return _chain([found[n] for n in _best_order(logs, low, high, starts)])


def _size(trial: Trial, factor: _Factor) -> Any:
    """The logarithm at each point, negative below the line."""
    size = np.log2(np.abs(trial.values(factor.expr).astype(np.float64)))
    return size if factor.is_above else -size


def _leaves(node: Expr, found: list[_Factor], trials: tuple[Trial, ...]) -> bool:
    """True if ``node`` is not the product of its factors at some point, or a factor is
    not a number there.
    """
    for trial in trials:
        whole = sum(_size(trial, factor) for factor in found)
        value = trial.values(node)
        off = np.abs(np.log2(np.abs(value.astype(np.float64))) - whole)
        low, high = _range(trial)
        has_left = (whole > low) & (whole < high) & ~(off < _OFF)
        has_left |= ~np.isfinite(whole) & ~np.isfinite(value)
        if (has_left & np.isfinite(trial.condition.value)).any():
            return True
    return False


def _range(trial: Trial) -> tuple[float, float]:
    limits = np.finfo(trial.machine.work)
    return float(np.log2(limits.tiny)), float(np.log2(limits.max))


def _best_order(logs: Any, low: Any, high: Any, starts: list[int]) -> list[int]:
    """The order that leaves the range at the fewest points and, among these, stays
    nearest to the interval from 1 to the product; a beam search over a few best so far.
    """
    whole = logs.sum(axis=0)
    below, above = np.minimum(0, whole), np.maximum(0, whole)
    none = np.zeros(len(whole), bool)
    beam = [(0, 0.0, [start], logs[start], none) for start in starts]
    for _ in range(len(logs) - 1):
        found = []
        for _, excess, order, here, has_left in beam:
            for n in set(range(len(logs))) - set(order):
                there = here + logs[n]
                out = has_left | (there < low) | (there > high)
                off = np.maximum(there - above, below - there).clip(0)
                excess_there = excess + float(off.mean())
                found.append((int(out.sum()), excess_there, [*order, n], there, out))
        beam = sorted(found, key=lambda one: one[:3])[:_BEAM]
    return beam[0][2]


def _products(expr: Expr) -> Iterator[Expr]:
    """Maximal products (not factors of a product), outer ones first."""
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


def _factors(expr: Expr, is_apart: bool = True) -> Product:
    """The factors; with ``is_apart`` a sum of two squares is its norm twice."""
    found = product(expr)
    sides = (found.above, found.below) if is_apart else ()
    apart = [tuple(f for factor in side for f in _as_norms(factor)) for side in sides]
    return Product(found.number, *apart) if is_apart else found


def _as_norms(factor: Expr) -> tuple[Expr, ...]:
    match factor:
        case Apply(op="add", args=(a, b)):
            one, other = (ONE if x == ONE else base_of_square(x) for x in (a, b))
            if one is not None and other is not None:
                return 2 * (Apply(NORM, (one, other)),)
    return (factor,)


def _factor_list(found: Product) -> list[_Factor]:
    """Its number first, then numerators and denominators."""
    above, below = found.above, found.below
    if found.number != 1 or not above:
        above = (Const(found.number), *above)
    return [_Factor(f, True) for f in above] + [_Factor(f, False) for f in below]


def _chain(found: list[_Factor]) -> Expr:
    """The factors one after the other; numbers are merged, and come first."""
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
