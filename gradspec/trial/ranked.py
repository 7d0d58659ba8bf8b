"""What an emitted function over named axes must give, worked out without any framework.

The rule is written out at small sizes as a rule of scalars (`ir.unroll`), its cotangents
are those of scalar calculus whatever the rule declares or index calculus has derived,
and each element of a batch is one point for ball arithmetic. Neither the derivation over
indices nor the planning of axes has a part in it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import fsum, isfinite
from typing import Any

from gradspec.derive.complete import complete
from gradspec.ir import closed
from gradspec.ir.calls import expand, follows_surrogate
from gradspec.ir.elements import OutOfRange, element, extent, places
from gradspec.ir.expr import Apply, Expr, Ref, const
from gradspec.ir.rule import (
    Backward,
    Declared,
    Derived,
    Input,
    Kind,
    NoGradient,
    Output,
    Override,
    Pending,
    Rule,
)
from gradspec.ir.unroll import unroll
from gradspec.symbolic.compare import bend, slope
from gradspec.symbolic.enclose import Program, enclose
from gradspec.symbolic.truth import values
from gradspec.trial.cases import example_case
from gradspec.trial.drawing import Drawn, attempt
from gradspec.trial.shapes import Place, batch_shapes, place_in, size_choices

DRAWS = 400
"""Attempts at inputs that the assumptions allow."""

SMOOTH_DRAWS = 6
SECOND_ORDER_LIMIT = 72
"""Second derivatives cost six evaluations an element; larger calls do without."""


@dataclass(frozen=True, slots=True)
class Written:
    """A ranked rule at given sizes: scalar expressions of its elements."""

    rule: Rule
    values: Mapping[str, Expr]
    gradients: Mapping[str, Expr]


def ranked_cases(rule: Rule) -> dict[str, Any]:
    """The job for one rule with axes, as plain data for JSON."""
    rng = random.Random(rule.name)
    return {
        "rule": rule.name,
        "ranked": True,
        "inputs": [[i.name, i.kind.value, i.shape.batch] for i in rule.tensor_inputs],
        "outputs": [[o.name, o.kind.value] for o in rule.outputs],
        "exact": _is_exact(rule),
        "calls": list(_calls(rule, rng)),
        "examples": [example_case(rule, example) for example in rule.examples],
    }


def one_call(rule: Rule, without: Rule) -> dict[str, Any] | None:
    """A call with batch axes, smooth if there is one; under ``bare`` what comes of the
    same call by the rule ``without``, which has the same inputs and outputs.
    """
    rng = random.Random(rule.name)
    call = None
    batches = list(batch_shapes(rule, rng))[1]
    for sizes in size_choices(rule, 0, rng):
        try:
            written, other = _written(rule, sizes), _written(without, sizes)
        except OutOfRange:
            continue
        for _ in range(SMOOTH_DRAWS):
            drawn = _draw(rule, written, sizes, batches, rng)
            if drawn is None:
                break
            call = _third_order(rule, written, sizes, drawn)
            call["bare"] = _third_order(without, other, sizes, drawn)
            if call["second"] is not None:
                return call
        if call is not None:
            return call
    return None


def _is_exact(rule: Rule) -> bool:
    overridden = any(isinstance(entry, Override) for entry in rule.backward)
    return not overridden and not follows_surrogate(rule)


def _calls(rule: Rule, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Every choice of sizes with every batch that goes with it."""
    for number, batches in enumerate(batch_shapes(rule, rng)):
        for sizes in size_choices(rule, number, rng):
            try:
                written = _written(rule, sizes)
            except OutOfRange:
                continue
            call = _smooth_call(rule, written, sizes, batches, rng)
            if call is not None:
                yield call
            break


def _written(rule: Rule, sizes: Mapping[str, int]) -> Written:
    """The rule at ``sizes``; what it declares of its gradients is not believed."""
    scalar = unroll(rule, sizes).rule
    asked = replace(scalar, backward=tuple(map(_asked, scalar.backward)))
    derived = complete(asked).value
    if derived is None:
        raise RuntimeError(f"{rule.name}: no scalar gradient")
    return Written(
        scalar,
        {name: expand(e) for name, e in closed.outputs(derived).items()},
        {name: expand(e) for name, e in closed.cotangents(derived).items()},
    )


