"""The trial of a rule with axes: shapes, values, memory layouts, second derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from reporting import RELATIVE, SECOND_ORDER, Trial

Case = dict[str, Any]
Call = dict[str, Any]

CANCELLED = 1e-13
"""Absolute slack in units of the largest element of an array: an element near zero comes
from terms of that size."""


class RankedAdapter(Protocol):
    """What a framework's runner provides for rules with axes, beside `trying.Adapter`."""

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        """A float64 tensor (``kind`` "int" and "bool" have types of their own)."""

    def restrided(self, tensor: Any) -> Any:
        """The same tensor with its last axes in another order in memory and gaps between
        its elements; the tensor itself where the framework has no strides.
        """

    def shape(self, value: Any) -> tuple[int, ...]:
        """The shape of a tensor."""

    def listed(self, value: Any) -> list[float]:
        """The elements of a tensor as Python floats."""

    def vjp(
        self, module: ModuleType, case: Case, inputs: list[Any], statics: Case
    ) -> tuple[tuple[Any, ...], Any]:
        """See `trying.Adapter`."""

    def ranked_further(
        self, trial: Trial, module: ModuleType, case: Case, call: Call
    ) -> None:
        """The framework's own checks: gradcheck, nested tapes, traced functions."""


def try_calls(
    trial: Trial, adapter: RankedAdapter, module: ModuleType, case: Case
) -> None:
    """Each call as it is and with strided inputs, then the framework's own checks."""
    for call in case["calls"]:
        where = shapes(case, call)
        for layout in (lambda tensor: tensor, adapter.restrided):
            trial.attempt(
                "values",
                where,
                lambda c=call, f=layout: _values(trial, adapter, module, case, c, f),
            )
        trial.attempt(
            "framework's own checks",
            where,
            lambda c=call: adapter.ranked_further(trial, module, case, c),
        )


def shapes(case: Case, call: Call) -> str:
    """The shapes of a call's inputs, to say where something failed."""
    parts = [f"{name}{call['given'][name][0]}" for name, _, _ in case["inputs"]]
    statics = [f"{name} = {value}" for name, value in call["statics"].items()]
    return ", ".join([*parts, *statics])


def tensors(adapter: RankedAdapter, case: Case, call: Call) -> list[Any]:
    """The inputs of a call."""
    return [_given(adapter, call, name, kind) for name, kind, _ in case["inputs"]]


def cotangents(adapter: RankedAdapter, case: Case, call: Call) -> list[Any]:
    """The upstream gradients of a call."""
    return [
        _given(adapter, call, f"d{name}", "nograd")
        for name, kind in case["outputs"]
        if kind == "float"
    ]


def probes(adapter: RankedAdapter, case: Case, call: Call) -> list[Any]:
    """With what each input's gradient is multiplied before it is derived once more; None
    for those without gradient.
    """
    return [
        _given(adapter, call, f"probe {name}", "nograd") if kind == "float" else None
        for name, kind, _ in case["inputs"]
    ]


def _given(adapter: RankedAdapter, call: Call, name: str, kind: str) -> Any:
    shape, values = call["given"][name]
    return adapter.shaped(values, shape, kind)


def _values(
    trial: Trial,
    adapter: RankedAdapter,
    module: ModuleType,
    case: Case,
    call: Call,
    layout: Callable[[Any], Any],
) -> None:
    inputs = [layout(tensor) for tensor in tensors(adapter, case, call)]
    outputs, pullback = adapter.vjp(module, case, inputs, call["statics"])
    upstream = [layout(tensor) for tensor in cotangents(adapter, case, call)]
    gradients = [g for g in pullback(*upstream) if g is not None]
    found = [*outputs, *gradients]
    if len(found) != len(call["expected"]):
        message = f"{len(found)} values for {list(call['expected'])}"
        trial.fail("gradients", shapes(case, call), message)
        return
    for name, value in zip(call["expected"], found, strict=True):
        expected = call["expected"][name]
        compare(trial, adapter, case, call, name, value, expected, RELATIVE)
        trial.values.append(adapter.listed(value))


def compare(
    trial: Trial,
    adapter: RankedAdapter,
    case: Case,
    call: Call,
    name: str,
    value: Any,
    expected: tuple[list[int], list[float]],
    relative: float,
) -> None:
    """Shape and elements."""
    shape, true = expected
    where = shapes(case, call)
    if list(adapter.shape(value)) != shape:
        trial.fail(name, where, f"got shape {adapter.shape(value)}, expected {shape}")
        return
    got = adapter.listed(value)
    largest = max([1.0, *(abs(v) for v in true if math.isfinite(v))])
    for number, (a, b) in enumerate(zip(got, true, strict=True)):
        room = relative * abs(b) + max(CANCELLED, relative * 1e-3) * largest
        trial.expect(f"{name}, element {number}", where, a, b, room)


def compare_second(
    trial: Trial,
    adapter: RankedAdapter,
    case: Case,
    call: Call,
    found: list[Any],
) -> None:
    """Second derivatives, one or None an input."""
    for (name, _, _), value in zip(case["inputs"], found, strict=True):
        if value is not None:
            expected = call["second"][f"d{name}"]
            what = f"second derivative by {name}"
            compare(trial, adapter, case, call, what, value, expected, SECOND_ORDER)
