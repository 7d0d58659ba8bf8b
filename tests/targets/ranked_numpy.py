"""Rules over named axes in NumPy, held against scalar evaluation and differences.

What an output must be is told by the rule written out at given sizes (`ir.unroll`) in
ball arithmetic; what a gradient must be by differences of the emitted function itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from gradspec.derive.complete import complete
from gradspec.ir import closed
from gradspec.ir.calls import expand
from gradspec.ir.rule import CheckedRule, Input, Kind, Rule, Status, Verdict
from gradspec.ir.unroll import unroll
from gradspec.lower.lowering import lower
from gradspec.plan.plan import ModulePlan
from gradspec.plan.planning import plan_module
from gradspec.source import Source
from gradspec.symbolic.enclose import enclose
from gradspec.syntax.parse import parse
from gradspec.targets import emit
from tests.targets.emission import imported

Arrays = Mapping[str, np.ndarray]


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


def expected(rule: Rule, sizes: Mapping[str, int], values: Arrays) -> list[np.ndarray]:
    """Each output, element by element, for each element of the batch."""
    cores = {i.name: len(i.shape.axes) for i in rule.tensor_inputs}
    batches = {n: v.shape[: v.ndim - cores[n]] for n, v in values.items()}
    batch = np.broadcast_shapes(*batches.values())
    parts: list[list[np.ndarray]] = []
    for place in np.ndindex(*batch):
        here = {n: _at(v, batches[n], place) for n, v in values.items()}
        parts.append(_one(rule, sizes, here))
    return [
        np.array([part[k] for part in parts]).reshape((*batch, *parts[0][k].shape))
        for k in range(len(rule.outputs))
    ]


def _at(value: np.ndarray, batch: tuple[int, ...], place: tuple[int, ...]) -> Any:
    last = place[len(place) - len(batch) :]
    return value[tuple(0 if n == 1 else k for k, n in zip(last, batch, strict=True))]


def _one(rule: Rule, sizes: Mapping[str, int], values: Arrays) -> list[np.ndarray]:
    whole = {n: v.tolist() for n, v in values.items() if v.dtype.kind == "i"}
    small = unroll(replace(rule, backward=rule.backward), sizes, whole)
    point: dict[str, Fraction] = {
        i.name: i.default for i in rule.static_inputs if i.default is not None
    }
    point |= {n: Fraction(v) for n, v in statics(rule, sizes).items()}
    for name, value in values.items():
        for place in np.ndindex(*value.shape):
            label = f"{name}[{', '.join(map(str, place))}]" if place else name
            point[label] = Fraction(value[place].item())
    outputs = closed.outputs(small.rule)
    found = []
    for output in rule.outputs:
        axes = output.shape.axes
        shape = tuple(sizes[a] if isinstance(a, str) else a for a in axes)
        array = np.zeros(shape)
        for place in np.ndindex(*shape):
            label = ", ".join(map(str, place))
            name = f"{output.name}[{label}]" if place else output.name
            array[place] = float(enclose(expand(outputs[name]), point))
        found.append(array)
    return found


def slope(
    f: Callable[..., Any], values: Arrays, name: str, weights: list[np.ndarray]
) -> np.ndarray:
    """The derivative of the weighted sum of the outputs, by central differences."""
    base = values[name]
    found = np.zeros_like(base)
    for place in np.ndindex(*base.shape):
        total = 0.0
        for sign in (1, -1):
            moved = base.copy()
            moved[place] += sign * 1e-6
            outputs = f(**{**values, name: moved})
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            total += sign * math.fsum(
                float((o * w).sum()) for o, w in zip(outputs, weights, strict=True)
            )
        found[place] = total / 2e-6
    return found


def batchings(rule: Rule) -> Iterator[dict[str, tuple[int, ...]]]:
    """No batch, one batch, and batches that broadcast."""
    batched = [i.name for i in rule.tensor_inputs if i.shape.batch]
    yield {}
    if batched:
        yield dict.fromkeys(batched, (2,))
        cycle = itertools.cycle([(3, 2), (2,), (1, 2), (3, 1)])
        yield dict(zip(batched, cycle, strict=False))
