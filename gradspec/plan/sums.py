"""Sums over indices: contractions, running sums, sums by position.

A sum of products is a contraction, two factors at a time, never a product over all
indices: factors without summed indices are moved out first. The sum over batch axes,
for the gradient of an input that has none, is one more index, ``BATCH``. Factors that
are undefined for an empty sum stay inside (`rewrites.undefined_at`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING

from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.plan.arrays import (
    Cumulative,
    Einsum,
    Expr,
    Literal,
    Op,
    ScatterAdd,
    Window,
)
from gradspec.plan.axes import Value, aligned

if TYPE_CHECKING:
    from gradspec.plan.translate import Translation


def total(
    t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr | None = None
) -> Value:
    """The sum of ``body`` over ``bounds`` where the condition holds."""
    if where is None:
        body, where = _condition(body)
    if where is not None:
        special = _running(t, bounds, body, where) or _by_position(
            t, bounds, body, where
        )
        if special is not None:
            return special
        body = _narrowed(t, bounds, body, where)
    if isinstance(body, ir.Select) and not _depends(t.value(body.condition), bounds):
        return _chosen(t, bounds, body)
    terms = _distributed(t, bounds, body) or _terms(body)
    if len(terms) > 1 and any(_is_contraction(t, term, bounds) for term in terms):
        return _added(t, [total(t, bounds, term) for term in terms])
    return _product_total(t, bounds, body)


def _narrowed(t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr) -> ir.Expr:
    """``body`` where the condition holds, else 0. In a contraction one factor alone is
    masked, the first that has all indices of the condition: ``p[i, j]`` of ``p[i, j] *
    v[j, k]`` for ``j <= i``.
    """
    if _is_masked(body, where):
        return body
    indices = set(t.value(where).axes)
    parts = _product(body)
    at = next((f for f in parts.above if indices <= set(t.value(f).axes)), None)
    if at is None or not _is_contraction(t, body, bounds):
        return ir.Select(where, body, ir.ZERO)
    if _is_masked(at, where) or t.is_padded(at, where):
        return body
    rest = list(parts.above)
    rest[rest.index(at)] = ir.Select(where, at, ir.ZERO)
    return _multiplied(parts, rest)


def _is_masked(expr: ir.Expr, condition: ir.Expr) -> bool:
    """True for ``exp(a if c else -inf)``, which is 0 where the condition fails."""
    match expr:
        case ir.Apply(op="exp", args=(ir.Select(condition=own, other=other),)):
            return own == condition and other == ir.apply("neg", ir.Apply("inf"))
        case _:
            return False


def _chosen(t: Translation, bounds: Bounds, body: ir.Select) -> Value:
    """A choice whose condition has no summed index becomes a choice between sums."""
    condition = t.value(body.condition)
    then = total(t, bounds, body.then)
    other = total(t, bounds, body.other)
    return t.choice(condition, then, other)


def average(
    t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr | None
) -> Value:
    """The mean; over the positions where the condition holds, if there is one."""
    if where is not None:
        count = total(t, bounds, ir.Select(where, ir.ONE, ir.ZERO))
        return t.combined("div", total(t, bounds, body, where), count)
    value = t.value(body)
    if set(bounds) <= set(value.axes) and not _is_contraction(t, body, bounds):
        return t.over("mean", bounds, value)
    return t.combined("div", total(t, bounds, body), _count(t, bounds))


def _count(t: Translation, bounds: Bounds) -> Value:
    sizes = [t.sizes[bound] for bound in bounds]
    return Value(reduce(lambda a, b: Op("mul", (a, b)), sizes), is_number=True)


# --- products ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Product:
    """``-`` if negative, the numerators and the denominators."""

    negative: bool
    above: tuple[ir.Expr, ...]
    below: tuple[ir.Expr, ...]


def _product(expr: ir.Expr) -> _Product:
    """The factors of a product (on an explicit stack: it may be long)."""
    negative = False
    above: list[ir.Expr] = []
    below: list[ir.Expr] = []
    todo = [(expr, True)]
    while todo:
        node, is_above = todo.pop()
        match node:
            case ir.Apply(op="neg", args=(arg,)):
                negative = not negative
                todo.append((arg, is_above))
            case ir.Apply(op="mul", args=(left, right)):
                todo += [(right, is_above), (left, is_above)]
            case ir.Apply(op="div", args=(left, right)):
                todo += [(right, not is_above), (left, is_above)]
            case _:
                (above if is_above else below).append(node)
    return _Product(negative, tuple(above), tuple(below))


def _factors(parts: _Product, wanted: Callable[[ir.Expr], bool]) -> _Product:
    """The factors of a product that are wanted."""
    above = tuple(f for f in parts.above if wanted(f))
    below = tuple(f for f in parts.below if wanted(f))
    return _Product(parts.negative, above, below)


def _values(t: Translation, parts: _Product) -> tuple[list[Value], list[Value]]:
    return [t.value(f) for f in parts.above], [t.value(f) for f in parts.below]


def _is_lost(t: Translation, factor: ir.Expr, bounds: Bounds) -> bool:
    """True if a factor is undefined for an empty sum (`rewrites.undefined_at`)."""
    over = {t.sizes[bound] for bound in bounds if bound != BATCH}
    return bool(t.lost_at(factor) & over)


def within_sums(t: Translation, value: ir.Expr) -> ir.Expr:
    """``value`` with such factors moved into the sums that they multiply."""
    if not any(map(_is_sum, walk.nodes(value))):
        return value

    def visit(node: ir.Expr) -> ir.Expr:
        if not isinstance(node, ir.Apply) or node.op not in ("mul", "div"):
            return node
        parts = _product(node)
        at = next((f for f in parts.above if _is_sum(f)), None)
        if not isinstance(at, ir.Reduce):
            return node
        over = tuple(b.index for b in at.bounds)

        def is_lost(f: ir.Expr) -> bool:
            apart = f is not at and {*over}.isdisjoint(f.free)
            return apart and _is_lost(t, f, over)

        lost = _factors(parts, is_lost)
        if not lost.above and not lost.below:
            return node
        body = _multiplied(replace(lost, negative=False), [at.body, *lost.above])
        rest = _factors(parts, lambda f: f not in (*lost.above, *lost.below))
        taken = ir.Reduce("sum", at.bounds, body, at.where)
        above = [*rest.above]
        above[above.index(at)] = taken
        return _multiplied(rest, above)

    return walk.transform(value, visit)


def _is_sum(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Reduce) and expr.op == "sum"


def _product_total(t: Translation, bounds: Bounds, body: ir.Expr) -> Value:
    parts = _factors(_product(body), lambda f: f != ir.ONE)
    outside = _factors(parts, lambda f: not _depends(t.value(f), bounds))
    inner = [t.value(f) for f in parts.above if f not in outside.above]
    for divisor in (t.value(f) for f in parts.below if f not in outside.below):
        over = inner.pop() if inner else Value(Literal(Fraction(1)), is_number=True)
        inner.append(t.combined("div", over, divisor))
    empty = _factors(outside, lambda f: bool(inner) and _is_lost(t, f, bounds))
    if empty.above or empty.below:
        inner = taken_in(t, inner, *_values(t, empty))
        outside = _factors(outside, lambda f: f not in (*empty.above, *empty.below))
        found = contracted(t, inner, bounds)
    else:
        found = _nested(t, bounds, parts) or contracted(t, inner, bounds)
    present = {axis for value in inner for axis in value.axes}
    absent = tuple(b for b in bounds if b not in present and b != BATCH)
    above, below = _values(t, outside)
    factors = [*above, *found]
    if absent:
        factors.append(_count(t, absent))
    result = reduce(
        lambda a, b: t.combined("mul", a, b),
        factors or [Value(Literal(Fraction(1)), is_number=True)],
    )
    result = reduce(lambda a, b: t.combined("div", a, b), below, result)
    return t.combined("neg", result) if parts.negative else result


def _nested(t: Translation, bounds: Bounds, parts: _Product) -> list[Value]:
    """A sum of a sum becomes one sum, if the inner one is the whole body."""
    inner = [f for f in parts.above if _depends(t.value(f), bounds)]
    below = any(_depends(t.value(f), bounds) for f in parts.below)
    match inner:
        case [ir.Reduce(op="sum", bounds=more, body=body, where=where)] if not below:
            return [total(t, (*bounds, *(b.index for b in more)), body, where)]
        case _:
            return []


def _depends(value: Value, bounds: Bounds) -> bool:
    return bool(_summed(value, bounds))


def _summed(value: Value, bounds: Bounds) -> set[str]:
    """The bounds that occur in a value."""
    return set(bounds) & axes_of(value)


def _is_contraction(t: Translation, body: ir.Expr, bounds: Bounds) -> bool:
    """True if factors over different indices meet under the sum."""
    parts = _product(body)
    inner = [v for f in parts.above if _depends(v := t.value(f), bounds)]
    return len({frozenset(axes_of(value)) for value in inner}) > 1


# --- sums of terms -----------------------------------------------------------------------


def _terms(expr: ir.Expr) -> list[ir.Expr]:
    """The summands, each with its sign."""
    match expr:
        case ir.Apply(op="add", args=(left, right)):
            return [*_terms(left), *_terms(right)]
        case ir.Apply(op="sub", args=(left, right)):
            return [*_terms(left), *(ir.apply("neg", r) for r in _terms(right))]
        case ir.Apply(op="neg", args=(arg,)):
            return [ir.apply("neg", term) for term in _terms(arg)]
        case _:
            return [expr]


def _distributed(t: Translation, bounds: Bounds, body: ir.Expr) -> list[ir.Expr]:
    """The terms of ``g[i, j] * (x[i, l] + z[j, l])``: the sum over all three indices
    would be larger than all of its parts; each term is a contraction. A difference
    stays whole (distributed, it would lose the digits of what its terms share), and so
    does a sum that is held.
    """
    parts = _product(body)
    for at, factor in enumerate(parts.above):
        terms = _terms(factor)
        value = t.value(factor)
        whole = axes_of(value)
        rest = [*parts.above[:at], *parts.above[at + 1 :]]  # it may occur there again
        others = [axes_of(t.value(f)) for f in rest]
        is_larger = all(axes_of(t.value(term)) < whole for term in terms)
        is_difference = len({*map(_is_negative, terms)}) > 1
        if len(terms) < 2 or is_difference or value.expr in t.held:
            continue
        if is_larger and not any(whole <= o for o in others):
            return [_multiplied(parts, [*rest, term]) for term in terms]
    return []


def _is_negative(term: ir.Expr) -> bool:
    parts = _product(term)
    return parts.negative ^ any(
        isinstance(f, ir.Const) and f.value < 0 for f in (*parts.above, *parts.below)
    )


def _multiplied(parts: _Product, above: list[ir.Expr]) -> ir.Expr:
    product: ir.Expr = reduce(lambda a, b: ir.apply("mul", a, b), above)
    for divisor in parts.below:
        product = ir.apply("div", product, divisor)
    return ir.apply("neg", product) if parts.negative else product


def _added(t: Translation, values: list[Value]) -> Value:
    return reduce(lambda a, b: t.combined("add", a, b), values)


# --- special forms -----------------------------------------------------------------------


def _condition(body: ir.Expr) -> tuple[ir.Expr, ir.Expr | None]:
    match body:
        case ir.Select(condition=condition, then=then, other=other) if other == ir.ZERO:
            return then, condition
        case _:
            return body, None


_RUNNING = {"le": (False, 0), "lt": (False, -1), "ge": (True, 0), "gt": (True, 1)}
_FLIPPED = {"le": "ge", "lt": "gt", "ge": "le", "gt": "lt"}


def _running(
    t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr
) -> Value | None:
    """``sum(x[j] for j if j <= i)`` where ``i`` does not occur in the body."""
    match where:
        case ir.Apply(op=op, args=(ir.Idx(name=j), ir.Idx(name=i))) if op in _RUNNING:
            pass
        case _:
            return None
    if i in bounds:
        i, j, op = j, i, _FLIPPED[op]
    value = t.value(body)
    sound = (j,) == bounds and j in value.axes and i not in value.axes
    if not sound or t.sizes[i] != t.sizes[j]:
        return None
    reverse, start = _RUNNING[op]
    axis = value.axes.index(j) - len(value.axes)
    expr: Expr = Cumulative(t.floating(value.expr), axis, reverse)
    if start:
        expr = Window(expr, axis, Literal(Fraction(start)), t.sizes[i], True)
    axes = tuple(i if a == j else a for a in value.axes)
    return Value(expr, axes, value.batched)


def _by_position(
    t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr
) -> Value | None:
    """``sum(a[j] for j if t[j] == k)``: each summand is added at the position that its
    integer gives.
    """
    match where:
        case ir.Apply(op="eq", args=(ir.Idx(name=k), index) | (index, ir.Idx(name=k))):
            pass
        case _:
            return None
    at, value = t.integer(index), t.value(body)
    is_data = any(isinstance(n, ir.Ref) for n in walk.nodes(index))
    outer = [a for a in at.axes if a not in bounds]
    if not is_data or k in bounds or k in value.axes or k in at.axes or outer:
        return None
    over_batch = BATCH in bounds and at.batched
    if not over_batch and not set(at.axes) & set(bounds):
        return None
    alone = tuple(b for b in bounds if b not in axes_of(at))
    value = sum_of(t, value, alone)
    absent = tuple(b for b in alone if b != BATCH and b not in t.value(body).axes)
    if absent:
        value = t.combined("mul", value, _count(t, absent))
    rest = tuple(a for a in value.axes if a not in at.axes)
    spread = Value(t.floating(value.expr), value.axes, True, value.is_number)
    expr = ScatterAdd(
        at.expr,
        aligned(spread, (*at.axes, *rest)),
        t.sizes[k],
        len(at.axes),
        len(rest),
        over_batch,
    )
    batched = not over_batch and (at.batched or value.batched)
    return Value(expr, (k, *rest), batched)


# --- products of two ------------------------------------------------------------------


BATCH = "..."
Bounds = tuple[str, ...]


def axes_of(value: Value) -> set[str]:
    """The indices of a value, ``BATCH`` among them where it has batch axes."""
    return {*value.axes, BATCH} if value.batched else set(value.axes)


def taken_in(
    t: Translation, inner: list[Value], above: list[Value], below: list[Value]
) -> list[Value]:
    """The values under a sum, with factors without summed indices multiplied in."""
    if len({frozenset(axes_of(value)) for value in inner}) == 1:
        inner = [reduce(lambda a, b: t.combined("mul", a, b), inner)]
    needed = set[str]().union(*map(axes_of, [*above, *below]))
    at = max(
        range(len(inner)),
        key=lambda k: (needed <= axes_of(inner[k]), -len(axes_of(inner[k]))),
    )
    value = reduce(lambda a, b: t.combined("mul", a, b), above, inner[at])
    value = reduce(lambda a, b: t.combined("div", a, b), below, value)
    return [*inner[:at], value, *inner[at + 1 :]]


def contracted(t: Translation, values: list[Value], bounds: Bounds) -> list[Value]:
    """The sum of the product, as one value; no value for an empty product."""
    while len(values) > 1:
        first, second = min(
            combinations(range(len(values)), 2),
            key=lambda pair: _cost(values, pair, bounds),
        )
        rest = [v for p, v in enumerate(values) if p not in (first, second)]
        gone = _gone(values[first], values[second], rest, bounds)
        values = [
            *rest[:first],
            _pair(t, values[first], values[second], gone),
            *rest[first:],
        ]
    return [sum_of(t, value, bounds) for value in values]


def _gone(
    left: Value, right: Value, rest: Sequence[Value], bounds: Bounds
) -> tuple[str, ...]:
    """The summed indices that occur in this pair only."""
    others = {axis for value in rest for axis in axes_of(value)}
    here = axes_of(left) | axes_of(right)
    return tuple(b for b in bounds if b in here and b not in others)


def _cost(
    values: list[Value], pair: tuple[int, int], bounds: Bounds
) -> tuple[int, bool, int]:
    """The result's rank, True if nothing is summed, and the rank of the work."""
    left, right = values[pair[0]], values[pair[1]]
    rest = [v for p, v in enumerate(values) if p not in pair]
    every = axes_of(left) | axes_of(right)
    gone = _gone(left, right, rest, bounds)
    return len(every) - len(gone), not gone, len(every)


