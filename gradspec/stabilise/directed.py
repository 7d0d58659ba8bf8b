"""Rewrites that are found by algebra rather than by a pattern, wherever they apply.

In the e-graph an expression of three inputs has too many forms before the right one is
there. Two things are worth doing at once, at the very node that loses the digits:

* **The conjugate.** ``p + sqrt(q)`` cancels where ``p`` is negative; ``(q - p**2) / (sqrt(q)
  - p)`` does not, if ``q - p**2`` is shorter written out than it stands:
  ``-b + sqrt(b**2 - a * c)`` is ``-a * c / (b + sqrt(b**2 - a * c))`` for positive ``b``.
* **What is under a root, a logarithm or an exponential, gathered** into one fraction:
  ``sqrt((x + 1) / (x - 1) * (l**2 + 2) - l**2)`` is that of ``2 * (l**2 + x + 1) / (x - 1)``.

What comes of it is measured as any candidate is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from gradspec.derive.build import negate
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes, size
from gradspec.stabilise.search import FEW, Holds, Search, replaced
from gradspec.symbolic.gather import gathered

_LARGEST = 60
"""Nodes of an expression beyond which it is left as it is."""

_INSIDE = ("sqrt", "log", "exp", "cbrt", "rsqrt", "log1p", "expm1")
_RATIONAL = ("add", "sub", "mul", "div", "square", "neg")
_SMALLEST = 5


def forms(search: Search, start: Expr) -> Iterator[Expr]:
    """What the rows make of ``start``, and of its directed forms."""
    yield from search.forms(start)
    for form in directed(start, search.holds):
        yield from search.forms(form, FEW)


def directed(expr: Expr, holds: Holds) -> tuple[Expr, ...]:
    """Forms of ``expr`` with all that is under roots gathered, with all conjugates taken,
    and both."""
    if size(expr) > _LARGEST:
        return ()
    inside = _with_gathered(expr)
    found = (inside, _with_conjugates(expr, holds), _with_conjugates(inside, holds))
    return tuple(dict.fromkeys(form for form in found if form != expr))


def _with_gathered(expr: Expr) -> Expr:
    form = expr
    for node in nodes(expr):
        match node:
            case Apply(op=op, args=(inner,)) if op in _INSIDE and _is_sum(inner):
                new = _gathered(inner)
                if new is not None and size(new) < size(inner):
                    form = replaced(form, inner, new)
    return form


def _is_sum(expr: Expr) -> bool:
    return size(expr) >= _SMALLEST and isinstance(expr, Apply) and expr.op in _RATIONAL


@lru_cache(maxsize=1024)
def _gathered(expr: Expr) -> Expr | None:
    form = None if any(isinstance(n, Select) for n in nodes(expr)) else gathered(expr)
    return None if form is None else tidy(form)


# --- the conjugate ---------------------------------------------------------------------


def _with_conjugates(expr: Expr, holds: Holds) -> Expr:
    """The first in place; the conditional stands outside of it all, so that what the
    conjugate has in common with the rest cancels."""
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
