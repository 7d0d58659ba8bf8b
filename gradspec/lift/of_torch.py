"""`torch.autograd.Function`: old and new style, and `setup_context`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradspec.lift.machine import Machine
from gradspec.lift.project import Module, Project, stored_names
from gradspec.lift.reading import Reading, Site, keyword_only
from gradspec.lift.values import CannotLift, Class, Context, Function, IsBroken, Library

_BASES = frozenset(("Function", "InplaceFunction", "NestedIOFunction"))


def is_function(
    node: ast.ClassDef,
    module: Module,
    project: Project,
    machine: Machine,
    depth: int = 0,
) -> bool:
    """True of a class whose base is torch's, by the imports of its file."""
    for base in node.bases:
        found = project.resolve(base, module.scope, machine)
        if isinstance(found, Library):
            first, _, last = found.name.rpartition(".")
            if first.startswith("torch.autograd") and last in _BASES:
                return True
        if isinstance(found, Class) and found.node is not node and depth < 4:
            other = found.scope.module
            if is_function(found.node, other, project, machine, depth + 1):
                return True
    return False


def sites(
    module: Module, project: Project, machine: Machine, classes: Iterator[Any]
) -> Iterator[Site]:
    for node, around in classes:
        if not isinstance(node, ast.ClassDef) or not node.bases:
            continue
        if not is_function(node, module, project, machine):
            continue
        methods = project.methods(Class(node, module.scope), machine)
        if "backward" not in methods or not any(
            isinstance(s, ast.FunctionDef) and s.name in ("forward", "backward")
            for s in node.body
        ):
            continue
        forward = methods.get("forward")
        arity = len(forward.args.args) if forward is not None else 1
        yield Site(module, node, "torch", around, read, arity, methods)


def read(r: Reading) -> None:
    """Both passes of a function."""
    methods: dict[str, ast.FunctionDef] = r.site.more
    node = r.site.node
    assert isinstance(node, ast.ClassDef)
    forward, backward = methods.get("forward"), methods["backward"]
    if forward is None:
        raise CannotLift("python", "no forward in this class", node)
    setup = methods.get("setup_context")
    own = Class(node, r.scope)
    is_class = [own] if _is_classmethod(forward) else []
    skipped = len(is_class) + (0 if setup else 1)
    parameters, values, defaults = r.arguments(forward, skipped)
    extra = {p.arg: r.argument(p, d) for p, d in keyword_only(forward)}
    r.remember(values)
    context = _context(r, methods)
    m = r.machine
    start = is_class if setup else [*is_class, context]
    returned = m.call_function(
        Function(forward, r.scope), [*start, *values], extra, forward
    )
    if setup is not None:
        given = [context, tuple(values), returned]
        if _is_classmethod(setup):
            given.insert(0, own)
        m.call_function(Function(setup, r.scope), given, {}, setup)
    upstream = r.outputs_of(returned, forward, context.nondifferentiable)
    own_first = [own] if _is_classmethod(backward) else []
    wanted = len(backward.args.args) - 1 - len(own_first) - len(backward.args.defaults)
    if backward.args.vararg is None and not (
        wanted <= len(upstream) <= wanted + len(backward.args.defaults)
    ):
        told = f"backward takes {wanted} gradients of {len(upstream)} outputs"
        raise IsBroken("structure", told, backward)
    found = m.call_function(
        Function(backward, r.scope), [*own_first, context, *upstream], {}, backward
    )
    gradients = list(found) if isinstance(found, tuple | list) else [found]
    place = _last_return(backward)
    while len(gradients) > len(parameters) and gradients[-1] is None:
        gradients.pop()
    # torch counts the arguments of the call: an omitted one needs no gradient
    count = len(parameters)
    while len(gradients) < count and parameters[count - 1].arg in defaults:
        count -= 1
    if len(gradients) != count:
        told = f"backward returns {_quantity(len(gradients), 'gradient')}"
        told += f" for {_quantity(count, 'input')}"
        raise IsBroken("structure", told, place)
    r.take_gradients(
        parameters[:count], values[:count], gradients, place, axes_are_summed=True
    )


