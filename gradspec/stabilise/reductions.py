"""Other evaluations of expressions with reductions: the same functions over the reals.

What is proposed here is used only where it measures better (`indexed.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from gradspec.ir.expr import Apply, Expr, Reduce
from gradspec.ir.rule import Let
from gradspec.ir.walk import children, with_children
from gradspec.stabilise.reductions_exponential import (
    balanced,
    exponential,
    logarithm,
    spread,
)
from gradspec.stabilise.reductions_moments import (
    aligned,
    centred,
    norm,
    scaled,
    without_nought,
    without_zero_divisors,
)
from gradspec.stabilise.scopes import Scope, inlined

Step: TypeAlias = Callable[[Expr, Scope], Iterator[Expr]]
"""What a step makes of one node (nothing: it does not know the form)."""


def turned(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """``-(a - b)`` is ``b - a``."""
    match expr:
        case Apply(op="neg", args=(Apply(op="sub", args=(a, b)),)):
            yield Apply("sub", (b, a))


_SETS: tuple[tuple[Step, ...], ...] = (
    (logarithm, spread, balanced, centred, turned),
    (logarithm, spread, balanced, centred, aligned, turned),
    (logarithm, spread, balanced, centred, scaled, aligned, turned),
    (logarithm, spread, exponential, centred, scaled, aligned, turned),
)


def forms(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """Forms of ``expr`` that differ from it; some may come twice. ``scope`` are the
    names that no new index may have.
    """
    for steps in _SETS:
        new = rewritten(expr, steps, scope)
        if new != expr:
            yield new


def slopes(
    expr: Expr, scope: Scope, norms: frozenset[str], statics: Scope | None
) -> Iterator[Expr]:
    """Forms of a gradient; ``norms`` are the names of norms. One that we derived (then
    ``statics`` are the names of the statics) may have any divisor replaced where it is 0.
    """
    for form in (expr, *forms(expr, scope)):
        new = rewritten(form, (without_nought(norms),), scope)
        yield from (one for one in dict.fromkeys((form, new)) if one != expr)
        if statics is not None:
            yield from without_zero_divisors(form, statics)


def rewritten(expr: Expr, steps: tuple[Step, ...], scope: Scope) -> Expr:
    """Every node, inner ones first, as the first step that knows its form says."""
    under = scope
    if isinstance(expr, Reduce):
        under = scope.union(b.index for b in expr.bounds)
    parts = (rewritten(child, steps, under) for child in children(expr))
    node = with_children(expr, tuple(parts))
    return next((new for step in steps for new in step(node, scope)), node)


def norms_of(lets: tuple[Let, ...]) -> frozenset[str]:
    """The lets whose value is the root of a sum of squares."""
    values: Mapping[str, Let] = {let.name: let for let in lets}
    return frozenset(
        let.name
        for let in lets
        if norm(inlined(let.value, values, Scope(let.indices))) is not None
    )
