"""What the tests of the table share: points, exact values, and formulas evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from gradspec.primitives.lookup import ROWS, primitive
from gradspec.primitives.row import Primitive

Point = tuple[float, ...]

OPERATORS = tuple(row.name for row in ROWS if row.result == "real" and row.arity)
"""Every row that is a function of numbers to a number."""


# --- points ----------------------------------------------------------------------------


def _spread(low: float, high: float, count: int) -> np.ndarray:
    """Stratified over magnitudes; a little off round numbers."""
    return np.exp(np.linspace(np.log(low), np.log(high), count)) * 1.0003


def _both(values: np.ndarray) -> np.ndarray:
    return np.concatenate([-values[::-1], values])


_POSITIVE = _spread(1e-8, 1e3, 70)
_UNIT = np.concatenate([_spread(1e-8, 0.97, 40), 1.0 - _spread(1e-6, 0.4, 25)])

_UNARY: dict[str, np.ndarray] = {
    "log": _POSITIVE,
    "log2": _POSITIVE,
    "log10": _POSITIVE,
    "log1p": np.concatenate([-_UNIT, _POSITIVE]),
    "sqrt": _POSITIVE,
    "rsqrt": _POSITIVE,
    "asin": _both(_UNIT),
    "acos": _both(_UNIT),
    "atanh": _both(_UNIT),
    "acosh": 1.0 + _POSITIVE,
    "logit": _UNIT,
    "erfinv": _both(_UNIT),
    "erfcinv": np.concatenate([_UNIT, 2.0 - _UNIT]),
    "ndtri": _UNIT,
    # Beyond, factors in the derivative by automatic differentiation leave the range.
    "gamma": _both(_POSITIVE[_POSITIVE < 90.0]),
    "erfinv_slope": _both(_UNIT),
    "erfcinv_slope": np.concatenate([_UNIT, 2.0 - _UNIT]),
    "ndtri_slope": _UNIT,
}


def values_of(name: str) -> np.ndarray:
    """Points of a row of one argument, inside its domain."""
    return _UNARY.get(name, _both(_POSITIVE))


def points(name: str) -> tuple[Point, ...]:
    """Stratified points inside the row's domain, away from its kinks."""
    row = primitive(name)
    if name == "polygamma":
        return tuple((float(n), float(x)) for n in range(5) for x in _POSITIVE[::3])
    if row.arity == 1:
        return tuple((float(x),) for x in values_of(name))
    scarce = _both(_spread(1e-8, 1e3, 9))
    grid = [tuple(map(float, p)) for p in _grid(scarce, row.arity)]
    return tuple(p for p in grid if _inside(name, p))


def _grid(values: np.ndarray, arity: int) -> Iterable[Point]:
    """No two coordinates are equal, so that no tie is met by accident."""
    axes = np.meshgrid(*(values * (1.0 + 0.013 * k) for k in range(arity)))
    return zip(*(axis.ravel() for axis in axes), strict=True)


def _inside(name: str, point: Point) -> bool:
    match name:
        case "pow" | "power_less_one":
            x, y = point
            return x > 0 and abs(y * np.log(x)) < 600
        case "discriminant_root":
            x, y, z = point
            return x * x > 5 * y * z
        case "lgamma_difference" | "digamma_difference":
            return min(point[0], sum(point)) > 0
        case "xlogy":
            return point[1] > 0
        case "xlog1py":
            return point[1] > -1
        case "clip":
            return point[1] < point[2]
        case "mod":
            # The quotient's rounding must not decide the branch.
            quotient = point[0] / point[1]
            return abs(quotient) < 1e6 and abs(quotient - round(quotient)) > 1e-4
        case _:
            return True


# --- balls -----------------------------------------------------------------------------


@contextmanager
def precision(bits: int) -> Iterator[None]:
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def exact(value: float | Fraction) -> Any:
    """The ball of a float or fraction: exact for a float."""
    fraction = Fraction(value)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def sharpened(evaluate: Callable[[], Any], bits: int = 110) -> Any:
    """The ball that ``evaluate`` gives when precision is raised until it is known to
    ``bits`` bits; or as it is at 4000.
    """
    working = 2 * bits
    while True:
        with precision(working):
            ball = evaluate()
        if not ball.is_finite() or ball.is_zero() or working > 4000:
            return ball
        if ball.rel_accuracy_bits() >= bits:
            return ball
        working *= 2


@cache
def truth(name: str, point: Point) -> Any:
    """The row's ball at a point, to 33 digits."""
    row = primitive(name)
    assert row.ball is not None
    return sharpened(lambda: row.ball(*map(exact, point)))  # type: ignore[misc]


def nearest(ball: Any) -> float:
    return float(ball.mid()) if ball.is_finite() else float("nan")


# --- formulas --------------------------------------------------------------------------

_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Mod: "mod",
    ast.Pow: "pow",
}
_COMPARE = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


class Meaning:
    """A formula of the table evaluated in some arithmetic.

    The formulas' grammar is a part of Python's, so that this reading does not depend on
    the compiler's own parser.
    """

    def number(self, value: Fraction) -> Any:
        raise NotImplementedError

    def apply(self, name: str, args: list[Any]) -> Any:
        raise NotImplementedError

    def select(self, condition: Any, then: Callable[[], Any], other: Any) -> Any:
        raise NotImplementedError

    def __call__(self, formula: str, **names: Any) -> Any:
        return self._value(ast.parse(formula, mode="eval").body, names)

    def _value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        def go(child: ast.expr) -> Any:
            return self._value(child, names)

        match node:
            case ast.Constant(value=value):
                return self.number(Fraction(str(value)))
            case ast.Name(id="pi" | "inf" as name):
                return self.apply(name, [])
            case ast.Name(id=name):
                return names[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.apply("neg", [go(operand)])
            case ast.BinOp(left=left, op=op, right=right):
                return self.apply(_BINARY[type(op)], [go(left), go(right)])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.apply(_COMPARE[type(op)], [go(left), go(right)])
            case ast.BoolOp(op=op, values=[first, *rest]):
                word = "and" if isinstance(op, ast.And) else "or"
                total = go(first)
                for value in rest:
                    total = self.apply(word, [total, go(value)])
                return total
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.select(go(test), lambda: go(body), lambda: go(orelse))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.apply(name, [go(a) for a in args])
            case _:
                raise AssertionError(f"not in the language: {ast.dump(node)}")


_DECIDE: dict[str, Callable[..., Any]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


class Balls(Meaning):
    """In ball arithmetic, at the precision in force; conditions at exact points."""

    def number(self, value: Fraction) -> Any:
        return exact(value)

    def apply(self, name: str, args: list[Any]) -> Any:
        if name in _DECIDE:
            return _DECIDE[name](*args)
        ball = primitive(name).ball
        assert ball is not None
        return ball(*args) if args else ball(arb(1))

    def select(self, condition: Any, then: Callable[[], Any], other: Any) -> Any:
        return then() if condition else other()


def partial_truth(row: Primitive, position: int, point: Point) -> Any:
    """The partial's formula at a point, ``out`` included, to 33 digits."""
    text = row.partials[position]
    assert text is not None and row.ball is not None
    ball = row.ball

    def evaluate() -> Any:
        args = [exact(value) for value in point]
        names = dict(zip(row.params, args, strict=True))
        return Balls()(text, **names, out=ball(*args))

    return sharpened(evaluate)
