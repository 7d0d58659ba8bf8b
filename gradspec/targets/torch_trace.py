"""What the methods of a traced module print."""

from __future__ import annotations

from gradspec.plan.program import tensor_gradients
from gradspec.targets.lines import Lines
from gradspec.targets.python import Scope, render
from gradspec.targets.torch_parts import Function


def traced_forward(function: Function, scope: Scope) -> Lines:
    """Inputs and outputs of a call."""
    if not function.is_traced:
        return []
    values = [(i.name, i.name) for i in function.inputs]
    pairs = zip(function.outputs, function.forward.results, strict=True)
    values += [(o.name, render(result, scope)) for o, result in pairs]
    return [_print(function, values)]


def traced_gradient(
    function: Function, name: str, position: int, scope: Scope
) -> Lines:
    """Upstream, local and downstream gradient of one term, and the input's value."""
    if not function.is_traced:
        return []
    gradients = zip(function.plan.tensors, tensor_gradients(function.plan), strict=True)
    gradient = next(g for i, g in gradients if i.name == name)
    assert gradient is not None
    upstream = gradient.terms[position].upstream
    local = gradient.locals[position]
    values = [(name, name), *((f"upstream {d}", d) for d in upstream)]
    if local is not None:
        values.append(("current", render(local, scope)))
    return [_print(function, [*values, (f"downstream d{name}", f"d{name}")])]


def _print(function: Function, values: list[tuple[str, str]]) -> str:
    parts, before = [], f"{function.plan.name}: "
    for label, text in values:
        parts += [f'"{before}{label} ="', text]
        before = ", "
    return f"print({', '.join(parts)})"
