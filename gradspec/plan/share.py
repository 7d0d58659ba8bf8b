"""Values used twice get a name and a statement; the others stand where they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gradspec.plan.array import (
    Expr,
    Literal,
    Name,
    Op,
    children,
    names,
    nodes,
    with_children,
)
from gradspec.plan.naming import Namer
from gradspec.plan.plan import Assign


@dataclass(frozen=True, slots=True)
class Known:
    """What has a name already.

    ``named`` are the author's names by value; ``constants`` the author's numbers, which
    expressions use by name; ``comments`` what to say above a named value; ``scalars``
    the names of Python numbers.
    """

    named: Mapping[Expr, str]
    constants: Mapping[str, Expr]
    comments: Mapping[str, str]
    scalars: frozenset[str]


def share(
    roots: tuple[Expr, ...], known: Known, namer: Namer
) -> tuple[tuple[Assign, ...], tuple[Expr, ...]]:
    """Statements in the order of need, and the roots in terms of them."""
    uses = _uses(roots)
    done: dict[Expr, Expr] = {}
    statements: list[Assign] = []
    bound: set[str] = set()
    ours: set[str] = set()
    numbers = {v: name for name, v in known.constants.items() if children(v)}

    def bind(name: str, value: Expr) -> Name:
        if name not in bound:
            bound.add(name)
            statements.append(Assign(name, value, known.comments.get(name, "")))
        return Name(name)

    def constant(name: str) -> Name:
        for other in names(known.constants[name]):
            if other in known.constants:
                constant(other)
        return bind(name, known.constants[name])

    for node in nodes(*roots):
        value = with_children(node, tuple(done[child] for child in children(node)))
        match value:  # x * x of a name of the author's
            case Op(primitive="square", args=(Name(id=name) as arg,)):
                value = value if name in ours else Op("mul", (arg, arg))
        if isinstance(node, Name) and node.id in known.constants:
            value = constant(node.id)
        elif node in numbers:
            value = constant(numbers[node])
        elif node in known.named and children(node):
            value = bind(known.named[node], value)
        elif uses[node] > 1 and not _is_trivial(node, known.scalars):
            name = namer.name(value)
            ours.add(name)
            value = bind(name, value)
        done[node] = value
    return tuple(statements), tuple(done[root] for root in roots)


def _uses(roots: tuple[Expr, ...]) -> Counter[Expr]:
    """How often each value is written: by each distinct value that uses it, and as a
    result.
    """
    uses: Counter[Expr] = Counter(roots)
    for node in nodes(*roots):
        uses.update(children(node))
    return uses


def _is_trivial(node: Expr, scalars: frozenset[str]) -> bool:
    """Not worth a name: no operation, a sign, or a few operations between numbers (whose
    quotients and roots may exist in one branch of a choice only).
    """
    match node:
        case Name() | Literal() | Op(args=()):
            return True
        case Op(primitive="neg", args=(Name() | Literal(),)):
            return True
        case _:
            return all(name in scalars for name in names(node)) and not _is_long(node)


def _is_long(node: Expr) -> bool:
    parts = [part for part in nodes(node) if children(part)]
    safe = all(isinstance(p, Op) and p.primitive in _TOTAL for p in parts)
    return safe and len(parts) > 2


_TOTAL = ("add", "sub", "mul", "neg", "square")
