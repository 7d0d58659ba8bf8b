"""Completion: the cotangents that the author leaves out are derived."""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.derive.chain import Underivable
from gradspec.derive.indexed import derived_cotangent, indexed_cotangents
from gradspec.derive.recurrence import derive_adjoints, used_adjoints
from gradspec.derive.vjp import cotangents
from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.ir.recurrence import states
from gradspec.ir.rule import Complete, Definition, Input, Rule
from gradspec.ir.walk import names


def complete(rule: Rule) -> Outcome[Complete]:
    """The rule with every cotangent that the author left out derived, and the adjoint
    states that these need.

    For those of an indexed rule that calls a rule of several outputs whose backward is
    not linear in the upstream gradients there is no form over indices.
    """
    if not rule.has_axes and not states(rule):
        return Outcome(complete_scalars(rule))
    missing = _missing(rule)
    try:
        found, adjoints = _derivation(rule) if missing else ({}, {})
    except Underivable:
        return Outcome(
            None, tuple(_underivable(rule, variable) for variable in missing)
        )
    entries = tuple(found[i.name] for i in missing)
    return Outcome(Complete.of(rule, *used_adjoints(entries, adjoints), *entries))


def complete_scalars(rule: Rule) -> Complete:
    """An elementwise rule with every cotangent: there each can be derived."""
    missing = _missing(rule)
    found = cotangents(rule) if missing else {}
    return Complete.of(rule, *(derived_cotangent(i, found[i.name]) for i in missing))


def _missing(rule: Rule) -> tuple[Input, ...]:
    return tuple(
        i for i in rule.inputs if i.takes_gradient and not rule.cotangent_of(i)
    )


def _underivable(rule: Rule, variable: Input) -> Diagnostic:
    return error(
        "GS255",
        f"{variable.cotangent} of {rule.name} cannot be derived",
        rule.source,
        variable.span,
        label="it goes through a call of a rule with several outputs whose backward is"
        " not linear in their upstream gradients",
        help=f"declare {variable.cotangent}, or call a rule with one output",
    )


def derived_entries(rule: Rule) -> Mapping[str, Definition]:
    """The derived cotangents that can be written in the names of the rule, whatever it
    declares. Raises `Underivable`."""
    found, adjoints = _derivation(rule)
    return {n: e for n, e in found.items() if not names(e.value) & adjoints.keys()}


def _derivation(
    rule: Rule,
) -> tuple[Mapping[str, Definition], Mapping[str, Definition]]:
    return derive_adjoints(rule) if states(rule) else (indexed_cotangents(rule), {})
