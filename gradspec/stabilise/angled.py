"""Sums with a sine or a cosine in which float64 cancels, by half of the angle.

``p + q * cos(u)`` is ``(p - q) + 2 * q * cos(u / 2)**2`` and ``(p + q) - 2 * q * sin(u /
2)**2``. Of the two there is one whose terms cancel in fewer places: the first where ``p`` and
``q`` are of one sign (it is but ``p - q`` that may be small, and that is known from the
inputs), the second where they are not. The same is true of ``p + q * sin(u)`` with the squares of
``cos(u / 2) + sin(u / 2)`` and their difference, of ``cosh(u) = 1 + 2 * sinh(u / 2)**2``,
and of squares: ``p - q * sin(u)**2`` is ``(p - q) + q * cos(u)**2``.

An angle that is a number times an input, ``c * x``, is taken apart: ``c = c1 + c2``, where
``c1`` has so few digits that float64 has all of ``c1 * x`` for an ``x`` of float32. What
rounding takes off ``c * x`` is all that is left of the cosine near its zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice

from gradspec.derive.build import plus, scale, times
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select, const
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import children, nodes, size, transform, with_children
from gradspec.stabilise.product import Product, multiplied, product
from gradspec.stabilise.spheres import on_spheres
from gradspec.stabilise.terms import joined, terms_of, total, without
from gradspec.symbolic.circles import choices, gathered_on_circles
from gradspec.symbolic.gather import gathered

_LARGEST = 200

_BITS = 29
"""Of float64's 53; an input of float32 has the other 24."""

_FEW, _SHORTEST = 8, 2
"""Ways to write squares that are looked at, and that are tried."""

_ANGLED = frozenset(["sin", "cos", "tan", "cosh"])

NeverNegative = Callable[[Expr], bool]
"""Whether an expression is negative at no point."""


def angled(closed: Expr, is_never_negative: NeverNegative) -> Iterator[Expr]:
    """``closed`` by half angles, and with its angles taken apart."""
    if not any(_is_angle(node) for node in nodes(closed)) or size(closed) > _LARGEST:
        return
    for start in (closed, *_gathered(closed)):
        halved = tidy(_Halves(is_never_negative).of(start))
        if halved != closed:
            yield halved
    yield from on_spheres(closed)
    apart = transform(closed, _apart)
    if apart != closed:
        yield apart


def _gathered(closed: Expr) -> Iterator[Expr]:
    """As it is, and the shortest of those in squares of sines or cosines."""
    forms = (
        gathered_on_circles(closed, some) for some in islice(choices(closed), _FEW)
    )
    ranked = sorted((f for f in forms if f is not None), key=size)
    for found in dict.fromkeys((gathered(closed), *ranked[:_SHORTEST])):
        if found is not None and size(found) <= _LARGEST:
            yield found


