"""What is left of 1 beside the square of one coordinate of a direction.

Where ``w = a * sin(u) + b * cos(u)`` is such a coordinate, ``1 - w**2`` cancels where it is
nearly all. The other two are ``a * cos(u) - b * sin(u)`` and what ``1 - a**2 - b**2`` is the
square of: ``1 - w**2 = (a * cos(u) - b * sin(u))**2 + (1 - a**2 - b**2)``. If the last is a
product (``sin(p)**2 * sin(d)**2`` of the declination ``sin(s) * cos(p) + cos(s) * sin(p) *
cos(d)``), no digits are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gradspec.derive.build import plus, times
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import nodes, size, transform
from gradspec.stabilise.terms import terms_of, total, without
from gradspec.symbolic.circles import choices, gathered_on_circles

_LARGEST = 200
_FEW, _SHORTEST = 8, 2
"""Ways to write squares that are looked at, and that are tried."""

_ANGLED = ("sin", "cos")
_TWO = 2


def on_spheres(closed: Expr) -> Iterator[Expr]:
    """``closed`` with such differences as sums of squares, and gathered so."""
    if size(closed) > _LARGEST:
        return
    found = {node: _squares(w) for node, w in _differences(closed)}
    known = {node: form for node, form in found.items() if form is not None}
    if not known:
        return
    form = transform(closed, lambda node: known.get(node, node))
    yield form
    few = islice(choices(closed), _FEW)
    forms = (gathered_on_circles(form, some, tuple(known.values())) for some in few)
    whole = [tidy(found) for found in forms if found is not None]
    yield from sorted(dict.fromkeys(whole), key=size)[:_SHORTEST]


def _differences(closed: Expr) -> Iterator[tuple[Expr, Expr]]:
    """``1 - w**2``, however it is written, with ``w``."""
    for node in nodes(closed):
        match node:
            case Apply(
                op="mul", args=(Apply("sub", (one, a)), Apply("add", (other, b)))
            ):
                if one == other == ONE and a == b:
                    yield node, a
            case Apply(op="sub", args=(one, squared)) if one == ONE:
                w = _root(squared)
                if w is not None:
                    yield node, w


def _root(squared: Expr) -> Expr | None:
    match squared:
        case Apply(op="square", args=(a,)):
            return a
        case Apply(op="pow", args=(a, Const(value=n))) if n == _TWO:
            return a
        case Apply(op="mul", args=(a, b)) if a == b:
            return a
        case _:
            return None


def _squares(w: Expr) -> Expr | None:
    """``1 - w**2`` as a sum of squares."""
    terms = [*terms_of(w)]
    angles = (
        f.args[0]
        for term in terms
        for f in term.above
        if isinstance(f, Apply) and f.op in _ANGLED
    )
    for u in dict.fromkeys(angles):
        sine, cosine = Apply("sin", (u,)), Apply("cos", (u,))
        a = total([without(t, sine) for t in terms if sine in t.above])
        b = total([without(t, cosine) for t in terms if cosine in t.above])
        is_whole = all((sine in t.above) != (cosine in t.above) for t in terms)
        if not is_whole or {sine, cosine} & {*nodes(a), *nodes(b)}:
            continue
        rest = _rest(a, b)
        if rest is not None:
            other = plus(times(a, cosine), times(Apply("neg", (b,)), sine))
            return tidy(Apply("add", (Apply("square", (other,)), rest)))
    return None


def _rest(a: Expr, b: Expr) -> Expr | None:
    """``1 - a**2 - b**2``, if it is a product."""
    left: Expr = ONE
    for part in (a, b):
        if part != ZERO:
            left = Apply("sub", (left, Apply("square", (part,))))
    for cosines in choices(left):
        found = gathered_on_circles(left, cosines)
        if found is not None and not any(map(_is_sum, nodes(found))):
            return found
    return None


def _is_sum(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op in ("add", "sub")
