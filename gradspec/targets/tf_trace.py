"""What the passes of a traced module print."""

from __future__ import annotations

from gradspec.plan.program import tensor_gradients
from gradspec.targets.lines import Lines
from gradspec.targets.python import is_scalar, render
from gradspec.targets.tf_parts import Core


def traced_forward(core: Core) -> Lines:
    """Inputs and outputs of a call."""
    if not core.is_traced:
        return []
    values = [(i.name, i.name) for i in core.plan.inputs]
    for output, value in zip(core.plan.outputs, core.forward.results, strict=True):
        number = is_scalar(value, core.scope)
        values.append(
            (output.name, output.name if number else render(value, core.scope))
        )
    return [_print(core, values)]


def traced_gradient(core: Core, name: str) -> Lines:
    """Upstream, local and downstream gradients of an input, and its value."""
    if not core.is_traced:
        return []
    gradients = zip(core.plan.tensors, tensor_gradients(core.plan), strict=True)
    gradient = next(g for i, g in gradients if i.name == name)
    assert gradient is not None
    lines: Lines = []
    for term, local in zip(gradient.terms, gradient.locals, strict=True):
        values = [(name, name), *((f"upstream {d}", d) for d in term.upstream)]
        if local is not None:
            values.append(("current", render(local, core.scope)))
        lines.append(_print(core, [*values, (f"downstream d{name}", f"d{name}")]))
    return lines


def _print(core: Core, values: list[tuple[str, str]]) -> str:
    parts, before = [], f"{core.plan.name}: "
    for label, text in values:
        parts += [f'"{before}{label} = "', text]
        before = ", "
    return f'tf.print({", ".join(parts)}, output_stream=sys.stdout, sep="")'
