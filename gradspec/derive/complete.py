"""Complete a rule: derive the cotangents that its author left out.

Nothing that an author can write fails here for elementwise rules: every primitive has a
partial for each of its real arguments (a test holds it), and lowering has seen to the
types. What goes wrong all the same is a fault of ours, and an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradspec.derive.chain import Underivable
from gradspec.derive.indexed import indexed_cotangents
from gradspec.derive.vjp import cotangents
from gradspec.diagnostics import Outcome
from gradspec.ir.rule import Backward, Derived, Input, NoGradient, Pending, Rule


def complete(rule: Rule) -> Outcome[Rule]:
    """The rule with every `Pending` cotangent derived.

    A ranked rule that calls a rule of several outputs whose backward is not linear in
    the upstream gradients keeps its own: there is no form for it over indices (GS255).
    """
    if not _is_asked(rule):
        return Outcome(rule)
    derived = _derived(rule)
    entries = zip(rule.inputs, rule.backward, strict=True)
    backward = tuple(_completed(v, entry, derived) for v, entry in entries)
    return Outcome(replace(rule, backward=backward))


def _is_asked(rule: Rule) -> bool:
    return any(isinstance(entry, Pending) for entry in rule.backward)


def _derived(rule: Rule) -> Mapping[str, Derived]:
    if rule.is_elementwise:
        return {name: Derived(value) for name, value in cotangents(rule).items()}
    try:
        return indexed_cotangents(rule)
    except Underivable:
        return {}


def _completed(
    variable: Input, entry: Backward, derived: Mapping[str, Derived]
) -> Backward:
    if not isinstance(entry, Pending):
        return entry
    if not variable.takes_gradient:
        return NoGradient()
    return derived.get(variable.name, entry)
