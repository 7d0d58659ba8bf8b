"""Other ways to write an expression: what the rewrite rules reach from it.

First straight ahead, one rewrite after the other until nothing matches (that is nearly
always where the best form is), then breadth first, within a budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from gradspec.derive.build import negate, scale, times
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, names, nodes, with_children
from gradspec.stabilise.match import instantiate, match
from gradspec.stabilise.rules import by_operator

BUDGET = 20
"""How many forms of one expression are looked at."""

FEW = BUDGET // 3
"""The same of what has been proposed in another way."""

_LARGEST = 400  # nodes of an expression beyond which it is left as it is

Holds = Callable[[Expr], bool]
"""Whether a row's condition holds at all points."""


class Search:
    """Rewrites; what the rows make of a node is found once."""

    def __init__(self, holds: Holds) -> None:
        self.holds = holds
        self._known: dict[Expr, tuple[tuple[Expr, bool], ...]] = {}

    def forms(self, expr: Expr, budget: int = BUDGET) -> tuple[Expr, ...]:
        """Distinct forms of ``expr``, itself first."""
        found: dict[Expr, None] = {expr: None}
        if sum(1 for _ in islice(nodes(expr), _LARGEST)) == _LARGEST:
            return (expr,)
        current: Expr | None = expr
        while current is not None and len(found) <= budget // 2:
            ahead = self._ahead(current)
            current = next((form for form in ahead if form not in found), None)
            if current is not None:
                found[current] = None
        waiting = deque(found)
        while waiting and len(found) < budget:
            for form in self._around(waiting.popleft()):
                if form not in found and len(found) < budget:
                    found[form] = None
                    waiting.append(form)
        return tuple(found)

    def _ahead(self, expr: Expr) -> Iterator[Expr]:
        """``expr`` with one rewrite at one place, inner places first: ``1 - 1 / (1 +
        exp(x))`` is seen to be a sigmoid before a logarithm of it is looked at."""
        order = tuple(nodes(expr))
        for node, new, is_detour in self._steps(order):
            if not is_detour:
                yield replaced(expr, node, new)

    def _around(self, expr: Expr) -> Iterator[Expr]:
        """Any one rewrite, outer places first: ``asinh`` is seen from outside."""
        order = tuple(nodes(expr))
        for node, new, _ in self._steps(order[::-1]):
            yield replaced(expr, node, new)

    def _steps(self, order: tuple[Expr, ...]) -> Iterator[tuple[Expr, Expr, bool]]:
        """Rewrites of nodes; none whose result is there already: a regime of a
        conditional is not split again in the same way."""
        present = set(order)
        for node in order:
            for new, is_detour in self._made_of(node):
                if new not in present or not children(new):
                    yield node, new, is_detour

    def _made_of(self, node: Expr) -> tuple[tuple[Expr, bool], ...]:
        if not isinstance(node, Apply):
            return ()
        if node not in self._known:
            self._known[node] = tuple(self._rewritten(node)) if names(node) else ()
        return self._known[node]

    def _rewritten(self, node: Apply) -> Iterator[tuple[Expr, bool]]:
        for rule in by_operator().get(node.op, ()):
            bound = match(rule.left, node)
            if bound is None:
                continue
            if rule.when is not None and not self.holds(instantiate(rule.when, bound)):
                continue
            new = instantiate(rule.right, bound)
            if new != node:
                yield new, rule.row.detour


def replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    """``expr`` with ``new`` in place of ``old``; around it, constants are merged."""
    memo: dict[Expr, Expr] = {}
    for node in nodes(expr):
        if node == old:
            memo[node] = new
            continue
        parts = tuple(memo[child] for child in children(node))
        rebuilt = with_children(node, parts)
        memo[node] = node if rebuilt is node else _joined(rebuilt)
    return memo[expr]


def _joined(node: Expr) -> Expr:
    """A rebuilt node: ``0.5 * (2 * ndtr(x))`` is ``ndtr(x)``."""
    match node:
        case Apply(op="mul", args=(a, b)) if _leading(b):
            return times(a, b)
        case Apply(op="div", args=(a, Const(value=value))) if value and _leading(a):
            return scale(1 / value, a)
        case Apply(op="mul" | "div" as op, args=(a, Apply(op="neg", args=(b,)))):
            return negate(fold(Apply(op, (a, b))))
        case _:
            return fold(node)


def _leading(expr: Expr) -> bool:
    """Whether a product begins with a constant."""
    while isinstance(expr, Apply) and expr.op in ("mul", "div"):
        expr = expr.args[0]
    return isinstance(expr, Const)
