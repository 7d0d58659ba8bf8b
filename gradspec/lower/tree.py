"""The calls and the free indices in the text of an item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gradspec.syntax import nodes


def expressions(item: nodes.RuleDef | nodes.FunctionDef) -> Iterator[nodes.Expr]:
    """The expressions of an item, in the order written."""
    if isinstance(item, nodes.FunctionDef):
        yield item.value
        return
    for statement in item.body:
        match statement:
            case nodes.Assignment():
                yield statement.value
            case nodes.Assume(conditions=conditions):
                yield from conditions
            case nodes.Keep() | nodes.Example():
                pass
            case _:
                assert_never(statement)


def called(item: nodes.RuleDef | nodes.FunctionDef) -> tuple[str, ...]:
    """The names of the functions that an item calls, each once."""
    calls = (
        n for e in expressions(item) for n in nodes.walk(e) if isinstance(n, nodes.Call)
    )
    return tuple(dict.fromkeys(call.function for call in calls))


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
