"""The same mutants before ``torch.autograd.gradcheck`` with its defaults.

Each is emitted by gradspec's own torch target as an ``override``, so that what torch
compares are the wrong backward and quotients of the right forward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.exact import Values, plain_points
from benchmarks.mutants import Mutant
from gradspec.checks.check import check
from gradspec.driver.imported import import_text
from gradspec.ir.calls import follows_surrogate
from gradspec.ir.rule import CheckedRule, Input, Kind, Override, Rule
from gradspec.plan.planning import plan_module
from gradspec.source import Source
from gradspec.targets import emit

ELEMENTS = 5


def has_quotients(rule: Rule) -> bool:
    """Quotients of the forward can judge the backward: no surrogates."""
    return not follows_surrogate(rule) and all(
        not isinstance(entry, Override) for entry in rule.backward
    )


def passed(mutants: Sequence[Mutant]) -> dict[int, bool]:
    """Whether gradcheck lets each mutant pass, by its place; without those whose right
    backward it does not let pass either (or that torch cannot compute)."""
    pairs = {
        k: (
            _overridden(m, f"wrong_{k}", m.values),
            _overridden(m, f"right_{k}", m.truths),
        )
        for k, m in enumerate(mutants)
    }
    rules = [rule for pair in pairs.values() for rule in pair]
    source = Source("mutants.grad", "")
    emitted = emit(plan_module(source, tuple(rules)), "torch", trace=False)
    assert emitted.value is not None, emitted.diagnostics
    module = import_text("mutants", "torch", emitted.value.text)
    found: dict[int, bool] = {}
    for k, mutant in enumerate(mutants):
        wrong, right = (getattr(module, f"{w}_{k}", None) for w in ("wrong", "right"))
        points = plain_points(mutant.rule, 4 * ELEMENTS)
        if wrong is None or right is None or not points:
            continue
        if _passes(mutant.rule, right, points):
            found[k] = _passes(mutant.rule, wrong, points)
    return found


def _overridden(
    mutant: Mutant, name: str, values: tuple[tuple[str, Any], ...]
) -> CheckedRule:
    chosen = dict(values)
    rule = mutant.rule
    entries = zip(rule.inputs, rule.backward, strict=True)
    backward = tuple(
        Override(chosen[v.name], "a mutant") if v.name in chosen else entry
        for v, entry in entries
    )
    changed = replace(rule, name=name, backward=backward, saves=(), recomputes=())
    checked = check(replace(changed, examples=()), budget=0.0).value
    assert checked is not None
    return checked


def _passes(
    rule: Rule, function: Callable[..., Any], points: tuple[Values, ...]
) -> bool:
    import torch

    names = [i.name for i in rule.static_inputs]
    usual = Counter(tuple(p[n] for n in names) for p in points).most_common(1)[0][0]
    same = [p for p in points if tuple(p[n] for n in names) == usual][:ELEMENTS]
    statics = {
        i.name: _number(i.kind, v)
        for i, v in zip(rule.static_inputs, usual, strict=True)
    }
    tensors = [_tensor(i, [p[i.name] for p in same]) for i in rule.tensor_inputs]
    return bool(
        torch.autograd.gradcheck(
            lambda *given: function(*given, **statics), tensors, raise_exception=False
        )
    )


def _number(kind: Kind, value: Fraction) -> int | float:
    return int(value) if kind is Kind.STATIC_INT else float(value)


def _tensor(variable: Input, values: list[Fraction]) -> Any:
    """A column of values; one of them if the variable is a scalar."""
    import torch

    given = values if variable.shape.batch else values[0]
    column = np.array(given, dtype=object)
    match variable.kind:
        case Kind.FLOAT:
            return torch.tensor(column.astype(float)).requires_grad_()
        case Kind.NOGRAD:
            return torch.tensor(column.astype(float))
        case Kind.BOOL:
            return torch.tensor(column.astype(bool))
        case _:
            return torch.tensor(column.astype(int))
