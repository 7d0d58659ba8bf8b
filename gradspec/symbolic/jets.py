"""Taylor coefficients of elementary functions about a number, or about all of a ball."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb, arb_series, ctx, fmpq, fmpq_series


class NoSeries(Exception):
    """There is no power series here, or none that we can bound."""


def jets(op: str, start: Any, size: int) -> tuple[Any, ...]:
    """The first ``size`` coefficients of ``op`` about ``start``; rational ones where
    they are (about 0, mostly). KeyError for a function that is not known here."""
    exact, balls = _KNOWN[op]
    before = ctx.cap
    ctx.cap = size
    try:
        if isinstance(start, fmpq) and exact is not None:
            found = exact(start, size)
            if found is not None:
                return _padded(found, size, fmpq(0))
        series = balls(arb_series([arb(start), arb(1)], prec=size))
        return _padded(series.coeffs(), size, arb(0))
    except (ArithmeticError, ValueError) as fault:
        raise NoSeries(op) from fault
    finally:
        ctx.cap = before


def rational_inverse(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    """The coefficients of the inverse of a power series, as many as are given of it; all
    are rational, and the first is not 0."""
    before = ctx.cap
    ctx.cap = size = len(numbers)
    try:
        found = 1 / fmpq_series(list(numbers), prec=size)
        return _padded(found.coeffs(), size, fmpq(0))
    finally:
        ctx.cap = before


def _padded(found: list[Any], size: int, zero: Any) -> tuple[Any, ...]:
    return (*found[:size], *[zero] * (size - len(found)))


def _at(point: int, form: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    """Exact coefficients about one point, where the function is rational."""

    def exact(start: Any, size: int) -> list[Any] | None:
        if start != point:
            return None
        return list(form(fmpq_series([0, 1], prec=size)).coeffs())

    return exact


def _reciprocal(start: Any, size: int) -> list[Any] | None:
    if start == 0:
        raise NoSeries("a pole")
    return [fmpq((-1) ** n) / start ** (n + 1) for n in range(size)]


def _erf(start: Any, size: int) -> list[Any] | None:
    """``2 / sqrt(pi)`` times the series with rational coefficients (DLMF 7.6.1)."""
    if start != 0:
        return None
    scale = 2 / arb.pi().sqrt()
    found: list[Any] = [fmpq(0)] * size
    factor = fmpq(1)
    for n in range((size + 1) // 2):
        if 2 * n + 1 < size:
            found[2 * n + 1] = scale * (factor / (2 * n + 1))
        factor = -factor / (n + 1)
    return found


def _tanh(x: Any) -> Any:
    return 1 - 2 / ((2 * x).exp() + 1)


def _asinh(x: Any) -> Any:
    return (x + (x * x + 1).sqrt()).log()


_One = Callable[[Any], Any]
_KNOWN: dict[str, tuple[Callable[[Any, int], Any] | None, _One]] = {
    "reciprocal": (_reciprocal, lambda x: 1 / x),
    "exp": (_at(0, lambda x: x.exp()), lambda x: x.exp()),
    "expm1": (_at(0, lambda x: x.exp() - 1), lambda x: x.exp() - 1),
    "log": (_at(1, lambda x: (1 + x).log()), lambda x: x.log()),
    "log1p": (_at(0, lambda x: (1 + x).log()), lambda x: (1 + x).log()),
    "sqrt": (_at(1, lambda x: (1 + x).sqrt()), lambda x: x.sqrt()),
    "rsqrt": (_at(1, lambda x: (1 + x).rsqrt()), lambda x: x.rsqrt()),
    "sin": (_at(0, lambda x: x.sin()), lambda x: x.sin()),
    "cos": (_at(0, lambda x: x.cos()), lambda x: x.cos()),
    "tan": (_at(0, lambda x: x.tan()), lambda x: x.tan()),
    "asin": (_at(0, lambda x: x.asin()), lambda x: x.asin()),
    "atan": (_at(0, lambda x: x.atan()), lambda x: x.atan()),
    "acos": (None, lambda x: x.acos()),
    "sinh": (_at(0, lambda x: x.sinh()), lambda x: (x.exp() - (-x).exp()) / 2),
    "cosh": (_at(0, lambda x: x.cosh()), lambda x: (x.exp() + (-x).exp()) / 2),
    "tanh": (_at(0, lambda x: x.tanh()), _tanh),
    "asinh": (_at(0, lambda x: x.asinh()), _asinh),
    "atanh": (
        _at(0, lambda x: x.atanh()),
        lambda x: ((1 + x).log() - (1 - x).log()) / 2,
    ),
    "sigmoid": (None, lambda x: 1 / (1 + (-x).exp())),
    "erf": (_erf, lambda x: x.erf()),
    "erfc": (None, lambda x: 1 - x.erf()),
    "gamma": (None, lambda x: x.gamma()),
    "lgamma": (None, lambda x: x.lgamma()),
}
"""For each function: exact coefficients where there are some, and those of balls."""


def _of_tanh(order: int) -> Any:
    """Cauchy's estimate on a circle of radius 3/2: ``|tanh(a + ib)|`` is at most
    ``max(1, tan |b|)``, as its square is ``(sinh(a)**2 + sin(b)**2) / (sinh(a)**2 +
    cos(b)**2)``."""
    radius = arb(3) / 2
    return arb(0, (radius.tan() / radius**order).upper())


def _of_sigmoid(order: int) -> Any:
    """``(1 + tanh(x / 2)) / 2``."""
    return _of_tanh(order) / arb(2) ** (order + 1)


EVERYWHERE = {"tanh": _of_tanh, "sigmoid": _of_sigmoid}
"""Bounds of one coefficient (not the first) about any real number: by division of balls
they are far too large."""
