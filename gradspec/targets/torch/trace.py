"""What the methods of a traced module print."""

from __future__ import annotations

from gradspec.plan.program import Program
from gradspec.targets.expressions import Scope, is_scalar, render
from gradspec.targets.lines import Lines


def traced_forward(program: Program) -> Lines:
    """Inputs and outputs of a call."""
    values = [
        (i.name, i.name if i.kind.is_static else f"{i.name}.detach()")
        for i in program.inputs
    ]
    values += [(o.name, f"{o.name}.detach()") for o in program.outputs]
    return [_print(program, values)]


def traced_gradient(program: Program, name: str, place: int, scope: Scope) -> Lines:
    """Cotangent, slope and gradient of one term, and the input's value."""
    upstream, slope = program.slopes[name][place]
    values = [(name, f"{name}.detach()")]
    values += [(f"upstream {d}", f"{d}.detach()") for d in upstream]
    lines: Lines = []
    if slope is not None:
        current = program.local("current")
        lines.append(f"{current} = {render(slope, scope)}")
        plain = is_scalar(slope, scope)
        values.append(("current", current if plain else f"{current}.detach()"))
    values.append((f"downstream d{name}", f"d{name}.detach()"))
    return [*lines, _print(program, values)]


def _print(program: Program, values: list[tuple[str, str]]) -> str:
    parts, before = [], f"{program.name}: "
    for label, text in values:
        parts += [f'"{before}{label} = "', text]
        before = ", "
    return f'print({", ".join(parts)}, sep="")'
