"""Derivatives of foreign functions: what verdicts take as given, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gradspec.derive.complete import complete
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.expr import Apply, Call, Expr, spoken
from gradspec.ir.rule import Rule, Status, Verdict
from gradspec.ir.walk import names, nodes
from gradspec.primitives.foreign import (
    definition,
    foreign_operations,
    givens,
    is_foreign,
    unknown_derivatives,
)

_RESTING = (Status.PROVED, Status.AGREES, Status.DERIVED)


def underivable(rule: Rule) -> Iterator[Diagnostic]:
    """An error for each gradient that needs a derivative which is not given."""
    if not foreign_operations(_forward(rule)):
        return
    asked = tuple(one for one in rule.definitions if not one.is_declared)
    whole = complete(replace(rule, definitions=asked)).value
    for variable in rule.inputs:
        entry = None if whole is None else whole.cotangent_of(variable)
        unknown: tuple[str, ...] = ()
        if entry is not None and entry.is_derived:
            unknown = unknown_derivatives([entry.value])
        if unknown:
            culprit = _culprit(rule, unknown[0])
            yield error(
                "GS266",
                f"{variable.cotangent} of {rule.name} needs {unknown[0]}, which is not"
                " given",
                rule.source,
                variable.span if culprit is None else culprit.span,
                label="no derivative is given for this foreign function",
                help="give it, `extern def … with derivative …`; or declare the gradient,"
                f' `override {variable.cotangent} = … because "…"`; or let'
                f" `{variable.name}` be `nograd`",
            )


def _forward(rule: Rule) -> tuple[Expr, ...]:
    return tuple(one.value for one in (*rule.forward, *rule.surrogates))


def _culprit(rule: Rule, unknown: str) -> Expr | None:
    """The call of the function whose derivative it is, in the rule's own text."""
    for value in _forward(rule):
        for node in nodes(value):
            if isinstance(node, Apply) and is_foreign(node.op):
                name = spoken(node.op)
                if unknown in (f"{name}'",) or unknown.startswith(f"∂{name}/"):
                    return node
    return None


def with_givens(rule: Rule, verdict: Verdict) -> Verdict:
    """The verdict with the derivatives that it rests on."""
    if verdict.status not in _RESTING or not foreign_operations(_forward(rule)):
        return verdict
    reach: dict[str, frozenset[str]] = {}
    used: dict[str, None] = {}
    for let in rule.forward:
        reach[let.name] = _reached(let.value, reach)
    for value in _forward(rule):
        for node in nodes(value):
            if verdict.input in _reached(node, reach):
                used |= dict.fromkeys(_operations(node))
    return replace(verdict, given=givens(tuple(used)))


def _operations(node: Expr) -> tuple[str, ...]:
    is_call = isinstance(node, Call)
    if is_call or (isinstance(node, Apply) and is_foreign(node.op)):
        return tuple(
            op for op in foreign_operations([node]) if definition(op).derivatives
        )
    return ()


def _reached(expr: Expr, reach: dict[str, frozenset[str]]) -> frozenset[str]:
    """The inputs on which an expression depends."""
    return frozenset[str]().union(*(reach.get(n, {n}) for n in names(expr)))