def _asked(entry: Backward) -> Backward:
    return Pending() if isinstance(entry, Declared | Derived) else entry


# --- one call ------------------------------------------------------------------------


def _smooth_call(
    rule: Rule,
    written: Written,
    sizes: Mapping[str, int],
    batches: Mapping[str, Place],
    rng: random.Random,
) -> dict[str, Any] | None:
    """A call away from kinks if a few draws find one."""
    call = None
    for _ in range(SMOOTH_DRAWS):
        drawn = _draw(rule, written, sizes, batches, rng)
        if drawn is None:
            return call
        call = _call(rule, written, sizes, drawn)
        if call["second"] is not None:
            return call
    return call


def _call(
    rule: Rule, written: Written, sizes: Mapping[str, int], drawn: Drawn
) -> dict[str, Any]:
    """Values and gradients to be had, those of an input summed over the elements of the
    batch that share it.
    """
    outputs, gradients = _evaluated(written, drawn)
    expected = {}
    for output in rule.outputs:
        batch = drawn.shapes[f"d{output.name}"]
        expected[output.name] = _gathered(output, sizes, batch, drawn, outputs)
    for variable in _differentiable(rule):
        batch = drawn.shapes[variable.name]
        name = f"d{variable.name}"
        found = _gathered(variable, sizes, batch, drawn, gradients)
        expected[name] = found
    statics = _statics(rule, sizes, drawn)
    return {
        "statics": statics,
        "given": {
            name: [_shape(rule, name, sizes, drawn), [float(v) for v in cells.values()]]
            for name, cells in drawn.cells.items()
            if name not in statics
        },
        "expected": expected,
        "second": _second(rule, written, sizes, drawn),
    }


def _third_order(
    rule: Rule, written: Written, sizes: Mapping[str, int], drawn: Drawn
) -> dict[str, Any]:
    """A call with its third derivatives, along the probes both times."""
    call = _call(rule, written, sizes, drawn)
    third = _third(rule, written, sizes, drawn) if call["second"] else None
    return call | {"third": third}


def _differentiable(rule: Rule) -> Iterator[Input]:
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if variable.takes_gradient and not isinstance(entry, NoGradient):
            yield variable


def _statics(
    rule: Rule, sizes: Mapping[str, int], drawn: Drawn
) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    for i in rule.static_inputs:
        value = sizes[i.name] if i.name in sizes else drawn.cells[i.name][()]
        found[i.name] = int(value) if i.kind is Kind.STATIC_INT else float(value)
    return found


