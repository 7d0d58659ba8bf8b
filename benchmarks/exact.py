"""Expressions evaluated by mpmath to 60 digits: a second reading of the primitives.

It shares nothing with gradspec's own evaluation (python-flint balls): other formulas,
another library, other points. Equal here at many points of the domain is what the
mutation score calls equivalent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from mpmath import mp

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.rule import Input, Kind, Rule
from gradspec.ir.walk import closed_outputs, expand, nodes

DIGITS = 60
POINTS = 60
_WORKING = (2 * DIGITS, 10 * DIGITS)

Values = Mapping[str, Fraction]


class NotReal(Exception):
    """A point outside of the domain of some primitive."""


def _log(x: Any) -> Any:
    if x <= 0:
        raise NotReal
    return mp.log(x)


def _root(x: Any) -> Any:
    if x < 0:
        raise NotReal
    return mp.sqrt(x)


def _within(limit: int, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of(x: Any) -> Any:
        if abs(x) > limit:
            raise NotReal
        return function(x)

    return of


def _pow(x: Any, y: Any) -> Any:
    if x < 0 and y != mp.floor(y):
        raise NotReal
    if x == 0 and y <= 0:
        if y < 0:
            raise NotReal
        return mp.mpf(1)
    return mp.power(x, y)


def _over(x: Any, y: Any) -> Any:
    if y == 0:
        raise NotReal
    return x / y


def _sinc_slope(x: Any) -> Any:
    u = mp.pi * x
    return (u * mp.cos(u) - mp.sin(u)) / (mp.pi * x**2) if x else mp.mpf(0)


def _gamma(x: Any) -> Any:
    if x <= 0 and x == mp.floor(x):
        raise NotReal
    return mp.gamma(x)


def _erfinv(x: Any) -> Any:
    if abs(x) >= 1:
        raise NotReal
    return mp.erfinv(x)


def _round(x: Any) -> Any:
    low = mp.floor(x)
    gap = x - low
    half = mp.mpf(1) / 2
    up = gap > half or (gap == half and int(low) % 2 == 1)
    return low + 1 if up else low


def _bessel(order: int, x: Any) -> Any:
    return mp.besseli(order, x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": _over,
    "mod": lambda x, y: x - y * mp.floor(_over(x, y)),
    "pow": _pow,
    "neg": lambda x: -x,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": lambda x, y: bool(x) and bool(y),
    "or": lambda x, y: bool(x) or bool(y),
    "not": lambda x: not x,
    "pi": lambda: +mp.pi,
    "inf": lambda: mp.inf,
    "exp": mp.exp,
    "expm1": mp.expm1,
    "exp2": lambda x: mp.power(2, x),
    "log": _log,
    "log1p": lambda x: _log(1 + x),
    "log2": lambda x: _log(x) / mp.ln2,
    "log10": lambda x: _log(x) / mp.ln10,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "logsigmoid": lambda x: -mp.log1p(mp.exp(-x)),
    "softplus": lambda x: max(x, 0) + mp.log1p(mp.exp(-abs(x))),
    "logaddexp": lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    "logit": lambda x: _log(x) - _log(1 - x),
    "xlogy": lambda x, y: x * _log(y) if x else x,
    "xlog1py": lambda x, y: x * _log(1 + y) if x else x,
    "square": lambda x: x**2,
    "reciprocal": lambda x: _over(1, x),
    "sqrt": _root,
    "rsqrt": lambda x: _over(1, _root(x)),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "hypot": lambda x, y: mp.sqrt(x**2 + y**2),
    "abs": abs,
    "max": max,
    "min": min,
    "clip": lambda x, low, high: min(max(x, low), high),
    "relu": lambda x: max(x, 0),
    "sign": mp.sign,
    "heaviside": lambda x, y: mp.mpf(x > 0) if x else y,
    "floor": mp.floor,
    "ceil": mp.ceil,
    "round": _round,
    "trunc": lambda x: mp.sign(x) * mp.floor(abs(x)),
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "sinpi": mp.sinpi,
    "cospi": mp.cospi,
    "sinc": mp.sincpi,
    "sinc_slope": _sinc_slope,
    "asin": _within(1, mp.asin),
    "acos": _within(1, mp.acos),
    "atan": mp.atan,
    "atan2": mp.atan2,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asinh": mp.asinh,
    "acosh": lambda x: _log(x + _root(x**2 - 1)),
    "atanh": lambda x: (_log(1 + x) - _log(1 - x)) / 2,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erfcx": lambda x: mp.exp(x**2) * mp.erfc(x),
    "erfcx_slope": lambda x: 2 * x * mp.exp(x**2) * mp.erfc(x) - 2 / mp.sqrt(mp.pi),
    "erfinv": _erfinv,
    "erfcinv": lambda x: _erfinv(1 - x),
    "ndtr": mp.ncdf,
    "ndtri": lambda x: mp.sqrt(2) * _erfinv(2 * x - 1),
    "log_ndtr": lambda x: mp.log(mp.ncdf(x)),
    "lgamma": lambda x: mp.log(abs(_gamma(x))),
    "gamma": _gamma,
    "digamma": mp.digamma,
    "polygamma": lambda n, x: mp.psi(int(n), x),
    "lgamma_difference": lambda x, y: mp.log(_gamma(x + y)) - mp.log(_gamma(x)),
    "digamma_difference": lambda x, y: mp.digamma(x + y) - mp.digamma(x),
    "i0": lambda x: _bessel(0, x),
    "i1": lambda x: _bessel(1, x),
    "i0e": lambda x: mp.exp(-abs(x)) * _bessel(0, x),
    "i1e": lambda x: mp.exp(-abs(x)) * _bessel(1, x),
    "i0e_slope": lambda x: (
        mp.exp(-abs(x)) * (_bessel(1, x) - mp.sign(x) * _bessel(0, x))
    ),
    "i1e_slope": lambda x: (
        mp.exp(-abs(x))
        * ((_bessel(0, x) + _bessel(2, x)) / 2 - mp.sign(x) * _bessel(1, x))
    ),
}


def value(expr: Expr, point: Values) -> Any:
    """The value at a point in the precision that mpmath is set to; :class:`NotReal`."""
    known: dict[Expr, Any] = {}
    for node in nodes(expr):
        known[node] = _value(node, known, point)
    result = known[expr]
    if result is None:
        raise NotReal
    return result


def _value(node: Expr, known: Mapping[Expr, Any], point: Values) -> Any:
    """None where it does not exist, which only matters in a branch that is taken."""
    match node:
        case Const(value=number):
            return _real(number)
        case Ref(name=name):
            return _real(point[name])
        case Select(condition=condition, then=then, other=other):
            test = known[condition]
            return None if test is None else known[then if test else other]
        case Apply(op=op, args=args):
            parts = [known[arg] for arg in args]
            if any(part is None for part in parts):
                return None
            try:
                found = FUNCTIONS[op](*parts)
            except (NotReal, ValueError, ZeroDivisionError):
                return None
            is_real = isinstance(found, bool) or mp.isfinite(found) or op == "inf"
            return found if is_real else None
        case _:
            raise TypeError(type(node).__name__)


def _real(number: Fraction) -> Any:
    return mp.mpf(number.numerator) / number.denominator


def equivalent(left: Expr, right: Expr, points: tuple[Values, ...]) -> bool:
    """Equal to 60 digits wherever both are defined, and somewhere they are."""
    compared = 0
    for point in points:
        for working in _WORKING:  # again with more where digits may have cancelled
            with mp.workdps(working):
                try:
                    a, b = value(left, point), value(right, point)
                except NotReal:
                    break
                is_same = abs(a - b) <= mp.mpf(10) ** -DIGITS * max(abs(a), abs(b))
            if is_same:
                compared += 1
                break
        else:
            return False
    return compared > 0


def points(rule: Rule, *wrong: Expr, count: int = POINTS) -> tuple[Values, ...]:
    """Random points of the domain, none of them simple, and some between numbers of the
    rule that are close to each other (an argument shifted by 1e-6 moves a threshold).
    """
    outputs = tuple(expand(v) for v in closed_outputs(rule).values())
    return _found(rule, count, _numbers((*outputs, *wrong)), (3, 10, 30))


def plain_points(rule: Rule, count: int) -> tuple[Values, ...]:
    """Random points of the domain, none larger than 3: what one would test with."""
    return _found(rule, count, (), (1, 3))


def _found(
    rule: Rule, count: int, numbers: tuple[Fraction, ...], sizes: tuple[int, ...]
) -> tuple[Values, ...]:
    draw = random.Random(f"{rule.name} {count}")
    outputs = tuple(expand(v) for v in closed_outputs(rule).values())
    found: list[Values] = []
    for _ in range(60 * count):
        if len(found) >= count:
            break
        point = dict(_drawn(rule, draw, numbers, sizes))
        if _is_inside(rule, outputs, point):
            found.append(point)
    return tuple(found)


def _numbers(exprs: tuple[Expr, ...]) -> tuple[Fraction, ...]:
    """The constants of some expressions, and 0."""
    found = [n.value for e in exprs for n in nodes(e) if isinstance(n, Const)]
    return tuple(dict.fromkeys((Fraction(0), *found)))


def _drawn(
    rule: Rule,
    draw: random.Random,
    numbers: tuple[Fraction, ...],
    sizes: tuple[int, ...],
) -> Iterator[tuple[str, Fraction]]:
    for variable in rule.inputs:
        yield variable.name, _one(variable, draw, numbers, sizes)
    for output in rule.outputs:
        yield f"d{output.name}", _fraction(draw, 3)


def _one(
    variable: Input,
    draw: random.Random,
    numbers: tuple[Fraction, ...],
    sizes: tuple[int, ...],
) -> Fraction:
    default = variable.default
    match variable.kind:
        case Kind.BOOL:
            return Fraction(draw.randrange(2))
        case Kind.INT:
            return Fraction(draw.randrange(-1, 6))
        case Kind.STATIC_INT:
            return Fraction(draw.randrange(1, 5)) if default is None else default
        case Kind.STATIC if default is not None and (
            default == 0 or draw.random() < 0.5
        ):
            return default
        case Kind.STATIC:
            return abs(_fraction(draw, 1)) * (1 if default is None else default)
    choice = draw.random()
    if numbers and choice < 0.2:
        return draw.choice((1, -1)) * draw.choice(numbers) + _fraction(draw, 1) / 10**6
    if choice < 0.6:
        return _fraction(draw, 1)
    return _fraction(draw, draw.choice(sizes))


def _fraction(draw: random.Random, size: int) -> Fraction:
    """A number of a size up to so much, that nobody would have chosen."""
    return Fraction(draw.randrange(-(10**9), 10**9) * 2 + 1, 2 * 10**9 + 1) * size


def _is_inside(rule: Rule, outputs: tuple[Expr, ...], point: Values) -> bool:
    with mp.workdps(30):
        try:
            held = (value(a.condition, point) for a in rule.assumes if not a.indices)
            return all(held) and all(value(o, point) is not None for o in outputs)
        except NotReal:
            return False
