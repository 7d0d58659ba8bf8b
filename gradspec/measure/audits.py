"""Audits: the values and derivatives of emitted modules at many points, against exact
ones. Points and truths are found in workers and go to files, which the process of each
framework reads; its results become findings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradspec.checks.instances import Instance, elementwise, stem, typical
from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.driver import cache
from gradspec.driver.cache import FileResult
from gradspec.driver.discover import Entry
from gradspec.driver.load import chosen_rules
from gradspec.driver.run import each_file
from gradspec.ir.elements import element, extent, places
from gradspec.ir.plain import use_shelf
from gradspec.ir.rule import Input, Output, Rule
from gradspec.ir.unroll import unroll
from gradspec.measure import foreign, runners
from gradspec.measure.calls import signature, statics
from gradspec.measure.errors import Errors, Measure, Truth, errors, measure, worse
from gradspec.measure.jobs import Case, Framework, Subject, kernel_faults, subjects
from gradspec.measure.quantities import (
    is_derivative,
    quantities,
    weights,
    written_outputs,
    written_program,
)
from gradspec.measure.truths import Question, question
from gradspec.options import SIDES, AuditOptions, Options
from gradspec.primitives.foreign import use_real
from gradspec.primitives.lookup import is_function
from gradspec.symbolic.points.formats import Array
from gradspec.symbolic.points.strata import Sample

if TYPE_CHECKING:
    from gradspec.ir.rule import Chosen
    from gradspec.stabilise.choice import Tried

Progress = Callable[[str], None]

_AT_ONCE = 400
"""Points of a rule with an input of rank 0, which needs a call for each."""

_UNKNOWN = {("numpy", "bfloat16")}
"""Formats that frameworks lack."""

_SAME = 0.05
_MOST = 0.9
"""A framework's function of the rule's name is the rule's function if its values are
this near at this share of the core."""


class Unmeasured(Exception):
    """Files that could not be prepared, for the reasons in ``diagnostics``."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(d.headline for d in diagnostics))
        self.diagnostics = diagnostics


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


@dataclass(frozen=True, slots=True, eq=False)
class TargetAudit:
    """One target; ``absent`` says what is missing where it could not be run, ``faults``
    (rule, format, side and message) what raised an exception.
    """

    target: str
    findings: tuple[Finding, ...]
    faults: tuple[tuple[str, str, str, str], ...] = ()
    absent: str = ""


def run(
    entries: Iterable[Entry],
    results: Iterable[FileResult],
    options: Options,
    audit: AuditOptions,
    progress: Progress,
) -> tuple[TargetAudit, ...]:
    """Measure every rule of the compiled files on every target. Raises
    `Unmeasured`.
    """
    results, entries = tuple(results), tuple(entries)
    with tempfile.TemporaryDirectory(prefix="gradspec-") as name:
        folder = Path(name)
        numbers = {entry.display: number for number, entry in enumerate(entries)}
        prepare = partial(_cases, folder, options, audit, numbers)
        prepared = each_file(prepare, entries, audit.jobs, progress)
        if found := tuple(d for outcome in prepared for d in outcome.diagnostics):
            raise Unmeasured(found)
        given = subjects(results, (outcome.value or () for outcome in prepared))
        one = partial(_one_target, folder, given, progress)
        with ThreadPoolExecutor(audit.jobs) as pool:  # each waits for a child process
            done = pool.map(one, options.targets)
            try:
                return tuple(done)
            except BaseException:
                runners.end_all()
                raise


def steps(entries: Iterable[Entry], options: Options) -> int:
    """The number of times :func:`run` reports progress: per file, and per file and
    target."""
    return len(tuple(entries)) * (1 + len(options.targets))


def rules_with_candidates(
    options: Options, rule: str, entry: Entry
) -> Outcome[tuple[tuple[Chosen, tuple[Tried, ...]], ...]]:
    """The rules of that name with their selected forms and the candidates tried."""
    from gradspec.stabilise.choice import listening

    with listening() as heard:
        stable = tuple(chosen_rules(entry, options, (rule,)))
    return Outcome(tuple((one, tuple(heard)) for one in stable))


