"""A rule in one format: the points, and the truth of every quantity there.

To the points drawn come the places where accuracy is lost first: zeros of the function
and of its derivatives (found by bisection to neighbouring numbers of the format) and
the ends of the domain, each with numbers at growing distances on both sides. They and
the exact values go to files that a runner reads (`prepare`), and its results become
findings (`findings`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from gradspec.checks.instances import Instance, elementwise, stem, typical
from gradspec.ir.elements import element, extent, places
from gradspec.ir.rule import Input, Judged, Kind, Output, Rule
from gradspec.ir.unroll import unroll
from gradspec.measure.errors import (
    Errors,
    Measure,
    Truth,
    at_sign_changes,
    errors,
    measure,
    tolerances,
    worse,
)
from gradspec.measure.points import Sample, as_sample, beside, is_inside, points
from gradspec.measure.quantities import (
    HALF,
    Array,
    Quantity,
    is_derivative,
    largest,
    numbers,
    ordinals,
    quantities,
    weights,
    written_outputs,
    written_program,
)
from gradspec.options import SIDES
from gradspec.primitives.lookup import is_function
from gradspec.symbolic.enclose import Program, program
from gradspec.symbolic.truth import FORMATS, pair, pairs

_ZEROS = 12
"""Zeros of one quantity along one line that are used."""

_LINES = 12
_GRID = 72
"""Lines through points of a rule of several inputs, and points on each."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """``truths`` by the quantity's key."""

    rule: Rule
    dtype: str
    sample: Sample
    quantities: tuple[Quantity, ...]
    truths: Mapping[str, Truth]


