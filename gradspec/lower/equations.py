"""Equations: ``solve x: left == right``, read as a definition of ``x`` by itself.

``x`` solves ``left - right = 0`` if it is equal to ``x - (left - right)``, or to the
other side where it stands alone on one. Of the equations, there is one for each element
of ``x``, with the same indices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import prod

from gradspec.ir.elements import extent
from gradspec.ir.expr import Apply, Ref, Select
from gradspec.ir.recurrence import System
from gradspec.ir.rule import Definition
from gradspec.ir.walk import names as ir_names
from gradspec.lower.context import Context
from gradspec.lower.header import Declaration
from gradspec.lower.indices import make_bindings, solve
from gradspec.syntax import nodes

_SIZES = (1, 2, 3)
Axes = tuple[str | int, ...]


def free_indices(node: nodes.Expr) -> tuple[nodes.Name, ...]:
    """The names that stand in index position and that no reduction around them binds,
    each at its first place.
    """
    found: dict[str, nodes.Name] = {}
    todo: list[tuple[nodes.Expr, tuple[str, ...]]] = [(node, ())]
    while todo:
        part, bound = todo.pop()
        match part:
            case nodes.Indexed(indices=indices):
                inner = (n for index in indices for n in nodes.walk(index))
                names = (n for n in inner if isinstance(n, nodes.Name))
                found |= {n.id: n for n in names if n.id not in (*bound, *found)}
            case nodes.Comprehension(indices=indices):
                bound = (*bound, *(name.id for name in indices))
            case _:
                pass
        todo.extend((below, bound) for below in reversed(nodes.parts(part)))
    return tuple(found.values())


def with_indices(
    made: Declaration, body: Iterable[nodes.Statement]
) -> tuple[nodes.Assign | nodes.Override | nodes.Solve, ...]:
    """The assignments of a body. An equation whose indices are left out has those that
    are free in it: as in a side that is one element, or as they appear."""
    kinds = nodes.Assign | nodes.Override | nodes.Solve
    found = tuple(s for s in body if isinstance(s, kinds))
    variables = {name for v in made.variables for name in (v.name, v.cotangent)}
    taken = {*variables, *made.sizes, *(s.name for s in found)}

    def visit(
        one: nodes.Assign | nodes.Override | nodes.Solve,
    ) -> nodes.Assign | nodes.Override | nodes.Solve:
        if not isinstance(one, nodes.Solve) or one.indices is not None:
            return one
        free = {n.id: n for n in free_indices(one.value) if n.id not in taken}
        for side in _sides(one):
            match side:
                case nodes.Indexed(indices=indices):
                    alone = [i.id for i in indices if isinstance(i, nodes.Name)]
                    if len(alone) == len(indices) and {*alone} == free.keys():
                        free = {name: free[name] for name in alone}
        return replace(one, indices=tuple(free.values()) or None)

    return tuple(map(visit, found))


def _sides(node: nodes.Solve) -> tuple[nodes.Expr, nodes.Expr]:
    assert isinstance(node.value, nodes.Compare)
    left, right = node.value.operands
    return left, right


def as_definition(
    node: nodes.Solve, axes: Axes | None, cx: Context
) -> nodes.Assign | None:
    """The definition that says what the equation says; ``axes`` are those of an output.
    None if it is at fault."""
    given = node.indices or ()
    names = tuple(index for index in given if isinstance(index, nodes.Name))
    for odd in (index for index in given if index not in names):
        headline = "the indices of an equation are plain names"
        help = f"write `solve {node.name}[i] if …: …`, with a condition on `i`"
        cx.findings.error("GS236", headline, odd.span, help=help)
        return None
    known = len(cx.findings.diagnostics)
    bindings = make_bindings(names, cx)
    with cx.scope.bind(bindings):
        cx.condition(node.value)
        if node.condition is not None:
            cx.condition(node.condition)
    solved = tuple(solve(binding, cx) for binding in bindings)
    own = tuple(axis for axis in solved if axis is not None)
    if len(cx.findings.diagnostics) > known:
        return None
    order = _order(own, own if axes is None else axes)
    if order is None:
        _report_count(node, own, axes or (), cx)
        return None
    return _whole(node, tuple(names[place] for place in order))


def _whole(node: nodes.Solve, names: tuple[nodes.Name, ...]) -> nodes.Assign:
    """``x[i] = x[i] - (left - right)``, under the condition, or 0."""
    plain = tuple(nodes.Name(name.id, span=name.span) for name in names)
    own: nodes.Expr = nodes.Name(node.name, span=node.name_span)
    if names:
        own = nodes.Indexed(node.name, plain, span=node.name_span)
    left, right = _sides(node)
    if not _has(left, node.name) and _has(right, node.name):
        left, right = right, left
    at = node.value.span
    if left == own:
        value = right
    elif right == own:
        value = left
    else:
        gap = nodes.Binary("-", left, right, span=at)
        value = nodes.Binary("-", own, gap, span=at)
    if node.condition is not None:
        zero = nodes.Number(Fraction(0), "0", span=at)
        value = nodes.Conditional(value, node.condition, zero, span=at)
    return nodes.Assign(
        node.name, names or None, value, span=node.span, name_span=node.name_span
    )


def _has(side: nodes.Expr, name: str) -> bool:
    """True if a side has the unknown of that name."""
    kinds = nodes.Name, nodes.Indexed
    found = (n for n in nodes.walk(side) if isinstance(n, kinds))
    return any(name == (n.id if isinstance(n, nodes.Name) else n.name) for n in found)


def _order(own: Axes, wanted: Axes) -> tuple[int, ...] | None:
    """The first order of the equations' indices in which they have the state's axes."""
    orders = permutations(range(len(own)))
    fits = (o for o in orders if tuple(own[place] for place in o) == wanted)
    return next(fits, None)


def idle_unknowns(part: System) -> tuple[Definition, ...]:
    """The unknowns of a system that none of its equations contains."""
    used: set[str] = set()
    for one in part.values:
        match one.value:
            case (
                Apply("sub", (Ref(name=name), gap))
                | Select(then=Apply("sub", (Ref(name=name), gap)))
            ) if name == one.name:
                used |= {*ir_names(gap)}
            case _:
                used |= {*ir_names(one.value)}
    return tuple(one for one in part.values if one.name not in used)


def _report_count(node: nodes.Solve, own: Axes, wanted: Axes, cx: Context) -> None:
    """GS268: there are not as many equations as unknowns; at the first small sizes at
    which their numbers differ."""
    named = tuple(dict.fromkeys(a for a in (*own, *wanted) if isinstance(a, str)))
    label = "their indices range over other axes than those of the unknowns"
    for sizes in product(_SIZES, repeat=len(named)):
        at = dict(zip(named, sizes, strict=True))
        equations = prod(extent(axis, at) for axis in own)
        unknowns = prod(extent(axis, at) for axis in wanted)
        if equations != unknowns:
            where = ", ".join(f"{axis} = {size}" for axis, size in at.items())
            label = f"{equations} equation{'s'[: equations != 1]} for {unknowns}"
            label += f" unknown{'s'[: unknowns != 1]}" + (
                f" at {where}" if where else ""
            )
            break
    cx.findings.error(
        "GS268",
        f"there are not as many equations as elements of `{node.name}`",
        node.value.span,
        label=label,
        help="write one equation for each element, with the indices of the element; for"
        " least squares these are the normal equations, a sum over the others",
    )
