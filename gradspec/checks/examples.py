"""Examples: their values must follow from the rule, to the digits written.

The expected gradients are those of the rule as it stands (declared values at kinks and
overrides included). Sizes come from the values, and each place of the batch is worked
out by itself; a gradient is summed over the places that share its input's element, as
the emitted code does. An output without batch axes has one upstream gradient for all of
them, which counts once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product, zip_longest
from typing import Any, TypeAlias

from gradspec.checks.instances import Instance
from gradspec.diagnostics import Diagnostic, error, warning
from gradspec.ir.elements import OutOfRange, element
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Example, Input, Output, Rule, Value
from gradspec.ir.unroll import unroll
from gradspec.symbolic.compare import decimal
from gradspec.symbolic.enclose import defined, enclose, program, total
from gradspec.symbolic.neighbours import limits, on_border
from gradspec.symbolic.truth import Agreement, agreement

Shape: TypeAlias = tuple[int, ...]
Index: TypeAlias = tuple[int, ...]
_Point: TypeAlias = Mapping[str, Any]

_NUMBER = re.compile(r"[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")
_PRECISIONS = (128, 1024)


def check(rule: Rule) -> Iterator[Diagnostic]:
    for example in rule.examples:
        try:
            worked = _bind(rule, example)
        except OutOfRange as fault:
            yield _contradicts(
                rule, example, "indices", f"`{fault.name}` does not exist"
            )
            continue
        if worked.is_outside:
            yield _outside(rule, example)
        for name, value in example.expected:
            yield from _compare(example, worked, name, _array(value))
        yield from _at_kink(rule, example, worked)


# --- binding -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Array:
    """A value of an example as written: its shape and its texts in row order."""

    shape: Shape
    items: tuple[str, ...]

    def at(self, index: Index) -> str:
        """The element that stands at an index of a larger shape it broadcasts to."""
        offset = 0
        for size, place in zip(self.shape, self.home(index), strict=True):
            offset = offset * size + place
        return self.items[offset]

    def home(self, index: Index) -> Index:
        """The own element into which a gradient at an index of the large shape is
        summed."""
        own = index[len(index) - len(self.shape) :]
        pairs = zip(self.shape, own, strict=True)
        return tuple(0 if size == 1 else place for size, place in pairs)


@dataclass(frozen=True)
class _Worked:
    """An example with everything bound: the instance at its sizes, and a point for each
    place of the batch.
    """

    instance: Instance
    arrays: Mapping[str, _Array]
    batch: Shape
    points: Mapping[Index, _Point]

    @property
    def rule(self) -> Rule:
        return self.instance.written

    @property
    def is_outside(self) -> bool:
        return any(
            enclose(condition, point) is False
            for condition in self.instance.assumed
            for point in self.points.values()
        )

    @cached_property
    def values(self) -> Mapping[str, Expr]:
        """Outputs and gradients of the elements."""
        stated = {f"d{name}": value for name, value in self.instance.stated.items()}
        return {**self.instance.forward, **stated}

    def own(self, variable: Input | Output) -> Shape:
        """The sizes of a variable's axes."""
        return _extents(variable.shape.axes, self.instance.sizes)


def _bind(rule: Rule, example: Example) -> _Worked:
    """Every value in place: upstream gradients are 1 and statics have their default
    unless they are given."""
    arrays: dict[str, _Array] = {}
    for output in rule.outputs:
        if output.takes_gradient:
            arrays[f"d{output.name}"] = _Array((), ("1",))
    for variable in rule.static_inputs:
        if variable.default is not None:
            arrays[variable.name] = _Array((), (str(variable.default),))
    arrays.update((name, _array(value)) for name, value in example.given)
    sizes, axes = _sizes(rule, arrays), _axes(rule)
    made = unroll(rule, sizes, _shifts(rule, arrays))
    # The 1 that stands for a whole gradient has no batch axes.
    shapes = (a.shape[: max(len(a.shape) - len(axes[n]), 0)] for n, a in arrays.items())
    batch = _broadcast(shapes)
    points = {p: _point(rule, arrays, sizes, p) for p in _places(batch)}
    return _Worked(
        Instance(rule, made.rule, made.sizes, made.integers), arrays, batch, points
    )