def _is_angle(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op in _ANGLED


# --- half angles -------------------------------------------------------------------------


class _Halves:
    def __init__(self, is_never_negative: NeverNegative) -> None:
        self._is_never_negative = is_never_negative

    def of(self, expr: Expr) -> Expr:
        """``expr`` with every sum that has such a term in its other form."""
        found = self._sum(expr)
        if found is not None:
            return found
        parts = tuple(map(self.of, children(expr)))
        return with_children(expr, parts) if parts else expr

    def _sum(self, expr: Expr) -> Expr | None:
        terms = [*terms_of(expr)]
        if len(terms) < 2:
            return None
        angles = (f for term in terms for f in term.above if _is_angle(f))
        for angle in dict.fromkeys(angles):
            with_it = [term for term in terms if angle in term.above]
            rest = total([term for term in terms if angle not in term.above])
            count = {term.above.count(angle) for term in with_it}
            if len(count) == 1 and rest != ZERO and angle not in set(nodes(rest)):
                factor = total([without(term, angle) for term in with_it])
                form = self._form(rest, factor, angle, count.pop())
                if form is not None and angle not in set(nodes(factor)):
                    return form
        return None

    def _form(self, p: Expr, q: Expr, angle: Expr, power: int) -> Expr | None:
        """``p + q * angle**power``."""
        ways = _WAYS.get((angle.op, power)) if isinstance(angle, Apply) else None
        if ways is None or not isinstance(angle, Apply):
            return None
        alike, unlike = (
            None if way is None else way(p, q, angle.args[0]) for way in ways
        )
        whole = plus(p, times(q, _power(angle, power)))
        alike, unlike = alike or whole, unlike or whole
        same = times(p, q)
        if self._is_never_negative(same):
            return alike
        if self._is_never_negative(fold(Apply("neg", (same,)))):
            return unlike
        return Select(Apply("gt", (same, ZERO)), alike, unlike)


def _power(base: Expr, power: int) -> Expr:
    return base if power == 1 else Apply("pow", (base, const(power)))


def _half(op: str, angle: Expr) -> Expr:
    return Apply(op, (scale(Fraction(1, 2), angle),))


def _squared(value: Expr) -> Expr:
    return Apply("square", (value,))


def _cosine_above(p: Expr, q: Expr, u: Expr) -> Expr:
    part = times(scale(Fraction(2), q), _squared(_half("cos", u)))
    return plus(joined(p, scale(Fraction(-1), q)), part)


def _cosine_below(p: Expr, q: Expr, u: Expr) -> Expr:
    part = times(scale(Fraction(-2), q), _squared(_half("sin", u)))
    return plus(joined(p, q), part)


def _sine_above(p: Expr, q: Expr, u: Expr) -> Expr:
    both = Apply("add", (_half("cos", u), _half("sin", u)))
    return plus(joined(p, scale(Fraction(-1), q)), times(q, _squared(both)))


def _sine_below(p: Expr, q: Expr, u: Expr) -> Expr:
    both = Apply("sub", (_half("cos", u), _half("sin", u)))
    return plus(joined(p, q), times(scale(Fraction(-1), q), _squared(both)))


def _hyperbolic(p: Expr, q: Expr, u: Expr) -> Expr:
    part = times(scale(Fraction(2), q), _squared(_half("sinh", u)))
    return plus(joined(p, q), part)


def _squared_sine(p: Expr, q: Expr, u: Expr) -> Expr:
    part = times(scale(Fraction(-1), q), _squared(Apply("cos", (u,))))
    return plus(joined(p, q), part)


def _squared_cosine(p: Expr, q: Expr, u: Expr) -> Expr:
    part = times(scale(Fraction(-1), q), _squared(Apply("sin", (u,))))
    return plus(joined(p, q), part)


_WAYS: dict[tuple[str, int], tuple[Callable[[Expr, Expr, Expr], Expr] | None, ...]] = {
    ("cos", 1): (_cosine_above, _cosine_below),
    ("sin", 1): (_sine_above, _sine_below),
    ("cosh", 1): (None, _hyperbolic),
    ("sin", 2): (None, _squared_sine),
    ("cos", 2): (None, _squared_cosine),
}
"""Where ``p`` and ``q`` are of one sign, and where they are not; None: as it is."""


# --- angles that are a number times an input ---------------------------------------------


def _apart(node: Expr) -> Expr:
    match node:
        case Apply(op="sin" | "cos" as op, args=(angle,)):
            found = _two(product(angle))
            return node if found is None else _of_sum(op, *found)
        case _:
            return node


def _two(angle: Product) -> tuple[Expr, Expr] | None:
    """``c1 * x`` and ``c2 * x``, if float64 does not have all digits of ``c * x``."""
    first, rest = _leading(angle.number)
    x = multiplied(angle.above)
    if not rest or angle.below or angle.sizes or not isinstance(x, Ref):
        return None
    return times(Const(first), x), times(Const(rest), x)


def _leading(number: Fraction) -> tuple[Fraction, Fraction]:
    """The leading bits of a number, and the others."""
    above, below = abs(number.numerator), number.denominator
    shift = _BITS - above.bit_length() + below.bit_length()
    unit = Fraction(2) ** shift
    first = Fraction(round(number * unit)) / unit
    return first, number - first


def _of_sum(op: str, a: Expr, b: Expr) -> Expr:
    sin_a, cos_a, sin_b, cos_b = (
        Apply(name, (angle,)) for angle in (a, b) for name in ("sin", "cos")
    )
    if op == "sin":
        return plus(times(sin_a, cos_b), times(cos_a, sin_b))
    return fold(Apply("sub", (times(cos_a, cos_b), times(sin_a, sin_b))))
