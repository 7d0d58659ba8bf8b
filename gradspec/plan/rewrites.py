"""Expressions over indices rewritten before they are translated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from gradspec.derive.deltas import linear
from gradspec.derive.scopes import replaced
from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.tidy import fold
from gradspec.ir.walk import transform
from gradspec.plan import arrays
from gradspec.plan.axes import size_of

# --- conditions -----------------------------------------------------------------------
#
# Redundant conditions.
#
# Guarding turns an exponential that a condition excludes into
# ``exp(a if c else -inf)``: that is 0 there already, so that no second choice between
# it and 0 is needed.


def without_repeats(expr: Expr) -> Expr:
    """``expr`` without choices that replace 0 by 0."""

    def visit(node: Expr) -> Expr:
        match node:
            case Select(condition=condition, then=then, other=other) if (
                other == ZERO and vanishes(then, condition)
            ):
                return then
            case Reduce(op="sum", bounds=bounds, body=body, where=where) if (
                where is not None and vanishes(body, where)
            ):
                return Reduce("sum", bounds, body, None, span=node.span)
            case _:
                return node

    return transform(expr, visit)


def vanishes(expr: Expr, condition: Expr) -> bool:
    """True if ``expr`` is 0 wherever the condition does not hold, for all data."""
    match expr:
        case Apply(op="exp", args=(Select(condition=own, other=other),)):
            return own == condition and other == MINUS_INFINITY
        case Apply(op="div", args=(above, below)):
            return vanishes(above, condition) and _is_number(below, condition)
        case Apply(op="mul", args=(left, right)):
            return (vanishes(left, condition) and _is_number(right, condition)) or (
                vanishes(right, condition) and _is_number(left, condition)
            )
        case Apply(op="neg", args=(arg,)):
            return vanishes(arg, condition)
        case _:
            return False


MINUS_INFINITY = Apply("neg", (Apply("inf"),))


def _is_number(expr: Expr, condition: Expr) -> bool:
    """True if it is a number other than 0 where the condition does not hold."""
    match expr:
        case Select(condition=own, other=Const(value=value)):
            return own == condition and value != 0
        case Const(value=value):
            return value != 0
        case _:
            return isinstance(expr, Size)


def is_within(condition: Expr, reference: Ref, sizes: Sequence[Expr]) -> bool:
    """True if the condition says no more than that the reference's positions exist."""
    reach = [
        (linear(position), linear(Apply("sub", (position, size))))
        for position, size in zip(reference.indices, sizes, strict=True)
    ]
    return all(
        _bound(conjunct)
        in [(0, low) for low, _ in reach] + [(-1, high) for _, high in reach]
        for conjunct in _conjuncts(condition)
    )


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case Apply(op="and", args=args):
            for arg in args:
                yield from _conjuncts(arg)
        case _:
            yield condition


def _bound(condition: Expr) -> tuple[int, Mapping[Expr, Fraction]] | None:
    """``(0, p)`` for ``p >= 0`` and ``(-1, p)`` for ``p < 0``, of whole numbers."""
    match condition:
        case Apply(op="ge", args=(a, b)) | Apply(op="le", args=(b, a)):
            return 0, linear(Apply("sub", (a, b)))
        case Apply(op="lt", args=(a, b)) | Apply(op="gt", args=(b, a)):
            return -1, linear(Apply("sub", (a, b)))
        case _:
            return None


# --- shifted factors ------------------------------------------------------------------
#
# Factors at the same shifted positions, computed before they are shifted.
#
# ``sum(dy[k - j] * w[j] / y[k - j] for j)`` reads ``dy`` and ``y`` at positions that do
# not all exist; elements outside are 0, and 0 divided by 0 is NaN. So
# ``u[i] = dy[i] / y[i]`` is computed where both exist, and ``u[k - j]`` is 0 outside.
# This also needs one window instead of two.


_Place = tuple[Expr, ...]
_PLAIN = frozenset(["add", "sub", "mul", "neg"])
"""Operations that are finite wherever their operands are."""


@dataclass(slots=True)
class Hoisted:
    """The expression with names for such factors, and these by name over the indices
    ``h0``, ``h1``, … of the axes in ``like``, an input or local of the same axes.
    """

    value: Expr
    factors: dict[str, tuple[Expr, tuple[str, ...], str]] = field(default_factory=dict)


def hoisted(value: Expr, ranks: Mapping[str, object]) -> Hoisted:
    """``value`` with such factors named; those alone whose values have equal ``ranks``
    (the sizes of their axes).
    """
    found = Hoisted(value)
    if not any(isinstance(n, Ref) and n.indices for n in walk.nodes(value)):
        return found
    found.value = _Hoisting(ranks, found).visit(value)
    return found


