"""Mistakes with sums over indices: one too many, one too few, at the wrong place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gradspec.checks.guess import quoted
from gradspec.ir.expr import Apply, Bound, Expr, Idx, Reduce
from gradspec.ir.walk import nodes, transform

_SUMS = ("sum", "mean")


def other_sums(
    text: Expr, indices: Mapping[str, str | int]
) -> Iterator[tuple[str, Expr]]:
    """The text with one sum mended; ``indices`` are those of the whole, with their axes."""
    for node in nodes(text):
        match node:
            case Reduce(op=op, bounds=(Bound(index=index, axis=axis),), body=body) if (
                op in _SUMS and node.where is None
            ):
                for name in (n for n, own in indices.items() if own == axis):
                    one = _at(body, index, name)
                    told = f"{quoted(node)} should be {quoted(one)}: nothing is summed"
                    yield told, _put(text, node, one)
            case Apply(op="mul", args=(Reduce() as left, Reduce() as right)) if (
                _is_alike(left, right)
            ):
                (bound,) = left.bounds
                inner = _at(right.body, right.bounds[0].index, bound.index)
                product = Apply("mul", (left.body, inner))
                joined = Reduce("sum", left.bounds, product)
                yield (
                    f"the sum of products {quoted(joined)} is meant",
                    _put(text, node, joined),
                )
            case _:
                continue


def _is_alike(left: Reduce, right: Reduce) -> bool:
    """Two sums over one axis."""
    return (
        left.op == right.op == "sum"
        and len(left.bounds) == len(right.bounds) == 1
        and left.bounds[0].axis == right.bounds[0].axis
        and left.where is None
        and right.where is None
    )


def _at(body: Expr, index: str, other: str) -> Expr:
    return transform(body, lambda n: Idx(other) if n == Idx(index) else n)


def _put(expr: Expr, old: Expr, new: Expr) -> Expr:
    return transform(expr, lambda node: new if node == old else node)
