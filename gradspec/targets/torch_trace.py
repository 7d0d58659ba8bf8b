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
    values = [f"{i.name} = {{{i.name}}}" for i in function.inputs]
    pairs = zip(function.outputs, function.forward.results, strict=True)
    values += [f"{o.name} = {{{render(result, scope)}}}" for o, result in pairs]
    return [f'print(f"{function.plan.name}: {", ".join(values)}")']


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
    values = [f"{name} = {{{name}}}"]
    values += [f"upstream {d} = {{{d}}}" for d in upstream]
    lines = []
    if local is not None:
        lines.append(f"current = {render(local, scope)}")
        values.append("current = {current}")
    values.append(f"downstream d{name} = {{d{name}}}")
    return [*lines, f'print(f"{function.plan.name}: {", ".join(values)}")']
