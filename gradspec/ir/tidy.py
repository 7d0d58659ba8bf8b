"""Exact and harmless constant folding.

Constants are folded exactly, neutral elements disappear, signs and branches that say
nothing go. Arithmetic that rounds is never reordered or regrouped, so a tidied
expression evaluates, in floating point too, as the one it came from (``0 * x`` is the
one liberty: over the reals it is 0, where floating point would let a NaN through).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, isqrt, trunc

from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Reduce, Select
from gradspec.ir.walk import transform

_TWO = Fraction(2)
_LARGEST_EXPONENT = 64
_LARGEST_BITS = 256  # of a power: beyond that the constant would not be read anyway


def tidy(expr: Expr) -> Expr:
    """``expr`` folded from the leaves up."""
    return transform(expr, fold)


def fold(node: Expr) -> Expr:
    """One node, its children tidy already."""
    match node:
        case Apply(op=op, args=args) if op in _FOLDS:
            folded = _constant(op, args)
            return _FOLDS[op](node) if folded is None else folded
        case Apply(op=op, args=args):
            folded = _constant(op, args)
            return node if folded is None else folded
        case Select(condition=condition, then=then, other=other):
            decided = decide(condition)
            if decided is None:
                return then if then == other else node
            return then if decided else other
        case Reduce(op=op, bounds=bounds, body=body, where=Apply() as where):
            decided = decide(where)
            if decided is False and op == "sum":
                return ZERO
            return Reduce(op, bounds, body, span=node.span) if decided else node
        case _:
            return node


def decide(condition: Expr) -> bool | None:
    """The truth of a condition that holds, or does not, whatever the data are: on
    constants alone, or that a norm with a constant part is not 0. None when it depends
    on more."""
    match condition:
        case Apply(op="eq", args=(Apply(op="hypot", args=parts), Const(value=0))) if (
            any(isinstance(part, Const) and part.value for part in parts)
        ):
            return False
        case Apply(op=op, args=(Const(value=a), Const(value=b))) if op in _COMPARE:
            return _COMPARE[op](a, b)
        case Apply(op="and", args=args):
            known = [decide(arg) for arg in args]
            return False if False in known else None if None in known else True
        case Apply(op="or", args=args):
            known = [decide(arg) for arg in args]
            return True if True in known else None if None in known else False
        case Apply(op="not", args=(arg,)):
            value = decide(arg)
            return None if value is None else not value
        case _:
            return None


def _same(node: Apply, op: str, *args: Expr) -> Expr:
    """``op`` in place of ``node``, folded in its turn."""
    return fold(Apply(op, args, span=node.span))


# --- the operators -------------------------------------------------------------------


def _add(node: Apply) -> Expr:
    match node.args:
        case (Const(value=0), x) | (x, Const(value=0)):
            return x
        case (x, Apply(op="neg", args=(y,))):
            return _same(node, "sub", x, y)
        case (x, Const(value=value)) if value < 0:
            return _same(node, "sub", x, Const(-value))
    return node


def _sub(node: Apply) -> Expr:
    match node.args:
        case (x, Const(value=0)):
            return x
        case (Const(value=0), x):
            return _same(node, "neg", x)
        case (x, Apply(op="neg", args=(y,))):
            return _same(node, "add", x, y)
        case (x, Const(value=value)) if value < 0:
            return _same(node, "add", x, Const(-value))
    return node


def _mul(node: Apply) -> Expr:
    match node.args:
        case (Const(value=0), x) | (x, Const(value=0)) if x != Apply("inf"):
            return ZERO
        case (Const(value=1), x) | (x, Const(value=1)):
            return x
        case (Const(value=-1), x) | (x, Const(value=-1)):
            return _same(node, "neg", x)
        case (Apply(op="neg", args=(x,)), Apply(op="neg", args=(y,))):
            return _same(node, "mul", x, y)
    return node


def _div(node: Apply) -> Expr:
    match node.args:
        case (x, Const(value=1)):
            return x
        case (x, Const(value=-1)):
            return _same(node, "neg", x)
        case (Apply(op="neg", args=(x,)), Apply(op="neg", args=(y,))):
            return _same(node, "div", x, y)
    return node


def _neg(node: Apply) -> Expr:
    match node.args:
        case (Apply(op="neg", args=(x,)),):
            return x
        case (Apply(op="mul" | "div" as op, args=(Const(value=value), x)),):
            return _same(node, op, Const(-value), x)
        case (Apply(op="mul" | "div" as op, args=(Apply(op="neg", args=(x,)), y)),):
            return _same(node, op, x, y)
    return node


def _pow(node: Apply) -> Expr:
    match node.args:
        case (_, Const(value=0)):
            return ONE
        case (x, Const(value=1)):
            return x
        case (x, Const(value=2)):
            return _same(node, "square", x)
        case (x, Const(value=-1)):
            return _same(node, "div", ONE, x)
        case (x, Const(value=half)) if half == 1 / _TWO:
            return _same(node, "sqrt", x)
    return node


def _log(node: Apply) -> Expr:
    """``log(exp(c))`` is ``c``, as in the slope of ``exp(1)**x``."""
    match node.args:
        case (Apply(op="exp", args=(Const() as c,)),):
            return c
    return node


def _logic(node: Apply) -> Expr:
    """``a and True`` is ``a``; constants have no node, so an undecided one is kept."""
    settled = node.op == "and"
    known = [decide(arg) for arg in node.args]
    rest = tuple(a for a, k in zip(node.args, known, strict=True) if k is not settled)
    if len(rest) == 1 and len(node.args) == 2:
        return rest[0]
    return node


def _not(node: Apply) -> Expr:
    match node.args:
        case (Apply(op="not", args=(x,)),):
            return x
    return node


_FOLDS: dict[str, Callable[[Apply], Expr]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "pow": _pow,
    "log": _log,
    "and": _logic,
    "or": _logic,
    "not": _not,
}

_COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


# --- constants -----------------------------------------------------------------------


def _constant(op: str, args: tuple[Expr, ...]) -> Const | None:
    """The exact value of a primitive on constants, where it is rational and short."""
    values = []
    for arg in args:
        if not isinstance(arg, Const):
            return None
        values.append(arg.value)
    exact = _EXACT.get(op)
    if exact is None:
        return None
    value = exact(*values)
    return None if value is None else Const(value)


def _power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1 or abs(exponent) > _LARGEST_EXPONENT:
        return None
    if base == 0 and exponent < 0:
        return None
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > _LARGEST_BITS:
        return None
    return base ** int(exponent)


def _root(value: Fraction) -> Fraction | None:
    if value < 0:
        return None
    root = Fraction(isqrt(value.numerator), isqrt(value.denominator))
    return root if root * root == value else None


_EXACT: dict[str, Callable[..., Fraction | None]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y if y else None,
    "neg": lambda x: -x,
    "pow": _power,
    "sqrt": _root,
    "square": lambda x: x * x,
    "mod": lambda x, y: x % y if y else None,
    "floor": lambda x: Fraction(floor(x)),
    "ceil": lambda x: Fraction(ceil(x)),
    "trunc": lambda x: Fraction(trunc(x)),
    "round": lambda x: Fraction(round(x)),
    "sign": lambda x: Fraction((x > 0) - (x < 0)),
    "abs": abs,
    "min": min,
    "max": max,
    "exp": lambda x: Fraction(1) if x == 0 else None,
    "log": lambda x: Fraction(0) if x == 1 else None,
}