def _sizes(rule: Rule, arrays: Mapping[str, _Array]) -> dict[str, int]:
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


def _shifts(rule: Rule, arrays: Mapping[str, _Array]) -> dict[str, int]:
    """Index shifts; integer statics are the same everywhere, as an index may use
    them."""
    return {
        variable.name: int(Fraction(arrays[variable.name].items[0]))
        for variable in rule.static_inputs
        if variable.kind.value == "static int"
    }


def _axes(rule: Rule) -> Mapping[str, tuple[str | int, ...]]:
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    found = {variable.name: variable.shape.axes for variable in variables}
    return found | {f"d{v.name}": v.shape.axes for v in variables if v.takes_gradient}


def _extents(axes: tuple[str | int, ...], sizes: Mapping[str, int]) -> Shape:
    return tuple(a if isinstance(a, int) else sizes[a] for a in axes)


def _point(
    rule: Rule, arrays: Mapping[str, _Array], sizes: Mapping[str, int], place: Index
) -> _Point:
    """The elements at one place of the batch."""
    axes = _axes(rule)
    once = {f"d{o.name}" for o in rule.outputs if not o.shape.batch}
    point: dict[str, Any] = {}
    for name, values in arrays.items():
        for index in _places(_extents(axes[name], sizes)):
            value = _number(values.at((*place, *index)))
            if name in once and any(place):
                value = Fraction(0)
            point[element(name, index)] = value
    return point


# --- comparing ---------------------------------------------------------------------------


def _compare(
    example: Example, worked: _Worked, name: str, expected: _Array
) -> Iterator[Diagnostic]:
    rule = worked.rule
    output = next((o for o in rule.outputs if o.name == name), None)
    found = _gradient(worked, name) if output is None else _output(worked, output)
    shape, values = found
    if not values:
        return
    if expected.shape != shape:
        told = f"{name} has {_shape_text(shape)}, not {_shape_text(expected.shape)}"
        yield _contradicts(rule, example, name, told)
        return
    for index, value in values.items():
        text = expected.at(index)
        wanted = _number(text)
        exact = Fraction(wanted) if isinstance(wanted, bool) else wanted
        verdict = agreement(value, exact, _unit(text))
        if verdict is Agreement.UNKNOWN and _is_undefined(worked, name, index):
            verdict = Agreement.YES if text == "nan" else Agreement.NO
        place = f"{name}{list(index)}" if index else name
        told = f"{place} is {decimal(value, 20)}"
        if verdict is Agreement.NO:
            yield _contradicts(rule, example, name, f"{told}, not {text}")
            return
        if verdict is Agreement.SINGLE:
            yield _single(rule, example, told, text)
            return


def _output(worked: _Worked, output: Output) -> tuple[Shape, dict[Index, Any]]:
    own = worked.own(output)
    batch = worked.batch if output.shape.batch else ()
    found: dict[Index, Any] = {}
    for place in _places(batch):
        point = worked.points[place if batch else (0,) * len(worked.batch)]
        for index in _places(own):
            value = _value(worked.values[element(output.name, index)], point)
            found[(*place, *index)] = value
    return (*batch, *own), found


def _gradient(worked: _Worked, name: str) -> tuple[Shape, dict[Index, Any]]:
    """The gradient summed to the input's own shape; None where it is not known."""
    variable = next(i for i in worked.rule.inputs if f"d{i.name}" == name)
    values = worked.arrays[variable.name]
    parts: dict[Index, list[Any]] = {}
    for place, point in worked.points.items():
        for index in _places(worked.own(variable)):
            expr = worked.values.get(element(name, index))
            if expr is None:
                return (), {}
            home = values.home((*place, *index))
            parts.setdefault(home, []).append(_value(expr, point))
    return values.shape, {index: total(terms) for index, terms in parts.items()}


def _is_undefined(worked: _Worked, name: str, index: Index) -> bool:
    """True if certainly undefined; at infinite inputs there may be a limit instead."""
    own = len(_axes(worked.rule)[name])
    compiled = program(worked.values[element(name, index[len(index) - own :])])
    return any(
        _is_finite(point) and compiled.is_singular(point)
        for point in worked.points.values()
    )


