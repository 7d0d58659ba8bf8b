"""A gradient of several inputs as a sum of functions of one variable each.

``f(a, b) = u(a) + v(b)`` wherever ``f`` is a sum of that kind, and the parts need not be
guessed: it is ``f(a, 0) + f(0, b) - f(0, 0)``. Each is a limit, the first term of an
expansion (`symbolic/expansion.py`), since ``f`` may be a fraction without a value there; that
their sum is ``f`` is proved in the ring of its exponentials (`peeled.py`). So partial
fractions are found: the slope of ``e * expm1(p + q) / (expm1(p) * expm1(q))`` in ``e``, with
``p = a * e`` and ``q = b * e``, is ``h(p) + h(q)`` with ``h(p) = 1/2 + (expm1(p) - p * exp(p)) /
expm1(p)**2``. Such a part is taken through ``exp(-|p|)``, with series about its zeros and
removable points (`series.py`). Limits at infinity stand apart: where those of the parts
cancel (``h`` runs from -1/2 to 1/2) what is left is as small as it should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations

from gradspec.derive.build import plus, times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, size
from gradspec.stabilise.exponential import about_limits, in_range
from gradspec.stabilise.inner import INNER, of_one, put_back
from gradspec.stabilise.peeled import vanishes
from gradspec.stabilise.series import series_beside
from gradspec.symbolic.enclose import defined, enclose_at
from gradspec.symbolic.expansion import leading

_ORDER = 8
_LARGEST = 120

_PLACES = Fraction(3, 7), Fraction(5, 9)
_OTHER_PLACES = Fraction(4, 11), Fraction(8, 13)
_ELSEWHERE = Fraction(2, 3)


def separated(
    meaning: Expr, inputs: frozenset[str], upstream: frozenset[str]
) -> Iterator[Expr]:
    """``meaning`` as such a sum, if it is one of parts that have a better form."""
    used = sorted(upstream & names(meaning))
    if len(used) != 1 or size(meaning) > _LARGEST or not is_linear(meaning, upstream):
        return
    factor = coefficient(meaning, used[0], upstream)
    for one, other in combinations(sorted(names(factor) & inputs), 2):
        parts = _parts(factor, one, other) if _may_be_sum(factor, one, other) else []
        formed = [part for part in map(_formed, parts) if part is not None]
        gap = Apply("sub", (factor, _sum(parts)))
        if len(formed) == len(parts) > 0 and vanishes(gap):
            ends, rest = _sum([p.ends for p in formed]), _sum([p.rest for p in formed])
            yield tidy(times(Ref(used[0]), plus(ends, rest)))


def _may_be_sum(factor: Expr, one: str, other: str) -> bool:
    """Whether ``f(a, b) - f(a', b) - f(a, b') + f(a', b')`` may be 0, as for a sum: quick
    to ask, where expansions take long."""
    rest = dict.fromkeys(names(factor), _ELSEWHERE)
    points = [rest | {one: a, other: b} for a in _PLACES for b in _OTHER_PLACES]
    corners = enclose_at(factor, points)
    if not all(map(defined, corners)):
        return True
    a, b, c, d = corners
    return bool((a - b - c + d).contains(0))


def _sum(parts: list[Expr]) -> Expr:
    nothing: Expr = ZERO
    return reduce(plus, parts, nothing)


def _parts(factor: Expr, one: str, other: str) -> list[Expr]:
    """``f(0, b)``, ``f(a, 0)`` and ``-f(0, 0)``, if these are finite."""
    first = _at_zero(factor, one)
    second = None if first is None else _at_zero(factor, other)
    both = None if first is None else _at_zero(first, other)
    if first is None or second is None or both is None:
        return []
    if one not in names(second) or other not in names(first):
        return []
    return [first, second, *([] if both == ZERO else [tidy(Apply("neg", (both,)))])]


def _at_zero(expr: Expr, name: str) -> Expr | None:
    """The limit; the expansion begins with the first term that is not 0."""
    if name not in names(expr):
        return expr
    found = leading(expr, name, _ORDER, 1)
    if found is None or found.power < 0:
        return None
    return ZERO if found.power else tidy(found.first)


@dataclass(frozen=True, slots=True)
class _Part:
    """``ends + rest``: a number that depends on where it is, exactly, and what is left."""

    ends: Expr
    rest: Expr


def _formed(part: Expr) -> _Part | None:
    """A part through ``exp(-|x|)``, with its series; numbers as they are. Its limits stand
    apart: those of several parts may cancel, and what they leave is small."""
    used = names(part)
    if not used:
        return _Part(part, ZERO)
    found = _alone(part)
    if found is None:
        return None
    alone, inner, name = found
    form = in_range(alone, name)
    if form is None:
        return None
    limits = about_limits(alone, name)
    ends: Expr = ZERO
    if limits is not None:
        (left, right), form = limits
        ends = Select(Apply("lt", (Ref(name), ZERO)), Const(left), Const(right))
        ends = Const(left) if left == right else ends
    mended = series_beside(form, _whole(ends, form), alone, name, is_factor=True)
    if mended is None:
        made = _Part(ends, form)
    else:
        made = _Part(*_apart(mended.new, form, ends))
    return _Part(*(tidy(put_back(x, inner)) for x in (made.ends, made.rest)))


def _whole(ends: Expr, form: Expr) -> Expr:
    return form if ends == ZERO else Apply("add", (ends, form))


def _apart(mended: Expr, form: Expr, ends: Expr) -> tuple[Expr, Expr]:
    """Where there is a series, it is the whole: no limit is added to it."""
    if mended == form or not isinstance(mended, Select):
        return ends, form
    one, other = _apart(mended.other, form, ends)
    return replace(mended, then=ZERO, other=one), replace(mended, other=other)


def _alone(part: Expr) -> tuple[Expr, Expr, str] | None:
    """A part as a function of one name, and what that stands for."""
    used = names(part)
    if len(used) == 1:
        (name,) = used
        return part, Ref(name), name
    found = of_one(part)
    return None if found is None else (*found, INNER)
