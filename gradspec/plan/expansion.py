"""What a target has no function for, written out; and what it cannot do at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradspec.plan.array import Expr, Op, children, nodes, substitute
from gradspec.plan.folding import folded
from gradspec.plan.numbers import is_number
from gradspec.plan.translate import Types, rebuilt, translate
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Expand, Missing


def expander(target: str, numbers: frozenset[str]) -> Callable[[Expr], Expr]:
    """Writes out, all the way down, the primitives that ``target`` spells by a formula,
    and folds constants. ``numbers`` are the names of Python numbers.
    """

    def expand(expr: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in nodes(folded(expr)):
            value = rebuilt(node, tuple(done[child] for child in children(node)))
            done[node] = written = expanded(value)
        return folded(written)

    def expanded(value: Expr) -> Expr:
        if not isinstance(value, Op):
            return value
        row = primitive(value.primitive)
        spelling = row.spellings.get(target)
        if is_number(value, numbers) or not isinstance(spelling, Expand):
            return value
        holes = dict(zip(row.params, value.args, strict=True))
        fixed = {p for p, arg in holes.items() if is_number(arg, numbers)}
        types = Types(frozenset(fixed), frozenset(), frozenset())
        return expand(substitute(translate(formula(spelling.formula), types), holes))

    return expand


def missing(exprs: Iterable[Expr], target: str) -> tuple[tuple[str, str], ...]:
    """The primitives that the target cannot do, each with the reason, in order."""
    found: dict[str, str] = {}
    for node in nodes(*exprs):
        if isinstance(node, Op):
            spelling = primitive(node.primitive).spellings.get(target)
            if spelling is None:
                found[node.primitive] = "it has no such function"
            elif isinstance(spelling, Missing):
                found[node.primitive] = spelling.reason
    return tuple(found.items())
