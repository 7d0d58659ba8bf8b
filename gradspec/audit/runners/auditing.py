"""Code shared by all auditing runners: jobs, formulas as written, results.

A runner imports a framework and the emitted modules; numbers are held as in the trials'
runners. For each case it writes ``<key>.npz``: one float64 array for each side (the
emitted function, the framework's own, the formula as written) and quantity, named
``side/key``.
"""

from __future__ import annotations

import operator
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gradspec.trial import loading

sys.path.append(str(Path(loading.__file__).parent / "runners"))
# The settings of the trials' runners, by which the auditing ones hold numbers.

Case = dict[str, Any]
Function = Callable[..., Any]
Arrays = dict[str, Any]

COMPILED = "compiled "
"""Before the name of a side: the same function, compiled."""

_OPERATORS: Mapping[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.invert,
}
_NAMES = {
    "select": "where",
    "max": "maximum",
    "min": "minimum",
    "stop": "stop_gradient",
}
"""Operations that frameworks call otherwise than gradspec does."""

_ACTIVATIONS = {
    *("elu", "celu", "selu", "gelu", "mish", "relu6", "silu"),
    *("hardswish", "hardsigmoid", "softsign", "tanhshrink"),
}
"""Functions that frameworks call as rules do, with statics of the same names."""


@dataclass(frozen=True, slots=True)
class Library:
    """The functions of a framework: those of its modules ``places`` by name, and
    ``operations`` with other names. ``natives`` are further functions by the names of
    rules, inputs in order, statics by keyword.
    """

    places: tuple[Any, ...]
    operations: Mapping[str, Function] = field(default_factory=dict)
    natives: Mapping[str, Function] = field(default_factory=dict)

    def operation(self, name: str) -> Function | None:
        """The framework's function for a primitive, if it has one."""
        if name == "clip":
            return self._clipped
        return self.operations.get(name) or _OPERATORS.get(name) or self._of_place(name)

    def native(self, case: Case) -> Function | None:
        """The framework's own function for a rule; that of a primitive of its name."""
        name = case["rule"]
        known = name in _ACTIVATIONS or (case["named"] and not case["statics"])
        return self.natives.get(name) or (self.operation(name) if known else None)

    def _of_place(self, name: str) -> Function | None:
        named = _NAMES.get(name, name)
        found = (getattr(place, named, None) for place in self.places)
        return next((function for function in found if function), None)

    def _clipped(self, x: Any, low: Any, high: Any) -> Any:
        least, most = self._of_place("min"), self._of_place("max")
        assert least and most
        return least(most(x, low), high)


class Audit:
    """A framework: its ``library``, and its way to hold numbers (`setting.Setting`)."""

    library: Library
    setting: Any

    def columns(self, columns: list[Any], case: Case) -> list[Any]:
        """The inputs at all points, as the framework is to have them."""
        return columns

    def emitted(self, s: Any, case: Case) -> Arrays:
        """Values and derivatives of the emitted function, by quantity."""
        return self.own(s, case)

    def own(self, s: Any, case: Case) -> Arrays:
        """Values and derivatives of another function, by the framework."""
        return measured(s, case, s.floats, self.ones(s))

    def compiled(self, s: Any, case: Case) -> Arrays:
        """Values and derivatives of a function in a program that the framework rewrites
        before it runs it; none where users have no such thing by default."""
        return {}

    def ones(self, s: Any) -> list[Any]:
        """The upstream gradient of each output: 1, over axes a number an element."""
        return [s.tensor(weights, "float") for weights in s.case["weights"]]


def main(audit: Audit) -> None:
    """Measure every case of the job."""
    job = loading.job()
    for case in job["cases"]:
        arrays, faults = _case(audit, loading.imported(case["module"]), case)
        np.savez(Path(job["folder"], f"{case['key']}.npz"), **arrays)
        loading.report({"key": case["key"], "faults": faults})


def measured(s: Any, case: Case, floats: Any, ones: Any) -> dict[str, Any]:
    """The quantities, by order, output and input: second derivatives are by the same
    input.
    """
    outputs = [name for name, kind in case["outputs"] if kind == "float"]
    inputs = [name for name, kind in case["inputs"] if kind == "float"]
    found = dict(
        zip((f"0:{name}:" for name in outputs), s.outputs(*floats), strict=True)
    )
    if not (case["order"] and case["differentiable"]):
        return found

    def firsts(k: int, *floats: Any) -> Any:
        return s.gradient(lambda *f: s.dot(s.outputs(*f)[k], ones[k]), floats)

    def second(k: int, place: int) -> Any:
        slope = lambda *f: s.dot(firsts(k, *f)[place], ones[k])  # noqa: E731
        return s.gradient(slope, floats)[place]

    for k, output in enumerate(outputs):
        slopes = firsts(k, *floats)
        for place, name in enumerate(inputs):
            found[f"1:{output}:{name}"] = slopes[place]
            if case["order"] > 1:
                found[f"2:{output}:{name}"] = second(k, place)
    return found


