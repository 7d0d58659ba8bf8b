"""Files that a runner reads for a rule, and findings from its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradspec.audit.formats import Array
from gradspec.audit.measure import Errors, Measure, Truth, errors, measure, worse
from gradspec.audit.points import Sample
from gradspec.audit.quantities import (
    is_derivative,
    quantities,
    written_outputs,
    written_program,
)
from gradspec.audit.question import question
from gradspec.ir.rule import CheckedRule, Kind, Rule
from gradspec.options import SIDES
from gradspec.primitives.lookup import is_function

_AT_ONCE = 400
"""Points of a rule with an input of rank 0, which needs a call for each."""

_SAME = 0.05
_MOST = 0.9
"""A framework's function of the rule's name is the rule's function if its values are
this near at this share of the core."""


@dataclass(frozen=True, slots=True)
class Request:
    """The measurements requested of a rule: in a format, at about so many points a
    stratum, up to an order of derivatives, on these sides.
    """

    dtype: str
    points: int
    order: int
    sides: tuple[str, ...] = SIDES


@dataclass(frozen=True, slots=True)
class Case:
    """A rule in a format: ``job`` holds the instructions for a runner, without the
    module's path; points and truths lie in files next to each other.
    """

    display: str
    rule: str
    dtype: str
    line: int
    key: str
    job: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One quantity of one rule on one target in one format, on one side. ``name`` is
    ``y``, ``dx`` or ``d²x``, with the output where there are several.
    """

    display: str
    rule: str
    target: str
    dtype: str
    order: int
    name: str
    variable: str
    side: str
    whole: Measure
    core: Measure
    columns: Mapping[str, Array]
    values: Array
    truth: Truth
    found: Errors


def prepare(
    checked: CheckedRule, chosen: Rule, request: Request, folder: Path, key: str
) -> Case:
    """Write the points and the truths of a rule."""
    rule = checked.rule
    asked = quantities(rule, chosen, request.order)
    batched = all(i.shape.batch for i in rule.tensor_inputs)
    count = request.points if batched else _AT_ONCE // 3
    posed = question(rule, asked, request.dtype, count)
    sample = posed.sample
    np.save(folder / f"{key}.points.npy", np.array(list(sample.columns.values())))
    np.savez(
        folder / f"{key}.truth.npz",
        core=sample.core,
        **{f"high/{k}": t.high for k, t in posed.truths.items()},
        **{f"low/{k}": t.low for k, t in posed.truths.items()},
        **{f"tolerance/{k}": t.tolerance for k, t in posed.truths.items()},
    )
    line, _ = rule.source.position(rule.name_span.start)
    told = job(rule, sample, request, folder, key)
    return Case(rule.source.path, rule.name, request.dtype, line, key, told)


def job(
    rule: Rule, sample: Sample, request: Request, folder: Path, key: str
) -> dict[str, Any]:
    """The instructions for a runner, without the module's path."""
    return {
        "key": key,
        "rule": rule.name,
        "inputs": [[i.name, i.kind.value] for i in rule.tensor_inputs],
        "outputs": [[o.name, o.kind.value] for o in rule.outputs],
        "statics": {
            i.name: int(v) if i.kind is Kind.STATIC_INT else float(v)
            for i in rule.static_inputs
            for v in (sample.statics[i.name],)
        },
        "dtype": request.dtype,
        "order": request.order,
        "sides": list(request.sides),
        "points": str(folder / f"{key}.points.npy"),
        "batched": all(i.shape.batch for i in rule.tensor_inputs),
        "differentiable": is_derivative(rule),
        "named": is_function(rule.name),
        "written": _written(rule),
    }


def _written(rule: Rule) -> dict[str, Any] | None:
    try:
        return written_program(written_outputs(rule))
    except NotImplementedError:
        return None


# --- back ----------------------------------------------------------------------------


def findings(case: Case, target: str, folder: Path, results: Path) -> Iterator[Finding]:
    """The findings from a runner's results for a case."""
    table = np.load(folder / f"{case.key}.points.npy")
    names = [name for name, _ in case.job["inputs"]]
    columns = dict(zip(names, table, strict=True))
    true = np.load(folder / f"{case.key}.truth.npz")
    got = np.load(results / f"{case.key}.npz")
    keys = [key[5:] for key in true.files if key.startswith("high/")]
    parts = ("high", "low", "tolerance")
    truths = {key: Truth(*(true[f"{part}/{key}"] for part in parts)) for key in keys}
    for side in SIDES:
        values = {k: got[f"{side}/{k}"] for k in truths if f"{side}/{k}" in got.files}
        for key, value in values.items():
            if (compiled := f"compiled {side}/{key}") in got.files:
                values[key] = worse(value, got[compiled], truths[key], case.dtype)
        if side == "native" and not _is_same(values, truths, true["core"]):
            continue
        for key, column in values.items():
            yield _finding(
                case, target, side, key, columns, true["core"], column, truths[key]
            )


def _is_same(values: dict[str, Array], truths: dict[str, Truth], core: Array) -> bool:
    """True if the values of order 0 are those of the rule, nearly everywhere."""
    for key, column in values.items():
        if key.startswith("0:"):
            true = truths[key].high
            asked = core & np.isfinite(true) & (true != 0)
            with np.errstate(all="ignore"):
                near = np.abs(column - true) <= _SAME * np.abs(true)
            if asked.any() and near[asked].mean() < _MOST:
                return False
    return bool(values)


def _finding(
    case: Case,
    target: str,
    side: str,
    key: str,
    columns: dict[str, Array],
    core: Array,
    values: Array,
    truth: Truth,
) -> Finding:
    order, output, variable = key.split(":")
    found = errors(values, truth, case.dtype)
    whole = np.ones(len(core), dtype=bool)
    several = sum(kind == "float" for _, kind in case.job["outputs"]) > 1
    return Finding(
        case.display,
        case.rule,
        target,
        case.dtype,
        int(order),
        _name(int(order), output, variable, several),
        variable,
        side,
        measure(found, whole, columns, values, truth),
        measure(found, core, columns, values, truth),
        columns,
        values,
        truth,
        found,
    )


def _name(order: int, output: str, variable: str, several: bool) -> str:
    if order == 0:
        return output
    name = f"d{variable}" if order == 1 else f"d²{variable}"
    return f"{name} of {output}" if several else name
