"""Functions of several inputs that are one of a single inner expression: ``beta * x``.

``sigmoid(beta * x) * (1 + beta * x * sigmoid(-beta * x))`` is a function of ``beta * x``
wherever ``beta`` and ``x`` stand; what is known of functions of one input serves it too.
So is ``sin(sqrt(x)) / sqrt(x)`` one of ``sqrt(x)``: it has a series in that, in ``x`` none
that is found term by term.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import islice

from gradspec.ir.expr import ONE, Apply, Const, Expr, Ref
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, size, substitute, transform
from gradspec.symbolic.gather import gathered

INNER = "·"
"""The inner expression's name: no rule has it."""

_LARGEST = 60  # nodes

_TRIED = 3

_DEGREE = {"sqrt": 2, "cbrt": 3}
"""Roots, and the power that takes them back."""


@lru_cache(maxsize=256)
def of_one(closed: Expr) -> tuple[Expr, Expr] | None:
    """The function in :data:`INNER`, and what that stands for; None if it is not one."""
    if not names(closed) or size(closed) > _LARGEST:
        return None
    for inner in islice(dict.fromkeys(_inner(closed)), _TRIED):
        alone = _with_inner(closed, inner)
        if names(alone) != {INNER}:
            alone = _without(alone, inner)
        if names(alone) == {INNER} and alone != Ref(INNER):
            return alone, inner
    return None


def _inner(closed: Expr) -> Iterator[Expr]:
    """The smallest products, quotients, sums and differences of all the names; of one,
    its product with pi: about 0 all is rational in that; and its roots."""
    used = names(closed)
    for node in nodes(closed):
        match node:
            case Apply(
                op="mul", args=(Ref(), Apply(op="pi")) | (Apply(op="pi"), Ref())
            ):
                if names(node) == used:
                    yield node
            case Apply(op="sqrt" | "cbrt", args=(Ref(),)) if names(node) == used:
                yield node
            case Apply(op="mul" | "div" | "add" | "sub", args=args):
                is_whole = names(node) == used and node != closed
                if is_whole and all(names(arg) != used for arg in args):
                    yield node
            case _:
                continue


def _with_inner(closed: Expr, inner: Expr) -> Expr:
    """Signs in front of a product do not hide it: ``-beta * x``."""
    assert isinstance(inner, Apply)
    if inner.op in _DEGREE:
        return transform(closed, lambda node: _of_root(node, inner))
    a, b = inner.args
    found: dict[Expr, Expr] = {inner: Ref(INNER)}
    if inner.op in ("mul", "add"):
        found[Apply(inner.op, (b, a))] = Ref(INNER)
    if inner.op in ("mul", "div"):
        opposite = Apply("neg", (a,))
        found[Apply(inner.op, (opposite, b))] = Apply("neg", (Ref(INNER),))
        found[Apply(inner.op, (b, opposite))] = Apply("neg", (Ref(INNER),))
    return transform(closed, lambda node: found.get(node, node))


def _of_root(node: Expr, root: Apply) -> Expr:
    """A root, its inverse and powers of its half or third degree in :data:`INNER`."""
    degree, (base,) = _DEGREE[root.op], root.args
    match node:
        case Apply(op="rsqrt", args=(b,)) if b == base and degree == 2:
            return Apply("div", (ONE, Ref(INNER)))
        case Apply(op="pow", args=(b, Const(value=power))) if b == base:
            whole = degree * power
            if whole.denominator == 1:
                return Apply("pow", (Ref(INNER), Const(whole)))
            return node
        case _:
            return Ref(INNER) if node == root else node


def _without(alone: Expr, inner: Expr) -> Expr:
    """Of ``beta * x`` that stands apart, as in ``x * f * beta``: one name is told by the
    other, which must then cancel."""
    match inner:
        case Apply(op="sqrt" | "cbrt" as op, args=(Ref(name=name),)):
            factors: list[Expr] = [Ref(INNER)] * _DEGREE[op]
            power = reduce(_times, factors)
            return tidy(substitute(alone, {name: power}))
        case Apply(op="mul", args=(a, Ref(name=name))):
            other = Apply("div", (Ref(INNER), a))
        case Apply(op="div", args=(a, Ref(name=name))):
            other = Apply("div", (a, Ref(INNER)))
        case _:
            return alone
    found = gathered(tidy(substitute(alone, {name: other})))
    return alone if found is None else tidy(found)


def _times(left: Expr, right: Expr) -> Expr:
    return Apply("mul", (left, right))


def is_root(inner: Expr) -> bool:
    return isinstance(inner, Apply) and inner.op in _DEGREE


def put_back(form: Expr, inner: Expr) -> Expr:
    return substitute(form, {INNER: inner})
