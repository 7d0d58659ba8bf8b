"""Sums in the order in which their author wrote them.

The search turns sums about. What it measures on some hundred points is often the same in
any order, and then the author's is the better guess: ``(1 - u) + u * c`` is exact where
``u`` is 1, and ``1 + u * c - u`` is 0 there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from gradspec.derive.build import select
from gradspec.ir.expr import Apply, Expr, Select
from gradspec.ir.walk import nodes, transform
from gradspec.stabilise.terms import terms_of

_TERMS = 3  # of two, either order rounds alike


def as_written(form: Expr, written: Expr) -> Expr:
    """``form`` with every sum that ``written`` has in another order as it is there; one
    that has two orders, for two regimes, has one then."""
    known: dict[Hashable, Expr] = {}
    for node in nodes(written):
        if (key := _key(node)) is not None:
            known.setdefault(key, node)

    def ordered(node: Expr) -> Expr:
        if isinstance(node, Select):
            return select(node.condition, node.then, node.other)
        return known.get(_key(node), node)

    return transform(form, ordered) if known else form


def _key(node: Expr) -> Hashable:
    """What a sum of several terms adds up, in any order."""
    if not (isinstance(node, Apply) and node.op in ("add", "sub")):
        return None
    terms = tuple(terms_of(node))
    if len(terms) < _TERMS:
        return None
    named = (
        (t.number, *map(_sorted, (t.sizes.items(), t.above, t.below))) for t in terms
    )
    return frozenset(Counter(named).items())


def _sorted(parts: Iterable[object]) -> tuple[str, ...]:
    return tuple(sorted(map(repr, parts)))
