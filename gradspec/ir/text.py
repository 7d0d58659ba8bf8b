"""Expressions as text in the language's own syntax, with the fewest brackets."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import assert_never

from gradspec.ir.expr import (
    Apply,
    Call,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.walk import nodes

# Binding strength, loosest first: the order of the grammar (which is Python's).
_CONDITIONAL, _OR, _AND, _NOT, _COMPARE = range(5)
_SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(5, 10)

# symbol, own strength, strength asked of the left and of the right operand
_INFIX = {
    "add": (" + ", _SUM, _SUM, _PRODUCT),
    "sub": (" - ", _SUM, _SUM, _PRODUCT),
    "mul": (" * ", _PRODUCT, _PRODUCT, _UNARY),
    "div": (" / ", _PRODUCT, _PRODUCT, _UNARY),
    "mod": (" % ", _PRODUCT, _PRODUCT, _UNARY),
    "pow": ("**", _POWER, _ATOM, _UNARY),
    "lt": (" < ", _COMPARE, _SUM, _SUM),
    "le": (" <= ", _COMPARE, _SUM, _SUM),
    "gt": (" > ", _COMPARE, _SUM, _SUM),
    "ge": (" >= ", _COMPARE, _SUM, _SUM),
    "eq": (" == ", _COMPARE, _SUM, _SUM),
    "ne": (" != ", _COMPARE, _SUM, _SUM),
    # Logic is associative, so brackets on the right would say nothing.
    "and": (" and ", _AND, _AND, _AND),
    "or": (" or ", _OR, _OR, _OR),
}
_PREFIX = {"neg": ("-", _UNARY), "not": ("not ", _NOT)}
_Known = dict[Expr, tuple[str, int]]

_LONGEST = 17  # digits: what identifies a float64
_SMALLEST = -5  # the exponent from which Python, too, prints 1e-05


def show(expr: Expr) -> str:
    """``expr`` in the language's syntax; a call of a rule shows as ``rule(args)``.

    A constant shows as the decimal that it is, if that is short, else as a quotient.
    """
    known: _Known = {}
    for node in nodes(expr):
        known[node] = _show(node, known)
    return known[expr][0]


def _show(expr: Expr, known: _Known) -> tuple[str, int]:
    """The text and how tightly its outermost operator binds; the parts are known."""
    match expr:
        case Const(value=value):
            return _constant(value)
        case Ref(name=name, indices=indices):
            inside = ", ".join(known[i][0] for i in indices)
            return (f"{name}[{inside}]" if indices else name), _ATOM
        case Idx(name=name) | Size(axis=name):
            return name, _ATOM
        case Apply(op=op, args=args):
            return _apply(op, tuple(known[arg] for arg in args))
        case Select(condition=condition, then=then, other=other):
            then_text = _within(known[then], _OR)
            test, rest = _within(known[condition], _OR), known[other][0]
            return f"{then_text} if {test} else {rest}", _CONDITIONAL
        case Reduce():
            return _reduce(expr, known), _ATOM
        case Call():
            return _call(expr, known), _ATOM
        case _:
            assert_never(expr)


def _within(part: tuple[str, int], strength: int) -> str:
    text, own = part
    return text if own >= strength else f"({text})"


def _apply(op: str, args: tuple[tuple[str, int], ...]) -> tuple[str, int]:
    if op in _INFIX:
        symbol, own, left, right = _INFIX[op]
        return f"{_within(args[0], left)}{symbol}{_within(args[1], right)}", own
    if op in _PREFIX:
        symbol, own = _PREFIX[op]
        return f"{symbol}{_within(args[0], own)}", own
    if not args:
        return op, _ATOM
    return f"{op}({', '.join(text for text, _ in args)})", _ATOM


def _reduce(expr: Reduce, known: _Known) -> str:
    over = ", ".join(bound.index for bound in expr.bounds)
    where = "" if expr.where is None else f" if {_within(known[expr.where], _OR)}"
    op = "max" if expr.op == "peak" else expr.op  # as a rule would have it
    return f"{op}({known[expr.body][0]} for {over}{where})"


def _call(expr: Call, known: _Known) -> str:
    rule = expr.rule
    parts = []
    for variable, arg in zip(rule.inputs, expr.args, strict=True):
        if not variable.kind.is_static:
            parts.append(known[arg][0])
        elif variable.default is None or arg != Const(variable.default):
            parts.append(f"{variable.name}={known[arg][0]}")
    several = len(rule.outputs) > 1
    name = f"{rule.name}.{rule.outputs[expr.output].name}" if several else rule.name
    return f"{name}({', '.join(parts)})"


def _constant(value: Fraction) -> tuple[str, int]:
    sign, strength = ("-", _UNARY) if value < 0 else ("", _ATOM)
    digits = _decimal(abs(value))
    if digits is not None:
        return sign + digits, strength
    return f"{value.numerator} / {value.denominator}", _PRODUCT


def _decimal(value: Fraction) -> str | None:
    """The exact decimal of a value that has a short one."""
    with localcontext(prec=_LONGEST) as context:
        context.clear_flags()
        quotient = Decimal(value.numerator) / Decimal(value.denominator)
    if Fraction(quotient) != value:
        return str(value.numerator) if value.denominator == 1 else None
    shortest = quotient.normalize()
    plain = format(shortest, "f")
    if _SMALLEST <= shortest.adjusted() < _LONGEST:
        return plain
    mantissa, exponent = format(shortest, "e").split("e")
    return f"{mantissa}e{int(exponent)}"
