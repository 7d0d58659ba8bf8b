"""The axes of a rule's header: names of sizes, or sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradspec.ir.rule import Input, Kind, Output
from gradspec.lower.findings import Findings
from gradspec.source import Span
from gradspec.syntax import nodes

Parameters = Iterable[nodes.Parameter]


def placed_axes(
    parameter: nodes.Parameter, findings: Findings
) -> tuple[tuple[str | int, Span], ...]:
    """The axes of a parameter, each with its own place between the brackets."""
    if parameter.axes is None:
        return ()
    whole = parameter.axes.span
    words = re.finditer(r"\w+", findings.text(whole))
    places = (Span(whole.start + w.start(), whole.start + w.end()) for w in words)
    return tuple(zip(parameter.axes.axes, places, strict=False))


def sizes(parameters: Parameters, findings: Findings) -> dict[str, Span]:
    """The named axes and their first places."""
    found: dict[str, Span] = {}
    for parameter in parameters:
        for axis, place in placed_axes(parameter, findings):
            if isinstance(axis, str):
                found.setdefault(axis, place)
    return found


def check_axes(
    parameters: Parameters,
    variables: tuple[Input | Output, ...],
    named: dict[str, Span],
    findings: Findings,
) -> None:
    """An axis has a name of its own, or a size of at least 1."""
    for variable in variables:
        if variable.name in named and variable.kind is not Kind.STATIC_INT:
            what = f"an axis has the name of the variable `{variable.name}`"
            _bad_axis(what, named[variable.name], findings)
    for parameter in parameters:
        for axis, place in placed_axes(parameter, findings):
            if isinstance(axis, int) and axis < 1:
                _bad_axis(f"an axis of size {axis} has no elements", place, findings)


def _bad_axis(headline: str, place: Span, findings: Findings) -> None:
    findings.error(
        "GS242",
        headline,
        place,
        help="an axis is a name of its own, such as `n`, or a fixed size, such as `3`",
    )


def check_output_axes(
    inputs: Parameters,
    outputs: Parameters,
    made: tuple[Input, ...],
    findings: Findings,
) -> None:
    """The size of every axis of an output is known from an input, or is a static."""
    known = [axis for p in inputs for axis, _ in placed_axes(p, findings)]
    known += [i.name for i in made if i.kind is Kind.STATIC_INT]
    for parameter in outputs:
        for axis, place in placed_axes(parameter, findings):
            if isinstance(axis, str) and axis not in known:
                findings.error(
                    "GS243",
                    f"the size of axis `{axis}` of output `{parameter.name}` is unknown:"
                    " no input has it",
                    place,
                    help=f"use an axis of an input, or add `{axis}: static int` to them",
                )
