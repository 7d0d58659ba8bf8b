"""The Taylor model of an expression in one variable.

Where a branch is left out at the point alone (``… if x != 0 else 1``) the model is that of
the branch around it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.walk import nodes, substitute
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.jets import NoSeries
from gradspec.symbolic.taylor_models import PRECISION, Model, applied, constant


def model(expr: Expr, name: str, centre: Any, width: Fraction, order: int) -> Model:
    """The model of an expression in ``name`` alone about ``centre`` (a Fraction, or a
    ball that holds a number known no closer); :class:`NoSeries` if there is none."""
    with ctx.workprec(PRECISION):
        radius = arb(fmpq(width.numerator, width.denominator))
        start = _exact(centre) if isinstance(centre, Fraction) else centre
        variable = Model((start, fmpq(1), *[fmpq(0)] * (order - 1)), arb(0), radius)
        found = _Walk(name, variable).run(expr).regular()
        if not found.rest.is_finite():
            raise NoSeries("no bound of the rest")
        return found


def rational_start(
    expr: Expr, name: str, at: Fraction, width: Fraction, order: int
) -> tuple[Fraction, Fraction] | None:
    """Value and slope at a number where both are rational, else None."""
    try:
        found = model(expr, name, at, width, order)
    except (NoSeries, NotImplementedError):
        return None
    first, second = found.coefficients[:2]
    if not (isinstance(first, fmpq) and isinstance(second, fmpq)):
        return None
    value, slope = (Fraction(int(c.p), int(c.q)) for c in (first, second))
    return value, slope


def _exact(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


class _Walk:
    def __init__(self, name: str, variable: Model) -> None:
        self._name, self._variable = name, variable
        self._known: dict[Expr, Model] = {}

    def run(self, expr: Expr) -> Model:
        for node in self._needed(expr):
            if node not in self._known:
                self._known[node] = self._value(node)
        return self._known[expr]

    def _needed(self, expr: Expr) -> tuple[Expr, ...]:
        """Children first; conditions and branches only when they are reached."""
        if isinstance(expr, Select):
            return (expr,)
        found: list[Expr] = []
        for node in nodes(expr):
            found.append(node)
        inside = {c for n in found if isinstance(n, Select) for c in nodes(n)}
        return tuple(n for n in found if isinstance(n, Select) or n not in inside)

    def _value(self, node: Expr) -> Model:
        match node:
            case Const(value=value):
                return constant(_exact(value), self._variable)
            case Ref(name=name, indices=()) if name == self._name:
                return self._variable
            case Apply(op="pi"):
                return constant(arb.pi(), self._variable)
            case Select(condition=condition, then=then, other=other):
                return self.run(then if self._is_true(condition) else other)
            case Apply(op=op, args=args):
                return self._applied(node, op, [self.run(arg) for arg in args])
            case _:
                raise NoSeries(f"{type(node).__name__}")

    def _applied(self, node: Apply, op: str, args: list[Model]) -> Model:
        match op, args:
            case "add", [a, b]:
                return a + b
            case "sub", [a, b]:
                return a - b
            case "mul", [a, b]:
                return a * b
            case "div", [a, b]:
                return a / b
            case "neg", [a]:
                return -a
            case "square", [a]:
                return a * a
            case "abs", [a]:
                return a if _sign(a) > 0 else -a
            case "pow", [a, b]:
                return self._power(node, a)
            case _, [a]:
                return self._unary(node, op, a)
            case _:
                return self._meant(node)

    def _unary(self, node: Apply, op: str, inner: Model) -> Model:
        try:
            return applied(op, inner)
        except KeyError:
            return self._meant(node)

    def _meant(self, node: Apply) -> Model:
        """What the table says that a primitive means."""
        row = primitive(node.op)
        if row.meaning is None:
            raise NoSeries(node.op)
        values = dict(zip(row.params, node.args, strict=True))
        return self.run(substitute(formula(row.meaning), values))

    def _power(self, node: Apply, base: Model) -> Model:
        exponent = node.args[1]
        if not isinstance(exponent, Const):
            return self.run(_as_exponential(node))
        value = exponent.value
        if value.denominator == 1 and value > 0:
            return base.power(int(value))
        if value.denominator == 1 and value < 0:
            return constant(fmpq(1), base) / base.power(-int(value))
        return self.run(_as_exponential(node))

    def _is_true(self, condition: Expr) -> bool:
        """Whether it holds in the window (but, perhaps, for the point itself)."""
        match condition:
            case Apply(op="and", args=args):
                return all(self._is_true(arg) for arg in args)
            case Apply(op="or", args=args):
                return any(self._is_true(arg) for arg in args)
            case Apply(op="not", args=(arg,)):
                return not self._is_true(arg)
            case Apply(op="eq" | "ne" as op, args=(left, right)):
                difference = self.run(left) - self.run(right)
                return _differs(difference) is (op == "ne")
            case Apply(op="lt" | "le" | "gt" | "ge" as op, args=(left, right)):
                sign = _sign(self.run(left) - self.run(right))
                return (sign < 0) is (op in ("lt", "le"))
            case _:
                raise NoSeries("a condition")


def _differs(difference: Model) -> bool:
    """Two sides that are different in the window, but for the point itself, or the same."""
    difference = difference.regular()
    count = difference.valuation
    if count > difference.order:
        raise NoSeries("a condition")
    if difference.without_powers(count).range().contains(0):
        raise NoSeries("a condition")
    return True


def _as_exponential(node: Apply) -> Expr:
    base, exponent = node.args
    return Apply("exp", (Apply("mul", (exponent, Apply("log", (base,)))),))


def _sign(inner: Model) -> int:
    values = inner.range()
    if values > 0:
        return 1
    if values < 0:
        return -1
    raise NoSeries("a kink")
