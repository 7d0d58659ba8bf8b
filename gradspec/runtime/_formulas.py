"""Special functions that one library or another lacks or computes less accurately.

The runtime of each target has this file, and binds it to its framework in `_special.py`.
Every formula is one pass of elementwise operations, without branches, so that it compiles,
batches and has derivatives.
"""

# mypy: disable-error-code="no-any-return"
# An array is of any library here.

from __future__ import annotations

import math
from typing import Any, TypeAlias

from ._coefficients import (
    DIGAMMA,
    DIGAMMA_FAR,
    DIGAMMA_TAIL,
    ERF,
    ERFCX,
    ERFCX_FAR,
    ERFCX_SLOPE,
    ERFCX_SLOPE_FAR,
    GAMMA,
    I0_LARGE,
    I0_SMALL,
    I0E_SLOPE_LARGE,
    I0E_SLOPE_MIDDLE,
    I0E_SLOPE_SMALL,
    I1_LARGE,
    I1_SLOPE_LARGE,
    I1_SLOPE_SMALL,
    I1_SMALL,
    I1E_SLOPE_LARGE,
    I1E_SLOPE_MIDDLE,
    I1E_SLOPE_SMALL,
    INVERSE_ERROR,
    INVERSE_ERROR_FAR,
    INVERSE_ERROR_NEAR,
    LGAMMA,
    LGAMMA_TAIL,
    Quotient,
)

Array: TypeAlias = Any


