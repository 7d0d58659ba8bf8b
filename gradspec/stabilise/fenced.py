"""Sums with two constants, behind a fence where compilers would add those up.

The distance from a zero, ``x + 1.27… - 1.29e-8 + 1.09e-16``, has its constant in parts, so
that no digit of it is lost. XLA and the optimiser of TensorFlow's graphs make one constant of
two that are added one after the other (``(a - p) + q`` is ``a - (p - q)`` there), and in
float64 the last part loses its digits: 1.5e6 ULP about the zero of silu's gradient. In
TensorFlow a bound between them, which nothing exceeds, stops that; in float32 the last part
is too small to matter, and there is none. In JAX what is between is rounded
(`table_fence.py`).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.rule import CheckedRule, Declared, Derived
from gradspec.ir.walk import names, transform
from gradspec.primitives.on_target import FLUSHING
from gradspec.primitives.table_fence import FENCE

_SUMS = ("add", "sub")


def fenced(checked: CheckedRule, target: str) -> CheckedRule:
    """The rule with its sums fenced, for targets that compile what they are given."""
    rule = checked.rule
    if target not in FLUSHING or not rule.is_elementwise:
        return checked
    forward = tuple(replace(x, value=_fenced(x.value)) for x in rule.forward)
    backward = tuple(
        replace(entry, value=_fenced(entry.value))
        if isinstance(entry, Derived | Declared)
        else entry
        for entry in rule.backward
    )
    if (forward, backward) == (rule.forward, rule.backward):
        return checked
    return replace(checked, rule=replace(rule, forward=forward, backward=backward))


def _fenced(form: Expr) -> Expr:
    return transform(form, _between)


def _between(node: Expr) -> Expr:
    match node:
        case Apply(op=op, args=(Apply() as inner, Const(value=last))) if op in _SUMS:
            first = _constant(inner)
            if first is not None and not _is_one(first, last):
                fence = Apply(FENCE, (inner,))
                return Apply(op, (fence, Const(last)))
    return node


def _constant(inner: Apply) -> Fraction | None:
    """What is added to something, or taken off it."""
    match inner:
        case Apply(op=op, args=(value, Const(value=first))) if op in _SUMS:
            return first if names(value) else None
        case _:
            return None


def _is_one(first: Fraction, last: Fraction) -> bool:
    """Whether they are one constant in float64, added or subtracted."""
    return all(Fraction(float(s)) == s for s in (first + last, first - last))
