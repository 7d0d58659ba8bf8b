"""What the methods of a traced module print."""

from __future__ import annotations

from gradspec.plan.program import tensor_gradients
from gradspec.targets.lines import Lines
from gradspec.targets.python import Scope, is_scalar, render, render_atom
from gradspec.targets.torch_parts import Function


def traced_forward(function: Function, scope: Scope) -> Lines:
    """Inputs and outputs of a call."""
    if not function.is_traced:
        return []
    values = [
        (i.name, i.name if i.kind.is_static else _plain(i.name))
        for i in function.inputs
    ]
    for output, result in zip(function.results, function.forward.results, strict=False):
        number = is_scalar(result, scope)
        text = output.name if number else render_atom(result, scope)
        values.append((output.name, _plain(text)))
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
    values = [(name, _plain(name)), *((f"upstream {d}", _plain(d)) for d in upstream)]
    lines: Lines = []
    if local is not None:
        current = function.local("current")
        lines.append(f"{current} = {render(local, scope)}")
        values.append(
            ("current", current if is_scalar(local, scope) else _plain(current))
        )
    values.append((f"downstream d{name}", _plain(f"d{name}")))
    return [*lines, _print(function, values)]


def _plain(tensor: str) -> str:
    """The numbers without the graph behind them."""
    return f"{tensor}.detach()"


def _print(function: Function, values: list[tuple[str, str]]) -> str:
    parts, before = [], f"{function.plan.name}: "
    for label, text in values:
        parts += [f'"{before}{label} = "', text]
        before = ", "
    return f'print({", ".join(parts)}, sep="")'
