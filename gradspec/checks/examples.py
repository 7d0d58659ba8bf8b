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
from itertools import product, zip_longest
from typing import Any, TypeAlias

from gradspec.checks.instances import Instance
from gradspec.diagnostics import Diagnostic, error, warning
from gradspec.ir.elements import OutOfRange, element, extent
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Example, Input, Kind, Output, Rule, Value
from gradspec.ir.unroll import axis_names, unroll
from gradspec.primitives.foreign import is_plain
from gradspec.symbolic.borders.limits import limits, on_border
from gradspec.symbolic.compare import decimal
from gradspec.symbolic.enclose import enclose, is_defined, program, total
from gradspec.symbolic.truth import Agreement, agreement

Shape: TypeAlias = tuple[int, ...]
Index: TypeAlias = tuple[int, ...]
_Point: TypeAlias = Mapping[str, Any]

_NUMBER = re.compile(r"[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")
_PRECISIONS = (128, 1024)


def check(rule: Rule) -> Iterator[Diagnostic]:
    for example in rule.examples if is_plain(rule) else ():  # others are for `test`
        try:
            worked = _Worked(rule, example)
        except OutOfRange as fault:
            told = f"`{fault.name}` does not exist"
            yield _contradicts(rule, example, "indices", told)
            continue
        if not all(worked.points.values()):
            yield _contradicts(rule, example, "equation", "no solution is found there")
            continue
        if worked.is_outside:
            yield warning(
                "GS412",
                f"an example of {rule.name} is outside its assumptions",
                rule.source,
                example.span,
                label="the values given do not satisfy the assumptions",
                help="choose values inside, or widen the assumption",
            )
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


class _Worked:
    """An example with everything bound: upstream gradients are 1 and statics have their
    default unless they are given. ``instance`` has its sizes, ``points`` has a point for
    each place of the batch, ``values`` are outputs and gradients of the elements.
    """

    def __init__(self, rule: Rule, example: Example) -> None:
        upstream = [o for o in rule.outputs if o.takes_gradient]
        variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
        self.axes = {v.name: v.shape.axes for v in variables}
        self.axes |= {v.cotangent: v.shape.axes for v in variables if v.takes_gradient}
        self.arrays = {o.cotangent: _Array((), ("1",)) for o in upstream}
        for variable in rule.static_inputs:
            if variable.default is not None:
                self.arrays[variable.name] = _Array((), (str(variable.default),))
        self.arrays |= {name: _array(value) for name, value in example.given}
        self.sizes = self._named_sizes(rule)
        # Integer statics are the same everywhere, as an index may use them.
        shifts = {
            v.name: self._integer(v.name)
            for v in rule.static_inputs
            if v.kind is Kind.STATIC_INT
        }
        made = unroll(rule, self.sizes, shifts)
        self.instance = Instance(
            rule, made.rule, made.sizes, made.integers, made.equations
        )
        # The 1 that stands for a whole gradient has no batch axes.
        self.batch = _broadcast(
            a.shape[: max(len(a.shape) - len(self.axes[name]), 0)]
            for name, a in self.arrays.items()
        )
        once = {o.cotangent for o in rule.outputs if not o.shape.batch}
        self.points = {p: self._point(p, once) for p in _places(self.batch)}
        stated = {f"d{name}": value for name, value in self.instance.stated.items()}
        self.values: Mapping[str, Expr] = {**self.instance.forward, **stated}

    def _named_sizes(self, rule: Rule) -> dict[str, int]:
        """Named axes as large as the values given."""
        sizes: dict[str, int] = {}
        for variable in rule.inputs:
            axes, shape = variable.shape.axes, self.arrays[variable.name].shape
            own = zip(axes, shape[len(shape) - len(axes) :], strict=True)
            sizes |= {axis: size for axis, size in own if isinstance(axis, str)}
        for name in axis_names(rule):
            if name not in sizes:
                sizes[name] = self._integer(name)
        return sizes

    def _integer(self, name: str) -> int:
        return int(Fraction(self.arrays[name].items[0]))

    def _point(self, place: Index, once: set[str]) -> _Point:
        """The elements at one place of the batch."""
        point: dict[str, Any] = {}
        for name, values in self.arrays.items():
            for index in _places(self.own(name)):
                value = _number(values.at((*place, *index)))
                if name in once and any(place):
                    value = Fraction(0)
                point[element(name, index)] = value
        known = self.instance.solutions
        return point if known is None else known.solution_near(point) or {}

    def own(self, name: str) -> Shape:
        """The sizes of a variable's axes."""
        return tuple(extent(axis, self.sizes) for axis in self.axes[name])

    @property
    def is_outside(self) -> bool:
        return any(
            enclose(condition, point) is False
            for condition in self.instance.assumed
            for point in self.points.values()
        )


# --- comparing ---------------------------------------------------------------------------


def _compare(
    example: Example, worked: _Worked, name: str, expected: _Array
) -> Iterator[Diagnostic]:
    rule = worked.instance.written
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
            yield warning(
                "GS413",
                f"an example of {rule.name} is right to the precision of float32 only",
                rule.source,
                example.span,
                label=f"{told}, not {text}",
                help="write the digits of the exact value, or fewer",
            )
            return


def _contradicts(rule: Rule, example: Example, name: str, told: str) -> Diagnostic:
    return error(
        "GS409",
        f"an example contradicts {rule.name}: {told}",
        rule.source,
        example.span,
        label=told,
        help=f"correct the example, or the rule's {name}",
    )


def _shape_text(shape: Shape) -> str:
    return f"shape {list(shape)}" if shape else "no axes"


def _output(worked: _Worked, output: Output) -> tuple[Shape, dict[Index, Any]]:
    own = worked.own(output.name)
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
    values = worked.arrays[name.removeprefix("d")]
    parts: dict[Index, list[Any]] = {}
    for place, point in worked.points.items():
        for index in _places(worked.own(name)):
            expr = worked.values.get(element(name, index))
            if expr is None:
                return (), {}
            home = values.home((*place, *index))
            parts.setdefault(home, []).append(_value(expr, point))
    return values.shape, {index: total(terms) for index, terms in parts.items()}


def _is_undefined(worked: _Worked, name: str, index: Index) -> bool:
    """True if certainly undefined; at infinite inputs there may be a limit instead."""
    own = len(worked.axes[name])
    compiled = program(worked.values[element(name, index[len(index) - own :])])
    return any(
        _is_finite(point) and compiled.is_singular(point)
        for point in worked.points.values()
    )


def _value(expr: Expr, point: _Point) -> Any:
    value = None
    for precision in _PRECISIONS:
        value = enclose(expr, point, precision)
        if is_defined(value):
            return value
    return value


def _is_finite(point: _Point) -> bool:
    return not any(isinstance(value, float) for value in point.values())


# --- kinks -------------------------------------------------------------------------------


def _at_kink(rule: Rule, example: Example, worked: _Worked) -> Iterator[Diagnostic]:
    """The first derived gradient in an example at a nonsmooth point: its value is a
    choice, not a derivative."""
    chosen = {v.cotangent: v for v in rule.inputs if v.name not in rule.declared}
    for name in (name for name, _ in example.expected if name in chosen):
        own = _places(worked.own(name))
        if any(_is_kink(worked, element(chosen[name].name, i)) for i in own):
            yield warning(
                "GS447",
                f"an example of {rule.name} gives {name} at a kink",
                rule.source,
                example.span,
                label=f"{name} has another value on either side, and none here",
                help="choose a point beside it; if the value at the kink matters, say it"
                f" in `{name} = …`",
            )
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
