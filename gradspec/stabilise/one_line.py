"""``1 - p**2`` over one line, where ``p`` is a quotient: what is left of 1 is a difference.

``(1 - s / sqrt(d)) * (1 + s / sqrt(d))`` is ``(d - s**2) / d``. Where ``s / sqrt(d)`` has rounded to
1 nothing is left of the first; in the second what cancels does so between inputs: with ``d =
o**2 + e * s**2`` it is ``o**2 + (e - 1) * s**2``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from gradspec.ir.expr import ONE, Apply, Const, Expr
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, names, nodes, size, with_children
from gradspec.symbolic.grouped import collected_terms

_LARGEST, _PAIR, _WAYS = 300, 40, 3


def over_one_line(closed: Expr) -> Iterator[Expr]:
    """``closed`` with such products as one fraction, by the powers of one input or
    another."""
    if size(closed) > _LARGEST:
        return
    pairs = dict.fromkeys(node for node in nodes(closed) if _is_left_of_one(node))
    found = {pair: (*islice(collected_terms(pair), _WAYS),) for pair in pairs}
    for way in range(max(map(len, found.values()), default=0)):
        forms = {
            pair: some[min(way, len(some) - 1)] for pair, some in found.items() if some
        }
        yield tidy(_replaced(closed, forms))


def _replaced(expr: Expr, forms: Mapping[Expr, Expr]) -> Expr:
    """``expr`` with the outermost of these in their other form."""
    if expr in forms:
        return _upright(forms[expr])
    parts = tuple(_replaced(child, forms) for child in children(expr))
    return with_children(expr, parts) if parts else expr


def _upright(form: Expr) -> Expr:
    """``(b - a) / c`` for ``-(a - b) / c``."""
    match form:
        case Apply(op="mul" | "div" as op, args=(first, second)):
            return Apply(op, (_upright(first), second))
        case Apply(op="neg", args=(Apply(op="sub", args=(a, b)),)):
            return Apply("sub", (b, a))
        case Apply(
            op="neg", args=(Apply(op="mul" | "div" as op, args=(first, second)),)
        ):
            return Apply(op, (_upright(Apply("neg", (first,))), second))
        case _:
            return form


def _is_left_of_one(node: Expr) -> bool:
    match node:
        case Apply(
            op="mul",
            args=(
                (
                    Apply(op="sub", args=(Const() as a, p)),
                    Apply(op="add", args=(Const() as b, q)),
                )
                | (
                    Apply(op="add", args=(Const() as a, p)),
                    Apply(op="sub", args=(Const() as b, q)),
                )
            ),
        ):
            is_one = a == b == ONE and p == q
        case Apply(
            op="sub", args=(Const() as a, Apply(op="square" | "mul" | "div") as p)
        ):
            is_one = a == ONE
        case _:
            return False
    return is_one and size(node) <= _PAIR and bool(names(p)) and _has_quotient(p)


def _has_quotient(expr: Expr) -> bool:
    match expr:
        case Apply(op="div", args=(_, below)):
            return bool(names(below))
        case Apply(op="mul" | "square" | "neg", args=args):
            return any(map(_has_quotient, args))
        case _:
            return False