def _value(expr: Expr, point: _Point) -> Any:
    value = None
    for precision in _PRECISIONS:
        value = enclose(expr, point, precision)
        if defined(value):
            return value
    return value


def _is_finite(point: _Point) -> bool:
    return not any(isinstance(value, float) for value in point.values())


# --- kinks -------------------------------------------------------------------------------


def _at_kink(rule: Rule, example: Example, worked: _Worked) -> Iterator[Diagnostic]:
    """The first derived gradient in an example at a nonsmooth point: its value is a
    choice, not a derivative."""
    inputs = {f"d{v.name}": v for v in rule.inputs}
    entries = dict(zip(inputs, rule.backward, strict=True))
    outputs = {output.name for output in rule.outputs}
    for name, _ in example.expected:
        if name in outputs or isinstance(entries[name], Declared):
            continue
        own = worked.own(inputs[name])
        elements = (element(inputs[name].name, index) for index in _places(own))
        if any(_is_kink(worked, one) for one in elements):
            yield _kink(rule, example, name)
            return


def _is_kink(worked: _Worked, name: str) -> bool:
    seen = worked.instance
    derived = seen.derived.get(name)
    if derived is None:
        return False
    for point in worked.points.values():
        if not _is_finite(point) or not on_border((*seen.forward.values(),), point):
            continue
        ends = limits(derived, point, name, seen.assumed)
        if len(ends) == 2 and abs(ends[0] - ends[1]) > 1e-9:
            return True
    return False


# --- what is said ------------------------------------------------------------------------


def _outside(rule: Rule, example: Example) -> Diagnostic:
    return warning(
        "GS412",
        f"an example of {rule.name} is outside its assumptions",
        rule.source,
        example.span,
        label="the values given do not satisfy the assumptions",
        help="choose values inside, or widen the assumption",
    )


def _contradicts(rule: Rule, example: Example, name: str, told: str) -> Diagnostic:
    return error(
        "GS409",
        f"an example contradicts {rule.name}: {told}",
        rule.source,
        example.span,
        label=told,
        help=f"correct the example, or the rule's {name}",
    )


def _single(rule: Rule, example: Example, told: str, text: str) -> Diagnostic:
    return warning(
        "GS413",
        f"an example of {rule.name} is right to the precision of float32 only",
        rule.source,
        example.span,
        label=f"{told}, not {text}",
        help="write the digits of the exact value, or fewer",
    )


def _kink(rule: Rule, example: Example, name: str) -> Diagnostic:
    return warning(
        "GS447",
        f"an example of {rule.name} gives {name} at a kink",
        rule.source,
        example.span,
        label=f"{name} has another value on either side, and none here",
        help="choose a point beside it; if the value at the kink matters, say it in"
        f" `{name} = …`",
    )


def _shape_text(shape: Shape) -> str:
    return f"shape {list(shape)}" if shape else "no axes"


# --- numbers -----------------------------------------------------------------------------


def _array(value: Value) -> _Array:
    """A nested value with its shape (lowering has refused ragged ones)."""
    if isinstance(value, str):
        return _Array((), (value,))
    parts = [_array(item) for item in value]
    inner = parts[0].shape if parts else ()
    return _Array((len(parts), *inner), tuple(i for part in parts for i in part.items))


def _broadcast(shapes: Iterable[Shape]) -> Shape:
    """The common shape, as in NumPy (lowering has refused those without)."""
    common: Shape = ()
    for shape in shapes:
        pairs = zip_longest(reversed(common), reversed(shape), fillvalue=1)
        sizes = [right if left == 1 else left for left, right in pairs]
        common = tuple(reversed(sizes))
    return common


def _places(shape: Shape) -> Iterator[Index]:
    return product(*(range(size) for size in shape))


def _number(text: str) -> Fraction | float | bool:
    """A given number: exact, unless it is infinite or not a number."""
    known = {"true": True, "false": False}.get(text)
    if known is not None:
        return known
    try:
        return Fraction(text)
    except ValueError:
        return float(text)


def _unit(text: str) -> Fraction:
    """One in the last digit written: ``6.90`` gives 1/100."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return Fraction(0)
    exponent = int(match[3] or 0) - len(match[2])
    return Fraction(10) ** exponent
