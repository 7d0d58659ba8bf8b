"""Enclosures that take more than a method of the ball.

The arguments are python-flint ``arb`` values, duck-typed. A result encloses the function
over the whole ball; where the ball contains a point at which the function is not
defined, it is not finite. Forms are chosen so that a narrow ball stays narrow
(relatively) over the whole range of a float64.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Ball: TypeAlias = Any
"""A python-flint ``arb``."""


def number(like: Ball, value: int) -> Ball:
    """An exact ball of the type of ``like``."""
    return like.__class__(value)


def undefined(like: Ball) -> Ball:
    return like.__class__.nan()


def power(x: Ball, y: Ball) -> Ball:
    """``x**y``; 0**y is 0 for y > 0 and 1 for y = 0 (by continuity along y = 0)."""
    if x.is_zero():
        if y.is_zero():
            return number(x, 1)
        return number(x, 0) if y > 0 else undefined(x)
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
        return x if y >= 0 else undefined(x)
    return x * y.log()


def xlog1py(x: Ball, y: Ball) -> Ball:
    if x.is_zero():
        return x if y >= -1 else undefined(x)
    return x * y.log1p()


def cbrt(x: Ball) -> Ball:
    """The root is monotone: a ball about zero takes those of its ends."""
    if x >= 0:
        return x.root(3)
    if x <= 0:
        return -(-x).root(3)
    return x.upper().root(3).union(-(-x.lower()).root(3))


def hypot(x: Ball, y: Ball) -> Ball:
    """Balls about zero make the sum of squares seem negative: bound it below by 0."""
    return magnitude_squared(x, y).sqrt()


def magnitude_squared(x: Ball, y: Ball) -> Ball:
    total = x**2 + y**2
    return total if total >= 0 else total.nonnegative_part()


def magnitude(x: Ball) -> Ball:
    """``abs``, as tight as can be about zero."""
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