class Formulas:
    """The functions over arrays of one library.

    ``lib`` has the library's operations by the names that most of them share: abs, cos,
    erfc, exp, expm1, floor, isfinite, isinf, log, log1p, minimum, ones_like, round,
    sign, sin, sqrt, square, tan, where, zeros_like.
    """

    def __init__(self, lib: Any) -> None:
        self.lib = lib

    # --- pieces

    def _polynomial(self, x: Array, coefficients: tuple[float, ...]) -> Array:
        """A polynomial in x, its highest power first."""
        p = self.lib.zeros_like(x)
        for c in coefficients:
            p = p * x + c
        return p

    def _quotient(
        self, x: Array, over: tuple[float, ...], under: tuple[float, ...]
    ) -> Array:
        """A quotient of polynomials in x, their highest powers first."""
        p: Any = over[0]
        q: Any = under[0]
        for c in over[1:]:
            p = p * x + c
        for c in under[1:]:
            q = q * x + c
        return p / q

    def reciprocal(self, x: Array) -> Array:
        """1 / x, rounded once: of a quotient of 1 a graph of TensorFlow makes its
        reciprocal, which is 2.5 ULP off, and thousands where the result is small."""
        return -(-1.0 / x)

    def _at_most(self, x: Array, most: float) -> Array:
        """The smaller of x and a number. (XLA joins constants that are added one after
        the other; it does not across this.)"""
        return self.lib.where(x > most, most * self.lib.ones_like(x), x)

    def _head(self, x: Array) -> tuple[Array, Array]:
        """x, cut where any exp(-x**2) is 0, and its leading bits."""
        lib = self.lib
        c = lib.where(lib.abs(x) > 64.0, 64.0 * lib.sign(x), x)
        return c, lib.sign(c) * lib.floor(256.0 * lib.abs(c)) / 256.0

    # --- exponentials of squares, powers, logarithms

    def exp_neg_square(self, x: Array) -> Array:
        """exp(-x**2), the square split: its rounding error would be magnified by
        x**2."""
        c, h = self._head(x)
        return self.lib.exp(-h * h) * (1.0 + self.lib.expm1((h - c) * (h + c)))

    def exp_neg_half_square(self, x: Array) -> Array:
        """exp(-x**2 / 2), the square split: its rounding error would be magnified."""
        c, h = self._head(x)
        rest = self.lib.expm1(0.5 * (h - c) * (h + c))
        return self.lib.exp(-0.5 * h * h) * (1.0 + rest)

    def _exp_square(self, x: Array) -> Array:
        """exp(x**2), the square split."""
        c, h = self._head(x)
        return self.lib.exp(h * h) * (1.0 + self.lib.expm1((c - h) * (c + h)))

    def logit(self, x: Array) -> Array:
        """log(x / (1 - x)); near 1/2, its zero, through log1p, as 2 * x - 1 is
        exact."""
        lib = self.lib
        half = 0.5 * lib.ones_like(x)
        near = lib.abs(x - 0.5) < 0.25
        inner = lib.where(near, x, half)
        outer = lib.where(near, 0.5 * half, x)
        middle = lib.log1p((2.0 * inner - 1.0) / (1.0 - inner))
        return lib.where(near, middle, lib.log(outer / (1.0 - outer)))

    def power_less_one(self, x: Array, y: Array) -> Array:
        """x**(y - 1), corrected for the rounding error of y - 1."""
        lib = self.lib
        s = y - 1.0
        b = s - y
        e = (y - (s - b)) - (1.0 + b)
        lost = (lib.abs(e) > 0.0) & (lib.abs(x) > 0.0)
        t = e * lib.log(lib.where(lost, x, lib.ones_like(x)))
        return x**s * (1.0 + lib.where(lib.abs(t) < 0.01, t, lib.zeros_like(t)))

    def discriminant_root(self, x: Array, y: Array, z: Array) -> Array:
        """sqrt(x * x - 4 * y * z), scaled where squares may leave the range."""
        lib = self.lib
        a, b, h, one = lib.abs(y), lib.abs(z), lib.abs(0.5 * x), lib.ones_like(x)
        none = ~((a > 0.0) & (b > 0.0))
        g = lib.sqrt(lib.where(none, one, a)) * lib.sqrt(lib.where(none, one, b))
        m = lib.where(none | (h > g), h, g)
        far = (m > 0.0) & (m < 2.0**-50) | (m > 2.0**60) & (m < math.inf)
        s = lib.where(far, m, one)
        yz = lib.where(a < b, z, y) * (lib.where(a < b, y, z) / s) / s
        return s * lib.sqrt(h / s * (h / s) - yz) * 2.0

    def cbrt(self, x: Array) -> Array:
        """The real cube root: a power, then one step of Newton's method."""
        lib = self.lib
        moves = lib.abs(x + x) > lib.abs(x)  # not 0, infinite or NaN
        a = lib.abs(lib.where(moves, x, lib.ones_like(x)))
        r = a ** (1.0 / 3.0)
        r = r - (r - a / (r * r)) / 3.0
        return lib.where(moves, lib.sign(x) * r, x)

    def heaviside(self, x: Array, y: Array) -> Array:
        """1 where x > 0, 0 where x < 0, y where x is 0; NaN stays."""
        lib = self.lib
        step = lib.where(x > 0.0, lib.ones_like(x), lib.zeros_like(x))
        return lib.where(lib.abs(x) > 0.0, step, x + y)

    def series(self, u: Array, *coefficients: float) -> Array:
        """c0 + c1 * u + c2 * u**2 + …, by Horner's rule."""
        *others, last, first = coefficients
        total = first * u + last
        for coefficient in reversed(others):
            total = total * u + coefficient
        return total

    def vanishing(self, x: Array, y: Array) -> Array:
        """x * y; where y has underflowed to 0, an infinite x counts as 0."""
        lib = self.lib
        gone = lib.isinf(x) & ~(lib.abs(y) > 0.0)
        return lib.where(gone, lib.zeros_like(x), x) * y

    # --- circular functions

    def sinpi(self, x: Array) -> Array:
        """sin(pi * x), reduced exactly by whole periods (IEEE 754-2019, 9.2)."""
        n = self.lib.round(x)
        return (1.0 - 2.0 * (n % 2.0)) * self.lib.sin(math.pi * (x - n))

    def cospi(self, x: Array) -> Array:
        """cos(pi * x), reduced exactly by whole periods (IEEE 754-2019, 9.2)."""
        lib = self.lib
        n = lib.round(x)
        r = lib.abs(x - n)
        c = lib.where(r < 0.25, lib.cos(math.pi * r), lib.sin(math.pi * (0.5 - r)))
        return (1.0 - 2.0 * (n % 2.0)) * c

    def sinc(self, x: Array) -> Array:
        """sin(pi * x) / (pi * x): the quotient, and its Taylor series about 0."""
        lib = self.lib
        small = lib.abs(x) < 0.25
        a = lib.where(small, lib.ones_like(x), x)
        b = lib.where(lib.isfinite(a), a, lib.ones_like(x))
        far = self.sinpi(b) / (math.pi * a)
        u = lib.square(math.pi * lib.where(small, x, lib.zeros_like(x)))
        near = lib.ones_like(x)
        for d in (210.0, 156.0, 110.0, 72.0, 42.0, 20.0, 6.0):
            near = 1.0 - u / d * near
        return lib.where(small, near, far)

    def sinc_slope(self, x: Array) -> Array:
        """The derivative of sinc: (cos(pi * x) - sinc(x)) / x, and its series about
        0."""
        lib = self.lib
        small = lib.abs(x) < 0.25
        a = lib.where(small, lib.ones_like(x), x)
        b = lib.where(lib.isfinite(a), a, lib.ones_like(x))
        n = lib.round(b)
        r = math.pi * (b - n)
        far = lib.cos(r) - lib.sin(r) / (math.pi * b)
        far = (1.0 - 2.0 * (n % 2.0)) * far / a
        c = lib.where(small, x, lib.zeros_like(x))
        near = lib.ones_like(x)
        for d in (238.0, 180.0, 130.0, 88.0, 54.0, 28.0, 10.0):
            near = 1.0 - lib.square(math.pi * c) / d * near
        return lib.where(small, -math.pi * math.pi / 3.0 * c * near, far)

    # --- the error function

    def erfcx(self, x: Array) -> Array:
        """exp(x**2) * erfc(x), from 2 on as 1 / (sqrt(pi) * x) times a correction."""
        b, r, q, p = self._error_parts(x, ERFCX, ERFCX_FAR)
        near = (1.0 + q) / (1.0 + 2.0 * b)
        right = self.lib.where(
            self.lib.abs(x) > 2.0, r * (0.5641895835477563 + p), near
        )
        n = self.lib.where(x < 0.0, x, self.lib.zeros_like(x))
        return self.lib.where(x < 0.0, 2.0 * self._exp_square(n) - right, right)

    def erfcx_slope(self, x: Array) -> Array:
        """The derivative of erfcx, that is 2 * x * erfcx(x) - 2 / sqrt(pi)."""
        b, r, q, p = self._error_parts(x, ERFCX_SLOPE, ERFCX_SLOPE_FAR)
        near = -(1.1283791670955126 + q) / self.lib.square(1.0 + b)
        tail = -r * (r * (0.5641895835477563 + p))
        right = self.lib.where(self.lib.abs(x) > 2.0, tail, near)
        n = self.lib.where(x < 0.0, x, self.lib.zeros_like(x))
        left = 4.0 * n * self._exp_square(n) + right
        return self.lib.where(x < 0.0, left, right)

    def _error_parts(
        self, x: Array, near: Quotient, far: Quotient
    ) -> tuple[Array, Array, Array, Array]:
        """abs(x) up to 2 and its reciprocal from there on, with the fit of either."""
        lib = self.lib
        a = lib.where(x < 0.0, -x, x)
        edge = 2.0 * lib.ones_like(x)
        b = lib.where(a > 2.0, edge, a)
        r = self.reciprocal(lib.where(a > 2.0, a, edge))
        q = b * self._quotient(b, *near)
        return b, r, q, r * r * self._quotient(r * r, *far)

    def erf(self, x: Array) -> Array:
        """The error function; for abs(x) > 1/2 through its complement."""
        lib = self.lib
        small = lib.abs(x) <= 0.5
        b = lib.where(small, x, 0.5 * lib.ones_like(x))
        far = 1.0 - self.exp_neg_square(x) * self.erfcx(lib.abs(x))
        return lib.where(small, self._erf(b), lib.where(x < 0.0, -far, far))

    def _erf(self, b: Array) -> Array:
        """The error function up to 1/2."""
        u = b * b
        return b * (1.1283791670955126 + u * self._quotient(u, *ERF))

    def ndtr(self, x: Array) -> Array:
        """0.5 * erfc(-x / sqrt(2)): rounding its argument costs no more than rounding
        x."""
        return 0.5 * self.lib.erfc(-0.7071067811865476 * x)

    def log_ndtr(self, x: Array) -> Array:
        """log(ndtr(x)), on the left through erfcx, so that nothing underflows, on the
        right log(1 - t) as -2 * atanh(t / (2 - t)) by its series."""
        lib = self.lib
        left = x < 0.0
        n = lib.where(left, x, lib.zeros_like(x))
        p = lib.where(left, lib.zeros_like(x), x)
        scaled = lib.log(0.5 * self.erfcx(-0.7071067811865476 * n)) - 0.5 * n * n
        t = self.ndtr(-p)
        s = 2.0 * t / (2.0 - t)
        rest = lib.zeros_like(x)
        for k in range(35, 1, -2):
            rest = (rest + 1.0 / k) * (0.25 * s * s)
        return lib.where(left, scaled, -s - s * rest)

    def inverse_mills(self, x: Array) -> Array:
        """The normal density over its distribution function; sqrt(2 / pi) / erfcx on
        the left, where both underflow, and far out -x."""
        lib = self.lib
        scaled = self.erfcx(0.7071067811865476 * lib.abs(x))
        bell = self.exp_neg_half_square(x)
        small = lib.abs(x) <= 0.5
        b = 0.7071067811865476 * lib.where(small, x, 0.5 * lib.ones_like(x))
        right = lib.where(small, 0.5 + 0.5 * self._erf(b), 1.0 - 0.5 * bell * scaled)
        right = 0.3989422804014327 * bell / right
        far = x < -1e9
        left = 0.7978845608028654 / lib.where(far, lib.ones_like(x), scaled)
        return lib.where(x >= 0.0, right, lib.where(far, -x, left))

    # --- its inverses

    def _inverse_error(self, u: Array, rest: Array) -> Array:
        """The inverse of erf at u, where rest is 1 - abs(u).

        Far out it is a little less than t = sqrt(-log(rest)).
        """
        lib = self.lib
        zero = lib.zeros_like(u)
        inner = lib.abs(u) <= 0.75
        b = lib.where(inner, u, zero)
        w = b * b
        fit = self._quotient(0.5625 - w, *INVERSE_ERROR)
        centre = b * (0.886226925452758 + w * fit)
        t = lib.sqrt(-lib.log(lib.where(inner, 0.25 * lib.ones_like(u), rest)))
        c = self._at_most(t, 27.5)
        near = c < 4.0
        first, last = lib.where(near, c - 1.125, zero), lib.where(near, zero, c - 4.0)
        less = lib.where(
            near,
            self._quotient(first, *INVERSE_ERROR_NEAR),
            self._quotient(last, *INVERSE_ERROR_FAR),
        )
        tail = t - less
        return lib.where(inner, centre, lib.where(u < 0.0, -tail, tail))

    def erfinv(self, x: Array) -> Array:
        """The inverse of erf."""
        return self._inverse_error(x, 1.0 - self.lib.abs(x))

    def erfcinv(self, x: Array) -> Array:
        """The inverse of erfc."""
        return self._inverse_error(1.0 - x, self.lib.minimum(x, 2.0 - x))

    def ndtri(self, x: Array) -> Array:
        """The inverse of the normal distribution function."""
        return -1.4142135623730951 * self.erfcinv(2.0 * x)

    def erfinv_slope(self, x: Array) -> Array:
        """sqrt(pi) / 2 * exp(y**2) at y = erfinv(x)."""
        rest = 1.0 - self.lib.abs(x)
        return 0.886226925452758 * self._inverse_slope(self.erfinv(x), rest)

    def erfcinv_slope(self, x: Array) -> Array:
        """-sqrt(pi) / 2 * exp(y**2) at y = erfcinv(x)."""
        rest = self.lib.where(x < 1.0, x, 2.0 - x)
        return -0.886226925452758 * self._inverse_slope(self.erfcinv(x), rest)

    def ndtri_slope(self, x: Array) -> Array:
        """sqrt(2 * pi) * exp(y**2 / 2) at y = ndtri(x)."""
        rest = 2.0 * self.lib.where(x < 0.5, x, 1.0 - x)
        return 2.5066282746310007 * self._inverse_slope(self.erfcinv(2.0 * x), rest)

    def _inverse_slope(self, y: Array, rest: Array) -> Array:
        """exp(y**2); beyond 1/2 it is erfcx(y) / erfc(y), and erfc(y) is ``rest``."""
        lib = self.lib
        y = lib.abs(y)
        b = lib.where(y <= 0.5, y, lib.zeros_like(y))
        c = self._at_most(y, 40.0)
        return lib.where(y <= 0.5, lib.exp(b * b), self.erfcx(c) / rest)

    # --- the gamma function

    def gamma(self, x: Array) -> Array:
        """Stirling's formula with its rest fitted (DLMF 5.11.3); below 1 by the
        recurrence, below 0 by reflection (DLMF 5.5.1, 5.5.3)."""
        lib = self.lib
        one = lib.ones_like(x)
        left = (x < 0.0) & (x > -171.6)  # beyond it is 0
        c = lib.where(left, x, 0.5 * one)
        a = lib.where(left, -x, lib.where(x < 0.0, one, x))
        b = self._at_most(lib.where(a < 1.0, 1.0 + a, a), 172.0)
        half = lib.where(b < 20.0, one, 0.5 * one)
        w = b ** (half * (b - 0.5)) * lib.exp(-half * b)
        r = self.reciprocal(b)
        g = w * (2.5066282746310007 + r * self._quotient(r, *GAMMA))
        g = g * lib.where(b < 20.0, one, w)
        g = lib.where(a < 1.0, g / a, g)
        y = lib.where(x < 0.0, lib.zeros_like(x), g)
        return lib.where(left, -math.pi / (c * self.sinpi(c)) / g, y)

    def lgamma_middle(self, x: Array) -> Array:
        """log(gamma(x)) between 1/2 and 5/2, with the zeros 1 and 2 as factors."""
        u = x - 0.5
        rest = 1.1447298858494002 + u * self._quotient(u, *LGAMMA)
        return (x - 1.0) * (x - 2.0) * rest / (x + 1.0)

    def digamma(self, x: Array) -> Array:
        """The derivative of log(abs(gamma(x))): up to 2 with its zero as a factor,
        beyond by DLMF 5.11.2, on the left by reflection (DLMF 5.5.4)."""
        lib = self.lib
        one = lib.ones_like(x)
        left = x < 0.0
        a = lib.where(left, 1.0 - x, x)
        far = a > 2.0
        b = lib.where(far, one, a)
        zero = self._at_most(b - 1.4616321325302124, 2.0) - 1.2438149938918909e-08
        zero = self._at_most(zero, 2.0) - 4.341643069426251e-25
        near = zero / b * (0.6841666717870696 + b * self._quotient(b, *DIGAMMA))
        c = lib.where(far, a, 2.0 * one)
        r = self.reciprocal(c)
        tail = lib.log(c) - 0.5 * r - r * (r * self._quotient(r * r, *DIGAMMA_FAR))
        right = lib.where(far, tail, near)
        t = lib.where(left, x - lib.round(x), 0.25 * one)
        return lib.where(left, right - math.pi / lib.tan(math.pi * t), right)

    def lgamma_difference(self, x: Array, y: Array) -> Array:
        """lgamma(x + y) - lgamma(x) for positive x and x + y: the difference of two
        asymptotic series (DLMF 5.11.1); below 8 that of arguments moved by 8 (DLMF
        5.5.1)."""
        lib = self.lib
        near, x8, u, v = self._far_apart(x, y)
        first, slope = self._slope_between(u * u, v * v, LGAMMA_TAIL)
        rest = -y * u * v * (first + (v - u) * (u + v) * slope + u * (u + v) * slope)
        total = (x8 - 0.5) * lib.log1p(y * u) + y * (lib.log(x8 + y) - 1.0) + rest
        a = lib.where(near, x, lib.ones_like(x))
        b = lib.where(near, y, lib.zeros_like(y))
        for k in range(8):
            total = total - lib.log1p(b / (a + float(k)))
        return total

    def digamma_difference(self, x: Array, y: Array) -> Array:
        """digamma(x + y) - digamma(x) for positive x and x + y: the difference of two
        asymptotic series (DLMF 5.11.2); below 8 that of arguments moved by 8 (DLMF
        5.5.2)."""
        lib = self.lib
        near, _, u, v = self._far_apart(x, y)
        _, slope = self._slope_between(u * u, v * v, DIGAMMA_TAIL)
        total = lib.log1p(y * u) + y * u * v * (0.5 + (u + v) * slope)
        a = lib.where(near, x, lib.ones_like(x))
        b = lib.where(near, y, lib.zeros_like(y))
        for k in range(8):
            total = total + b / (a + float(k)) / (a + b + float(k))
        return total

    def _far_apart(self, x: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        """Whether x or x + y is below 8; x moved by 8 there; the reciprocals of what
        then is x and x + y."""
        near = (x < 8.0) | (x + y < 8.0)
        moved = self.lib.where(near, x + 8.0, x)
        return near, moved, self.reciprocal(moved), self.reciprocal(moved + y)

    def _slope_between(
        self, s: Array, t: Array, coefficients: tuple[float, ...]
    ) -> tuple[Array, Array]:
        """A polynomial at s, and the slope of its chord from s to t."""
        value, slope = self.lib.zeros_like(s), self.lib.zeros_like(t)
        for c in coefficients:
            slope = slope * t + value
            value = value * s + c
        return value, slope

    def polygamma(self, n: int, x: Array) -> Array:
        """The n-th derivative of digamma, for x > 0: (-1)**(n + 1) n! zeta(n + 1, x),
        by its first terms and Euler's summation of the others (DLMF 25.11.43)."""
        lib = self.lib
        if n == 0:
            return self.digamma(x)
        over = (-3617, 7, -691, 5, -1, 1, -1, 1)  # Bernoulli's numbers
        under = (510, 6, 2730, 66, 30, 42, 30, 6)
        far = x > 10.0 + n
        r = self.reciprocal(lib.where(far, x, x + (10.0 + n)))
        s = lib.zeros_like(x)
        for k, b, c in zip(range(16, 0, -2), over, under, strict=True):
            s = s * (r * r) + b / c * math.comb(n + k - 1, k)
        scale = (-1.0) ** (n + 1) * math.factorial(n)  # first: s may be subnormal
        s = scale * (1.0 / n + 0.5 * r + s / n * (r * r)) * r
        for _ in range(n - 1):
            s = s * r
        near = lib.where(far, lib.ones_like(x), x)
        first = lib.zeros_like(x)
        for k in range(9 + n, -1, -1):
            r = self.reciprocal(near + float(k))
            p = r
            for _ in range(n):
                p = p * r
            first = first + p
        return lib.where(far, s, s + scale * first)

    # --- modified Bessel functions

    def i0(self, x: Array) -> Array:
        """The modified Bessel function of order 0."""
        near, tail = self._bessel(x, I0_SMALL, I0_LARGE)
        return self.lib.where(self.lib.abs(x) > 6.0, tail, near)

    def i1(self, x: Array) -> Array:
        """The modified Bessel function of order 1."""
        near, tail = self._bessel(x, I1_SMALL, I1_LARGE)
        far = self.lib.abs(x) > 6.0
        return self.lib.where(far, self.lib.sign(x) * tail, x * near)

    def i1_slope(self, x: Array) -> Array:
        """The derivative of I1, (I0(x) + I2(x)) / 2 (DLMF 10.29.1)."""
        near, tail = self._bessel(x, I1_SLOPE_SMALL, I1_SLOPE_LARGE)
        return self.lib.where(self.lib.abs(x) > 6.0, tail, near)

    def _bessel(
        self, x: Array, small: tuple[float, ...], large: tuple[float, ...]
    ) -> tuple[Array, Array]:
        """A polynomial in x**2 up to 6, and exp(abs(x)) / sqrt(abs(x)) times one in
        1 / abs(x) from there on."""
        lib = self.lib
        a = lib.abs(x)
        edge = 6.0 * lib.ones_like(x)
        near = self._polynomial(lib.square(lib.where(a > 6.0, edge, a)), small)
        b = lib.where(a > 6.0, self._at_most(a, 800.0), edge)
        tail = self._polynomial(12.0 / b - 1.0, large) / lib.sqrt(b)
        huge = b > 64.0  # exp(b) leaves the range before the product does
        e = tail * lib.exp(lib.where(huge, b - 64.0, b))
        return near, lib.where(huge, 6.235149080811617e27 * e, e)

    def i0e(self, x: Array) -> Array:
        """exp(-abs(x)) * I0(x)."""
        near, tail = self._scaled_bessel(x, I0_SMALL, I0_LARGE)
        return self.lib.where(self.lib.abs(x) > 6.0, tail, near)

    def i1e(self, x: Array) -> Array:
        """exp(-abs(x)) * I1(x)."""
        near, tail = self._scaled_bessel(x, I1_SMALL, I1_LARGE)
        far = self.lib.abs(x) > 6.0
        return self.lib.where(far, self.lib.sign(x) * tail, x * near)

    def _scaled_bessel(
        self, x: Array, small: tuple[float, ...], large: tuple[float, ...]
    ) -> tuple[Array, Array]:
        lib = self.lib
        a = lib.abs(x)
        edge = 6.0 * lib.ones_like(x)
        b, c = lib.where(a > 6.0, edge, a), lib.where(a > 6.0, a, edge)
        near = self._polynomial(lib.square(b), small) * lib.exp(-b)
        return near, self._polynomial(12.0 / c - 1.0, large) / lib.sqrt(c)

    def i0e_slope(self, x: Array) -> Array:
        """The derivative of i0e: i1e - i0e for x > 0, which would cancel."""
        _, near, tail = self._scaled_slope(
            x, I0E_SLOPE_SMALL, I0E_SLOPE_MIDDLE, I0E_SLOPE_LARGE
        )
        sign = self.lib.sign(x)
        return -sign * self.lib.where(self.lib.abs(x) > 3.0, tail, near)

    def i1e_slope(self, x: Array) -> Array:
        """The derivative of i1e: i0e - (1 + 1/x) i1e for x > 0; its zero is a
        factor."""
        b, p, tail = self._scaled_slope(
            x, I1E_SLOPE_SMALL, I1E_SLOPE_MIDDLE, I1E_SLOPE_LARGE
        )
        zero = self._at_most(b - 1.545127272605896, 2.0) + 1.461335330992981e-08
        near = p * (self._at_most(zero, 2.0) - 6.079624433015007e-25)
        return -self.lib.where(self.lib.abs(x) > 3.0, tail, near)

    def _scaled_slope(
        self,
        x: Array,
        small: tuple[float, ...],
        middle: tuple[float, ...],
        large: tuple[float, ...],
    ) -> tuple[Array, Array, Array]:
        """abs(x) up to 3, the fit there, and the fits from 3 to 8 and beyond."""
        lib = self.lib
        one, a = lib.ones_like(x), lib.abs(x)
        b = self._at_most(a, 3.0)
        p = self._polynomial(b, small) * lib.exp(-2.0 * b)
        r = self.reciprocal(lib.where(a > 3.0, a, 3.0 * one))
        w = (r + r - 11.0 / 24.0) / (5.0 / 24.0)  # 1 / x from 1 / 8 to 1 / 3
        inner = self._polynomial(lib.where(a > 8.0, -one, w), middle)
        w = lib.where(a > 8.0, 16.0 * r - 1.0, one)
        outer = self._polynomial(w, large)
        return b, p, r * (lib.sqrt(r) * lib.where(a > 8.0, outer, inner))
