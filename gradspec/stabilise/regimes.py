"""Regimes by measurement: one form below a threshold, another above it.

Where no single form is right everywhere, two often are together: one for small ``|x|``,
one for large. For each thing to be compared (an input, its magnitude, the magnitudes of
two inputs, the argument of a root or a logarithm) the points are sorted by it, and the
best pair of forms and the best place to change are found in one pass over the errors of
all forms. So that luck is no reason, each split is found on half of the points and must
pay on the other half. A side that is still poor is split once more.

The threshold is the shortest number between the two points where the forms change: both
are right there. What stands in the branch not taken is made harmless by `guard.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import floor, log10, sqrt
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.walk import names, nodes, size
from gradspec.stabilise.choose import Candidate, cost
from gradspec.stabilise.measure import GOOD, Trial

BAD, _MOST = 40.0, 24.0
"""What a bad point weighs, and at most any other, in bits lost."""

_FORMS = 28
_DEEPEST = 2
_GAIN, _LEAST = 0.6, 6.0
"""Share of the lost bits that may be left, and how many must be gained."""

_LEFT = 0.2
"""Share that may be left of what the best form alone loses: a conditional costs both of
its branches, and is taken only if it mends nearly all."""

_TESTED = 0.8
"""Share that may be left at points which did not take part in the choice."""

_TINY, _HUGE = Fraction(1, 10**37), 10**37  # float32 has them

_NATURAL = (Fraction(1), Fraction(80), Fraction(700))

_INNER = 4
_ROOTS = ("sqrt", "log", "log1p", "exp", "expm1", "acosh", "pow")


Threshold: TypeAlias = tuple[Fraction, str]
"""A number, and whether it is above ("lt") or below ("le")."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A candidate with the bits that it loses at each point."""

    candidate: Candidate
    lost: Any
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """What is compared with a threshold, and its values; ``scale`` multiplies the
    threshold."""

    expr: Expr
    values: Any
    scale: Expr | None = None

    def below(self, threshold: Threshold) -> Expr:
        """The condition of being below; 0 itself may be."""
        number, op = threshold
        limit: Expr = Const(number)
        if self.scale is not None:
            limit = (
                self.scale if number == 1 else Apply("mul", (Const(number), self.scale))
            )
        return Apply(op, (self.expr, limit))

    def is_below(self, threshold: Threshold) -> Any:
        number, op = threshold
        compare = np.less_equal if op == "le" else np.less
        return compare(self.values, float(number))


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    key: Key
    threshold: Threshold
    below: Form
    above: Form
    left: float
    """The bits that are still lost."""


def losses(off: Any) -> Any:
    """Bits lost beyond what is good; bad points weigh more than any."""
    with np.errstate(all="ignore"):
        bits = np.clip(np.log2(np.maximum(off, GOOD) / GOOD), 0.0, _MOST)
    return np.where(np.isinf(off), BAD, bits)


def by_regimes(
    forms: Sequence[Form], trials: tuple[Trial, ...], is_last: bool = False
) -> Iterator[Expr]:
    """Conditionals between the forms that lose less than any alone (the first form is
    the best alone). What none of them mends does not count if it ``is_last``, for then
    nothing will."""
    some = _some(forms)
    if len(some) < 2:
        return
    keys = tuple(_keys([f.candidate.closed for f in some], trials))
    everywhere = np.ones(len(some[0].lost), dtype=bool)
    before = float(some[0].lost.sum())
    tree, left = _tree(some, keys, everywhere, _DEEPEST)
    least = np.minimum.reduce([f.lost for f in some]).sum() if is_last else 0.0
    if left - least <= _LEFT * (before - least) and isinstance(tree, Select):
        yield tree


def _some(forms: Sequence[Form]) -> list[Form]:
    """The best form, and those that are best where the ones before them lose."""
    left = dict(enumerate(forms))
    chosen = [left.pop(0)]
    least = chosen[0].lost
    while left and len(chosen) < _FORMS:
        totals = {n: float(np.minimum(least, f.lost).sum()) for n, f in left.items()}
        place = min(totals, key=lambda n: (totals[n], left[n].cost, n))
        if totals[place] > float(least.sum()) - 1.0:
            break
        chosen.append(left.pop(place))
        least = np.minimum(least, chosen[-1].lost)
    return chosen


def _tree(
    forms: Sequence[Form], keys: tuple[Key, ...], where: Any, depth: int
) -> tuple[Expr, float]:
    """The best form, or a conditional, at some of the points, and what it loses."""
    best = min(forms, key=lambda f: (_total(f, where), f.cost))
    split = _split(forms, keys, where, best) if depth else None
    if split is None:
        return best.candidate.form, _total(best, where)
    is_below = split.key.is_below(split.threshold)
    below, one = _tree(forms, keys, where & is_below, depth - 1)
    above, other = _tree(forms, keys, where & ~is_below, depth - 1)
    return Select(split.key.below(split.threshold), below, above), one + other


def _total(form: Form, where: Any) -> float:
    return float(form.lost[where].sum())


