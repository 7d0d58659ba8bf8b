"""Rules with points: elementwise rules in two formats, indexed ones at a few small
sizes.

The elements of a vector drawn one by one are never close to each other, nor all zero.
So the points of :mod:`gradspec.stabilise.sampling` are joined by vectors with a common
offset and a small spread (where a variance loses its digits), large and tiny ones
(where a norm overflows or vanishes), and the vector 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from gradspec.ir.elements import EVALUATED, Expansion, OutOfRange
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.unroll import axis_names, count, expansion, index_inputs, unrolled
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.names import Names
from gradspec.stabilise.sampling import (
    DOUBLE,
    ELEMENTS,
    Points,
    as_points,
    inside,
    points,
)

_SIZES = (3, 1)
_LARGEST = 7
_MOST = 24
"""The largest number of elements of inputs and outputs; beyond it every axis but the
first is short.
"""

_ROWS = 80
_OFFSETS = (100.0, 1000.0, -1000.0, 10.0, 1e4, -0.5, 1e6)
_STEPS = (0.0, 1.0, -0.25)
_SCALES = (0.0, 1e-25, 1e20, 1e30, 1e-3, 50.0, 1e-40)
_PARTS = (1.0, -0.5, 0.75, 0.25)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A rule at one choice of sizes (none for an elementwise rule), with points for its
    elements in the format ``work``. ``exact`` expands its expressions as defined,
    ``evaluated`` as a target evaluates them.
    """

    sizes: Mapping[str, int]
    points: Points
    exact: Expansion
    evaluated: Expansion
    work: Any = np.float32

    def written_out(self, rule: Rule, by: Expansion) -> Rule:
        """``rule`` unrolled to an elementwise rule of its elements."""
        return rule if rule.is_elementwise else unrolled(rule, by).rule


def samples(rule: Rule) -> tuple[Sample, ...]:
    """Samples with three elements an axis (more where indices reach further), and with
    one.
    """
    found = (sample for size in _SIZES if (sample := _sample(rule, size)) is not None)
    return tuple(found)


def scalar_sample(rule: Rule, chosen: Points, work: Any = np.float32) -> Sample:
    """An elementwise rule at points."""
    evaluated = expansion(rule, {}, None, EVALUATED)
    return Sample({}, chosen, expansion(rule, {}), evaluated, work)


def scalar_samples(rule: Rule) -> tuple[Sample, ...]:
    """An elementwise rule in float32 and in float64; none if no point is inside."""
    single = points(rule)
    if not len(single):
        return ()
    double = scalar_sample(rule, points(rule, DOUBLE), np.float64)
    return scalar_sample(rule, single), double


def _sample(rule: Rule, size: int) -> Sample | None:
    for length in range(size, _LARGEST):
        sizes = _short(rule, dict.fromkeys(axis_names(rule), length))
        integers = _integers(rule, sizes)
        exact = expansion(rule, sizes, integers)
        try:
            written = unrolled(rule, exact)
        except OutOfRange:
            continue
        chosen = _points(written.rule)
        evaluated = expansion(rule, sizes, integers, EVALUATED)
        return Sample(sizes, chosen, exact, evaluated) if len(chosen) else None
    return None


def _short(rule: Rule, sizes: dict[str, int]) -> dict[str, int]:
    if count(rule, sizes) <= _MOST:
        return sizes
    first, *others = sizes
    return {first: sizes[first], **{axis: min(2, sizes[axis]) for axis in others}}


def _integers(rule: Rule, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Distinct positions along the axis that each integer indexes."""
    reach = index_inputs(rule)
    shapes = {variable.name: variable.shape.axes for variable in rule.inputs}
    found: dict[str, Any] = {}
    for name, axis in reach.items():
        size = axis if isinstance(axis, int) else sizes[axis]
        shape = [a if isinstance(a, int) else sizes[a] for a in shapes[name]]
        found[name] = (np.arange(max(1, int(np.prod(shape)))) % size).reshape(shape)
        found[name] = found[name].tolist()
    return found


def _points(rule: Rule) -> Points:
    """The points of the scalars, thinned, and patterned vectors."""
    drawn = points(rule, ELEMENTS)
    if not len(drawn):
        return drawn
    step = max(1, len(drawn) // _ROWS)
    rows = [dict(row) for row in drawn.rows[::step]]
    patterned = list(_patterned(rule, rows))
    if patterned:
        columns = as_points(rule, patterned, np.float32).columns
        kept = inside(rule, Machine(columns)).tolist()
        rows += compress(patterned, kept)
    return as_points(rule, rows, np.float32)


def _patterned(rule: Rule, like: list[dict[str, float]]) -> Iterator[dict[str, float]]:
    """Each input in turn, then all at once, as a patterned vector."""
    groups: dict[str, list[str]] = {}
    for variable in rule.inputs:
        if variable.kind in (Kind.FLOAT, Kind.NOGRAD) and "[" in variable.name:
            groups.setdefault(variable.name.split("[")[0], []).append(variable.name)
    every = [name for names in groups.values() for name in names]
    for names in (*groups.values(), *((every,) if len(groups) > 1 else ())):
        for turn, values in enumerate(_patterns(len(names))):
            base = like[(7 * turn) % len(like)]
            yield base | dict(zip(names, values, strict=True))


def _patterns(length: int) -> Iterator[list[float]]:
    for offset in _OFFSETS:
        spread = [offset + _STEPS[k % len(_STEPS)] for k in range(length)]
        yield [float(np.float32(value)) for value in spread]
    for scale in _SCALES:
        parts = [scale * _PARTS[k % len(_PARTS)] for k in range(length)]
        yield [float(np.float32(value)) for value in parts]


def where_finite(sample: Sample, rule: Rule) -> Sample:
    """The points at which the outputs of ``rule`` are finite."""
    written = sample.written_out(rule, sample.evaluated)
    names = Names(written)
    machine = Machine(sample.points.columns)
    finite = np.ones(len(sample.points), dtype=bool)
    for let in written.forward:
        if let.name in {output.name for output in written.outputs}:
            finite &= np.isfinite(machine.run(names.close(let.value)))
    return replace(sample, points=sample.points.chosen(finite))
