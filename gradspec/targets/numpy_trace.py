"""What the functions of a traced module print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec.plan.program import tensor_gradients
from gradspec.targets.lines import Lines
from gradspec.targets.python import render

if TYPE_CHECKING:
    from gradspec.targets.numpy_parts import Functions


def traced_forward(functions: Functions) -> Lines:
    """Inputs and outputs of a call."""
    if not functions.is_traced:
        return []
    plan = functions.plan
    values = [*(i.name for i in plan.inputs), *(o.name for o in plan.outputs)]
    return [_print(functions, [(name, name) for name in values])]


def traced_gradients(functions: Functions) -> Lines:
    """Each input's value, and upstream, local and downstream gradients."""
    plan = functions.plan
    lines: Lines = []
    for gradient in tensor_gradients(plan):
        if gradient is None:
            continue
        name = gradient.input
        for term, local in zip(gradient.terms, gradient.locals, strict=True):
            values = [(name, name), *((f"upstream {d}", d) for d in term.upstream)]
            if local is not None:
                values.append(("current", render(local, functions.scope)))
            lines.append(
                _print(functions, [*values, (f"downstream d{name}", f"d{name}")])
            )
    return lines


def _print(functions: Functions, values: list[tuple[str, str]]) -> str:
    parts, before = [], f"{functions.plan.name}: "
    for label, text in values:
        parts += [f'"{before}{label} ="', text]
        before = ", "
    return f"print({', '.join(parts)})"