class _Hoisting:
    def __init__(self, ranks: Mapping[str, object], found: Hoisted) -> None:
        self._ranks, self._found = ranks, found
        self._done: dict[Expr, Expr] = {}

    def visit(self, node: Expr) -> Expr:
        if node not in self._done:
            is_product = isinstance(node, Apply) and node.op in ("mul", "div", "neg")
            self._done[node] = self._product(node) if is_product else self._plain(node)
        return self._done[node]

    def _plain(self, node: Expr) -> Expr:
        children = tuple(map(self.visit, walk.children(node)))
        return walk.with_children(node, children)

    def _product(self, node: Expr) -> Expr:
        above, below, is_negative = _factors(node)
        places = [self._place(factor) for factor in (*above, *below)]
        risky = {
            place
            for place, factor in zip(places, (*above, *below), strict=True)
            if place and (factor in below or _is_risky(factor))
        }
        if not risky:
            return self._plain(node)
        count = len(above)
        tops: list[Expr] = []
        done: set[_Place] = set()
        for place, factor in zip(places[:count], above, strict=True):
            if place not in risky:
                tops.append(self.visit(factor))
            elif place not in done:
                done.add(place)
                tops.append(self._named(place, places, above, below))
        tops += [self._named(p, places, above, below) for p in risky - done]
        rest = [
            self.visit(factor)
            for place, factor in zip(places[count:], below, strict=True)
            if place not in risky
        ]
        value = reduce(lambda a, b: Apply("mul", (a, b)), tops)
        value = reduce(lambda a, b: Apply("div", (a, b)), rest, value)
        return Apply("neg", (value,)) if is_negative else value

    def _named(
        self,
        place: _Place,
        places: list[_Place],
        above: list[Expr],
        below: list[Expr],
    ) -> Expr:
        """The factors at one place, as a value of their own."""
        count = len(above)
        tops = [f for p, f in zip(places[:count], above, strict=True) if p == place]
        under = [f for p, f in zip(places[count:], below, strict=True) if p == place]
        value = reduce(lambda a, b: Apply("mul", (a, b)), tops) if tops else ONE
        value = reduce(lambda a, b: Apply("div", (a, b)), under, value)
        indices = tuple(f"h{k}" for k in range(len(place)))
        at = tuple(map(Idx, indices))

        def unshifted(node: Expr) -> Expr:
            return (
                Ref(node.name, at) if isinstance(node, Ref) and node.indices else node
            )

        like = next(
            n.name for n in walk.nodes(value) if isinstance(n, Ref) and n.indices
        )
        body = walk.transform(value, unshifted)
        known = {factor: name for name, (factor, *_) in self._found.factors.items()}
        name = known.get(body, f"factor@{len(self._found.factors)}")
        self._found.factors[name] = body, indices, like
        return Ref(name, place)

    def _place(self, factor: Expr) -> _Place:
        """The positions at which all parts of the factor stand; () if there are
        several, or plain indices alone.
        """
        nodes = tuple(walk.nodes(factor))
        refs = [n for n in nodes if isinstance(n, Ref) and n.indices]
        places = {n.indices for n in refs}
        if len(places) != 1 or any(isinstance(n, Reduce) for n in nodes):
            return ()
        (place,) = places
        apart = walk.transform(factor, lambda n: ONE if n in refs else n)
        if any(isinstance(n, Idx | Size) for n in walk.nodes(apart)):
            return ()
        if all(isinstance(index, Idx | Const) for index in place):
            return ()
        ranks = {self._ranks.get(ref.name) for ref in refs}
        return place if len(ranks) == 1 and None not in ranks else ()


def _factors(node: Expr) -> tuple[list[Expr], list[Expr], bool]:
    """Numerators, denominators, and True if the product is negated."""
    match node:
        case Apply(op="neg", args=(arg,)):
            above, below, is_negative = _factors(arg)
            return above, below, not is_negative
        case Apply(op="mul", args=(a, b)):
            (one, under, first), (other, below, second) = _factors(a), _factors(b)
            return [*one, *other], [*under, *below], first != second
        case Apply(op="div", args=(a, b)):
            (one, under, first), (other, below, second) = _factors(a), _factors(b)
            return [*one, *below], [*under, *other], first != second
        case _:
            return [node], [], False


def _is_risky(factor: Expr) -> bool:
    """True if it may be infinite where its operands are 0."""
    return any(isinstance(n, Apply) and n.op not in _PLAIN for n in walk.nodes(factor))


# --- short axes -----------------------------------------------------------------------
#
# Values defined position by position, along a short axis.
#
# ``c[i] = (... if i == 0 else ... if i == 1 else ...)`` over an axis of size 3 is a
# stack of three values; nothing is computed and then discarded by a choice.


_MOST = 8
"""A longer axis is not treated as a list of cases."""

_COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def spelled_out(expr: ir.Expr) -> ir.Expr:
    """``expr`` with sums over such an axis unrolled."""
    done: dict[ir.Expr, ir.Expr] = {}
    for node in walk.nodes(expr):
        parts = tuple(done[child] for child in walk.children(node))
        made = walk.with_children(node, parts)
        match made:
            case ir.Reduce(op="sum", bounds=(bound,), body=body, where=None) if (
                isinstance(bound.axis, int) and asks(body, bound.index, bound.axis)
            ):
                terms = at_positions(body, bound.index, bound.axis)
                done[node] = reduce(lambda a, b: fold(ir.Apply("add", (a, b))), terms)
            case _:
                done[node] = made if made is node else fold(made)
    return done[expr]


