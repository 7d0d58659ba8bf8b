"""Worked examples: every binding names a value of the rule and has its shape and
kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from gradspec.ir.rule import Example, Input, Kind, Output, Shape, Value
from gradspec.lower.context import Findings, near
from gradspec.lower.header import Declaration
from gradspec.source import Span
from gradspec.syntax import nodes

_NOT_FINITE = ("inf", "nan")
_TRUTHS = ("true", "false")


@dataclass(slots=True)
class _Reading:
    """One example as it is read: the sizes that its values give the axes, the batch
    shapes so far, and the shape that each gradient will have.
    """

    findings: Findings
    sizes: dict[str, int]
    batches: list[tuple[int, ...]]
    shapes: dict[str, tuple[int, ...]]


def read_example(
    node: nodes.Example, made: Declaration, findings: Findings
) -> Example | None:
    """The example with its values as written; None if it has a fault."""
    before = len(findings.diagnostics)
    reading = _Reading(findings, {}, [], {})
    given = {i.name: (i.kind, i.shape) for i in made.inputs}
    given |= {f"d{o.name}": _like(o) for o in made.outputs if o.takes_gradient}
    expected = {o.name: (o.kind, o.shape) for o in made.outputs}
    expected |= {f"d{i.name}": _like(i) for i in made.inputs if i.takes_gradient}
    first = _bindings(node.given, given, "given", reading)
    _check_missing(node, made, findings)
    second = _bindings(node.expected, expected, "expected", reading)
    if len(findings.diagnostics) > before:
        return None
    return Example(first, second, node.span)


def _like(variable: Input | Output) -> tuple[Kind, Shape]:
    return Kind.FLOAT, variable.shape


def _bindings(
    bindings: tuple[nodes.Binding, ...],
    allowed: Mapping[str, tuple[Kind, Shape]],
    word: str,
    reading: _Reading,
) -> tuple[tuple[str, Value], ...]:
    seen: dict[str, Value] = {}
    for binding in bindings:
        if binding.name not in allowed:
            _unknown(binding, tuple(allowed), word, reading.findings)
        elif binding.name in seen:
            _fault(reading, binding.span, f"`{binding.name}` stands twice")
        else:
            kind, shape = allowed[binding.name]
            seen[binding.name] = _value(binding.value, kind, reading)
            _check_shape(binding, kind, shape, word, reading)
    return tuple(seen.items())


def _unknown(
    binding: nodes.Binding, allowed: tuple[str, ...], word: str, findings: Findings
) -> None:
    listed = ", ".join(f"`{name}`" for name in allowed)
    side = {
        "given": "before the colon stand inputs and upstream gradients",
        "expected": "after the colon stand outputs and gradients of inputs",
    }[word]
    span = Span(binding.span.start, binding.span.start + len(binding.name))
    findings.error(
        "GS217",
        f"`{binding.name}` cannot be {word} in this example",
        span,
        help=near(binding.name, allowed) or f"{side}: {listed}",
    )


def _fault(reading: _Reading, span: Span, headline: str, help: str = "") -> None:
    reading.findings.error("GS217", f"in this example {headline}", span, help=help)


def _check_missing(node: nodes.Example, made: Declaration, findings: Findings) -> None:
    given = {b.name for b in node.given}
    needed = (i for i in made.inputs if i.default is None)
    missing = [f"`{i.name}`" for i in needed if i.name not in given]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        findings.error(
            "GS217",
            f"in this example {', '.join(missing)} {are} missing",
            node.span,
            help="give every input a value (statics with a default may be left out)",
        )


# --- values --------------------------------------------------------------------------


def _value(node: nodes.Literal, kind: Kind, reading: _Reading) -> Value:
    match node:
        case nodes.Scalar(text=text, span=span):
            _check_kind(text, kind, span, reading)
            return text
        case nodes.Vector(items=items):
            return tuple(_value(item, kind, reading) for item in items)
        case _:
            assert_never(node)


def _check_kind(text: str, kind: Kind, span: Span, reading: _Reading) -> None:
    digits = text.lstrip("+-")
    if (digits in _TRUTHS) != (kind is Kind.BOOL):
        wanted = "true or false" if kind is Kind.BOOL else "a number"
        _fault(reading, span, f"`{text}` should be {wanted}")
    elif kind in (Kind.INT, Kind.STATIC_INT) and not _is_whole(digits):
        _fault(reading, span, f"`{text}` should be an integer")
    elif kind.is_static and digits in _NOT_FINITE:
        _fault(reading, span, f"`{text}` should be finite: it is for a static input")


def _is_whole(digits: str) -> bool:
    return digits not in _NOT_FINITE and Fraction(digits).denominator == 1


# --- shapes --------------------------------------------------------------------------


def _dimensions(node: nodes.Literal) -> tuple[int, ...] | None:
    """The shape of nested brackets; None if they are ragged."""
    if isinstance(node, nodes.Scalar):
        return ()
    below = [_dimensions(item) for item in node.items]
    if not below or any(part is None or part != below[0] for part in below):
        return None if below else (0,)
    return (len(below), *(below[0] or ()))


def _check_shape(
    binding: nodes.Binding, kind: Kind, shape: Shape, word: str, reading: _Reading
) -> None:
    span, name = binding.value.span, binding.name
    found = _dimensions(binding.value)
    if found is None:
        _fault(reading, span, f"the rows of `{name}` differ in length")
        return
    if kind.is_static and found:
        _fault(reading, span, f"`{name}` should be one number: it is static")
        return
    rank, own = len(found), len(shape.axes)
    if rank < own or (rank > own and not shape.batch):
        _fault(reading, span, f"`{name}` should have {_rank(shape)}, and has {rank}")
        return
    _check_sizes(binding, found[rank - own :], shape, reading)
    if word == "given" and not kind.is_static:
        reading.shapes[f"d{name}"] = found
        _check_batch(binding, found[: rank - own], reading)
    elif reading.shapes.get(name, found) != found:
        what = f"`{name}` has the shape {found}, and its input {reading.shapes[name]}"
        _fault(reading, span, what)


def _rank(shape: Shape) -> str:
    least = "at least " if shape.batch else ""
    return f"{least}{len(shape.axes)} dimension{'' if len(shape.axes) == 1 else 's'}"


def _check_sizes(
    binding: nodes.Binding, found: tuple[int, ...], shape: Shape, reading: _Reading
) -> None:
    for size, axis in zip(found, shape.axes, strict=True):
        known = axis if isinstance(axis, int) else reading.sizes.setdefault(axis, size)
        if size != known:
            what = f"axis `{axis}` of `{binding.name}` has size {size} and not {known}"
            _fault(reading, binding.value.span, what)


def _check_batch(
    binding: nodes.Binding, found: tuple[int, ...], reading: _Reading
) -> None:
    for other in reading.batches:
        pairs = zip(reversed(found), reversed(other), strict=False)
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            what = f"the shape {found} of `{binding.name}` does not broadcast with"
            _fault(reading, binding.value.span, f"{what} {other} of a value before it")
            return
    reading.batches.append(found)
