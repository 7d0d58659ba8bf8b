"""Values that are integers: sizes, positions, and whole arithmetic with them."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.plan.array import Expr, Literal, Name, Op
from gradspec.plan.plan import Assign, Step
from gradspec.plan.ranked import (
    Arange,
    Diagonal,
    Expand,
    Gather,
    Permute,
    Pick,
    Spread,
    Take,
    Window,
    Windows,
)

_WHOLE = ("add", "sub", "mul", "neg")


def positions(
    statements: Iterable[Assign | Step], known: frozenset[str]
) -> frozenset[str]:
    """The names of statements that hold integers, given the names that do already."""
    found: set[str] = set()
    for statement in statements:
        if is_whole(statement.value, known | found):
            found.add(statement.name)
    return frozenset(found)


def is_whole(expr: Expr, whole: frozenset[str]) -> bool:
    """Whether the value is an integer: sizes, positions, whole numbers, and their sums
    and products.
    """
    match expr:
        case Name(id=name):
            return name in whole
        case Literal(value=value):
            return value.denominator == 1
        case Op(primitive=op, args=args):
            return op in _WHOLE and all(is_whole(arg, whole) for arg in args)
        case Arange():
            return True
        case Expand(arg=arg) | Permute(arg=arg) | Spread(arg=arg) | Take(arg=arg):
            return is_whole(arg, whole)
        case (
            Window(arg=arg)
            | Windows(arg=arg)
            | Pick(arg=arg)
            | Gather(arg=arg)
            | Diagonal(arg=arg)
        ):
            return is_whole(arg, whole)
        case _:
            return False
