"""Numbers with derivatives, and the meaning of every built-in that the library uses.

This is a second reading of the language, made to disagree with the compiler if the
compiler is wrong. It shares no code with it: the meanings come from mpmath, and the
slope of a built-in is a central difference at three times the working precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mpmath import mp, mpf

from tests.primitives.mpmath_meanings import MPMATH


@dataclass(frozen=True)
class Dual:
    """A value and its derivatives by the inputs that it depends on."""

    value: mpf
    slopes: Mapping[str, mpf] = field(default_factory=dict)


def value(x: Dual | mpf) -> mpf:
    return x.value if isinstance(x, Dual) else x


def linear(result: mpf, *parts: tuple[Dual | mpf, mpf]) -> Dual:
    """The result, with derivatives that are the sum of slope times derivative."""
    slopes: dict[str, mpf] = {}
    for part, slope in parts:
        for name, inner in part.slopes.items() if isinstance(part, Dual) else ():
            slopes[name] = slopes.get(name, mpf(0)) + slope * inner
    return Dual(mpf(result), slopes)


def add(a: Dual | mpf, b: Dual | mpf) -> Dual:
    return linear(value(a) + value(b), (a, mpf(1)), (b, mpf(1)))


def subtract(a: Dual | mpf, b: Dual | mpf) -> Dual:
    return linear(value(a) - value(b), (a, mpf(1)), (b, mpf(-1)))


def multiply(a: Dual | mpf, b: Dual | mpf) -> Dual:
    return linear(value(a) * value(b), (a, value(b)), (b, value(a)))


def divide(a: Dual | mpf, b: Dual | mpf) -> Dual:
    u, v = value(a), value(b)
    return linear(u / v, (a, 1 / v), (b, -u / v**2))


def power(a: Dual | mpf, b: Dual | mpf) -> Dual:
    u, v = value(a), value(b)
    if isinstance(b, Dual) and b.slopes:
        return linear(u**v, (a, v * u ** (v - 1)), (b, u**v * mp.log(u)))
    return linear(u**v, (a, v * u ** (v - 1))) if v else Dual(mpf(1))


def sign(x: mpf) -> mpf:
    return mpf((x > 0) - (x < 0))


STEPS = ("ceil", "floor", "round", "sign", "trunc")


def _slope(function: Callable[..., mpf], at: tuple[mpf, ...], position: int) -> mpf:
    """A central difference; the step stays inside the domain of `acos` and the like."""
    step = mpf(10) ** (-mp.dps // 2 - 12) * (abs(at[position]) or 1)
    before, after = list(at), list(at)
    with mp.workdps(3 * mp.dps):
        before[position] -= step
        after[position] += step
        return (function(*after) - function(*before)) / (2 * step)


def _smooth(function: Callable[..., mpf], args: tuple[Dual | mpf, ...]) -> Dual:
    at = tuple(value(arg) for arg in args)
    moving = [i for i, arg in enumerate(args) if isinstance(arg, Dual) and arg.slopes]
    return linear(function(*at), *((args[i], _slope(function, at, i)) for i in moving))


def _extreme(name: str, args: tuple[Dual | mpf, ...]) -> Dual:
    at = [value(arg) for arg in args]
    result = max(at) if name == "max" else min(at)
    share = mpf(1) / at.count(result)
    return linear(result, *((arg, share) for arg in args if value(arg) == result))


def apply(name: str, args: tuple[Dual | mpf, ...]) -> Dual:
    """A built-in of the language at numbers with derivatives."""
    if name in STEPS:
        return Dual(MPMATH[name](value(args[0])))
    if name == "abs":
        return linear(abs(value(args[0])), (args[0], sign(value(args[0]))))
    if name in ("max", "min"):
        return _extreme(name, args)
    if name == "clip":
        return _extreme("min", (_extreme("max", args[:2]), args[2]))
    if name == "polygamma":
        order = int(value(args[0]))
        x = value(args[1])
        return linear(mp.psi(order, x), (args[1], mp.psi(order + 1, x)))
    return _smooth(MPMATH[name], args)
