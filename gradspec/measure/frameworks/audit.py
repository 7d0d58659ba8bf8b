"""Audits: the quantities of emitted functions at many points, beside those of the
framework's own functions and of the formulas as written.

For each case a file is written: one float64 array for each side (the
emitted function, the framework's own, the formula as written) and quantity, named
``side/key``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gradspec.driver.emitted import import_file
from gradspec.measure.frameworks.asking import fault_line
from gradspec.measure.frameworks.setting import Case, Function, Setting, report

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


def work(job: Case, setting: type[Setting], _features: object) -> None:
    """Measure every case of the job."""
    np.seterr(all="ignore")
    for own in job["modules"]:
        module = import_file(own["path"])
        for case in own["cases"]:
            arrays, faults = _case(setting, module, case)
            np.savez(Path(job["folder"], f"{Path(case['place']).name}.npz"), **arrays)
            report({"place": case["place"], "faults": faults})


def _case(
    setting: type[Setting], module: ModuleType, case: Case
) -> tuple[Arrays, dict[str, str]]:
    table = np.load(f"{case['place']}.points.npy")
    arrays: Arrays = {}
    faults: dict[str, str] = {}
    for side, function in _sides(setting, module, case).items():
        runs = {side: setting.emitted if side == "emitted" else setting.quantities}
        if case["batched"]:
            runs[COMPILED + side] = setting.compiled
        for name, run in runs.items():
            try:
                found = _pointwise(setting, run, function, module, case, table)
            except Exception as fault:
                faults[side] = fault_line(fault)
                break
            arrays |= {f"{name}/{key}": value for key, value in found.items()}
    return arrays, faults


def _sides(
    setting: type[Setting], module: ModuleType, case: Case
) -> dict[str, Function]:
    functions = {"emitted": getattr(module, case["rule"])}
    native = setting.library().native(case)
    if native is not None and case["differentiable"]:
        functions["native"] = native
    if case["written"] is not None:
        functions["written"] = lambda *inputs, **statics: as_written(
            setting.library(), case, partial(constant, setting, case)
        )(*inputs, **statics)
    return {side: f for side, f in functions.items() if side in case["sides"]}


def constant(setting: type[Setting], case: Case, value: float) -> Any:
    """A number of a formula."""
    s = setting.__new__(setting)
    s.dtype = case["dtype"]
    return s.tensor([[], [value]], "float")


def _pointwise(
    setting: type[Setting],
    run: Callable[[Setting], Arrays],
    function: Function,
    module: ModuleType,
    case: Case,
    table: Any,
) -> Arrays:
    """All points in one call; one by one where an input is declared of rank 0."""

    def at(columns: list[Any]) -> Arrays:
        """By quantity, a row for each point and a column for each element."""
        columns = setting.columns(columns, case)
        given = {
            name: _tensor(dict(zip(case["columns"], columns, strict=True)), *elements)
            for name, elements in case["elements"].items()
        }
        here = {**case, "given": given, "upstream": {}, "probes": {}}
        s = setting(module, here, case["dtype"])
        s.rule = function
        count = np.size(columns[0])
        return {
            key: np.reshape(s.flat(value)[1], (count, -1))
            for key, value in run(s).items()
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
