"""Examples of ranked rules: sizes come from the values, and each place of the batch is
worked out by itself.

A gradient is summed over the batch places that share its input's element. An output
without batch axes has one upstream gradient for all of them, which counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gradspec.checks.example_values import (
    Array,
    Index,
    Shape,
    array,
    broadcast,
    places,
    unit,
    value_of,
)
from gradspec.checks.examples import contradicts, outside, shape_text, single
from gradspec.diagnostics import Diagnostic
from gradspec.ir import closed
from gradspec.ir.calls import expand
from gradspec.ir.elements import OutOfRange, element
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Example, Input, Output, Rule
from gradspec.ir.unroll import unroll
from gradspec.symbolic.agree import Agreement, agreement
from gradspec.symbolic.compare import decimal
from gradspec.symbolic.enclose import defined, enclose, program, total

_PRECISIONS = (128, 1024)
Point = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Worked:
    """An example with everything bound: closed values of the unrolled rule, and a point
    for each place of the batch.
    """

    rule: Rule
    arrays: Mapping[str, Array]
    batch: Shape
    values: Mapping[str, Expr]
    points: Mapping[Index, Point]
    assumed: tuple[Expr, ...]

    def own(self, variable: Input | Output) -> Shape:
        """The sizes of a variable's axes."""
        return tuple(
            axis if isinstance(axis, int) else self.sizes[axis]
            for axis in variable.shape.axes
        )

    @property
    def sizes(self) -> Mapping[str, int]:
        return _sizes(self.rule, self.arrays)


def check(rule: Rule) -> Iterator[Diagnostic]:
    for example in rule.examples:
        try:
            worked = _bind(rule, example)
        except OutOfRange as fault:
            told = f"`{fault.name}` does not exist"
            yield contradicts(rule, example, "indices", told)
            continue
        if _is_outside(worked):
            yield outside(rule, example)
        for name, value in example.expected:
            yield from _compare(example, worked, name, array(value))


# --- binding ---------------------------------------------------------------------------


def _bind(rule: Rule, example: Example) -> _Worked:
    arrays: dict[str, Array] = {}
    for output in rule.outputs:
        if output.takes_gradient:
            arrays[f"d{output.name}"] = Array((), ("1",))
    for variable in rule.static_inputs:
        if variable.default is not None:
            arrays[variable.name] = Array((), (str(variable.default),))
    arrays.update((name, array(value)) for name, value in example.given)
    scalar = unroll(rule, _sizes(rule, arrays), _shifts(rule, arrays)).rule
    values = {**closed.outputs(scalar), **closed.cotangents(scalar)}
    batch = broadcast(_batch(rule, name, a.shape) for name, a in arrays.items())
    return _Worked(
        rule,
        arrays,
        batch,
        {name: expand(value) for name, value in values.items()},
        {place: _point(rule, arrays, place) for place in places(batch)},
        tuple(assume.condition for assume in scalar.assumes),
    )


