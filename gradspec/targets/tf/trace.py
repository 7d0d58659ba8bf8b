"""What the passes of a traced TensorFlow module print."""

from __future__ import annotations

from gradspec.ir.rule import Input
from gradspec.plan.program import Program
from gradspec.targets.expressions import Scope, render
from gradspec.targets.lines import Lines
from gradspec.targets.page import Page


def traced_forward(program: Program, scope: Scope) -> Lines:
    """Inputs and outputs of a call."""
    shown = [i.name for i in program.inputs] + [o.name for o in program.outputs]
    return [_shown(program, [(name, name) for name in shown], scope.page)]


def traced_gradient(program: Program, i: Input, scope: Scope) -> Lines:
    """Upstream, local and downstream gradients of an input, and its value."""
    lines: Lines = []
    for upstream, slope in program.slopes[i.name]:
        values = [(i.name, i.name), *((f"upstream {d}", d) for d in upstream)]
        if slope is not None:
            values.append(("current", render(slope, scope)))
        values.append((f"downstream d{i.name}", f"d{i.name}"))
        lines.append(_shown(program, values, scope.page))
    return lines


def _shown(program: Program, values: list[tuple[str, str]], page: Page) -> str:
    template = ", ".join(f"{label} = {{}}" for label, _ in values)
    texts = ", ".join(text for _, text in values)
    return f'{page.core("show")}("{program.name}: {template}", {texts})'
