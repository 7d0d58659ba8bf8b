"""Expressions over indices as arrays with axes in a given order.

A value is prepared (its branches decided, its bound indices told apart, its products
regrouped), translated node by node (`translation.py`), and spread over its axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from gradspec.derive.scopes import replace_indices
from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.walk import expand
from gradspec.plan import sums
from gradspec.plan.arrays import Expr
from gradspec.plan.axes import Value, size_of, spread
from gradspec.plan.contractions import BATCH
from gradspec.plan.operations import Types
from gradspec.plan.rewrites import (
    asks,
    at_positions,
    filled_outside,
    regroup,
    spelled_out,
    with_single_terms,
    without_decided_branches,
)
from gradspec.plan.translation import Known, Translation, size_in_rules


def array_of(
    value: ir.Expr,
    indices: Sequence[str],
    axes: Sequence[str | int],
    view: Mapping[str, Known],
    types: Types,
    like: Expr,
    held: Set[Expr],
    *,
    batched: bool = True,
    is_gradient: bool = False,
    is_guarded: bool = False,
) -> Value:
    """``value`` over ``indices``, with their axes in full and in that order. Arrays that
    are ``held`` already are used again.

    Without ``batched`` it is also summed over batch axes, for the gradient of an input
    that has none. In a gradient, an empty sum is 0 even if the factors before it are
    undefined. Where ``is_guarded``, a condition decides wherever the value is used.
    """
    whole = {n: tuple(map(size_in_rules, k.sizes)) for n, k in view.items()}
    tensors = frozenset(n for n, known in view.items() if not known.is_number)
    value = without_decided_branches(expand(value))
    value = with_single_terms(value, types.integers)
    value = filled_outside(value, whole)
    value = spelled_out(_separate(value))
    value = regroup(value, tensors)
    sizes = dict(zip(indices, map(size_of, axes), strict=True)) | _bound_sizes(value)
    unguarded = (
        frozenset[ir.Expr]()
        if is_guarded
        else walk.unguarded_references(value, is_ordered=not is_gradient)
    )
    translation = Translation(
        view, types, like, tuple(indices), sizes, unguarded, held, sums.SUMMATIONS
    )
    if is_gradient:
        value = sums.within_sums(translation, value)
    found = _whole(translation, value, dict(zip(indices, axes, strict=True)), batched)
    order = tuple(indices)
    full = spread(found, order, [sizes[i] for i in order])
    return Value(full, order, found.batched, found.is_number and not order)


def _whole(
    t: Translation, value: ir.Expr, axes: Mapping[str, str | int], batched: bool
) -> Value:
    """The value; position by position where an axis is unrolled."""
    for index, axis in axes.items():
        if isinstance(axis, int) and asks(value, index, axis):
            rest = {i: a for i, a in axes.items() if i != index}
            parts = at_positions(value, index, axis)
            return t.beside([_whole(t, part, rest, batched) for part in parts], index)
    found = t.value(value)
    if not batched and found.batched:
        return sums.total(t, (BATCH,), value)
    return found


def _separate(expr: ir.Expr) -> ir.Expr:
    """Bound indices of different axes get different names: ``j@n`` and ``j@m``."""

    def visit(node: ir.Expr) -> ir.Expr:
        if not isinstance(node, ir.Reduce):
            return node
        bounds = tuple(ir.Bound(f"{b.index}@{b.axis}", b.axis) for b in node.bounds)
        pairs = zip(node.bounds, bounds, strict=True)
        names: dict[str, ir.Expr] = {b.index: ir.Idx(new.index) for b, new in pairs}
        where = node.where and replace_indices(node.where, names)
        return ir.Reduce(node.op, bounds, replace_indices(node.body, names), where)

    return walk.transform(expr, visit)


def _bound_sizes(expr: ir.Expr) -> dict[str, Expr]:
    """The sizes of the bound indices, outer ones first."""
    found = [n for n in walk.nodes(expr) if isinstance(n, ir.Reduce)]
    return {b.index: size_of(b.axis) for n in reversed(found) for b in n.bounds}
