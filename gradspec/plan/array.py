"""What a target computes: named statements over arrays.

    expr ::= Name(id)                   an argument, an output, a local, `d<output>`
           | Literal(q)                 an exact rational, rounded when printed
           | Op(primitive, expr*)       a row of `gradspec.primitives`
           | Where(condition, then, other)
           | ToFloat(expr)              a condition, an integer or a choice between
                                        numbers, as an array of the working type
          (expr)
           | Ranked                     operations over named axes: `plan.ranked`

Every expression is an array that broadcasts; in rules without named axes all are
elementwise. Nodes are immutable, hash in constant time and compare by structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, assert_never

from gradspec.ir.numbered import Key
from gradspec.plan.node import Node
from gradspec.plan.ranked import Ranked, RankedNode


@dataclass(frozen=True, slots=True, eq=False)
class Name(Node):
    """A value by name."""

    id: str
    key: Key = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._freeze(self.id)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """An exact number."""

    value: Fraction
    key: Key = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._freeze(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Op(Node):
    """The primitive ``primitive`` of ``args``; ``pi`` and ``inf`` have none."""

    primitive: str
    args: tuple[Expr, ...] = ()
    key: Key = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._freeze(self.primitive, self.args)


@dataclass(frozen=True, slots=True, eq=False)
class Where(Node):
    """``then`` where ``condition`` holds, else ``other``."""

    condition: Expr
    then: Expr
    other: Expr
    key: Key = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._freeze(self.condition, self.then, self.other)


@dataclass(frozen=True, slots=True, eq=False)
class ToFloat(Node):
    """``arg`` in the floating type that the rule computes in."""

    arg: Expr
    key: Key = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._freeze(self.arg)


Expr: TypeAlias = Name | Literal | Op | Where | ToFloat | Ranked


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, left to right."""
    match expr:
        case Name() | Literal():
            return ()
        case Op(args=args):
            return args
        case Where(condition=condition, then=then, other=other):
            return (condition, then, other)
        case ToFloat(arg=arg):
            return (arg,)
        case RankedNode():
            return expr.parts
        case _:
            assert_never(expr)


def with_children(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The same node over other children; the node itself when nothing changed."""
    if all(a is b for a, b in zip(parts, children(expr), strict=True)):
        return expr
    match expr:
        case Name() | Literal():
            return expr
        case Op():
            return Op(expr.primitive, parts)
        case Where():
            return Where(*parts)
        case ToFloat():
            return ToFloat(*parts)
        case RankedNode():
            return expr.with_parts(parts)
        case _:
            assert_never(expr)


def nodes(*roots: Expr) -> Iterator[Expr]:
    """Every distinct node of the roots, children before parents, left to right."""
    seen: set[Key] = set()
    todo: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
    while todo:
        node, is_below_done = todo.pop()
        if is_below_done:
            yield node
        elif node.key not in seen:
            seen.add(node.key)
            todo.append((node, True))
            todo.extend((child, False) for child in reversed(children(node)))


def transform(expr: Expr, visit: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up: ``visit`` sees each node with its children already visited."""
    memo: dict[Key, Expr] = {}
    for node in nodes(expr):
        parts = tuple([memo[child.key] for child in children(node)])
        memo[node.key] = visit(with_children(node, parts))
    return memo[expr.key]


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace names. The new expressions are not searched."""

    def visit(node: Expr) -> Expr:
        return values.get(node.id, node) if isinstance(node, Name) else node

    return transform(expr, visit)


def names(*roots: Expr) -> tuple[str, ...]:
    """The names that occur, in the order of their first occurrence."""
    if len(roots) == 1:
        return _names_of(roots[0])
    return tuple(dict.fromkeys(name for root in roots for name in _names_of(root)))


def _names_of(root: Expr) -> tuple[str, ...]:
    """A node remembers its names: emitters ask which of all nodes are numbers alone."""
    if root.known_names is None:
        found = (node.id for node in nodes(root) if isinstance(node, Name))
        root.remember(tuple(dict.fromkeys(found)))
    return root.known_names or ()