def asks(expr: ir.Expr, index: str, axis: str | int) -> bool:
    """True if a condition distinguishes positions of a short axis."""
    if not isinstance(axis, int) or not 1 < axis <= _MOST:
        return False
    return any(_compares(node, index) for node in walk.nodes(expr))


def _compares(node: ir.Expr, index: str) -> bool:
    match node:
        case ir.Apply(op=op, args=(ir.Idx(name=name), ir.Const())) if op in _COMPARE:
            return name == index
        case ir.Apply(op=op, args=(ir.Const(), ir.Idx(name=name))) if op in _COMPARE:
            return name == index
        case _:
            return False


def at_positions(expr: ir.Expr, index: str, axis: int) -> tuple[ir.Expr, ...]:
    """``expr`` at each position."""
    return tuple(replaced(expr, {index: ir.const(k)}) for k in range(axis))


# --- small factors first --------------------------------------------------------------
#
# Small factors of a product first: each saves a pass over a row.
#
# ``x[i] * r**2 * m`` is ``x[i] * (r**2 * m)`` where ``r`` and ``m`` are constant along
# a row: their product is one number for each row.


_Indices: TypeAlias = "frozenset[str] | None"
"""The indices that a value depends on; None for a number."""


def regrouped(expr: ir.Expr, tensors: frozenset[str]) -> ir.Expr:
    """``expr`` with its products so bracketed; ``tensors`` are the names of tensors."""
    uses = Counter(child for node in walk.nodes(expr) for child in walk.children(node))
    done: dict[ir.Expr, ir.Expr] = {}
    known: dict[ir.Expr, _Indices] = {}

    def learn(made: ir.Expr) -> ir.Expr:
        todo = [made]
        while todo:
            missing = [c for c in walk.children(todo[-1]) if c not in known]
            if missing:
                todo += missing
            else:
                part = todo.pop()
                known[part] = _indices(part, known, tensors)
        return made

    for node in walk.nodes(expr):
        parts = tuple(done[child] for child in walk.children(node))
        made = learn(walk.with_children(node, parts))
        alone = not parts or uses[walk.children(node)[0]] == 1
        done[node] = learn(_bracketed(made, known)) if alone else made
    return done[expr]


def _indices(
    node: ir.Expr, known: Mapping[ir.Expr, _Indices], tensors: frozenset[str]
) -> _Indices:
    found = [k for child in walk.children(node) if (k := known[child]) is not None]
    whole: frozenset[str] = frozenset().union(*found)
    match node:
        case ir.Ref(name=name):
            return whole if name in tensors else None
        case ir.Idx(name=name):
            return frozenset((name,))
        case ir.Reduce(bounds=bounds):
            return whole - {bound.index for bound in bounds} if found else None
        case _:
            return whole if found else None


def _bracketed(expr: ir.Expr, known: Mapping[ir.Expr, _Indices]) -> ir.Expr:
    """One product or quotient whose left side is a product."""
    match expr:
        case ir.Apply(
            op="mul" | "div" as op,
            args=(ir.Apply(op="mul", args=(first, second)), right),
        ) if op == "mul" or known[right] is None:
            # A quotient of tensors may be what keeps a product from overflowing.
            a, b, c = known[first], known[second], known[right]
            if _is_less(b, a) and _is_less(c, a) and (b is not None or c is not None):
                return ir.apply("mul", first, ir.apply(op, second, right))
            if _is_less(a, b) and _is_less(c, b) and (a is not None or c is not None):
                return ir.apply("mul", ir.apply(op, first, right), second)
    return expr


def _is_less(small: _Indices, large: _Indices) -> bool:
    """True if a value has fewer axes than another, which is not a number."""
    return large is not None and (small is None or small < large)


# --- empty axes -----------------------------------------------------------------------
#
# Factors that are undefined for an empty axis.
#
# The mean over an empty axis is NaN, and so are values that depend on it; an empty sum
# is 0. Where ``r`` depends on a mean over rows,
# ``sum(dy[i, j] * c[i, j] * r[j] for i)`` is therefore not written
# ``r * sum(dy * c)``: without rows, that would be NaN.


Sizes = frozenset[arrays.Expr]
_NONE: Sizes = frozenset()


def undefined_at(value: ir.Expr, known: Mapping[str, Sizes]) -> Sizes:
    """The sizes of which a 0 leaves a value undefined: those of the axes of its means,
    and those by which it divides. ``known`` has those of the names in it.
    """
    found: dict[ir.Expr, Sizes] = {}
    for node in walk.nodes(value):
        at = _NONE.union(*(found[child] for child in walk.children(node)))
        match node:
            case ir.Ref(name=name):
                at |= known.get(name, _NONE)
            case ir.Reduce(op="mean" | "logsumexp", bounds=bounds):
                at |= {size_of(bound.axis) for bound in bounds}
            case ir.Apply(op="div", args=(_, ir.Size(axis=axis))):
                at |= {size_of(axis)}
            case _:
                pass
        found[node] = at
    return found[value]
