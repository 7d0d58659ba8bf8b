"""One trial for all frameworks: what differs between them is an `Adapter`.

A runner is a script of its own, run as ``python <runner>.py JOB RESULT`` in a child
process; it imports a framework and the emitted modules.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from reporting import Trial, compare_example, numbers

from gradspec.trial.loading import imported

Case = dict[str, Any]
Call = dict[str, Any]

RELATIVE = 1e-10
"""Float64 against the true value, at moderate points."""

SECOND_ORDER = 1e-6

CANCELLED = 1e-13
"""Absolute slack in units of the largest number at hand: a number near zero comes from
terms of that size."""

KINDS = {"int": "int64", "bool": "bool"}
"""The types of inputs that are not floating."""


class Adapter:
    """The operations that a framework's runner provides."""

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        """A tensor of ``dtype`` (``kind`` "int" and "bool" have types of their own)."""
        raise NotImplementedError

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        """A float64 tensor of flat values, or one of the kind's own type."""
        raise NotImplementedError

    def restrided(self, tensor: Any) -> Any:
        """The same tensor with its last axes in another order in memory and gaps
        between its elements; the tensor itself where the framework has no strides.
        """
        return tensor

    def shape(self, value: Any) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tuple(value.shape)

    def listed(self, value: Any) -> list[float]:
        """The elements of a tensor as Python floats."""
        raise NotImplementedError

    def vjp(
        self, module: ModuleType, case: Case, inputs: list[Any], statics: Case
    ) -> tuple[tuple[Any, ...], Any]:
        """Outputs, and a function from the cotangents of the float outputs to one
        gradient (or None) per input.
        """
        raise NotImplementedError

    def further(self, one: One) -> None:
        """The framework's own checks: gradcheck, nested tapes, traced functions."""
        raise NotImplementedError


