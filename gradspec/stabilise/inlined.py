"""Calls of other rules, replaced by what they compute."""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.calls import expand
from gradspec.ir.rule import Declared, Derived, Override, Rule


def without_calls(rule: Rule) -> Rule:
    """Calls of other rules replaced by what they compute; their own backwards are in
    the cotangents already."""
    backward = (
        replace(entry, value=expand(entry.value))
        if isinstance(entry, Derived | Declared | Override)
        else entry
        for entry in rule.backward
    )
    return replace(
        rule,
        forward=tuple(replace(x, value=expand(x.value)) for x in rule.forward),
        backward_locals=tuple(
            replace(x, value=expand(x.value)) for x in rule.backward_locals
        ),
        surrogates=tuple(replace(x, value=expand(x.value)) for x in rule.surrogates),
        backward=tuple(backward),
    )