def _case(
    audit: Audit, module: ModuleType, case: Case
) -> tuple[Arrays, dict[str, str]]:
    table = np.load(case["points"])
    arrays: Arrays = {}
    faults: dict[str, str] = {}
    for side, function in _sides(audit, module, case).items():
        runs = {side: audit.emitted if side == "emitted" else audit.own}
        if case["batched"]:
            runs[COMPILED + side] = audit.compiled
        for name, run in runs.items():
            try:
                found = _pointwise(audit, run, function, module, case, table)
            except Exception as fault:
                last = traceback.format_exception_only(fault)[-1].strip()
                faults[side] = last.splitlines()[0] if last else repr(fault)
                break
            arrays |= {f"{name}/{key}": value for key, value in found.items()}
    return arrays, faults


def _sides(audit: Audit, module: ModuleType, case: Case) -> dict[str, Function]:
    functions = {"emitted": getattr(module, case["rule"])}
    native = audit.library.native(case)
    if native is not None and case["differentiable"]:
        functions["native"] = native
    if case["written"] is not None:
        functions["written"] = lambda *inputs, **statics: as_written(
            audit.library, case, partial(constant, audit, case)
        )(*inputs, **statics)
    return {side: f for side, f in functions.items() if side in case["sides"]}


def constant(audit: Audit, case: Case, value: float) -> Any:
    """A number of a formula."""
    setting = audit.setting.__new__(audit.setting)
    setting.dtype = case["dtype"]
    return setting.tensor([[], [value]], "float")


def _pointwise(
    audit: Audit,
    run: Callable[[Any, Case], Arrays],
    function: Function,
    module: ModuleType,
    case: Case,
    table: Any,
) -> Arrays:
    """All points in one call; one by one where an input is declared of rank 0."""

    def at(columns: list[Any]) -> Arrays:
        """By quantity, a row for each point and a column for each element."""
        columns = audit.columns(columns, case)
        given = {
            name: _tensor(dict(zip(case["columns"], columns, strict=True)), *elements)
            for name, elements in case["elements"].items()
        }
        here = {**case, "given": given, "upstream": {}, "probes": {}}
        s = audit.setting(module, here, case["dtype"])
        s.rule = function
        count = np.size(columns[0])
        return {
            key: np.reshape(s.flat(value)[1], (count, -1))
            for key, value in run(s, case).items()
        }

    count = table.shape[1]
    if case["batched"]:
        return {key: v[:count].T.ravel() for key, v in at(list(table)).items()}
    rows = [at([column[k] for column in table]) for k in range(count)]
    return {
        key: np.concatenate([row[key] for row in rows]).T.ravel()
        for key in (rows[0] if rows else ())
    }


def _tensor(columns: Arrays, shape: list[int], elements: list[str | int]) -> list[Any]:
    """An input at all points: each element is a column, or the same number
    everywhere."""
    (first, *_) = columns.values()
    found = (columns[e] if isinstance(e, str) else e for e in elements)
    parts = [np.broadcast_to(value, np.shape(first)) for value in found]
    return [[*np.shape(first), *shape], np.stack(parts, -1).ravel()]


def as_written(
    library: Library, case: Case, constant: Callable[[float], Any]
) -> Function:
    """The formula as a function of the inputs; its outputs in order."""
    steps = case["written"]["nodes"]
    roots = case["written"]["roots"]
    names = [name for name, _ in case["inputs"]]
    used = {s[0] for s in steps} - {"ref", "const"}
    functions: dict[str, Any] = {name: library.operation(name) for name in used}
    unknown = sorted(name for name, function in functions.items() if function is None)
    if unknown:
        raise NotImplementedError(f"no {', '.join(unknown)}")

    def formula(*inputs: Any, **statics: Any) -> Any:
        known = dict(zip(names, inputs, strict=True)) | statics
        values: list[Any] = []
        for op, *args in steps:
            if op == "ref":
                values.append(known[args[0]])
            elif op == "const":
                values.append(constant(float(args[0])))
            else:
                values.append(functions[op](*[values[k] for k in args]))
        made = tuple(values[k] for k in roots.values())
        return made if len(made) > 1 else made[0]

    return formula