# --- points and truths ---------------------------------------------------------------


def _cases(
    folder: Path,
    options: Options,
    audit: AuditOptions,
    numbers: Mapping[str, int],
    entry: Entry,
) -> Outcome[tuple[Case, ...]]:
    """The cases of a file's rules, which have just been compiled."""
    with use_shelf(cache.rules()):
        rules = tuple(chosen_rules(entry, options, audit.rules))
    place = numbers[entry.display]
    with use_real(foreign.real):
        told = (
            *foreign.faults(one.judged.rule for one in rules),
            *kernel_faults((one.judged for one in rules), (), options),
        )
        if any(d.is_error for d in told):
            return Outcome(None, told)
        found = [
            _case(chosen, dtype, audit, folder / f"{place}-{number}-{dtype}")
            for number, chosen in enumerate(rules)
            for dtype in audit.dtypes
        ]
    return Outcome(tuple(case for case in found if case is not None))


def _case(chosen: Chosen, dtype: str, audit: AuditOptions, place: Path) -> Case | None:
    """A rule in a format; points and truths lie in files that begin with ``place``. None
    if it is too large at any sizes."""
    rule: Rule = chosen.judged.rule
    same: Rule = chosen.rule
    one = typical(rule) if rule.has_axes else elementwise(rule)
    if one is None:
        return None
    order, sides = audit.order, audit.sides
    if rule.has_axes:
        order, same = min(order, 1), unroll(same, one.sizes, one.integers).rule
        sides = tuple(side for side in sides if side == "emitted")
    asked = quantities(one.rule, same, order)
    is_batched = all(i.shape.batch for i in rule.tensor_inputs)
    count = audit.points if is_batched else _AT_ONCE // 3
    posed = question(one.rule, asked, dtype, count, not rule.has_axes)
    np.save(f"{place}.points.npy", np.array(list(posed.sample.columns.values())))
    found: dict[str, Any] = {
        f"{part}/{name}": np.concatenate([getattr(t, part) for t in truths])
        for name, truths in _by_variable(posed).items()
        for part in ("high", "low", "tolerance")
    }
    np.savez(f"{place}.truth.npz", core=posed.sample.core, **found)
    return {
        **_call(one, posed.sample),
        "place": str(place),
        "dtype": dtype,
        "order": order,
        "sides": sides,
        "batched": is_batched,
        "differentiable": is_derivative(one.written),
        "named": is_function(rule.name),
        "written": _written_form(one.rule),
    }


def _by_variable(posed: Question) -> dict[str, list[Truth]]:
    """The truths of the elements of each quantity, in order."""
    found: dict[str, list[Truth]] = {}
    for q in posed.quantities:
        key = ":".join((str(q.order), stem(q.output), stem(q.input)))
        found.setdefault(key, []).append(posed.truths[q.key])
    return found


def _call(one: Instance, sample: Sample) -> Case:
    """How the rule is called: with columns of the points as elements of its inputs, and
    weights of the outputs' elements as upstream gradients."""
    rule = one.written
    floats = [o for o in rule.outputs if o.takes_gradient]
    variables: list[Input | Output] = [*rule.tensor_inputs, *floats]
    shapes = {
        v.name: [extent(axis, one.sizes) for axis in v.shape.axes] for v in variables
    }
    return {
        **signature(rule),
        "statics": statics(rule, {**one.sizes, **one.integers, **sample.statics}),
        "columns": list(sample.columns),
        "elements": {
            i.name: [shapes[i.name], _elements(i, one)] for i in rule.tensor_inputs
        },
        "weights": [
            [shapes[o.name], list(map(float, weights(prod(shapes[o.name]))))]
            for o in floats
        ],
    }