def _sizes(rule: Rule, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Named axes as large as the values given."""
    sizes: dict[str, int] = {}
    for variable in rule.inputs:
        axes = variable.shape.axes
        shape = arrays[variable.name].shape
        own = shape[len(shape) - len(axes) :]
        for axis, size in zip(axes, own, strict=True):
            if isinstance(axis, str):
                sizes[axis] = size
    for variable in rule.static_inputs:
        if any(variable.name in output.shape.axes for output in rule.outputs):
            sizes[variable.name] = int(Fraction(arrays[variable.name].items[0]))
    return sizes


def _shifts(rule: Rule, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Whole statics are the same everywhere: an index may be made of them."""
    return {
        variable.name: int(Fraction(arrays[variable.name].items[0]))
        for variable in rule.static_inputs
        if variable.kind.value == "static int"
    }


def _axes(rule: Rule, name: str) -> tuple[str | int, ...]:
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    found = {variable.name: variable.shape.axes for variable in variables}
    found |= {f"d{v.name}": v.shape.axes for v in variables if v.takes_gradient}
    return found[name]


def _batch(rule: Rule, name: str, shape: Shape) -> Shape:
    """The leading axes of a value; the 1 that stands for a whole gradient has none."""
    own = len(_axes(rule, name))
    return shape[: max(len(shape) - own, 0)]


def _point(rule: Rule, arrays: Mapping[str, Array], place: Index) -> dict[str, Any]:
    """The elements at one place of the batch."""
    sizes = _sizes(rule, arrays)
    single = {f"d{o.name}" for o in rule.outputs if not o.shape.batch}
    point: dict[str, Any] = {}
    for name, values in arrays.items():
        own = tuple(a if isinstance(a, int) else sizes[a] for a in _axes(rule, name))
        for index in places(own):
            value = value_of(values.at((*place, *index)))
            if name in single and any(place):
                value = Fraction(0)
            point[element(name, index)] = value
    return point


def _is_outside(worked: _Worked) -> bool:
    return any(
        enclose(condition, point) is False
        for condition in worked.assumed
        for point in worked.points.values()
    )


# --- comparing -------------------------------------------------------------------------


def _compare(
    example: Example, worked: _Worked, name: str, expected: Array
) -> Iterator[Diagnostic]:
    rule = worked.rule
    output = next((o for o in rule.outputs if o.name == name), None)
    if output is not None:
        shape, values = _output(worked, output)
    else:
        shape, values = _gradient(worked, name)
    if not values:
        return
    if expected.shape != shape:
        told = f"{name} has {shape_text(shape)}, not {shape_text(expected.shape)}"
        yield contradicts(rule, example, name, told)
        return
    for index, value in values.items():
        text = expected.at(index)
        number = value_of(text)
        wanted = Fraction(number) if isinstance(number, bool) else number
        verdict = agreement(value, wanted, unit(text))
        if verdict is Agreement.UNKNOWN and _is_undefined(worked, name, index):
            verdict = Agreement.YES if text == "nan" else Agreement.NO
        place = f"{name}{list(index)}" if index else name
        told = f"{place} is {decimal(value, 20)}"
        if verdict is Agreement.NO:
            yield contradicts(rule, example, name, f"{told}, not {text}")
            return
        if verdict is Agreement.SINGLE:
            yield single(rule, example, told, text)
            return


def _output(worked: _Worked, output: Output) -> tuple[Shape, dict[Index, Any]]:
    own = worked.own(output)
    batch = worked.batch if output.shape.batch else ()
    found: dict[Index, Any] = {}
    for place in places(batch):
        point = worked.points[place if batch else (0,) * len(worked.batch)]
        for index in places(own):
            value = _value(worked.values[element(output.name, index)], point)
            found[(*place, *index)] = value
    return (*batch, *own), found


def _gradient(worked: _Worked, name: str) -> tuple[Shape, dict[Index, Any]]:
    """Summed to the input's own shape; nothing where it is not known."""
    variable = next(i for i in worked.rule.inputs if f"d{i.name}" == name)
    values = worked.arrays[variable.name]
    parts: dict[Index, list[Any]] = {}
    for place, point in worked.points.items():
        for index in places(worked.own(variable)):
            expr = worked.values.get(element(name, index))
            if expr is None:
                return (), {}
            home = values.home((*place, *index))
            parts.setdefault(home, []).append(_value(expr, point))
    return values.shape, {index: total(terms) for index, terms in parts.items()}


def _is_undefined(worked: _Worked, name: str, index: Index) -> bool:
    """Certainly without a value; at infinite inputs there may be a limit instead."""
    own = len(_axes(worked.rule, name))
    compiled = program(worked.values[element(name, index[len(index) - own :])])
    return any(
        not any(isinstance(v, float) for v in point.values())
        and compiled.is_singular(point)
        for point in worked.points.values()
    )


def _value(expr: Expr, point: Point) -> Any:
    value = None
    for precision in _PRECISIONS:
        value = enclose(expr, point, precision)
        if defined(value):
            return value
    return value
