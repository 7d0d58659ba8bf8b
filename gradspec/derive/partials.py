"""The derivative of one primitive by one argument, times the incoming cotangent."""

from __future__ import annotations

from gradspec.derive.build import negate, put_in, times
from gradspec.ir.expr import ONE, Apply, Const, Expr
from gradspec.ir.tidy import fold
from gradspec.primitives.formula import partial
from gradspec.primitives.lookup import primitive


class Underivable(Exception):
    """``expr`` has no derivative that we know of by its argument ``position``."""

    def __init__(self, expr: Expr, position: int = 0) -> None:
        super().__init__(f"no derivative: {type(expr).__name__}")
        self.expr = expr
        self.position = position


def through(above: Expr, node: Apply, position: int) -> Expr:
    """``above * ∂node/∂argument``, the factors of the table's formula in its order."""
    special = _SPECIAL.get((node.op, position))
    local = special(node) if special else None
    if local is not None:
        return times(above, local)
    form = partial(node.op, position)
    if form is None:
        raise Underivable(node, position)
    names = dict(zip(primitive(node.op).params, node.args, strict=True))
    names["out"] = node
    return _multiplied(above, form, names)


def _multiplied(above: Expr, form: Expr, names: dict[str, Expr]) -> Expr:
    """The formula's factors are put in one by one: an argument that is a product
    itself stays together, as the author wrote it."""
    factors: list[tuple[str, Expr]] = []
    while isinstance(form, Apply) and form.op in ("mul", "div"):
        factors.append((form.op, form.args[1]))
        form = form.args[0]
    if isinstance(form, Apply) and form.op == "neg":
        above, form = negate(above), form.args[0]
    result = _factor(above, put_in(form, names))
    for op, factor in reversed(factors):
        value = put_in(factor, names)
        result = _factor(result, value) if op == "mul" else _over(result, value)
    return result


def _factor(above: Expr, value: Expr) -> Expr:
    """Like ``times``, but a product in ``value`` stays one factor."""
    match (above, value):
        case (Const(), _) | (_, Const()):
            return times(above, value)
        case (_, Apply(op="mul" | "div", args=(first, _))) if not isinstance(
            first, Const
        ):
            return Apply("mul", (above, value))
        case _:
            return times(above, value)


def _over(above: Expr, value: Expr) -> Expr:
    return times(above, fold(Apply("div", (ONE, value))))


def _power(node: Apply) -> Expr | None:
    """A constant exponent: ``3 * x**2``, where the table must think of any; or one that
    is never 0, whatever becomes of it in floating point, so that nobody need ask."""
    base, exponent = node.args
    match exponent:
        case Const(value=value):
            less: Expr = Const(value - 1)
        case Apply(op="exp"):
            less = Apply("sub", (exponent, ONE))
        case _:
            return None
    return times(exponent, fold(Apply("pow", (base, less))))


def _divisor(node: Apply) -> Expr | None:
    """A constant over ``y``: ``-c / y²`` is what one writes, and no less accurate."""
    number, by = node.args
    if not isinstance(number, Const):
        return None
    return Apply("div", (Const(-number.value), Apply("square", (by,))))


_SPECIAL = {("pow", 0): _power, ("div", 1): _divisor}
