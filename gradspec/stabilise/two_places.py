"""One power at two places that are near each other, in float64, too.

``c1 * (b + d)**a + c2 * b**a`` is ``b**a * (c1 * expm1(a * l) + (c1 + c2))`` with ``l = log1p(d /
b)``. Where ``d`` is small beside ``b`` the sum of the two factors is all that may cancel, and
that is done by algebra: it is 0 for ``(x + 1)**a - x**a``, and ``l`` for the slope of that by ``a``,
in which ``c1 = log(b + d)`` is ``log(b) + l``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

from gradspec.derive.build import plus, scale, times
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import nodes, size, transform
from gradspec.stabilise.product import Product
from gradspec.stabilise.terms import in_sums, terms_of, total, without
from gradspec.symbolic.gather import gathered

_LARGEST = 200
_HALF = Fraction(1, 2)


def at_two_places(closed: Expr) -> Iterator[Expr]:
    """``closed`` with such sums through their quotient, where that is near 1."""
    if sum(map(_is_power, nodes(closed))) > 1 and size(closed) <= _LARGEST:
        form = in_sums(closed, _sum)
        if form != closed:
            yield tidy(form)


def _is_power(node: Expr) -> bool:
    """A power with an exponent that is no number."""
    match node:
        case Apply(op="pow", args=(_, exponent)):
            return not isinstance(exponent, Const)
        case _:
            return False


def _sum(expr: Expr) -> Expr | None:
    terms = [*terms_of(transform(expr, _plain))]
    powers = dict.fromkeys(f for t in terms for f in t.above if _is_power(f))
    for far, near in permutations(powers, 2):
        distance = _distance(far, near)
        if distance is not None:
            form = _form(terms, far, near, distance)
            if form is not None:
                base = near.below[0]
                sizes = (Apply("abs", (part,)) for part in (distance, base))
                small, large = map(fold, sizes)
                is_near = Apply("lt", (small, scale(_HALF, large)))
                return Select(is_near, form, expr)
    return None


def _plain(node: Expr) -> Expr:
    match node:
        case Apply(op="xlogy", args=(a, b)):
            return Apply("mul", (a, Apply("log", (b,))))
        case Apply(op="xlog1py", args=(a, b)):
            return Apply("mul", (a, Apply("log1p", (b,))))
        case _:
            return node


def _distance(far: Expr, near: Expr) -> Expr | None:
    """How far the bases of two powers are apart, if that is a number or an input: ``far`` is
    the one that is written as the other and that."""
    (a, exponent), (b, other) = far.below, near.below
    if exponent != other or size(a) < size(b):
        return None
    found = gathered(Apply("sub", (a, b)))
    return found if isinstance(found, Const | Ref) and found != ZERO else None


def _form(terms: list[Product], far: Expr, near: Expr, distance: Expr) -> Expr | None:
    with_far = [t for t in terms if far in t.above]
    with_near = [t for t in terms if near in t.above]
    rest = total([t for t in terms if t not in with_far and t not in with_near])
    c1 = total([without(t, far) for t in with_far])
    c2 = total([without(t, near) for t in with_near])
    if {far, near} & {*nodes(c1), *nodes(c2), *nodes(rest)}:
        return None
    (place, exponent), (base, _) = far.below, near.below
    log = Apply("log1p", (fold(Apply("div", (distance, base))),))
    logs = fold(Apply("add", (Apply("log", (base,)), log)))
    c1 = transform(c1, lambda n: logs if _is_log(n, place) else n)
    both = gathered(fold(Apply("add", (c1, c2))))
    if both is None:
        return None
    grown = times(c1, Apply("expm1", (times(exponent, log),)))
    return plus(times(near, plus(grown, both)), rest)


def _is_log(node: Expr, place: Expr) -> bool:
    match node:
        case Apply(op="log", args=(a,)):
            return a == place
        case Apply(op="log1p", args=(a,)):
            return gathered(Apply("sub", (Apply("add", (ONE, a)), place))) == ZERO
        case _:
            return False
