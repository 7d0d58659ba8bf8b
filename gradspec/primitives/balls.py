"""Enclosures that take more than a method of the ball.

The arguments are python-flint ``arb`` values, duck-typed. A result encloses the
function over the whole ball; where the ball contains a point at which the function is
not defined, it is not finite. Forms are chosen so that a narrow ball stays narrow
(relatively) over the whole range of a float64.

Conditions are True, False, or None where the balls do not decide (Kleene's logic); a
comparison with an undefined number is undefined itself, and so is what depends on it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

Ball: TypeAlias = Any
"""A python-flint ``arb``."""


def number(like: Ball, value: int) -> Ball:
    """An exact ball of the type of ``like``."""
    return like.__class__(value)


def undefined_like(like: Ball) -> Ball:
    return like.__class__.nan()


def power(x: Ball, y: Ball) -> Ball:
    """``x**y``; 0**y is 0 for y > 0 and 1 for y = 0 (by continuity along y = 0)."""
    if x.is_zero():
        if y.is_zero():
            return number(x, 1)
        return number(x, 0) if y > 0 else undefined_like(x)
    return x**y


def exp2(x: Ball) -> Ball:
    return power(number(x, 2), x)


def sigmoid(x: Ball) -> Ball:
    """The exponential is taken where it is below one, so that it cannot overflow."""
    if x.mid() > 0:
        return 1 / (1 + (-x).exp())
    t = x.exp()
    return t / (1 + t)


def softplus(x: Ball) -> Ball:
    if x.mid() > 0:
        return x + (-x).exp().log1p()
    return x.exp().log1p()


def logaddexp(x: Ball, y: Ball) -> Ball:
    if x.mid() > y.mid():
        return x + (y - x).exp().log1p()
    return y + (x - y).exp().log1p()


def xlogy(x: Ball, y: Ball) -> Ball:
    if x.is_zero():
        return x if y >= 0 else undefined_like(x)
    return x * y.log()


def xlog1py(x: Ball, y: Ball) -> Ball:
    if x.is_zero():
        return x if y >= -1 else undefined_like(x)
    return x * y.log1p()


def cbrt(x: Ball) -> Ball:
    """The root is monotone: a ball about zero takes those of its ends."""
    if x >= 0:
        return x.root(3)
    if x <= 0:
        return -(-x).root(3)
    return x.upper().root(3).union(-(-x.lower()).root(3))


def hypot(x: Ball, y: Ball) -> Ball:
    """Bounds the sum of squares below by 0, since balls about zero make it seem
    negative.
    """
    return magnitude_squared(x, y).sqrt()


def magnitude_squared(x: Ball, y: Ball) -> Ball:
    total = x**2 + y**2
    return total if total >= 0 else total.nonnegative_part()


def magnitude(x: Ball) -> Ball:
    """``abs``, as tight as possible about zero."""
    if x >= 0:
        return x
    if x <= 0:
        return -x
    return number(x, 0).union(x.max(-x).upper())


def maximum(x: Ball, y: Ball) -> Ball:
    return x.max(y)


def minimum(x: Ball, y: Ball) -> Ball:
    return x.min(y)


def clip(x: Ball, y: Ball, z: Ball) -> Ball:
    return x.max(y).min(z)


def heaviside(x: Ball, y: Ball) -> Ball:
    if x > 0:
        return number(x, 1)
    if x < 0:
        return number(x, 0)
    if x.is_zero():
        return y
    return y.union(number(x, 0)).union(number(x, 1))


def truncate(x: Ball) -> Ball:
    if x >= 0:
        return x.floor()
    if x <= 0:
        return x.ceil()
    return x.lower().ceil().union(x.upper().floor())


def nearest_even(x: Ball) -> Ball:
    """Nearest integer, a tie to the even one."""
    doubled = 2 * x
    if doubled.is_exact() and doubled.is_integer() and not x.is_integer():
        return 2 * ((x + number(x, 1) / 2) / 2).floor()
    return ((doubled + 1) / 2).floor()


def scaled_erfc(x: Ball) -> Ball:
    """``exp(x**2) erfc(x)``; beyond 4 as Tricomi's U(1/2, 1/2, x**2) / sqrt(pi) (DLMF
    7.11.5), which has no cancellation however large x is.
    """
    if x > 4:
        half = number(x, 1) / 2
        return (x * x).hypgeom_u(half, half) / x.pi().sqrt()
    return (x * x).exp() * x.erfc()


def erfc(x: Ball) -> Ball:
    """erfc; flint's own loses relative accuracy for arguments beyond about 1e6."""
    return (-x * x).exp() * scaled_erfc(x) if x > 4 else x.erfc()


def ndtr(x: Ball) -> Ball:
    return erfc(-x / number(x, 2).sqrt()) / 2


def log_ndtr(x: Ball) -> Ball:
    z = x / number(x, 2).sqrt()
    if x < 0:
        return (scaled_erfc(-z) / 2).log() - x * x / 2
    return (-erfc(z) / 2).log1p()


def ndtri(x: Ball) -> Ball:
    return -(2 * x).erfcinv() * number(x, 2).sqrt()


def inverse_mills(x: Ball) -> Ball:
    return (2 / x.pi()).sqrt() / scaled_erfc(-x / number(x, 2).sqrt())


def erfinv_slope(x: Ball) -> Ball:
    return x.pi().sqrt() / 2 * (x.erfinv() ** 2).exp()


def erfcinv_slope(x: Ball) -> Ball:
    return -x.pi().sqrt() / 2 * (x.erfcinv() ** 2).exp()


def ndtri_slope(x: Ball) -> Ball:
    return (2 * x.pi()).sqrt() * ((2 * x).erfcinv() ** 2).exp()