def _pair(t: Translation, left: Value, right: Value, gone: Bounds) -> Value:
    alone = (axes_of(left) ^ axes_of(right)) & set(gone)
    same = axes_of(left) == axes_of(right)
    within = axes_of(left) <= axes_of(right) or axes_of(right) <= axes_of(left)
    summed = tuple(g for g in gone if g not in alone)
    first = tuple(g for g in gone if g in alone)
    left, right = sum_of(t, left, first), sum_of(t, right, first)
    if same or not summed or (within and summed == (BATCH,)):
        return sum_of(t, t.combined("mul", left, right), summed)
    return _einsum(t, left, right, summed)


def sum_of(t: Translation, value: Value, bounds: Bounds) -> Value:
    """The sum of one value over the bounds that it has."""
    held = tuple(b for b in bounds if b in value.axes)
    if held:
        value = t.over("sum", held, value)
    if BATCH in bounds and value.batched:
        words = _words(value.axes)
        word = "".join(words[axis] for axis in value.axes)
        expr = Einsum((t.floating(value.expr),), (f"...{word}",), word)
        value = Value(expr, value.axes, False)
    return value


def _einsum(t: Translation, left: Value, right: Value, gone: Bounds) -> Value:
    order = tuple(a for a in t.frame((left, right)) if a not in gone)
    batched = (left.batched or right.batched) and BATCH not in gone
    words = _words((*order, *left.axes, *right.axes))

    def word(axes: Sequence[str], is_batched: bool) -> str:
        return "..." * is_batched + "".join(words[axis] for axis in axes)

    expr = Einsum(
        (t.floating(left.expr), t.floating(right.expr)),
        (word(left.axes, left.batched), word(right.axes, right.batched)),
        word(order, batched),
    )
    return Value(expr, order, batched)


def _words(axes: Sequence[str]) -> dict[str, str]:
    """A letter for each index, in order of appearance: equal contractions have equal
    subscripts, whatever their indices are called.
    """
    distinct = dict.fromkeys(axes)
    return dict(zip(distinct, "ijklmnopqrstuvwxyzabcdefgh", strict=False))
