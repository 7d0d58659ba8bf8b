"""`tf.custom_gradient` (and `jax.custom_gradient`): a function that returns its value and a
function of the upstream gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradspec.lift.machine import Machine
from gradspec.lift.project import Module, Project
from gradspec.lift.reading import Reading, Site, decorations, keyword_only
from gradspec.lift.values import Array, CannotLift, Function, Library, Opaque, Owner


def sites(
    module: Module, project: Project, machine: Machine, nodes: Iterator[Any]
) -> Iterator[Site]:
    for maker, function, made, around in decorations(nodes, module.tree):
        decorator = maker.func if made and isinstance(maker, ast.Call) else maker
        found = project.resolve(decorator, module.scope, machine)
        if isinstance(found, Library) and found.name.endswith(".custom_gradient"):
            kind = "jax" if found.name.startswith("jax") else "tf"
            if found.name.split(".")[0] in ("jax", "tensorflow"):
                arity = len(function.args.args)
                yield Site(module, function, kind, around, read, arity, assigned=made)


def read(r: Reading) -> None:
    """Both passes of a function."""
    node = r.site.node
    assert isinstance(node, ast.FunctionDef)
    skipped = int(bool(node.args.args and node.args.args[0].arg in ("self", "cls")))
    parameters, values, defaults = r.arguments(node, skipped)
    r.remember(values)
    first = [Owner()] if skipped else []
    extra = {p.arg: r.argument(p, default) for p, default in keyword_only(node)}
    m = r.machine
    whole = m.call_function(Function(node, r.scope), [*first, *values], extra, node)
    match whole:
        case (returned, Function() as back):
            pass
        case _:
            told = "the function does not return a value and a local gradient function"
            raise CannotLift("python", told, node)
    upstream = r.outputs_of(returned, node)
    made = back.node.args
    named = {"variables": None} if any(p.arg == "variables" for p in made.args) else {}
    found = m.call_function(back, upstream, named, back.node)
    gradients = list(found) if isinstance(found, tuple | list) else [found]
    if len(gradients) == 2 and isinstance(gradients[1], list) and not gradients[1]:
        first_part = gradients[0]
        several = isinstance(first_part, tuple | list)
        gradients = list(first_part) if several else [first_part]
    if len(gradients) == 1 and isinstance(gradients[0], tuple | list):
        gradients = list(gradients[0])
    pairs = list(zip(parameters, values, strict=True))
    while len(gradients) < len(pairs) and _is_no_tensor(pairs[-1], defaults):
        pairs.pop()
    if len(gradients) != len(pairs):
        told = f"{len(gradients)} gradients for {len(pairs)} inputs"
        raise CannotLift("structure", told, back.node)
    place = _last_return(back.node)
    r.take_gradients([p for p, _ in pairs], [v for _, v in pairs], gradients, place)


def _is_no_tensor(pair: tuple[ast.arg, Any], defaults: dict[str, ast.expr]) -> bool:
    parameter, value = pair
    if isinstance(value, Opaque) or parameter.arg in defaults:
        return True
    return (
        isinstance(value, Array)
        and parameter.annotation is not None
        and (ast.unparse(parameter.annotation) in ("float", "int"))
    )


def _last_return(function: ast.FunctionDef | ast.Lambda) -> ast.AST:
    if isinstance(function, ast.Lambda):
        return function.body
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    return returns[-1] if returns else function
