"""Exact values of constant expressions: the defaults of static inputs."""

from __future__ import annotations

from fractions import Fraction

from gradspec.syntax import nodes

_LARGEST_EXPONENT = 1000


class NotConstant(Exception):
    """The expression is not a finite exact number; the message goes on from
    ``the default of …``.
    """


def evaluate(node: nodes.Expr) -> Fraction:
    """The exact value of numbers under ``+ - * / **``."""
    match node:
        case nodes.Number(value=value):
            return value
        case nodes.Unary(op="-", operand=operand):
            return -evaluate(operand)
        case nodes.Unary(op="+", operand=operand):
            return evaluate(operand)
        case nodes.Binary(op=op, left=left, right=right):
            return _operate(op, evaluate(left), evaluate(right))
        case nodes.Name(id="inf"):
            raise NotConstant("is not finite")
        case nodes.Name(id="pi"):
            raise NotConstant("is not an exact number: write pi in the body instead")
        case _:
            raise NotConstant("is not a constant")


def _operate(op: str, left: Fraction, right: Fraction) -> Fraction:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/" | "%" if right == 0:
            raise NotConstant("divides by zero")
        case "/":
            return left / right
        case "%":
            return left % right
        case _:
            return _power(left, right)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise NotConstant("is not an exact number: its exponent is not an integer")
    if abs(exponent) > _LARGEST_EXPONENT:
        raise NotConstant("is too large")
    if base == 0 and exponent < 0:
        raise NotConstant("divides by zero")
    return base ** int(exponent)