def question(
    rule: Rule,
    asked: tuple[Quantity, ...],
    dtype: str,
    count: int,
    is_whole: bool = True,
) -> Question:
    """The points of a complete elementwise rule, and the true values there.

    The elements of a rule over axes (``is_whole`` is false) are many quantities by many
    inputs: there are fewer points, and no search for places.
    """
    if is_whole:
        drawn = points(rule, dtype, count)
    else:
        count = min(count, max(_FEWEST, _ELEMENTS // len(asked) ** 2))
        drawn = points(rule, dtype, count, max(4, count // len(rule.inputs)))
    if is_whole and (dtype not in HALF or len(drawn.columns) > 1):
        drawn = _with_places(rule, dtype, drawn, asked)
    truths = {q.key: _truth(q, drawn, dtype) for q in asked}
    keep = _defined(asked, truths, len(drawn))
    drawn = _those(drawn, keep)
    inputs = frozenset(_floating(rule))
    kept = {
        q.key: _judged(q, truths[q.key].those(keep), drawn, dtype, inputs)
        for q in asked
    }
    return Question(rule, dtype, drawn, asked, kept)


def _truth(quantity: Quantity, sample: Sample, dtype: str) -> Truth:
    """The exact values; no tolerances yet."""
    high, low = np.full(len(sample), np.nan), np.zeros(len(sample))
    for form in quantity.forms:
        unknown = np.isnan(high)
        rows = (row for row, open_ in zip(sample.rows(), unknown, strict=True) if open_)
        found = np.array(pairs(form, rows, dtype)).reshape(-1, 2)
        high[unknown], low[unknown] = found.T
    return Truth(high, low, np.full(len(sample), np.nan))


def _judged(
    quantity: Quantity,
    truth: Truth,
    sample: Sample,
    dtype: str,
    inputs: frozenset[str],
) -> Truth:
    """With tolerances; a derivative is not judged where a ``sign`` has its jump."""
    rows = list(sample.rows())
    found = tolerances(quantity.forms, rows, truth.high, inputs, dtype)
    if quantity.order:
        found[at_sign_changes(quantity.forms[0], rows)] = np.nan
    return Truth(truth.high, truth.low, found)


def _floating(rule: Rule) -> list[str]:
    kinds = (Kind.FLOAT, Kind.NOGRAD)
    return [i.name for i in rule.tensor_inputs if i.kind in kinds]


def _defined(
    asked: tuple[Quantity, ...], truths: Mapping[str, Truth], count: int
) -> Array:
    """The points at which every output has a value."""
    keep = np.ones(count, dtype=bool)
    for quantity in asked:
        if quantity.order == 0:
            keep &= ~np.isnan(truths[quantity.key].high)
    return keep


def _those(sample: Sample, keep: Array) -> Sample:
    columns = {name: column[keep] for name, column in sample.columns.items()}
    return Sample(columns, sample.statics, sample.core[keep])


# --- zeros and ends ------------------------------------------------------------------


def _with_places(
    rule: Rule, dtype: str, sample: Sample, asked: tuple[Quantity, ...]
) -> Sample:
    """The sample with neighbours of zeros and ends."""
    rows = [row for line in _lines(rule, dtype, sample) for row in line.places(asked)]
    if not rows:
        return sample
    columns = {
        name: np.concatenate([column, np.array([float(row[name]) for row in rows])])
        for name, column in sample.columns.items()
    }
    return as_sample(rule, columns, sample.statics)


def _lines(rule: Rule, dtype: str, sample: Sample) -> Iterator[_Line]:
    """One line for a rule of one input; else a few through points of the sample."""
    holds = is_inside(rule, sample.statics)
    core = np.flatnonzero(sample.core)
    bases = (
        core[:: max(1, len(core) // _LINES)][:_LINES]
        if len(sample.columns) > 1
        else core[:1]
    )
    for name in _floating(rule):
        grid = np.unique(sample.columns[name])
        grid = grid[:: max(1, len(grid) // (_GRID * (20 if len(bases) == 1 else 1)))]
        for base in bases:
            point = {n: float(c[base]) for n, c in sample.columns.items()}
            yield _Line(name, {**sample.statics, **point}, grid, dtype, holds)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Points that differ in one input."""

    name: str
    base: Mapping[str, Any]
    grid: Array
    dtype: str
    holds: Callable[[Mapping[str, Any]], bool]

    def places(self, asked: tuple[Quantity, ...]) -> Iterator[dict[str, Any]]:
        """Rows beside zeros and ends, inside the assumptions."""
        inside = [v for v in self.grid.tolist() if self.holds(self._at(v))]
        if not inside:
            return
        ordinal = {int(n) for q in asked for n in self._zeros(q, inside)}
        ordinal |= set(self._ends(inside))
        for place in sorted(ordinal):
            for value in beside(place, self.dtype).tolist():
                if self.holds(self._at(value)):
                    yield self._at(value)

    def _at(self, value: float) -> dict[str, Any]:
        return {**self.base, self.name: value}

    def _zeros(self, quantity: Quantity, inside: list[float]) -> Iterator[int]:
        """Zeros between neighbours of opposite sign, by bisection over the format."""
        compiled = program(quantity.forms[0])
        signs = [self._sign(compiled, value) for value in inside]
        changes = [k for k in range(1, len(inside)) if signs[k] * signs[k - 1] < 0]
        for k in changes[:: max(1, len(changes) // _ZEROS)][:_ZEROS]:
            low, high = (int(n) for n in ordinals(inside[k - 1 : k + 1], self.dtype))
            while high - low > 1:
                middle = (low + high) // 2
                sign = self._sign(compiled, float(numbers(middle, self.dtype)))
                low, high = (middle, high) if sign == signs[k - 1] else (low, middle)
            yield low

    def _sign(self, compiled: Program, value: float) -> int:
        high, _ = pair(compiled, self._at(value), FORMATS[self.dtype])
        return 0 if np.isnan(high) else int(np.sign(high))

    def _ends(self, inside: list[float]) -> Iterator[int]:
        """Domain ends between the outermost point inside and the largest number."""
        top = largest(self.dtype)
        for last, far in ((inside[-1], top), (inside[0], -top)):
            if self.holds(self._at(far)):
                continue
            good, bad = (int(n) for n in ordinals([last, far], self.dtype))
            while abs(good - bad) > 1:
                middle = (good + bad) // 2
                if self.holds(self._at(float(numbers(middle, self.dtype)))):
                    good = middle
                else:
                    bad = middle
            yield good


# --- cases ----------------------------------------------------------------------------


_ELEMENTS = 8000
_FEWEST = 24
"""Points of a rule over axes, times the square of its elements, in each stratum; the
least."""

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
    judged: Judged, chosen: Rule, request: Request, folder: Path, key: str
) -> Case | None:
    """Write the points and the truths of a rule; None if it is too large at any
    sizes."""
    rule = judged.rule
    one = elementwise(rule) if rule.is_elementwise else typical(rule)
    if one is None:
        return None
    order, same = request.order, chosen
    if not rule.is_elementwise:
        order, same = min(order, 1), unroll(chosen, one.sizes, one.integers).rule
    asked = quantities(one.rule, same, order)
    batched = all(i.shape.batch for i in rule.tensor_inputs)
    count = request.points if batched else _AT_ONCE // 3
    posed = question(one.rule, asked, request.dtype, count, rule.is_elementwise)
    sample = posed.sample
    np.save(folder / f"{key}.points.npy", np.array(list(sample.columns.values())))
    found: dict[str, Any] = {
        f"{part}/{name}": np.concatenate([getattr(t, part) for t in truths])
        for name, truths in _by_variable(posed).items()
        for part in ("high", "low", "tolerance")
    }
    np.savez(folder / f"{key}.truth.npz", core=sample.core, **found)
    line, _ = rule.source.position(rule.name_span.start)
    told = job(one, sample, replace(request, order=order), folder, key)
    return Case(rule.source.path, rule.name, request.dtype, line, key, told)


def _by_variable(posed: Question) -> dict[str, list[Truth]]:
    """The truths of the elements of each quantity, in order."""
    found: dict[str, list[Truth]] = {}
    for q in posed.quantities:
        key = ":".join((str(q.order), stem(q.output), stem(q.input)))
        found.setdefault(key, []).append(posed.truths[q.key])
    return found


def job(
    one: Instance, sample: Sample, request: Request, folder: Path, key: str
) -> dict[str, Any]:
    """The instructions for a runner, without the module's path."""
    rule = one.written
    known: dict[str, Any] = {**one.sizes, **one.integers, **sample.statics}
    floats = [o for o in rule.outputs if o.takes_gradient]
    variables: list[Input | Output] = [*rule.tensor_inputs, *floats]
    shapes = {
        v.name: [extent(axis, one.sizes) for axis in v.shape.axes] for v in variables
    }
    return {
        "key": key,
        "rule": rule.name,
        "inputs": [[i.name, i.kind.value] for i in rule.tensor_inputs],
        "outputs": [[o.name, o.kind.value] for o in rule.outputs],
        "columns": list(sample.columns),
        "elements": {
            i.name: [shapes[i.name], _elements(i, one)] for i in rule.tensor_inputs
        },
        "weights": [
            [shapes[o.name], list(map(float, weights(prod(shapes[o.name]))))]
            for o in floats
        ],
        "statics": {
            i.name: int(v) if i.kind is Kind.STATIC_INT else float(v)
            for i in rule.static_inputs
            for v in (known[i.name],)
        },
        "dtype": request.dtype,
        "order": request.order,
        "sides": [
            side for side in request.sides if rule.is_elementwise or side == "emitted"
        ],
        "points": str(folder / f"{key}.points.npy"),
        "batched": all(i.shape.batch for i in rule.tensor_inputs),
        "differentiable": is_derivative(rule),
        "named": is_function(rule.name),
        "written": _written(one.rule),
    }


def _elements(variable: Input, one: Instance) -> list[str | int]:
    """The columns of an input's elements; of one that serves as an index its values."""
    if variable.name in one.integers:
        values: list[int] = np.ravel(one.integers[variable.name]).tolist()
        return list(values)
    axes = variable.shape.axes
    return [element(variable.name, place) for place in places(axes, one.sizes)]


def _written(rule: Rule) -> dict[str, Any] | None:
    try:
        return written_program(written_outputs(rule))
    except NotImplementedError:
        return None


# --- back ----------------------------------------------------------------------------


def findings(case: Case, target: str, folder: Path, results: Path) -> Iterator[Finding]:
    """The findings from a runner's results for a case."""
    table = np.load(folder / f"{case.key}.points.npy")
    columns = dict(zip(case.job["columns"], table, strict=True))
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
            worst = _worst_elements(column, truths[key], case.dtype, table.shape[1])
            at_worst = column[worst], truths[key].those(worst)
            yield _finding(case, target, side, key, columns, true["core"], *at_worst)


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
