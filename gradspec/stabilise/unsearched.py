"""Every formula as it is written (`--as-written`): no search, no measurement.

Branches of conditionals are guarded all the same: that changes no value, and keeps NaN
out of second derivatives.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import CheckedRule, Declared, Derived, Override, Rule
from gradspec.ir.tidy import tidy
from gradspec.stabilise.exact import restored
from gradspec.stabilise.guard import guarded
from gradspec.stabilise.inlined import without_calls
from gradspec.stabilise.points import points
from gradspec.stabilise.ranked_guard import ranked_guarded


def as_written(checked: CheckedRule) -> CheckedRule:
    """The rule with the evaluations that its text has, derived gradients with those
    that differentiating gives."""
    rule = tidied(without_calls(checked.rule))
    if not rule.is_elementwise:
        safe = ranked_guarded(rule)
    else:
        sample = points(rule)
        safe = guarded(rule, sample) if len(sample) else rule
    return replace(checked, rule=restored(rule, safe), as_written=True)


def tidied(rule: Rule) -> Rule:
    """Constants folded, as every choice begins: this rounds nothing otherwise."""
    return replace(
        rule,
        forward=tuple(replace(x, value=tidy(x.value)) for x in rule.forward),
        backward_locals=tuple(
            replace(x, value=tidy(x.value)) for x in rule.backward_locals
        ),
        backward=tuple(
            replace(entry, value=tidy(entry.value))
            if isinstance(entry, Derived | Declared | Override)
            else entry
            for entry in rule.backward
        ),
    )
