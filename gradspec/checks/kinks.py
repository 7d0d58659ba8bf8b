"""Examples of a gradient at a kink: what they show is a choice, not a derivative."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradspec.checks.examples import worked_points
from gradspec.checks.subject import Subject
from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.rule import Declared, Example, Input
from gradspec.symbolic.neighbours import limits, on_border


def check(subject: Subject) -> Iterator[Diagnostic]:
    """One finding for each example with a derived gradient where there is none."""
    rule = subject.rule
    inputs = {v.name: v for v in rule.inputs}
    entries = dict(zip(inputs, rule.backward, strict=True))
    for example in rule.examples:
        for name, _ in example.expected:
            variable = inputs.get(name.removeprefix("d")) if name[0] == "d" else None
            if variable is None or isinstance(entries[variable.name], Declared):
                continue
            if name not in subject.forward and _is_kink(subject, example, variable):
                yield _finding(subject, example, variable)
                break


def _is_kink(subject: Subject, example: Example, variable: Input) -> bool:
    derived = subject.derived.get(variable.name)
    if derived is None:
        return False
    for point in worked_points(subject, example):
        if not _is_plain(point) or not on_border((*subject.forward.values(),), point):
            continue
        ends = limits(derived, point, variable.name, subject.assumed)
        if len(ends) == 2 and abs(ends[0] - ends[1]) > 1e-9:
            return True
    return False


def _is_plain(point: Mapping[str, Any]) -> bool:
    return not any(isinstance(value, float) for value in point.values())


def _finding(subject: Subject, example: Example, variable: Input) -> Diagnostic:
    name = f"d{variable.name}"
    return warning(
        "GS447",
        f"an example of {subject.rule.name} gives {name} at a kink",
        subject.rule.source,
        example.span,
        label=f"{name} has another value on either side, and none here",
        help=f"choose a point beside it; if the value at the kink matters, say it in"
        f" `{name} = …`",
    )