def _elements(variable: Input, one: Instance) -> list[str | int]:
    """The columns of an input's elements; of one that serves as an index its values."""
    if variable.name in one.integers:
        values: list[int] = np.ravel(one.integers[variable.name]).tolist()
        return list(values)
    axes = variable.shape.axes
    return [element(variable.name, place) for place in places(axes, one.sizes)]


def _written_form(rule: Rule) -> dict[str, Any] | None:
    try:
        return written_program(written_outputs(rule))
    except NotImplementedError:
        return None


# --- targets -------------------------------------------------------------------------


def _one_target(
    folder: Path, given: tuple[Subject, ...], progress: Progress, target: str
) -> TargetAudit:
    framework = Framework.of(target, folder)
    if absent := framework.missing:
        return TargetAudit(target, (), absent=absent)
    modules = framework.modules(given)
    for module in modules:
        known = (c for c in module["cases"] if (target, c["dtype"]) not in _UNKNOWN)
        module["cases"] = list(known)
    cases = {c["place"]: c for module in modules for c in module["cases"]}
    last = {m["cases"][-1]["place"]: m["display"] for m in modules if m["cases"]}
    faults: list[tuple[str, str, str, str]] = []

    def hear(line: dict[str, Any]) -> None:
        case = cases[line["place"]]
        faults.extend((case["rule"], case["dtype"], *f) for f in line["faults"].items())
        if line["place"] in last:
            progress(last[line["place"]])

    failed = framework.do("audit", modules, hear, folder=str(framework.folder))
    if failed:
        return TargetAudit(target, (), (("", "", "", failed),))
    found = tuple(
        finding
        for module in modules
        for case in module["cases"]
        for finding in _findings(case, module["display"], framework)
    )
    return TargetAudit(target, found, tuple(faults))


def _findings(case: Case, display: str, framework: Framework) -> Iterator[Finding]:
    """The findings from the framework's results of a case."""
    place, dtype = Path(case["place"]), case["dtype"]
    table = np.load(f"{place}.points.npy")
    columns = dict(zip(case["columns"], table, strict=True))
    true = np.load(f"{place}.truth.npz")
    got = np.load(framework.folder / f"{place.name}.npz")
    keys = [key[5:] for key in true.files if key.startswith("high/")]
    parts = ("high", "low", "tolerance")
    truths = {key: Truth(*(true[f"{part}/{key}"] for part in parts)) for key in keys}
    for side in SIDES:
        values = {k: got[f"{side}/{k}"] for k in truths if f"{side}/{k}" in got.files}
        for key, value in values.items():
            if (compiled := f"compiled {side}/{key}") in got.files:
                values[key] = worse(value, got[compiled], truths[key], dtype)
        if side == "native" and not _is_same(values, truths, true["core"]):
            continue
        for key, column in values.items():
            worst = _worst_elements(column, truths[key], dtype, table.shape[1])
            value, truth = column[worst], truths[key].those(worst)
            found = errors(value, truth, dtype)
            whole = np.ones(len(true["core"]), dtype=bool)
            order, output, variable = key.split(":")
            yield Finding(
                *(display, case["rule"], framework.target, dtype, int(order)),
                _name(case, int(order), output, variable),
                variable,
                side,
                measure(found, whole, columns, value, truth),
                measure(found, true["core"], columns, value, truth),
                *(columns, value, truth, found),
            )


def _worst_elements(values: Array, truth: Truth, dtype: str, count: int) -> Array:
    """At each of ``count`` points the place of the least accurate element, of values that
    hold all points of one element after another."""
    found = errors(values, truth, dtype)
    by_element = np.where(found.judged, found.error, -1.0).reshape(-1, count)
    return by_element.argmax(axis=0) * count + np.arange(count)


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


def _name(case: Case, order: int, output: str, variable: str) -> str:
    if order == 0:
        return output
    name = f"d{variable}" if order == 1 else f"d²{variable}"
    is_one = sum(kind == "float" for _, kind in case["outputs"]) == 1
    return name if is_one else f"{name} of {output}"
