"""Locals that no chosen form uses any more."""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import Rule
from gradspec.ir.walk import names


def without_dead_locals(before: Rule, after: Rule) -> Rule:
    """Locals that only the old forms used are gone; what the user left unused, or asked
    to be saved or recomputed, stays."""
    used_before, used_after = _used(before), _used(after)
    dead = {let.name for let in before.forward if let.name in used_before - used_after}
    if not dead:
        return after
    forward = tuple(let for let in after.forward if let.name not in dead)
    return replace(after, forward=forward)


def _used(rule: Rule) -> frozenset[str]:
    """Names that outputs, cotangents or the user's own wishes need."""
    values = {let.name: let.value for let in (*rule.forward, *rule.backward_locals)}
    roots: list[str] = [o.name for o in rule.outputs]
    roots += [*rule.saves, *rule.recomputes]
    roots += [let.name for let in rule.backward_locals]
    for entry in (*rule.backward, *rule.surrogates):
        value = getattr(entry, "value", None)
        roots += sorted(names(value)) if value is not None else []
    found: dict[str, None] = {}
    while roots:
        name = roots.pop()
        if name in found:
            continue
        found[name] = None
        if name in values:
            roots += sorted(names(values[name]))
    return frozenset(found)
