"""Pattern matching, and the search through the forms that rewrite rules reach.

A pattern is an expression whose references are variables that stand for anything (the
same for each occurrence). Sums and products match in either order, and ``square(p)``
matches ``p * p`` too. The search is greedy first, one rewrite after the other until
nothing matches (this nearly always reaches the best form), then breadth first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from gradspec.derive.build import negate, scale, times
from gradspec.ir.expr import Apply, Const, Expr, Key, Ref
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, names, nodes, size, transform, with_children
from gradspec.primitives.lookup import rows
from gradspec.stabilise.rewrite_rules import by_operator

Binding: TypeAlias = Mapping[str, Expr]

_COMMUTATIVE = frozenset(r.name for r in rows() if r.is_commutative)


_ODD = frozenset(["xlogy", "xlog1py", "tanh", "erf", "sinh"])
"""Functions odd in the first argument: a minus is moved outside."""

_MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}


def match(pattern: Expr, expr: Expr) -> Binding | None:
    """The binding of the variables; None if the pattern does not match."""
    return next(_matches(pattern, expr, {}), None)


def _matches(pattern: Expr, expr: Expr, bound: Binding) -> Iterator[Binding]:
    match (pattern, expr):
        case (Ref(name=name), _):
            known = bound.get(name)
            if known is None:
                yield {**bound, name: expr}
            elif known == expr:
                yield bound
        case (Apply(op="neg", args=(Ref(name=name),)), _) if (
            name in bound and negate(bound[name]) == expr
        ):
            yield bound  # the minus has gone into a constant: -2 * x for -(2 * x)
        case (Const(value=a), Const(value=b)):
            if a == b:
                yield bound
        case (Apply(op="square", args=(inner,)), Apply(op="mul", args=(a, b))):
            if a == b:
                yield from _matches(inner, a, bound)
        case (Apply(op=op, args=args), Apply(op=other, args=parts)) if op == other:
            yield from _all(args, parts, bound)
            if op in _COMMUTATIVE:
                yield from _all(args, parts[::-1], bound)


def _all(
    patterns: tuple[Expr, ...], exprs: tuple[Expr, ...], bound: Binding
) -> Iterator[Binding]:
    if not patterns:
        yield bound
        return
    for found in _matches(patterns[0], exprs[0], bound):
        yield from _all(patterns[1:], exprs[1:], found)


def instantiate(pattern: Expr, bound: Binding) -> Expr:
    """The pattern with its variables substituted, signs and constants merged."""

    def visit(node: Expr) -> Expr:
        match node:
            case Ref(name=name):
                return bound[name]
            case Apply(op="mul", args=(a, b)):
                return times(a, b)
            case _:
                return _normal(node)

    return transform(pattern, visit)


def _normal(node: Expr) -> Expr:
    """A rebuilt node with signs moved outside, differences and comparisons reversed
    instead, and constants merged: ``0.5 * (2 * ndtr(x))`` is ``ndtr(x)``.
    """
    match node:
        case Apply(op="neg", args=(Apply(op="sub", args=(a, b)),)):
            return Apply("sub", (b, a))
        case Apply(op="neg", args=(a,)):
            return negate(a)
        case Apply(op=op, args=(Apply(op="neg", args=(a,)), *rest)) if op in _ODD:
            return negate(Apply(op, (a, *rest)))
        case Apply(op="mul", args=(a, b)) if _leading(b):
            return times(a, b)
        case Apply(op="div", args=(a, Const(value=value))) if value and _leading(a):
            return scale(1 / value, a)
        case Apply(op="mul" | "div" as op, args=(a, Apply(op="neg", args=(b,)))):
            return negate(fold(Apply(op, (a, b))))
        case Apply(op=op, args=(Apply(op="neg") as a, Apply(op="neg") as b)) if (
            op in _MIRRORED
        ):
            return Apply(_MIRRORED[op], (negate(a), negate(b)))
        case _:
            return fold(node)


def _leading(expr: Expr) -> bool:
    """True if a product begins with a constant."""
    while isinstance(expr, Apply) and expr.op in ("mul", "div"):
        expr = expr.args[0]
    return isinstance(expr, Const)


BUDGET = 20
"""The largest number of forms examined for one expression."""

FEW = BUDGET // 3
"""The same for an expression that has been proposed in another way."""

_LARGEST = 400  # nodes of an expression beyond which it is left as it is

Holds = Callable[[Expr], bool]
"""True if a row's condition holds at all points."""


class Search:
    """Rewriting; the rewrites of each node are cached."""

    def __init__(self, holds: Holds) -> None:
        self.holds = holds
        self._known: dict[Expr, tuple[tuple[Expr, bool], ...]] = {}

    def forms(self, expr: Expr, budget: int = BUDGET) -> tuple[Expr, ...]:
        """Distinct forms of ``expr``, itself first."""
        found: dict[Expr, None] = {expr: None}
        if size(expr) >= _LARGEST:
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
        exp(x))`` is recognised as a sigmoid before a logarithm of it is examined.
        """
        order = tuple(nodes(expr))
        for node, new, is_detour in self._steps(order):
            if not is_detour:
                yield replaced(expr, node, new)

    def _around(self, expr: Expr) -> Iterator[Expr]:
        """``expr`` with any one rewrite, outer places first: ``asinh`` is recognised at
        its root.
        """
        order = tuple(nodes(expr))
        for node, new, _ in self._steps(order[::-1]):
            yield replaced(expr, node, new)

    def _steps(self, order: tuple[Expr, ...]) -> Iterator[tuple[Expr, Expr, bool]]:
        """Rewrites of nodes, except those whose result is present already: a regime of
        a conditional is not split again in the same way.
        """
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
        for left, right, when, is_detour in by_operator().get(node.op, ()):
            bound = match(left, node)
            if bound is None:
                continue
            if when is not None and not self.holds(instantiate(when, bound)):
                continue
            new = instantiate(right, bound)
            if new != node:
                yield new, is_detour


def replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    """``expr`` with ``new`` in place of ``old``; constants around it are merged."""
    memo: dict[Key, Expr] = {old.key: new}
    for node in nodes(expr):
        if node.key not in memo:
            parts = tuple([memo[child.key] for child in node.below])
            rebuilt = with_children(node, parts)
            memo[node.key] = node if rebuilt is node else _normal(rebuilt)
    return memo[expr.key]
