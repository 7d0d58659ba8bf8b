"""Complete a rule: derive the cotangents that its author left out.

Nothing that an author can write fails here: every primitive has a partial for each of
its real arguments (a test holds it), and lowering has seen to the types. What goes wrong
all the same is a fault of ours, and an exception.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.derive.vjp import cotangents
from gradspec.diagnostics import Outcome
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Backward, Derived, Input, NoGradient, Pending, Rule


def complete(rule: Rule) -> Outcome[Rule]:
    """The rule with every `Pending` cotangent derived.

    Ranked rules keep theirs: they are checked for well-formedness, not emitted yet.
    """
    if not rule.is_elementwise or not _is_asked(rule):
        return Outcome(rule)
    derived = cotangents(rule)
    entries = zip(rule.inputs, rule.backward, strict=True)
    backward = tuple(_completed(v, entry, derived) for v, entry in entries)
    return Outcome(replace(rule, backward=backward))


def _is_asked(rule: Rule) -> bool:
    return any(isinstance(entry, Pending) for entry in rule.backward)


def _completed(variable: Input, entry: Backward, derived: dict[str, Expr]) -> Backward:
    if not isinstance(entry, Pending):
        return entry
    if not variable.takes_gradient:
        return NoGradient()
    return Derived(derived[variable.name])