def _context(r: Reading, methods: dict[str, ast.FunctionDef]) -> Context:
    """The `ctx` of both passes: of a class that makes objects it is the object, which has
    its methods and the numbers that it is made with."""
    context = Context(stored=_stored_attributes(r))
    if "__init__" not in methods:
        return context
    fields = {
        n.attr
        for n in ast.walk(methods["__init__"])
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    }
    made: dict[str, Any] = {}

    def fallback(name: str) -> Any:
        if name in methods and name not in ("forward", "backward"):
            return Function(methods[name], r.scope, (context,))
        if name in fields and name not in made:
            made[name] = r.static_input(name)
        return made[name].copy() if name in made else None

    context.fallback = fallback
    return context


def _stored_attributes(r: Reading) -> frozenset[str] | None:
    """Attributes that may be set in the object: by methods of the class, or by functions
    of the file that are in no other class; None if some base is not known."""
    node = r.site.node
    assert isinstance(node, ast.ClassDef)
    if any(
        r.project.resolve(b, r.site.module.scope, r.machine) is None for b in node.bases
    ):
        return None
    every = r.site.module.tree
    others = (
        c for c in ast.walk(every) if isinstance(c, ast.ClassDef) and c is not node
    )
    apart = {id(inner) for c in others for inner in ast.walk(c)}
    here = [n for n in ast.walk(every) if id(n) not in apart]
    inherited = [n for m in r.site.more.values() for n in ast.walk(m)]
    return stored_names([*here, *inherited])


def _quantity(number: int, noun: str) -> str:
    return f"{number} {noun}{'s'[: number != 1]}"


def _last_return(function: ast.FunctionDef) -> ast.AST:
    """The last `return` of a function."""
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    return max(returns, key=lambda n: n.lineno) if returns else function


def _is_classmethod(function: ast.FunctionDef) -> bool:
    first = function.args.args[:1]
    named = any(ast.unparse(d) == "classmethod" for d in function.decorator_list)
    return named or bool(first and first[0].arg == "cls")


# --- what raises, whatever is computed -----------------------------------------------------


def check_structure(site: Site) -> None:
    """Look for code that raises whenever it is reached, where the formulas could not be
    read.

    Raises:
        IsBroken: too few gradients are returned, or an attribute is never set.
    """
    methods: dict[str, ast.FunctionDef] = site.more
    forward, backward = methods.get("forward"), methods["backward"]
    if forward is None or forward.args.vararg or forward.args.kwonlyargs:
        return
    if any(f not in site.node.body for f in (forward, backward)):
        return
    if (
        forward.args.kwarg
        or _has_unknown_decorator(forward)
        or _has_unknown_decorator(backward)
    ):
        return
    names = [p.arg for p in (*forward.args.posonlyargs, *forward.args.args)]
    skipped = _is_classmethod(forward) + ("setup_context" not in methods)
    required = len(names) - skipped - len(forward.args.defaults)
    returns = [n for n in _own_nodes(backward) if isinstance(n, ast.Return)]
    counts = [
        len(n.value.elts)
        if isinstance(n.value, ast.Tuple)
        and not any(isinstance(e, ast.Starred) for e in n.value.elts)
        else None
        for n in returns
    ]
    if returns and all(c is not None and c < required for c in counts):
        told = f"backward returns {_quantity(counts[0] or 0, 'gradient')}"
        told += f" for {_quantity(required, 'input')}"
        raise IsBroken("structure", told, returns[0])


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)


_KNOWN = ("staticmethod", "once_differentiable", "custom_fwd", "custom_bwd")


def _has_unknown_decorator(function: ast.FunctionDef) -> bool:
    return any(
        not any(known in ast.unparse(d) for known in _KNOWN)
        for d in function.decorator_list
    )
