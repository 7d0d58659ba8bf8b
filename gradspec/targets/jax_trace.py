"""What the passes of a traced module print, under `jax.jit` too."""

from __future__ import annotations

from gradspec.plan.program import tensor_gradients
from gradspec.targets.jax_parts import Core
from gradspec.targets.lines import Lines
from gradspec.targets.python import render


def traced_forward(core: Core) -> Lines:
    """Inputs and outputs of a call."""
    if not core.is_traced:
        return []
    ends = [*(i.name for i in core.plan.inputs), *(o.name for o in core.outputs)]
    return [_print(core, [(name, name) for name in ends])]


def traced_gradient(core: Core, name: str) -> Lines:
    """Upstream, local and downstream gradients of an input, and its value."""
    if not core.is_traced:
        return []
    gradients = zip(core.tensors, tensor_gradients(core.plan), strict=True)
    gradient = next(g for i, g in gradients if i == name)
    assert gradient is not None
    lines: Lines = []
    for term, local in zip(gradient.terms, gradient.locals, strict=True):
        values = [(name, name), *((f"upstream {d}", d) for d in term.upstream)]
        if local is not None:
            values.append(("current", render(local, core.scope)))
        lines.append(_print(core, [*values, (f"downstream d{name}", f"d{name}")]))
    return lines


def _print(core: Core, values: list[tuple[str, str]]) -> str:
    words = ", ".join(f"{label} = {{}}" for label, _ in values)
    shown = ", ".join(text for _, text in values)
    return f'jax.debug.print("{core.plan.name}: {words}", {shown})'
