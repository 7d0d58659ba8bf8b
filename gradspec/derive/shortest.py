"""The shortest text of a derived gradient, for people: in suggestions and notebooks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from gradspec.derive.chain import plus, times
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, show
from gradspec.ir.rule import Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import calls_surrogate, closed_outputs, inline, size, transform
from gradspec.symbolic.consult import short_derivatives
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.proof.prove import search

_LARGEST = 60
"""Nodes of a formula whose derivative may have a short text."""
_STEPS = 1_000
"""For the proof that a text says the same; without one it is not shown."""


def shortest(
    rule: Rule, name: str, forms: tuple[Expr, ...], text: Callable[[Expr], str]
) -> Expr:
    """The shortest of forms of a cotangent, and of SymPy's that are proved equal to the
    first."""
    best = min(forms, key=lambda form: len(text(form)))
    first = inline(rule.forward, forms[0])
    assumed = tuple(assume.condition for assume in rule.assumes)
    for form in _by_sympy(rule, name):
        if len(text(form)) < len(text(best)):
            proof = search(form, first, assumed, Effort(_STEPS), wrt=name).proof
            best = best if proof is None else form
    return best


def as_written(expr: Expr) -> str:
    """The expression with powers for squares; the author's own arithmetic is left
    alone."""

    def visit(node: Expr) -> Expr:
        if isinstance(node, Apply) and node.op == "square":
            return Apply("pow", (*node.args, Const(Fraction(2))))
        return node

    return show(transform(expr, visit))


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
