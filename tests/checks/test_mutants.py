"""Each mutant of a right cotangent in disguise is refuted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from gradspec.checks.check import check
from gradspec.ir.expr import Apply, Const, Expr, Ref, apply
from gradspec.ir.rule import Rule, Status
from gradspec.ir.walk import names, nodes, substitute, transform
from tests.checks.test_disguised import FILES, rules

FACTORS = ("1.001", "1.000001", "1.000000000001", "-1")
RULES = [rule for path in FILES for rule in rules(path)[::10]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_every_mutant_is_refuted(rule: Rule) -> None:
    mutants = list(_mutants(rule))
    assert len(mutants) >= len(FACTORS)
    for what, mutant, variable in mutants:
        outcome = check(mutant, budget=0.0)
        assert outcome.value is not None
        verdicts = {v.input: v for v in outcome.value.verdicts}
        assert verdicts[variable].status is Status.REFUTED, what
        assert any(d.code in ("GS401", "GS402") for d in outcome.diagnostics)


def _mutants(rule: Rule) -> Iterator[tuple[str, Rule, str]]:
    for name, entry in rule.declared.items():
        for what, value in _changed(entry.value, name):
            yield what, rule.redefine(replace(entry, value=value)), name


def _changed(value: Expr, name: str) -> Iterator[tuple[str, Expr]]:
    for factor in FACTORS:
        yield f"times {factor}", apply("mul", Const(Fraction(factor)), value)
    if name in names(value):
        shifted = apply("add", Ref(name), Const(Fraction(1, 10**6)))
        yield "argument shifted", substitute(value, {name: shifted})
    for node in nodes(value):
        match node:
            case Apply(op="add" | "sub", args=(left, _)):
                kept = transform(value, lambda n, o=node, k=left: k if n == o else n)
                yield "term dropped", kept
                return
