"""The shortest text of a derived gradient, for people: in suggestions and notebooks."""

from __future__ import annotations

from fractions import Fraction

from gradspec.derive.chain import coefficient, is_linear, plus, times
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, show
from gradspec.ir.rule import Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import (
    calls_surrogate,
    closed_outputs,
    inline,
    names,
    size,
    transform,
)
from gradspec.symbolic.consult import short_derivatives
from gradspec.symbolic.gather import factored_fraction
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.proof.prove import search

_LARGEST = 60
"""Nodes of a formula whose derivative may have a short text."""
_LARGEST_GATHERED = 80
"""Nodes of a gradient whose fractions are gathered into one."""
_STEPS = 1_000
"""For the proof that a text says the same; without one it is not shown."""


def shortest(rule: Rule, name: str, derived: Expr) -> Expr:
    """The shortest form of the cotangent of input ``name``: as it is derived, with its
    fractions gathered, or one of SymPy's that is proved equal to it."""
    best = min((derived, *_gathered(rule, tidy(derived))), key=_length)
    value = inline(rule.forward, derived)
    assumed = tuple(assume.condition for assume in rule.assumes)
    for form in _by_sympy(rule, name):
        if _length(form) < _length(best):
            proof = search(form, value, assumed, Effort(_STEPS), wrt=name).proof
            best = best if proof is None else form
    return best


def _length(expr: Expr) -> int:
    return len(as_written(expr))


def as_written(expr: Expr) -> str:
    """The expression with powers for squares; the author's own arithmetic is left
    alone."""

    def visit(node: Expr) -> Expr:
        if isinstance(node, Apply) and node.op == "square":
            return Apply("pow", (*node.args, Const(Fraction(2))))
        return node

    return show(transform(expr, visit))


def _gathered(rule: Rule, derived: Expr) -> tuple[Expr, ...]:
    """Forms without a fraction in another, of a formula that is small enough."""
    upstream = frozenset(rule.cotangents)
    if rule.has_axes or size(derived) > _LARGEST_GATHERED:
        return (derived,)
    if not is_linear(derived, upstream):
        return (derived,)
    total: Expr = ZERO
    for name in rule.cotangents:
        if name in names(derived):
            factor = coefficient(derived, name, upstream)
            total = plus(total, times(Ref(name), factored_fraction(factor) or factor))
    return (derived, tidy(total))


def _by_sympy(rule: Rule, name: str) -> list[Expr]:
    outputs = {} if rule.has_axes else closed_outputs(rule)
    if rule.surrogates or calls_surrogate(rule):
        return []
    if not outputs or sum(map(size, outputs.values())) > _LARGEST:
        return []
    totals: list[Expr] = [ZERO, ZERO]
    for output in (o for o in rule.outputs if o.takes_gradient):
        slopes = short_derivatives(outputs[output.name], name)
        if len(slopes) < len(totals):
            return []
        pairs = zip(totals, slopes, strict=True)
        totals = [plus(a, times(Ref(output.cotangent), tidy(b))) for a, b in pairs]
    return totals