def _split(
    forms: Sequence[Form], keys: tuple[Key, ...], where: Any, best: Form
) -> _Split | None:
    """The split that leaves least lost, if it pays."""
    before = _total(best, where)
    if before < _LEAST:
        return None
    most = min(_GAIN * before, before - _LEAST)
    found: _Split | None = None
    for key in keys:
        one = _best(forms, key, where)
        if one is None or one.left > most:
            continue
        if found is None or one.left < 0.9 * found.left - 1.0:
            found = one if _is_sound(forms, key, where) else found
    return found


def _is_sound(forms: Sequence[Form], key: Key, where: Any) -> bool:
    """Whether a split found on half of the points pays on the other half."""
    turn = np.cumsum(where) % 2 == 0
    for half in (turn, ~turn):
        one = _best(forms, key, where & half)
        if one is None:
            return False
        rest = where & ~half
        is_below = rest & key.is_below(one.threshold)
        left = _total(one.below, is_below) + _total(one.above, rest & ~is_below)
        alone = min(forms, key=lambda f: (_total(f, where & half), f.cost))
        if left > _TESTED * _total(alone, rest):
            return False
    return True


def _best(forms: Sequence[Form], key: Key, where: Any) -> _Split | None:
    """The best pair of forms and place to change them."""
    chosen = np.flatnonzero(where & ~np.isnan(key.values))
    order = chosen[np.argsort(key.values[chosen], kind="stable")]
    values = key.values[order]
    ends = np.flatnonzero(values[1:] > values[:-1]) + 1
    if not len(ends):
        return None
    lost = np.cumsum(np.array([f.lost[order] for f in forms]), axis=1)
    below = lost[:, ends - 1]
    above = lost[:, -1:] - below
    sums = below.min(axis=0) + above.min(axis=0)
    first, last = _plateau(sums)
    middle = int(ends[first]), int(ends[last])
    threshold = _between(float(values[middle[0] - 1]), float(values[middle[1]]))
    one, other = int(below[:, first].argmin()), int(above[:, last].argmin())
    if threshold is None or one == other:
        return None
    is_below = where & key.is_below(threshold)
    left = _total(forms[one], is_below) + _total(forms[other], where & ~is_below)
    return _Split(key, threshold, forms[one], forms[other], left)


def _plateau(sums: Any) -> tuple[int, int]:
    """The first and last of the longest run of places that are as good as the best."""
    good = sums <= sums.min() + 1e-9
    edges = np.flatnonzero(np.diff(np.concatenate([[0], good.astype(int), [0]])))
    runs = edges.reshape(-1, 2)
    first, end = max(runs.tolist(), key=lambda run: (run[1] - run[0], -run[0]))
    return int(first), int(end) - 1


def _between(low: float, high: float) -> Threshold | None:
    if low == 0:
        return Fraction(0), "le"
    number = short(low, high)
    return None if number is None else (number, "lt")


def short(low: float, high: float) -> Fraction | None:
    """A number of few digits beyond ``low``, at most ``high``: 0, 1 or where an
    exponential leaves a format if they are there, else one in the middle."""
    if not low < high or not np.isfinite([low, high]).all():
        return None
    if low < 0 <= high:
        return Fraction(0)
    if high <= 0:
        mirrored = short(-high, -low)
        return None if mirrored is None else -mirrored
    for natural in _NATURAL:
        if low < natural <= high:
            return natural
    middle = sqrt(low) * sqrt(high) if low > 0 else high / 4
    for digits in range(1, 17):
        unit = Fraction(10) ** (floor(log10(middle)) - digits + 1)
        number = round(Fraction(middle) / unit) * unit
        if low < number <= high and _TINY < abs(number) < _HUGE:
            return number
    return None


# --- what is compared ------------------------------------------------------------------


def _keys(closed: Iterable[Expr], trials: tuple[Trial, ...]) -> Iterator[Key]:
    """Inputs, their magnitudes, two of those, and what roots and logarithms are of."""
    exprs = tuple(closed)
    single = trials[0]
    floats = [
        name
        for name in sorted(single.variables)
        if single.points.columns[name].dtype != np.bool_
    ]
    for name in floats:
        yield Key(Ref(name), _values(Ref(name), trials))
        yield Key(_size(name), _values(_size(name), trials))
    for a, b in combinations(floats, 2):
        one, other = _values(Ref(a), trials), _values(Ref(b), trials)
        with np.errstate(all="ignore"):
            yield Key(_size(a), np.abs(one) / np.abs(other), _size(b))
            yield Key(Ref(a), np.where(one < other, 0.5, 1.5), Ref(b))
    for inner in _inner(exprs, single):
        yield Key(inner, _values(inner, trials))


def _size(name: str) -> Expr:
    return Apply("abs", (Ref(name),))


def _values(expr: Expr, trials: tuple[Trial, ...]) -> Any:
    return np.concatenate([np.float64(trial.values(expr)) for trial in trials])


def _inner(exprs: tuple[Expr, ...], trial: Trial) -> list[Expr]:
    """Arguments of several inputs, the most used first."""
    found: dict[Expr, int] = {}
    for expr in exprs:
        for node in nodes(expr):
            if isinstance(node, Apply) and node.op in _ROOTS:
                for arg in node.args:
                    used = names(arg)
                    if len(used) > 1 and used <= trial.variables and size(arg) <= 9:
                        found[arg] = found.get(arg, 0) + 1
    return sorted(found, key=lambda e: (-found[e], cost(e)))[:_INNER]
