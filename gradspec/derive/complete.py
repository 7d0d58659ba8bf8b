"""Complete a rule: derive the cotangents that its author left out."""

from __future__ import annotations

from dataclasses import replace

from gradspec.derive.partials import Underivable
from gradspec.derive.vjp import vjp
from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.ir.expr import Apply, Expr, Ref
from gradspec.ir.rule import Backward, Derived, Input, NoGradient, Pending, Rule
from gradspec.primitives.lookup import primitive


def complete(rule: Rule) -> Outcome[Rule]:
    """The rule with every `Pending` cotangent derived.

    Ranked rules keep theirs: they are checked for well-formedness, not emitted yet.
    """
    if not rule.is_elementwise:
        return Outcome(rule)
    found: list[Diagnostic] = []
    backward: list[Backward] = []
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        try:
            backward.append(_complete(rule, variable, entry))
        except Underivable as fault:
            found.append(_underivable(rule, variable, fault))
    if found:
        return Outcome(None, tuple(found))
    return Outcome(replace(rule, backward=tuple(backward)))


def _complete(rule: Rule, variable: Input, entry: Backward) -> Backward:
    if not isinstance(entry, Pending):
        return entry
    if not variable.takes_gradient:
        return NoGradient()
    return Derived(_derived(rule, variable.name))


def _derived(rule: Rule, name: str) -> Expr:
    upstream = {o.name: Ref(f"d{o.name}") for o in rule.outputs if o.takes_gradient}
    return vjp(rule.forward, rule.surrogates, upstream, name)


def _underivable(rule: Rule, variable: Input, fault: Underivable) -> Diagnostic:
    where = fault.expr.span or rule.name_span
    return error(
        "GS301",
        f"d{variable.name} of {rule.name} cannot be derived: {_missing(fault)}",
        rule.source,
        where,
        label="no derivative is known here",
        help=f"write d{variable.name} yourself, or mark {variable.name} as"
        f" '{variable.name}: nograd' if it needs none",
    )


def _missing(fault: Underivable) -> str:
    match fault.expr:
        case Apply(op=op):
            name = primitive(op).params[fault.position]
            return f"{op} has no derivative by its argument {name}"
        case _:
            return "no derivative is known for a part of it"
