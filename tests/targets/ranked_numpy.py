"""Rules over named axes in NumPy, held against scalar evaluation and differences.

What an output must be is told by the rule written out at given sizes (`ir.unroll`) in
ball arithmetic; what a gradient must be by differences of the emitted function itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from gradspec.derive.complete import complete
from gradspec.ir.rule import CheckedRule, Input, Kind, Rule, Status, Verdict
from gradspec.lower.lowering import lower
from gradspec.plan.plan import ModulePlan
from gradspec.plan.planning import plan_module
from gradspec.source import Source
from gradspec.syntax.parse import parse
from gradspec.targets import emit
from tests.targets.emission import imported


def lowered(text: str) -> tuple[Rule, ...]:
    """The rules with their gradients, unchecked: what is emitted is what is tested."""
    parsed = parse(Source("rules.grad", text))
    assert parsed.value is not None, parsed.diagnostics
    found = lower(parsed.value, {})
    assert found.value is not None, found.diagnostics
    completed = [complete(rule).value for rule in found.value.rules]
    return tuple(rule for rule in completed if rule is not None)


def planned(rules: tuple[Rule, ...]) -> ModulePlan:
    return plan_module(Source("rules.grad", ""), tuple(map(_believed, rules)))


def _believed(rule: Rule) -> CheckedRule:
    verdicts = tuple(
        Verdict(i.name, Status.PROVED if i.takes_gradient else Status.NONE)
        for i in rule.inputs
    )
    return CheckedRule(rule, verdicts)


def emitted(text: str) -> tuple[tuple[Rule, ...], ModuleType, str]:
    """The rules that are emitted, their module, and its text."""
    rules = lowered(text)
    plan = planned(rules)
    made = emit(plan, "numpy").value
    assert made is not None
    names = {rule.name for rule in plan.rules}
    return tuple(r for r in rules if r.name in names), imported(made), made.text


# --- arguments -------------------------------------------------------------------------


def arguments(
    rule: Rule, sizes: Mapping[str, int], rng: np.random.Generator, batches: Any
) -> dict[str, np.ndarray]:
    """Random tensors: positive, so that logarithms and roots are defined."""
    return {
        i.name: _tensor(i, sizes, rng, batches.get(i.name, ()))
        for i in rule.tensor_inputs
    }


def _tensor(
    i: Input, sizes: Mapping[str, int], rng: np.random.Generator, batch: Any
) -> np.ndarray:
    core = tuple(sizes[a] if isinstance(a, str) else a for a in i.shape.axes)
    shape = (*(batch if i.shape.batch else ()), *core)
    match i.kind:
        case Kind.INT:
            return rng.integers(0, min(sizes.values(), default=1), shape)
        case Kind.BOOL:
            return rng.random(shape) < 0.5
        case _:
            return np.asarray(rng.uniform(0.1, 0.9, shape))


def statics(rule: Rule, sizes: Mapping[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for i in rule.static_inputs:
        if i.name in sizes:
            found[i.name] = sizes[i.name]
        elif i.default is None:
            found[i.name] = 1 if i.kind is Kind.STATIC_INT else 0.5
    return found


# --- what must come out ----------------------------------------------------------------