def _shape(rule: Rule, name: str, sizes: Mapping[str, int], drawn: Drawn) -> list[int]:
    """Batch axes, then those of the variable that ``name`` is, is for, or probes."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    axes = {f"d{o.name}": o.shape.axes for o in rule.outputs}
    axes |= {v.name: v.shape.axes for v in variables}
    bare = name.removeprefix("probe ")
    return [*drawn.shapes[bare], *(extent(a, sizes) for a in axes[bare])]


def _evaluated(
    written: Written, drawn: Drawn
) -> tuple[dict[tuple[str, Place], float], dict[tuple[str, Place], float]]:
    """Every value and gradient of each element of the batch, in float64."""
    roots = (*written.values.values(), *written.gradients.values())
    program = Program(roots)
    names = (*written.values, *written.gradients)
    found: dict[tuple[str, Place], float] = {}
    for place, point in drawn.points:
        numbers = values(program, point)
        found |= {(n, place): v for n, v in zip(names, numbers, strict=True)}
    split = {n: v for n, v in found.items() if n[0] in written.values}
    return split, {
        (n.removeprefix("d"), p): v
        for (n, p), v in found.items()
        if n in written.gradients
    }


def _gathered(
    variable: Input | Output,
    sizes: Mapping[str, int],
    batch: Place,
    drawn: Drawn,
    found: Mapping[tuple[str, Place], float],
) -> list[Any]:
    """[shape, flat values]: over elements of the batch that share a place, the sum."""
    cells: dict[Place, list[float]] = {
        place: [] for place in product(*map(range, batch))
    }
    indices = list(places(variable.shape.axes, sizes))
    columns = {index: {k: list(v) for k, v in cells.items()} for index in indices}
    for place, _ in drawn.points:
        for index in indices:
            value = found[element(variable.name, index), place]
            columns[index][place_in(place, batch)].append(value)
    flat = [fsum(columns[index][place]) for place in cells for index in indices]
    core = (extent(axis, sizes) for axis in variable.shape.axes)
    return [[*batch, *core], flat]


# --- second derivatives --------------------------------------------------------------


def _second(
    rule: Rule, written: Written, sizes: Mapping[str, int], drawn: Drawn
) -> dict[str, Any] | None:
    """The derivative by each input of the gradients' product with the probes; None at a
    kink, and for calls that are too large.
    """
    elements = [element(v.name, i) for v, i in _elements(rule, sizes)]
    if len(elements) * len(drawn.points) > SECOND_ORDER_LIMIT:
        return None
    if follows_surrogate(rule):
        return None
    whole = _probed(written, elements)
    found: dict[tuple[str, Place], float] = {}
    for place, point in drawn.points:
        for name in elements:
            curvature = slope(whole, point, name)
            if curvature is None or not _has_slopes(written, point, name):
                return None
            found[name, place] = curvature
    return {
        f"d{v.name}": _gathered(v, sizes, drawn.shapes[v.name], drawn, found)
        for v in _differentiable(rule)
    }


def _probed(written: Written, elements: list[str]) -> Expr:
    """The gradients' product with the probes."""
    whole: Expr = const(0)
    for name in elements:
        term = Apply("mul", (Ref(f"probe {name}"), written.gradients[f"d{name}"]))
        whole = Apply("add", (whole, term))
    return whole


def _third(
    rule: Rule, written: Written, sizes: Mapping[str, int], drawn: Drawn
) -> dict[str, Any] | None:
    """The derivative by each input of the second derivatives' product with the probes."""
    elements = [element(v.name, i) for v, i in _elements(rule, sizes)]
    whole = _probed(written, elements)
    found: dict[tuple[str, Place], float] = {}
    for place, point in drawn.points:
        along = {name: point[f"probe {name}"] for name in elements}
        for name in elements:
            change = bend(whole, point, name, along)
            if change is None:
                return None
            found[name, place] = change
    return {
        f"d{v.name}": _gathered(v, sizes, drawn.shapes[v.name], drawn, found)
        for v in _differentiable(rule)
    }


def _has_slopes(written: Written, point: dict[str, Fraction], name: str) -> bool:
    return all(slope(e, point, name) is not None for e in written.values.values())


def _elements(rule: Rule, sizes: Mapping[str, int]) -> Iterator[tuple[Input, Place]]:
    for variable in _differentiable(rule):
        for index in places(variable.shape.axes, sizes):
            yield variable, index


# --- drawing -------------------------------------------------------------------------


def _draw(
    rule: Rule,
    written: Written,
    sizes: Mapping[str, int],
    batches: Mapping[str, Place],
    rng: random.Random,
) -> Drawn | None:
    """Inputs that the assumptions allow at every element of the batch, and at which
    everything is defined.
    """
    program = Program((*written.values.values(), *written.gradients.values()))
    for _ in range(DRAWS):
        drawn = attempt(rule, sizes, batches, rng)
        if all(_is_sound(written.rule, program, p) for _, p in drawn.points):
            return drawn
    return None


def _is_sound(scalar: Rule, program: Program, point: dict[str, Fraction]) -> bool:
    if not all(enclose(a.condition, point) is True for a in scalar.assumes):
        return False
    return all(map(isfinite, values(program, point)))
