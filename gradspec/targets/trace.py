"""The values that a traced module prints, with their names."""

from __future__ import annotations

from gradspec.plan.program import Program
from gradspec.targets.expressions import Scope, render

Shown = list[tuple[str, str]]
"""Labels, each with the text of its value."""


def ends(program: Program) -> Shown:
    """Inputs and outputs of a call."""
    names = [i.name for i in program.inputs] + [o.name for o in program.outputs]
    return [(name, name) for name in names]


def terms(program: Program, name: str, gradient: str, scope: Scope) -> list[Shown]:
    """For each term of an input's gradient: the input's value, cotangents, slope and
    gradient.
    """
    found = []
    for upstream, slope in program.slopes.get(name, ()):
        values = [(name, name), *((f"upstream {d}", d) for d in upstream)]
        if slope is not None:
            values.append(("current", render(slope, scope)))
        found.append([*values, (f"downstream d{name}", gradient)])
    return found


def template(program: Program, values: Shown) -> str:
    """The arguments of a function that fills in a template."""
    words = ", ".join(f"{label} = {{}}" for label, _ in values)
    return f'"{program.name}: {words}", {", ".join(text for _, text in values)}'


def pieces(program: Program, values: Shown, equals: str) -> str:
    """The arguments of `print`, labels and values in turn."""
    parts, before = [], f"{program.name}: "
    for label, text in values:
        parts += [f'"{before}{label}{equals}"', text]
        before = ", "
    return ", ".join(parts)
