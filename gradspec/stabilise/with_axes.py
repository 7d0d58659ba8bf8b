"""The choice of evaluations for a rule with axes (`ranked.py`), from end to end."""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import CheckedRule
from gradspec.stabilise.dead import without_dead_locals
from gradspec.stabilise.exact import restored
from gradspec.stabilise.inlined import without_calls
from gradspec.stabilise.ranked import stabilised
from gradspec.stabilise.ranked_guard import ranked_guarded


def with_axes(checked: CheckedRule) -> CheckedRule:
    """The rule with its expressions in the forms that measure best."""
    rule = without_calls(checked.rule)
    done = stabilised(replace(checked, rule=rule))
    guarded = ranked_guarded(done.rule)
    if not done.rewrites and guarded == rule:
        return checked
    return replace(done, rule=restored(rule, without_dead_locals(rule, guarded)))
