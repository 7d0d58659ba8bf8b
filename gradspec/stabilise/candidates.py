"""Candidates: other forms of an expression that are the same function over the reals.

Rewrite rules find most. To these come forms found by algebra at the node that loses the
digits: conjugates of sums with a root, fractions gathered under roots and logarithms, the
factor of a cotangent gathered into one fraction, and, where nothing else is good, what
SymPy makes of a derived cotangent, and two candidates with a threshold between them. All
are measured (`choice.py`); none is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache, reduce
from math import frexp
from typing import Any

import numpy as np

from gradspec.derive.build import negate, times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import ZERO, Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import children, names, nodes, size, transform
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.accuracy_model import GOOD, Quantity
from gradspec.stabilise.choice import Candidate
from gradspec.stabilise.matching import FEW, Holds, Search, replaced
from gradspec.symbolic.gather import gathered

_LARGEST = 60
"""Nodes of an expression beyond which algebra leaves it alone."""

_SMALLEST = 5
_GROWTH = 1.2  # how much longer a gathered factor may be
_INSIDE = ("sqrt", "log", "exp", "cbrt", "rsqrt", "log1p", "expm1")
_RATIONAL = ("add", "sub", "mul", "div", "square", "neg")


def rewritten(search: Search, start: Expr) -> Iterator[Expr]:
    """Rewrites of an expression and of its directed forms."""
    yield from search.forms(start)
    for form in _directed(start, search.holds):
        yield from search.forms(form, FEW)


def of_cotangent(
    search: Search, start: Expr, upstream: frozenset[str]
) -> Iterator[Expr]:
    """Rewrites of a cotangent, and of it with its factor gathered into one fraction."""
    yield from rewritten(search, start)
    for form in _with_gathered_factor(start, upstream):
        yield from search.forms(form, FEW)


# --- at the node that loses the digits -----------------------------------------------------


def _directed(expr: Expr, holds: Holds) -> tuple[Expr, ...]:
    """With all that is under roots gathered, with all conjugates taken, with both, and
    with sums of fractions over one denominator."""
    if size(expr) > _LARGEST:
        return ()
    inside = _with_gathered_arguments(expr)
    found = (
        inside,
        _with_conjugates(expr, holds),
        _with_conjugates(inside, holds),
        _over_one_denominator(expr),
    )
    return tuple(dict.fromkeys(form for form in found if form != expr))


def _with_gathered_arguments(expr: Expr) -> Expr:
    form = expr
    for node in nodes(expr):
        match node:
            case Apply(op=op, args=(inner,)) if op in _INSIDE and _is_sum(inner):
                new = _gathered(inner)
                if new is not None and size(new) < size(inner):
                    form = replaced(form, inner, new)
    return form


def _over_one_denominator(expr: Expr) -> Expr:
    """``1 / (x + 1) - 1 / x`` is ``-1 / (x * (x + 1))``: what cancels is gone."""
    form, todo = expr, [expr]
    while todo:
        node = todo.pop()
        if (
            isinstance(node, Apply)
            and node.op in ("add", "sub")
            and _has_quotient(node)
        ):
            new = _gathered(node)
            if new is not None and size(new) <= _GROWTH * size(node):
                form = replaced(form, node, _in_written_order(new, node))
                continue
        todo += children(node)
    return form


def _has_quotient(expr: Expr) -> bool:
    """Among its terms."""
    match expr:
        case Apply(op="add" | "sub", args=parts):
            return any(map(_has_quotient, parts))
        case Apply(op="mul" | "neg", args=parts):
            return any(map(_has_quotient, parts))
        case _:
            return isinstance(expr, Apply) and expr.op in ("div", "rsqrt")


def _is_sum(expr: Expr) -> bool:
    return size(expr) >= _SMALLEST and isinstance(expr, Apply) and expr.op in _RATIONAL


@lru_cache(maxsize=1024)
def _gathered(expr: Expr) -> Expr | None:
    form = None if any(isinstance(n, Select) for n in nodes(expr)) else gathered(expr)
    return None if form is None else tidy(form)


def _with_conjugates(expr: Expr, holds: Holds) -> Expr:
    """With the first conjugate in place: ``-b + sqrt(b**2 - a * c)`` is ``-a * c / (b +
    sqrt(b**2 - a * c))`` for positive ``b``. The conditional stands outside of it all, so
    that what the conjugate has in common with the rest cancels."""
    for node in nodes(expr):
        new = _conjugate(node, holds)
        match new:
            case None:
                continue
            case Select(condition=condition, then=then):
                mended = _shortened(replaced(expr, node, then))
                return Select(condition, mended, expr)
            case _:
                return _shortened(replaced(expr, node, new))
    return expr


def _shortened(expr: Expr) -> Expr:
    short = _gathered(expr)
    return expr if short is None or size(short) >= size(expr) else short


def _conjugate(node: Expr, holds: Holds) -> Expr | None:
    parts = _with_root(node)
    if parts is None:
        return None
    p, root, is_minus = parts
    q = root.args[0]
    before = Apply("sub", (q, Apply("square", (p,))))
    rest = _gathered(before)
    if rest is None or size(rest) >= size(q) or not names(p):
        return None
    return _in_regimes(node, p, root, rest, is_minus, holds)


def _in_regimes(
    node: Expr, p: Expr, root: Expr, rest: Expr, is_minus: bool, holds: Holds
) -> Expr:
    """``p + root`` (or ``p - root``): its conjugate where the two are of unlike sign."""
    if is_minus:
        mended = negate(fold(Apply("div", (rest, Apply("add", (p, root))))))
        unlike = _positive(p)
    else:
        below = negate(p)
        mended = fold(Apply("div", (rest, _plus(below, root))))
        unlike = _positive(below)
    return mended if holds(unlike) else Select(unlike, mended, node)


def _plus(a: Expr, b: Expr) -> Expr:
    match a:
        case Apply(op="neg", args=(inner,)):
            return Apply("sub", (b, inner))
        case _:
            return fold(Apply("add", (a, b)))


def _positive(expr: Expr) -> Expr:
    """``expr > 0``, without a factor that is a number."""
    match expr:
        case Apply(op="neg", args=(inner,)):
            return _compared("lt", inner)
        case Apply(op="mul", args=(Const(value=value), inner)) if value:
            return _compared("gt" if value > 0 else "lt", inner)
        case _:
            return _compared("gt", expr)


def _compared(op: str, expr: Expr) -> Expr:
    return Apply(op, (expr, ZERO))


def _with_root(node: Expr) -> tuple[Expr, Apply, bool] | None:
    """``p`` and the root of ``p + root`` or ``p - root`` (then True)."""
    match node:
        case Apply(op="add", args=(p, Apply(op="sqrt") as root)):
            return p, root, False
        case Apply(op="add", args=(Apply(op="sqrt") as root, p)):
            return p, root, False
        case Apply(op="sub", args=(Apply(op="sqrt") as root, p)):
            return negate(p), root, False
        case Apply(op="sub", args=(p, Apply(op="sqrt") as root)):
            return p, root, True
        case _:
            return None


# --- the factor of a cotangent -------------------------------------------------------------


def _with_gathered_factor(expr: Expr, upstream: frozenset[str]) -> Iterator[Expr]:
    used = sorted(upstream & names(expr))
    if len(used) != 1 or not is_linear(expr, upstream):
        return
    factor = coefficient(expr, used[0], upstream)
    if not _SMALLEST < size(factor) <= _LARGEST:
        return
    form = factor
    for part in _branches(factor):
        if not any(map(_is_foreign, nodes(part))):
            new = _gathered(transform(part, _signed))
            if new is not None and new != part:
                form = replaced(form, part, _in_written_order(new, part))
    if form != factor and size(form) <= _GROWTH * size(factor):
        yield times(Ref(used[0]), form)


def _signed(node: Expr) -> Expr:
    """``|u|`` as ``u * sign(u)``, so that algebra sees that the two are alike (a rewrite
    rule makes it ``|u|`` again)."""
    match node:
        case Apply(op="abs", args=(u,)):
            return Apply("mul", (u, Apply("sign", (u,))))
        case _:
            return node


def _branches(expr: Expr) -> list[Expr]:
    """The branches of (nested) conditionals at the root."""
    found: list[Expr] = []
    todo = [expr]
    while todo:
        node = todo.pop()
        if isinstance(node, Select):
            todo += (node.other, node.then)
        elif size(node) > _SMALLEST and node not in found:
            found.append(node)
    return found


def _is_foreign(node: Expr) -> bool:
    match node:
        case Select() | Call():
            return True
        case Apply(op=op):
            return primitive(op).sympy is None  # there is no algebra of steps here
        case _:
            return False


def _in_written_order(form: Expr, original: Expr) -> Expr:
    """Algebra sorts operands: ``x + 1`` and ``p - 1`` become ``1 + x`` and ``1 - p`` again
    where the original has them so."""
    known = set(nodes(original))

    def swap(node: Expr) -> Expr:
        match node:
            case Apply(op="add" | "mul" as op, args=(a, b)) if node not in known:
                swapped = Apply(op, (b, a))
                return swapped if swapped in known else node
            case _:
                return node

    ordered = transform(form, swap)
    is_minus, turned = _turned(ordered, known)
    if not is_minus:
        return turned
    return _without_minus(turned, known) or negate(turned)


def _without_minus(expr: Expr, known: set[Expr]) -> Expr | None:
    """``-expr`` with a difference among the factors turned round, if there is one that
    the original does not have as it is."""
    match expr:
        case Apply(op="mul" | "div" as op, args=(a, b)):
            first = _without_minus(a, known)
            if first is not None:
                return Apply(op, (first, b))
            second = _without_minus(b, known)
            return None if second is None else Apply(op, (a, second))
        case Apply(op="sub", args=(a, b)) if expr not in known:
            return Apply("sub", (b, a))
        case _:
            return None


def _turned(expr: Expr, known: set[Expr]) -> tuple[bool, Expr]:
    """Differences among the factors the other way round, and whether the sign changes."""
    match expr:
        case Apply(op="neg", args=(inner,)):
            is_minus, turned = _turned(inner, known)
            return not is_minus, turned
        case Apply(op="mul" | "div" as op, args=(a, b)):
            (first, left), (second, right) = _turned(a, known), _turned(b, known)
            return first != second, fold(Apply(op, (left, right)))
        case Apply(op="sub", args=(a, b)) if expr not in known:
            swapped = Apply("sub", (b, a))
            return (True, swapped) if swapped in known else (False, expr)
        case _:
            return False, expr


# --- one form for moderate inputs, another for large or tiny ones -------------------------

_BEST = 4
"""Candidates that are looked at, those with the fewest bad points of the core first."""


def by_size(
    quantity: Quantity, held: Candidate, measured: Iterable[Candidate]
) -> Iterator[Expr]:
    """Conditionals between ``held`` and the candidates that are better in a regime.

    A fraction over one denominator loses no digits where its terms nearly cancel, but its
    denominator overflows far out, where the terms as written are good. If the largest
    input tells the points that a form mends from those that it spoils, both forms are
    kept with a threshold between them.
    """
    inputs = sorted(
        names(quantity.close(held.form)) & quantity.trials[0].points.floating
    )
    others = sorted((c for c in measured if c is not held), key=lambda c: c.faults)
    for other in others[:_BEST] if inputs else ():
        mended, spoiled = _sizes(quantity, held, other)
        if not len(mended) or not len(spoiled):
            continue
        sizes: list[Expr] = [Apply("abs", (Ref(name),)) for name in inputs]
        largest = reduce(_larger, sizes)
        if mended.max() < spoiled.min():
            inside = Apply("lt", (largest, _between(mended.max(), spoiled.min())))
            yield Select(inside, other.form, held.form)
        elif mended.min() > spoiled.max():
            outside = Apply("gt", (largest, _between(spoiled.max(), mended.min())))
            yield Select(outside, other.form, held.form)


def _sizes(quantity: Quantity, held: Candidate, other: Candidate) -> tuple[Any, Any]:
    """The largest inputs where ``other`` is good and ``held`` is not, and the reverse."""
    mended, spoiled = [], []
    for trial, before, after in zip(
        quantity.trials, held.scores, other.scores, strict=True
    ):
        was_bad, is_bad = before.errors > GOOD, after.errors > GOOD
        mended.append(np.float64(trial.points.size[was_bad & ~is_bad]))
        spoiled.append(np.float64(trial.points.size[is_bad & ~was_bad]))
    return np.concatenate(mended), np.concatenate(spoiled)


def _between(low: float, high: float) -> Const:
    """A power of two between two sizes."""
    below = frexp(max(low, np.finfo(np.float64).tiny))[1]
    above = frexp(high)[1] - 1
    return Const(Fraction(2) ** max(below, (below + above) // 2))


def _larger(one: Expr, other: Expr) -> Expr:
    return Apply("max", (one, other))
