"""`jax.custom_vjp` with `defvjp`, and `jax.custom_jvp` with `defjvp` and `defjvps`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from gradspec.ir.expr import Expr
from gradspec.ir.walk import substitute
from gradspec.lift.machine import Machine
from gradspec.lift.project import Module, Project
from gradspec.lift.reading import Reading, Site, decorations
from gradspec.lift.values import ZERO, Array, CannotLift, Function, Library, element

_KINDS = ("custom_vjp", "custom_jvp")
_DEFINITIONS = ("defvjp", "defjvp", "defjvps")


def sites(
    module: Module, project: Project, machine: Machine, nodes: Iterator[Any]
) -> Iterator[Site]:
    for decorator, function, made, around in decorations(nodes, module.tree):
        kind = _kind(decorator, module, project, machine)
        if kind:
            scope = around[-1] if around else module.tree
            name = made.name if made else function.name
            defined = _definition(made.node if made else function, name, scope)
            more = (kind, _skipped_places(decorator, function), defined)
            arity = len(function.args.args)
            yield Site(module, function, "jax", around, read, arity, more, made)


def _kind(
    decorator: ast.expr, module: Module, project: Project, machine: Machine
) -> str:
    """`custom_vjp` or `custom_jvp`, as it is or through `partial`."""
    named: ast.expr = decorator
    if isinstance(decorator, ast.Call):
        found = project.resolve(decorator.func, module.scope, machine)
        is_partial = isinstance(found, Library) and found.name.endswith("partial")
        named = decorator.args[0] if is_partial and decorator.args else decorator.func
    found = project.resolve(named, module.scope, machine)
    if not isinstance(found, Library) or not found.name.startswith("jax."):
        return ""
    last = found.name.rpartition(".")[2]
    return last if last in _KINDS else ""


def _skipped_places(decorator: ast.expr, node: ast.FunctionDef) -> frozenset[int]:
    """The places of arguments that are no arrays (`nondiff_argnums`)."""
    names = [p.arg for p in node.args.args]
    found: set[int] = set()
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
        for one in ast.walk(keyword.value):
            if isinstance(one, ast.Constant) and type(one.value) is int:
                found.add(one.value % max(len(names), 1))
            if isinstance(one, ast.Constant) and one.value in names:
                found.add(names.index(one.value))
    return frozenset(found)


def _definition(node: ast.AST, name: str, scope: ast.AST) -> tuple[str, ast.AST] | None:
    """The calls that define the derivative of a function, in the scope in which it stands."""
    found: tuple[str, ast.AST] | None = None
    todo: list[ast.AST] = list(getattr(scope, "body", ()))
    is_after = False
    while todo:
        one = todo.pop(0)
        is_after = is_after or one is node
        if isinstance(one, ast.FunctionDef) and one is not node:
            for decorator in one.decorator_list:
                called = (
                    decorator.func if isinstance(decorator, ast.Call) else decorator
                )
                if is_after and _defines(called, name) and found is None:
                    assert isinstance(called, ast.Attribute)
                    found = called.attr, one
            if is_after and one.name == name:
                return found  # another function of that name
            continue
        if isinstance(one, ast.If | ast.With | ast.Try):
            todo = [*ast.iter_child_nodes(one), *todo]
            continue
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            called = one.value.func
            if is_after and _defines(called, name) and found is None:
                assert isinstance(called, ast.Attribute)
                found = called.attr, one.value
    return found


def _defines(called: ast.expr, name: str) -> bool:
    match called:
        case ast.Attribute(value=ast.Name(id=other), attr=attr):
            return other == name and attr in _DEFINITIONS
        case _:
            return False


def read(r: Reading) -> None:
    """Both passes of a function, or its tangents with one tangent after the other."""
    node = r.site.node
    assert isinstance(node, ast.FunctionDef)
    kind, skipped, definition = r.site.more
    if definition is None:
        raise CannotLift(
            "python", f"`{r.site.name}` has no derivative in its scope", node
        )
    parameters, values, _ = r.arguments(node, 0, skipped)
    r.remember(values)
    returned = r.machine.call_function(Function(node, r.scope), values, {}, node)
    different = [k for k in range(len(parameters)) if k not in skipped]
    place = definition[1]
    if kind == "custom_vjp":
        found = _pulled_back(r, values, returned, skipped, place)
    else:
        upstream = r.outputs_of(returned, node)
        has_axes = any(v.axes for v in (*r.inputs, *r.outputs))
        if has_axes or len(upstream) != 1:
            told = "a tangent rule with axes or of several outputs"
            raise CannotLift("tangent", told, node)
        found = _transpose(r, values, upstream[0], different, definition)
    kept = [parameters[k] for k in different]
    if len(found) != len(kept):
        told = f"{len(found)} gradients for {len(kept)} inputs"
        raise CannotLift("structure", told, place)
    r.take_gradients(kept, [values[k] for k in different], found, place)


def _pulled_back(
    r: Reading,
    values: list[Any],
    returned: Any,
    skipped: frozenset[int],
    place: ast.AST,
) -> Sequence[Any]:
    node = r.site.node
    given = list(place.args) if isinstance(place, ast.Call) else []
    named = (
        {k.arg: k.value for k in place.keywords} if isinstance(place, ast.Call) else {}
    )
    given += [named[k] for k in ("fwd", "bwd") if k in named]
    if len(given) < 2:
        raise CannotLift("python", "`defvjp` without two functions", place)
    forward, back = (_function(r, one, place) for one in given[:2])
    bare = [v.copy() if isinstance(v, Array) else v for v in values]
    pair = r.machine.call_function(forward, bare, {}, place)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise CannotLift("python", "the forward rule does not return a pair", place)
    if not _is_equal(r, returned, pair[0]):
        r.notes.append("the forward rule of `defvjp` computes something else")
    upstream = r.outputs_of(returned, node)
    cotangent = tuple(upstream) if isinstance(returned, tuple | list) else upstream[0]
    first = [values[k] for k in sorted(skipped)]
    found = r.machine.call_function(back, [*first, pair[1], cotangent], {}, place)
    if not isinstance(found, tuple | list):
        raise CannotLift("python", "the backward rule does not return a tuple", place)
    return found


def _function(r: Reading, node: ast.expr, place: ast.AST) -> Function:
    found = r.machine.evaluate(node, r.scope)
    if not isinstance(found, Function):
        raise CannotLift(
            "import", f"`{ast.unparse(node)}` is not in these files", place
        )
    return found


def _is_equal(r: Reading, one: Any, other: Any) -> bool:
    """True if two values are written alike, locals put in their places."""
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_is_equal(r, a, b) for a, b in pairs)
    if not isinstance(one, Array) or not isinstance(other, Array):
        return True
    if one.axes or other.axes:
        return True  # indices have names of their own
    known: dict[str, Expr] = {}
    for let in r.machine.lets:
        if not let.axes:
            known[let.name] = substitute(let.value, known)
    return substitute(one.value, known) == substitute(other.value, known)


def _transpose(
    r: Reading,
    values: list[Any],
    upstream: Any,
    different: list[int],
    definition: tuple[str, ast.AST],
) -> Sequence[Any]:
    """The gradients of a tangent rule without axes: each tangent in its turn is the
    upstream gradient, and the others are 0."""
    kind, place = definition
    if kind == "defjvps":
        assert isinstance(place, ast.Call)
        (output,) = r.outputs
        result = Array(element(output.name, ()), (), output.is_open)
        found: list[Any] = []
        for one in place.args:
            function = r.machine.evaluate(one, r.scope)
            if function is None:
                found.append(None)
            elif isinstance(function, Function):
                args = [upstream.copy(), result.copy(), *values]
                found.append(r.machine.call_function(function, args, {}, place))
            else:
                raise CannotLift("import", "a function of another module", place)
        return found
    if isinstance(place, ast.Call):
        function = _function(r, place.args[0], place)
    else:
        assert isinstance(place, ast.FunctionDef)
        function = Function(place, r.scope)
    skipped = [v for k, v in enumerate(values) if k not in different]
    primals = tuple(values[k] for k in different)
    found = []
    for k in different:
        tangents = tuple(upstream.copy() if j == k else Array(ZERO) for j in different)
        pair = r.machine.call_function(
            function, [*skipped, primals, tangents], {}, place
        )
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise CannotLift("python", "the tangent rule does not return a pair", place)
        found.append(pair[1])
    return found