class One:
    """One call of a rule, with what must come of it."""

    def __init__(
        self, trial: Trial, adapter: Adapter, module: ModuleType, case: Case, call: Call
    ) -> None:
        self.trial, self.adapter, self.module = trial, adapter, module
        self.case, self.call = case, call
        self.statics: Case = call["statics"]
        self.function = getattr(module, case["rule"])

    @property
    def where(self) -> str:
        """The shapes of the inputs, to say where something failed; of a single point
        the numbers.
        """
        given = self.call["given"]
        parts = [
            f"{name} = {flat[0]!r}" if not shape else f"{name}{shape}"
            for name, (shape, flat) in ((n, given[n]) for n, _ in self.case["inputs"])
        ]
        return ", ".join([*parts, *(f"{n} = {v}" for n, v in self.statics.items())])

    def given(self, name: str, kind: str) -> Any:
        """One argument, cotangent or probe."""
        shape, values = self.call["given"][name]
        return self.adapter.shaped(values, shape, kind)

    def inputs(self) -> list[Any]:
        return [self.given(name, kind) for name, kind in self.case["inputs"]]

    def cotangents(self) -> list[Any]:
        """The upstream gradients of the float outputs."""
        floats = [name for name, kind in self.case["outputs"] if kind == "float"]
        return [self.given(f"d{name}", "nograd") for name in floats]

    def probes(self) -> list[Any]:
        """By what each input's gradient is multiplied before it is derived once more;
        None for those without gradient.
        """
        return [
            self.given(f"probe {name}", "nograd") if kind == "float" else None
            for name, kind in self.case["inputs"]
        ]

    def floating(self, outputs: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs that take a cotangent."""
        pairs = zip(self.case["outputs"], outputs, strict=True)
        return tuple(output for (_, kind), output in pairs if kind == "float")

    def vjp(self, inputs: list[Any]) -> tuple[tuple[Any, ...], Any]:
        """See `Adapter.vjp`."""
        return self.adapter.vjp(self.module, self.case, inputs, self.statics)

    def gradients(self, *given: Any) -> list[Any]:
        """Of the inputs and the cotangents in turn, those that there are."""
        count = len(self.case["inputs"])
        _, pullback = self.vjp(list(given[:count]))
        return [g for g in pullback(*given[count:]) if g is not None]

    def attempt(self, what: str, action: Callable[[], None]) -> None:
        self.trial.attempt(what, self.where, action)

    def compare(
        self, what: str, value: Any, expected: Any, relative: float = RELATIVE
    ) -> None:
        """Shape and elements. What has no value is not compared."""
        shape, true = expected
        if list(self.adapter.shape(value)) != shape:
            found = self.adapter.shape(value)
            self.trial.fail(what, self.where, f"got shape {found}, expected {shape}")
            return
        got = self.adapter.listed(value)
        largest = max([1.0, *(abs(v) for v in true if math.isfinite(v))])
        scales = self.call.get("scale") or [largest]
        scales = scales if len(scales) == len(true) else [max(scales)] * len(true)
        for k, (a, b, scale) in enumerate(zip(got, true, scales, strict=True)):
            if not math.isnan(b):
                room = relative * abs(b) + max(CANCELLED, relative * 1e-3) * scale
                self.trial.expect(f"{what}, element {k}", self.where, a, b, room)

    def compare_gradients(self, found: Sequence[Any], how: str = "") -> None:
        """The gradients that there are."""
        names = [f"d{name}" for name, kind in self.case["inputs"] if kind == "float"]
        for name, value in zip(names, found, strict=True):
            self.compare(f"{name}{how}", value, self.call["expected"][name])

    def compare_second(self, found: Sequence[Any]) -> None:
        """Second derivatives, one or None an input."""
        for (name, _), value in zip(self.case["inputs"], found, strict=True):
            if value is not None:
                what = f"second derivative by {name}"
                expected = self.call["second"][f"d{name}"]
                self.compare(what, value, expected, SECOND_ORDER)

    def values(self, layout: Callable[[Any], Any]) -> None:
        """Values and gradients with the arguments in another layout."""
        outputs, pullback = self.vjp(list(map(layout, self.inputs())))
        upstream = map(layout, self.cotangents())
        found = [*outputs, *(g for g in pullback(*upstream) if g is not None)]
        expected = self.call["expected"]
        if len(found) != len(expected):
            message = f"{len(found)} values for {list(expected)}"
            self.trial.fail("gradients", self.where, message)
            return
        for (name, wanted), value in zip(expected.items(), found, strict=True):
            self.compare(name, value, wanted)
            if layout is as_it_is:  # all targets have it
                self.trial.values.append(self.adapter.listed(value))


def main(adapter: Adapter) -> None:
    """Read the job named on the command line, try every rule, write the result."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    results = []
    for module_job in job["modules"]:
        module = imported(module_job["path"])
        for case in module_job["rules"]:
            trial = Trial(case["rule"])
            _try(trial, adapter, module, case)
            results.append({"display": module_job["display"], **trial.result()})
            print(case["rule"], flush=True)
    Path(sys.argv[2]).write_text(json.dumps(results), "utf-8")


def _try(trial: Trial, adapter: Adapter, module: ModuleType, case: Case) -> None:
    """Each call as it is and with strided inputs, then the framework's own checks."""
    for call in case["calls"]:
        one = One(trial, adapter, module, case, call)
        one.attempt("values", partial(one.values, as_it_is))
        has_strides = type(adapter).restrided is not Adapter.restrided
        if has_strides and (case["axes"] or call["checked"]):
            one.attempt("values", partial(one.values, adapter.restrided))
        one.attempt("framework's own checks", partial(adapter.further, one))
    for example in case["examples"]:
        for dtype in ("float64", "float32"):
            trial.attempt(
                "example",
                f"line {example['line']} ({dtype})",
                partial(_example, trial, adapter, module, case, example, dtype),
            )


def as_it_is(tensor: Any) -> Any:
    return tensor


def _example(
    trial: Trial,
    adapter: Adapter,
    module: ModuleType,
    case: Case,
    example: Case,
    dtype: str,
) -> None:
    given = {name: numbers(value) for name, value in example["given"].items()}
    tensors = {name for name, _ in case["inputs"]}
    cotangents = {f"d{name}" for name, _ in case["outputs"]}
    inputs = [adapter.array(given[n], kind, dtype) for n, kind in case["inputs"]]
    statics = {
        name: int(value) if float(value).is_integer() else value
        for name, value in given.items()
        if name not in tensors | cotangents
    }
    outputs, pullback = adapter.vjp(module, case, inputs, statics)
    upstream = [
        adapter.array(
            _filled(given.get(f"d{name}", 1.0), adapter.shape(value)), "float", dtype
        )
        for (name, kind), value in zip(case["outputs"], outputs, strict=True)
        if kind == "float"
    ]
    gradients = pullback(*upstream)
    got = {
        name: adapter.listed(v)
        for (name, _), v in zip(case["outputs"], outputs, strict=True)
    }
    for (name, _), gradient in zip(case["inputs"], gradients, strict=True):
        if gradient is not None:
            got[f"d{name}"] = adapter.listed(gradient)
    compare_example(trial, example, got, dtype)


def _filled(value: Any, shape: tuple[int, ...]) -> Any:
    """A scalar cotangent holds for every element."""
    if isinstance(value, list) or not shape:
        return value
    return [_filled(value, shape[1:]) for _ in range(shape[0])]


def tuple_of(value: Any) -> tuple[Any, ...]:
    """The outputs of a rule, of one output too."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