def log_gamma(x: Ball) -> Ball:
    """``log |gamma(x)|``; on the left by reflection (DLMF 5.5.3)."""
    if x > 0:
        return x.lgamma()
    return (x.pi() / magnitude(x.sin_pi())).log() - (1 - x).lgamma()


def polygamma(x: Ball, y: Ball) -> Ball:
    """Hurwitz's zeta function (DLMF 25.11.12); ``x`` is the order, an exact integer."""
    if x.is_zero():
        return y.digamma()
    sign = 2 * (x - 2 * (x / 2).floor()) - 1
    return sign * (x + 1).gamma() * (x + 1).zeta(y)


def scaled_i0(x: Ball) -> Ball:
    return magnitude(x).bessel_i(number(x, 0), scaled=True)


def scaled_i1(x: Ball) -> Ball:
    """I1 is odd, and flint scales by ``exp(-x)``: a ball about zero goes unscaled."""
    order = number(x, 1)
    if x >= 0:
        return x.bessel_i(order, scaled=True)
    if x <= 0:
        return -(-x).bessel_i(order, scaled=True)
    return (-magnitude(x)).exp() * x.bessel_i(order)


def scaled_erfc_slope(x: Ball) -> Ball:
    """The derivative of erfcx; beyond 1 by DLMF 7.18.10, which does not cancel."""
    if x > 1:
        return -(x * x).hypgeom_u(number(x, 1), number(x, 1) / 2) / x.pi().sqrt()
    return 2 * x * scaled_erfc(x) - 2 / x.pi().sqrt()


def sinc_slope(x: Ball) -> Ball:
    """``-pi j1(pi x)`` with ``j1(z) = z/3 0F1(5/2; -z**2/4)`` (DLMF 10.16.9)."""
    z = x.pi() * x
    return -x.pi() * z / 3 * (-z * z / 4).hypgeom_0f1(number(x, 5) / 2)


def scaled_i0_slope(x: Ball) -> Ball:
    return scaled_i1(x) - x.sgn() * scaled_i0(x)


def scaled_i1_slope(x: Ball) -> Ball:
    """With ``I1' = (I0 + I2) / 2`` (DLMF 10.29.1) nothing is divided by ``x``."""
    a = magnitude(x)
    i0, i1, i2 = (a.bessel_i(number(x, n), scaled=True) for n in (0, 1, 2))
    return (i0 + i2) / 2 - i1


def i1(x: Ball) -> Ball:
    """``x/2 0F1(2; x**2/4)`` (DLMF 10.39.9): flint's own order 1 takes half a second
    for a ball far out.
    """
    return x / 2 * (x * x / 4).hypgeom_0f1(number(x, 2))


def i1_slope(x: Ball) -> Ball:
    """``(I0 + I2) / 2`` (DLMF 10.29.1), with I2 as I1 in :func:`i1`."""
    square = x * x / 4
    i2 = square / 2 * square.hypgeom_0f1(number(x, 3))
    return (x.bessel_i(number(x, 0)) + i2) / 2


# --- bounds of Taylor coefficients -----------------------------------------------------


def tanh_coefficient(x: Ball, order: int) -> Ball:
    """Cauchy's estimate on a circle of radius 3/2: ``|tanh(a + ib)|`` is at most
    ``max(1, tan |b|)``, as its square is ``(sinh(a)**2 + sin(b)**2) / (sinh(a)**2 +
    cos(b)**2)``."""
    radius = number(x, 3) / 2
    return x.__class__(0, (radius.tan() / radius**order).upper())


def sigmoid_coefficient(x: Ball, order: int) -> Ball:
    """``(1 + tanh(x / 2)) / 2``."""
    return tanh_coefficient(x, order) / number(x, 2) ** (order + 1)


def reciprocal_coefficient(x: Ball, order: int) -> Ball:
    """``(-1)**n / x**(n + 1)``."""
    return (-1) ** order / x ** (order + 1)


# --- conditions ----------------------------------------------------------------------


def truth(value: Any) -> Any:
    """A value as a condition: True, False, None, or an undefined ball."""
    if value is None or value is True or value is False:
        return value
    if value.is_nan():
        return value
    if value.is_zero():
        return False
    return None if value.contains(0) else True


Comparison: TypeAlias = Callable[[Any, Any], Any]


def comparison(yes: Comparison, no: Comparison) -> Comparison:
    """Three values from two tests, each of which is true only when it is certain."""

    def compare(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return None
        if yes(left, right):
            return True
        if no(left, right):
            return False
        return _undefined_of(left, right)

    return compare


def _undefined_of(*values: Any) -> Any:
    """An undefined value among several, else None."""
    lost = (v for v in values if not isinstance(v, bool) and v.is_nan())
    return next(lost, None)


less = comparison(operator.lt, operator.ge)
at_most = comparison(operator.le, operator.gt)
equal = comparison(operator.eq, operator.ne)


def more(left: Any, right: Any) -> Any:
    return less(right, left)


def at_least(left: Any, right: Any) -> Any:
    return at_most(right, left)


def unequal(left: Any, right: Any) -> Any:
    return negation(equal(left, right))


def negation(value: Any) -> Any:
    known = truth(value)
    return not known if known is True or known is False else known


def conjunction(left: Any, right: Any) -> Any:
    """Conjunction: a False operand decides; undefined beats undecided."""
    return _logical(left, right, False)


def disjunction(left: Any, right: Any) -> Any:
    """Disjunction: a True operand decides; undefined beats undecided."""
    return _logical(left, right, True)


def _logical(left: Any, right: Any, settling: bool) -> Any:
    one, two = truth(left), truth(right)
    if one is settling or two is settling:
        return settling
    if one is None or two is None:
        other = two if one is None else one
        return None if isinstance(other, bool) else other
    return two if isinstance(one, bool) else one
