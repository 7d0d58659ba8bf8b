"""Rules from text, and their cotangents as text, for the tests of this folder."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

from gradspec.derive.complete import complete
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import Expr, Ref, show
from gradspec.ir.rule import Complete, Definition, Role, Rule
from gradspec.lower.lowering import lower
from gradspec.primitives.lookup import formula
from gradspec.source import Source
from gradspec.syntax.parse import parse

_TEXT = Path(__file__).with_name("indexed.grad").read_text("utf-8")
RULES = {
    block.split("(")[0].removeprefix("rule "): block
    for block in re.split(r"\n(?=rule )", _TEXT)[1:]
}
"""Texts of rules over named axes by name."""


def rules(text: str) -> dict[str, Rule]:
    """The rules of a text, as lowered."""
    module = parse(Source("test.grad", dedent(text).strip() + "\n"))
    assert module.value is not None, module.diagnostics
    lowered = lower(module.value, {})
    assert lowered.value is not None, lowered.diagnostics
    assert not lowered.failed, lowered.diagnostics
    return {rule.name: rule for rule in lowered.value.rules}


def completed(text: str) -> Complete:
    """The last rule of a text, complete."""
    rule = complete(list(rules(text).values())[-1]).value
    assert rule is not None
    return rule


def derived(text: str) -> dict[str, str]:
    """The derived cotangents of the last rule, as text."""
    rule = completed(text)
    return {d.name: show(d.value) for d in rule.backward if d.is_derived}


def gradient(text: str, *wrt: str) -> dict[str, Expr]:
    """The cotangents of a formula, with ``dy`` upstream."""
    return of(formula(text), *wrt)


def of(expr: Expr, *wrt: str) -> dict[str, Expr]:
    return vjps(
        (Definition("y_", Role.LOCAL, expr),), (), {"y_": Ref("dy")}, wrt or ("x",)
    )
