"""Code shared by all auditing runners: jobs, formulas as written, results.

A runner is a script of its own, run as ``python <runner>.py JOB FOLDER`` in a child
process; it imports a framework and the emitted modules, and never gradspec. For each
case it writes ``<key>.npz`` into FOLDER: one float64 array for each side (the emitted
function, the framework's own, the formula as written) and quantity, named ``side/key``.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from gradspec.trial.loading import imported

Case = dict[str, Any]
Function = Callable[..., Any]
Arrays = dict[str, Any]


COMPILED = "compiled "
"""Before the name of a side: the same function, compiled."""


class Adapter(Protocol):
    """The operations that a framework's runner provides."""

    operations: Mapping[str, Function]
    """Primitives by name, for formulas as written."""

    natives: Mapping[str, Function]
    """The framework's own functions by the names of rules, inputs in order, statics by
    keyword."""

    def emitted(self, module: ModuleType, case: Case, columns: list[Any]) -> Arrays:
        """Values and derivatives of the emitted function, by quantity."""

    def compiled(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        """Values and derivatives of a function in a program that the framework rewrites before
        it runs it; none where users have no such thing by default."""

    def own(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        """Values and derivatives of another function, by the framework."""

    def constant(self, value: float, case: Case) -> Any:
        """A number of a formula."""


def main(adapter: Adapter) -> None:
    """Run the job named on the command line; a line of output for each case done."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    modules: dict[str, ModuleType] = {}
    for case in job["cases"]:
        path = case["module"]
        if path not in modules:
            modules[path] = imported(path)
        arrays, faults = _case(adapter, modules[path], case)
        target = Path(sys.argv[2]) / case["key"]
        target.with_suffix(".json").write_text(json.dumps(faults), "utf-8")
        np.savez(target.with_suffix(".npz"), **arrays)
        print(case["key"], flush=True)


def _case(
    adapter: Adapter, module: ModuleType, case: Case
) -> tuple[Arrays, dict[str, str]]:
    table = np.load(case["points"])
    arrays: Arrays = {}
    faults: dict[str, str] = {}
    for side, run in _sides(adapter, module, case).items():
        said = side.removeprefix(COMPILED)
        if said in faults:
            continue
        try:
            found = _pointwise(run, table, case["batched"])
        except Exception as fault:
            last = traceback.format_exception_only(fault)[-1].strip()
            faults[said] = last.splitlines()[0] if last else repr(fault)
        else:
            arrays |= {f"{side}/{key}": value for key, value in found.items()}
    return arrays, faults


def _sides(
    adapter: Adapter, module: ModuleType, case: Case
) -> dict[str, Callable[[list[Any]], Arrays]]:
    functions = {"emitted": getattr(module, case["rule"])}
    native = adapter.natives.get(case["rule"])
    if native is not None and case["differentiable"]:
        functions["native"] = native
    if case["written"] is not None:
        functions["written"] = lambda *inputs, **statics: as_written(adapter, case)(
            *inputs, **statics
        )
    sides: dict[str, Callable[[list[Any]], Arrays]] = {}
    for side, function in functions.items():
        if side in case["sides"]:
            sides[side] = partial(adapter.own, function, case)
            if case["batched"]:
                sides[COMPILED + side] = partial(adapter.compiled, function, case)
    if "emitted" in sides:
        sides["emitted"] = partial(adapter.emitted, module, case)
    return sides


def _pointwise(run: Callable[[list[Any]], Arrays], table: Any, batched: bool) -> Arrays:
    """All points in one call; one by one where an input is declared of rank 0."""
    if batched:
        return run(list(table))
    rows = [run([column[k] for column in table]) for k in range(table.shape[1])]
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def as_written(adapter: Adapter, case: Case) -> Function:
    """The formula as a function of the inputs; its outputs in order."""
    steps = case["written"]["nodes"]
    roots = case["written"]["roots"]
    names = [name for name, _ in case["inputs"]]
    unknown = {s[0] for s in steps} - {"ref", "const", "select"} - {*adapter.operations}
    if unknown:
        raise NotImplementedError(f"no {', '.join(sorted(unknown))}")

    def formula(*inputs: Any, **statics: Any) -> Any:
        known = dict(zip(names, inputs, strict=True)) | statics
        values: list[Any] = []
        for op, *args in steps:
            if op == "ref":
                values.append(known[args[0]])
            elif op == "const":
                values.append(adapter.constant(float(args[0]), case))
            else:
                values.append(adapter.operations[op](*[values[k] for k in args]))
        return tuple(values[k] for k in roots.values())

    return formula


def outputs(case: Case, value: Any) -> list[tuple[str, Any]]:
    """The outputs that take an upstream gradient, by name."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    pairs = zip(case["outputs"], values, strict=True)
    return [(name, out) for (name, kind), out in pairs if kind == "float"]


def floats(case: Case) -> list[int]:
    """The places of the inputs that take a gradient."""
    return [k for k, (_, kind) in enumerate(case["inputs"]) if kind == "float"]
