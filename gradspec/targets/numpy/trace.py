"""What the methods of a traced NumPy module print."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.plan.program import Program
from gradspec.targets.expressions import Scope, render
from gradspec.targets.lines import Lines


def traced(program: Program, values: Iterable[str]) -> Lines:
    """A line that prints the values with their names."""
    return [_print(program, [(name, name) for name in values])]


def traced_gradient(program: Program, name: str, scope: Scope) -> Lines:
    """Cotangents, slope and gradient of each term, and the input's value."""
    lines: Lines = []
    for upstream, slope in program.slopes[name]:
        values = [(name, name), *((f"upstream {d}", d) for d in upstream)]
        if slope is not None:
            values.append(("current", render(slope, scope)))
        lines.append(_print(program, [*values, (f"downstream d{name}", f"d{name}")]))
    return lines


def _print(program: Program, values: list[tuple[str, str]]) -> str:
    parts, before = [], f"{program.name}: "
    for label, text in values:
        parts += [f'"{before}{label} ="', text]
        before = ", "
    return f"print({', '.join(parts)})"
