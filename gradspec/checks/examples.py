"""Examples: what they say must follow from the rule, to the digits written.

The expected gradients are those of the rule as it stands (declared values at kinks and
overrides included), summed over broadcast elements as the emitted code does.
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
from gradspec.checks.subject import Subject
from gradspec.diagnostics import Diagnostic, error, warning
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Example, Rule
from gradspec.symbolic.agree import Agreement, agreement
from gradspec.symbolic.compare import decimal
from gradspec.symbolic.enclose import defined, enclose, program, total

_PRECISIONS = (128, 1024)


@dataclass(frozen=True, slots=True)
class _Worked:
    """One example with everything bound: the large shape and a point at each place."""

    arrays: Mapping[str, Array]
    shape: Shape
    points: Mapping[Index, Mapping[str, Any]]


def check(subject: Subject) -> Iterator[Diagnostic]:
    for example in subject.rule.examples:
        worked = _bind(subject, example)
        yield from _outside(subject, example, worked)
        for name, value in example.expected:
            yield from _compare(subject, example, worked, name, array(value))


def worked_points(subject: Subject, example: Example) -> tuple[Mapping[str, Any], ...]:
    """The points at which an example asks for values."""
    return tuple(_bind(subject, example).points.values())


def _bind(subject: Subject, example: Example) -> _Worked:
    """Every value in place: upstream gradients are 1 and statics have their default
    unless they are given."""
    arrays: dict[str, Array] = {name: Array((), ("1",)) for name in subject.upstream}
    for variable in subject.rule.static_inputs:
        if variable.default is not None:
            arrays[variable.name] = Array((), (str(variable.default),))
    arrays.update((name, array(value)) for name, value in example.given)
    shape = broadcast(a.shape for a in arrays.values())
    points = {
        index: {name: value_of(a.at(index)) for name, a in arrays.items()}
        for index in places(shape)
    }
    return _Worked(arrays, shape, points)


def _compare(
    subject: Subject,
    example: Example,
    worked: _Worked,
    name: str,
    expected: Array,
) -> Iterator[Diagnostic]:
    values = _values(subject, worked, name)
    if values is None:
        return
    shape = _shape_of(subject, worked, name)
    if expected.shape != shape:
        told = shape_text(expected.shape)
        yield contradicts(
            subject.rule, example, name, f"{name} has {shape_text(shape)}, not {told}"
        )
        return
    for index, value in values.items():
        text = expected.at(index)
        number = value_of(text)
        wanted = Fraction(number) if isinstance(number, bool) else number
        verdict = agreement(value, wanted, unit(text))
        if verdict is Agreement.UNKNOWN and _is_undefined(subject, worked, name):
            verdict = Agreement.YES if text == "nan" else Agreement.NO
        place = f"{name}{list(index)}" if index else name
        if verdict is Agreement.NO:
            shown = f"{place} is {decimal(value, 20)}, not {text}"
            yield contradicts(subject.rule, example, name, shown)
            return
        if verdict is Agreement.SINGLE:
            yield single(
                subject.rule, example, f"{place} is {decimal(value, 20)}", text
            )
            return


def _values(subject: Subject, worked: _Worked, name: str) -> dict[Index, Any] | None:
    """An output at each place, or a gradient summed to its input's own shape."""
    if name in subject.forward:
        forward = subject.forward[name]
        return {index: _value(forward, p) for index, p in worked.points.items()}
    if name.removeprefix("d") not in subject.stated:
        return None
    stated = subject.stated[name.removeprefix("d")]
    own = worked.arrays[name.removeprefix("d")]
    parts: dict[Index, list[Any]] = {}
    for index, point in worked.points.items():
        parts.setdefault(own.home(index), []).append(_value(stated, point))
    return {index: total(values) for index, values in parts.items()}


def _shape_of(subject: Subject, worked: _Worked, name: str) -> Shape:
    if name in subject.forward:
        return worked.shape
    return worked.arrays[name.removeprefix("d")].shape


def _value(expr: Expr, point: Mapping[str, Any]) -> Any:
    value = None
    for precision in _PRECISIONS:
        value = enclose(expr, point, precision)
        if defined(value):
            return value
    return value


def _is_undefined(subject: Subject, worked: _Worked, name: str) -> bool:
    """Certainly without a value; at infinite inputs there may be a limit instead."""
    expr = subject.forward.get(name)
    if expr is None:
        expr = subject.stated[name.removeprefix("d")]
    compiled = program(expr)
    return any(
        all(not isinstance(v, float) for v in point.values())
        and compiled.is_singular(point)
        for point in worked.points.values()
    )


def _outside(
    subject: Subject, example: Example, worked: _Worked
) -> Iterator[Diagnostic]:
    conditions = [a.condition for a in subject.rule.assumes if not a.indices]
    if any(enclose(c, p) is False for p in worked.points.values() for c in conditions):
        yield outside(subject.rule, example)


# --- what is said --------------------------------------------------------------------


def outside(rule: Rule, example: Example) -> Diagnostic:
    return warning(
        "GS412",
        f"an example of {rule.name} is outside its assumptions",
        rule.source,
        example.span,
        label="the values given do not satisfy the assumptions",
        help="choose values inside, or widen the assumption",
    )


def contradicts(rule: Rule, example: Example, name: str, told: str) -> Diagnostic:
    return error(
        "GS409",
        f"an example contradicts {rule.name}: {told}",
        rule.source,
        example.span,
        label=told,
        help=f"correct the example, or the rule's {name}",
    )


def single(rule: Rule, example: Example, told: str, text: str) -> Diagnostic:
    return warning(
        "GS413",
        f"an example of {rule.name} is right to the precision of float32 only",
        rule.source,
        example.span,
        label=f"{told}, not {text}",
        help="write the digits of the exact value, or fewer",
    )


def shape_text(shape: Shape) -> str:
    return f"shape {list(shape)}" if shape else "no axes"
