"""The plan of a rule changed for a target: names, residuals, sizes as tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradspec.ir.rule import Kind
from gradspec.plan.arrays import (
    Arange,
    Expr,
    Gather,
    Name,
    Op,
    Pick,
    RankedNode,
    ScatterAdd,
    Spread,
    Take,
    ToFloat,
    Window,
    Windows,
    children,
    is_whole,
    names,
    nodes,
    substitute,
    with_children,
)
from gradspec.plan.plan import Assign, RulePlan
from gradspec.primitives.lookup import primitive

# --- names ------------------------------------------------------------------------------


def renamed(plan: RulePlan, reserved: frozenset[str]) -> RulePlan:
    """The plan with ``np`` renamed to ``np_`` where ``np`` is reserved; likewise every
    output, local and size whose name, gradient or tangent collides.
    """
    inputs = frozenset(i.name for i in plan.inputs)
    changed = {
        n: free
        for n in plan.names
        if n not in inputs and (free := _free(n, reserved, plan.names)) != n
    }
    every = dict(changed)
    every |= {f"d{old}": f"d{new}" for old, new in changed.items()}
    every |= {f"{old}_dot": f"{new}_dot" for old, new in changed.items()}
    values: dict[str, Expr] = {old: Name(new) for old, new in every.items()}
    if not changed:
        return plan
    return plan.mapped(lambda v: substitute(v, values), lambda n: every.get(n, n))


def _free(name: str, reserved: frozenset[str], taken: tuple[str, ...]) -> str:
    tangents = {f"{other}_dot" for other in taken}
    free = name
    while (
        free in reserved
        or f"d{free}" in reserved
        or free in tangents
        or (free != name and free in taken)
    ):
        free += "_"
    return free


# --- residuals ------------------------------------------------------------------------
#
# The values that a backward pass refers to by name: outputs, and saved locals.


def without_locals(plan: RulePlan) -> RulePlan:
    """The plan with saved locals inlined in its gradients: only outputs are used by
    name. For targets that choose residuals themselves.
    """
    outputs = {output.name for output in plan.outputs}
    return _written_out(plan, [a for a in plan.forward if a.name not in outputs])


def without_names(plan: RulePlan) -> RulePlan:
    """The same with outputs inlined as well: for targets that differentiate an output
    by its declared gradient, where that may differ from the derivative of its value.
    """
    return _written_out(plan, plan.forward)


def _written_out(plan: RulePlan, lets: Iterable[Assign]) -> RulePlan:
    values = {a.name: a.value for a in lets}
    saved = tuple(name for name in plan.saved if name not in values)
    return replace(plan.mapped(lambda v: substitute(v, values)), saved=saved)


# --- sizes as tensors -------------------------------------------------------------------
#
# For a target whose graphs may not know sizes statically. A size in floating arithmetic
# is cast; one that gives the length of an axis, or is compared with positions, stays an
# integer. Values computed from sizes alone are tensors too.


def with_sizes(plan: RulePlan) -> RulePlan:
    """The plan with sizes cast in floating arithmetic."""
    if not plan.is_ranked:
        return plan
    kinds = (Kind.INT, Kind.STATIC_INT)
    whole = frozenset(i.name for i in plan.inputs if i.kind in kinds)
    whole |= {size.name for size in plan.sizes}
    numbers = frozenset(i.name for i in plan.statics)
    return plan.mapped(lambda value: _cast(value, whole, numbers))


def _cast(expr: Expr, whole: frozenset[str], numbers: frozenset[str]) -> Expr:
    done: dict[Expr, Expr] = {}

    def floating(part: Expr) -> Expr:
        """An integer value cast to floating as a whole, unless it is a number."""
        is_plain = set(names(part)) <= numbers and not isinstance(part, RankedNode)
        return done[part] if is_plain or not is_whole(part, whole) else ToFloat(part)

    for node in nodes(expr):
        parts = children(node)
        if _takes_integers(node, whole):
            made = tuple(done[part] for part in parts)
        else:
            kept = [part for part in _measures(node) if is_whole(part, whole)]
            made = tuple(part if part in kept else floating(part) for part in parts)
        done[node] = with_children(node, made)
    return floating(expr)


def _takes_integers(node: Expr, whole: frozenset[str]) -> bool:
    """True if the node's own operation is on integers, or converts them to floating."""
    match node:
        case ToFloat():
            return True
        case Op(primitive=op, args=args) if primitive(op).result == "bool":
            return all(is_whole(arg, whole) for arg in args)
        case _:
            return is_whole(node, whole)


def _measures(node: Expr) -> tuple[Expr, ...]:
    """The parts that are integers: lengths of axes, positions."""
    match node:
        case Spread(size=size) | Arange(size=size):
            return (size,)
        case ScatterAdd(index=index, size=size):
            return (index, size)
        case Take(index=index) | Gather(index=index):
            return (index,)
        case Window(start=start, size=size):
            return (start, size)
        case Windows(start=start, rows=rows, columns=columns):
            return (start, rows, columns)
        case Pick(at=at):
            return (at,)
        case _:
            return ()
