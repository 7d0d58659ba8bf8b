"""The values of a rule that are defined by themselves, or by one another: recurrences and
equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from gradspec.ir.recurrence import NotEarlier, System, components, in_step_order
from gradspec.ir.rule import Assume, Role
from gradspec.lower.body import Assignment, Body
from gradspec.lower.context import UNKNOWN, NameRole, Variable
from gradspec.lower.equations import idle_unknowns
from gradspec.lower.header import Declaration
from gradspec.lower.module import Type, type_of_kind
from gradspec.syntax import nodes

_READINGS = 4
"""Readings of a body after which the axes of its states are known, or never."""


def state_names(
    made: Declaration, assignments: tuple[Assignment, ...]
) -> frozenset[str]:
    """The names that equations define, and those with indices that a chain of
    definitions leads back to."""
    solved = {a.name for a in assignments if isinstance(a, nodes.Solve)}
    gradients = {variable.cotangent for variable in made.inputs}
    known = {a.name: a for a in assignments if a.indices and a.name not in gradients}
    uses = {name: _names_in(a.value) & known.keys() for name, a in known.items()}
    return frozenset(
        (*solved, *(name for name in known if name in _reached(name, uses)))
    )


def _names_in(value: nodes.Expr) -> frozenset[str]:
    every = (n for n in nodes.walk(value) if isinstance(n, nodes.Indexed))
    return frozenset(n.name for n in every)


def _reached(name: str, uses: Mapping[str, frozenset[str]]) -> frozenset[str]:
    found: set[str] = set()
    todo = [*uses[name]]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += uses[one]
    return frozenset(found)


def state_variables(
    made: Declaration,
    assignments: tuple[Assignment, ...],
    read: Callable[[Mapping[str, Variable]], Body],
) -> Mapping[str, Variable]:
    """The states as expressions see them before their assignment. Outputs are known
    from the header. A local has the axes that its definition gives its indices: the
    body is read for them, at first with states over unknown axes."""
    names = state_names(made, assignments)
    outputs = {output.name: output for output in made.outputs}
    found: dict[str, Variable] = {}
    for one in (a for a in assignments if a.name in names):
        if one.name in outputs:
            output = outputs[one.name]
            type, shape = type_of_kind(output.kind), output.shape
            made_ = Variable(one.name, NameRole.OUTPUT, type, shape.axes, shape.batch)
        else:
            unknown: tuple[str | int, ...] = (UNKNOWN,) * len(one.indices or ())
            made_ = Variable(one.name, NameRole.LOCAL, Type.REAL, unknown)
        found.setdefault(one.name, made_)
    locals_ = [name for name in found if name not in outputs]
    for _ in range(_READINGS if locals_ else 0):
        seen = read(found).cx.scope.variables
        sound = (n for n in locals_ if n in seen and seen[n].type is not None)
        again = {name: seen[name] for name in sound}
        if all(found[name] == variable for name, variable in again.items()):
            break
        found |= again
    return found


def arrange_states(body: Body, assumes: tuple[Assume, ...]) -> None:
    """The values of a recurrence stand together; an error names a use that is not at an
    earlier place."""
    ahead = tuple(d for d in body.definitions if d.is_forward)
    behind = tuple(d for d in body.definitions if d.role is Role.BACKWARD_LOCAL)
    others = (d for d in body.definitions if d not in (*ahead, *behind))
    try:
        every = *in_step_order(ahead, assumes), *in_step_order(behind, assumes), *others
        parts = (*components(ahead, assumes), *components(behind, assumes))
    except NotEarlier as found:
        let, use = found.let, found.use
        whose = (
            "its own definition" if use.name == let.name else f"that of `{let.name}`"
        )
        placed = body.cx.placed
        if placed is not None and use.name in placed.variables:
            body.cx.findings.error(
                "GS208",
                f"`{use.name}`, a value of the called rule, is used in {whose} at a place"
                " that is not earlier",
                use.span or let.span,
                help="assume of the arguments what that rule assumes, such as `assume k"
                " > 0` of an offset",
            )
            return
        body.cx.findings.error(
            "GS208",
            f"`{use.name}` is used in {whose} at a place that is not earlier",
            use.span or let.span,
            label="not known to be computed before",
            help="use earlier elements along one axis, such as"
            f" `{_earlier(let.name, let.indices)}` (or later ones throughout,"
            " `t + 1`); an offset by a static `k` needs `assume k > 0`",
        )
        return
    systems = tuple(part for part in parts if isinstance(part, System))
    solved = {name for part in systems for name in part.names}
    body.definitions[:] = (
        replace(d, is_equation=d.is_equation and d.name in solved) for d in every
    )
    for one in (one for part in systems for one in idle_unknowns(part)):
        body.cx.findings.error(
            "GS268",
            f"no equation for `{one.name}` contains it",
            one.span,
            label=f"says nothing of `{one.name}`",
            help=f"write an equation in which `{one.name}` stands, or one that another"
            " `solve` shares with it",
        )


def _earlier(name: str, indices: tuple[str, ...]) -> str:
    first, *others = indices
    return f"{name}[{', '.join((f'{first} - 1', *others))}]"
