"""What the passes of a traced module print, under `jax.jit` too."""

from __future__ import annotations

from gradspec.plan.program import Program
from gradspec.targets.expressions import Scope, render
from gradspec.targets.lines import Lines


def traced_forward(program: Program) -> Lines:
    """Inputs and outputs of a call."""
    ends = [*(i.name for i in program.inputs), *(o.name for o in program.outputs)]
    return [_print(program, [(name, name) for name in ends])]


def traced_backward(program: Program, name: str, gradient: str, scope: Scope) -> Lines:
    """Cotangents, slopes and gradient of an input, and its value."""
    lines: Lines = []
    for upstream, slope in program.slopes.get(name, ()):
        values = [(name, name), *((f"upstream {d}", d) for d in upstream)]
        if slope is not None:
            values.append(("current", render(slope, scope)))
        lines.append(_print(program, [*values, (f"downstream d{name}", gradient)]))
    return lines


def _print(program: Program, values: list[tuple[str, str]]) -> str:
    words = ", ".join(f"{label} = {{}}" for label, _ in values)
    shown = ", ".join(text for _, text in values)
    return f'jax.debug.print("{program.name}: {words}", {shown})'
