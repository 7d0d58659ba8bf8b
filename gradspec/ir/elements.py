"""Elements of indexed values, and expressions unrolled for given indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
    Idx,
    Key,
    Reduce,
    Ref,
    Select,
    Size,
    const,
)
from gradspec.ir.tidy import decide, fold
from gradspec.ir.walk import with_children
from gradspec.source import Span

Index: TypeAlias = tuple[int, ...]
Nested: TypeAlias = "int | Sequence[Nested]"
"""A given integer, or the rows of them, as the input has axes."""

Axes: TypeAlias = tuple[str | int, ...]
Env: TypeAlias = Mapping[str, int]


_UNDEFINED = Apply("div", (ZERO, ZERO))
"""An element that does not exist, where data decide which one is meant."""


class OutOfRange(ValueError):
    """At these sizes (or given integers) an output or a gradient uses an element that
    does not exist: the rule is undefined. ``span`` is the place of use; ``through`` the
    element of a local, if one lies between.
    """

    def __init__(
        self, name: str, span: Span | None = None, through: Ref | None = None
    ) -> None:
        super().__init__(f"{name} does not exist")
        self.name, self.span, self.through = name, span, through


def element(name: str, index: Index) -> str:
    """The name of an element: ``x[0, 1]``; a value without axes keeps its own."""
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def places(axes: Axes, sizes: Mapping[str, int]) -> Iterator[Index]:
    """Every index of a value with these axes, the last one running fastest."""
    return product(*(range(extent(axis, sizes)) for axis in axes))


def extent(axis: str | int, sizes: Mapping[str, int]) -> int:
    return axis if isinstance(axis, int) else sizes[axis]


class Expansion:
    """Expressions with the values of their indices put in.

    An element out of range becomes a reference to a name that nothing defines: whether
    that matters shows only when the conditions around it are decided.
    """

    def __init__(
        self,
        axes: Mapping[str, Axes],
        sizes: Mapping[str, int],
        integers: Mapping[str, Nested],
        joins: Mapping[str, Join],
    ) -> None:
        self.axes, self.sizes = axes, sizes
        self.integers, self.joins = integers, joins
        self._orders: dict[int, tuple[tuple[Expr, object, tuple[str, ...]], ...]] = {}
        self._known: dict[object, Expr] = {}

    def expand(self, expr: Expr, env: Env) -> Expr:
        """``expr`` with the values of ``env`` in place of its free indices. Each node
        is expanded once for the values of the indices that it really uses.
        """
        done: dict[Key, Expr] = {}
        for node, name, used in self._order(expr):
            place = (name, *[env[index] for index in used])
            value = self._known.get(place)
            if value is None:
                value = self._known[place] = self._node(node, env, done)
            done[node.key] = value
        return done[expr.key]

    def _order(self, expr: Expr) -> tuple[tuple[Expr, object, tuple[str, ...]], ...]:
        """The nodes in no reduction, children before parents, each with the name under
        which it is known, and its free indices. Equal reductions are one; other nodes
        keep their places in the text, which a diagnostic shows.
        """
        order = self._orders.get(id(expr))
        if order is None:
            order = self._orders[id(expr)] = tuple(
                (n, n.key if isinstance(n, Reduce) else id(n), n.free)
                for n in above_reductions(expr)
            )
        return order

    def _node(self, node: Expr, env: Env, done: Mapping[Key, Expr]) -> Expr:
        match node:
            case Idx(name=name):
                return const(env[name])
            case Size(axis=axis):
                return const(self.sizes[axis])
            case Ref(name=name, indices=indices):
                return self._ref(name, tuple([done[i.key] for i in indices]), node)
            case Reduce():
                return self.joins[node.op](self._terms(node, env))
            case _:
                parts = tuple([done[child.key] for child in node.below])
                return fold(with_children(node, parts))

    # --- references ------------------------------------------------------------------

    def _ref(self, name: str, indices: tuple[Expr, ...], node: Ref) -> Expr:
        """The element; a choice between elements where an index depends on data."""
        for position, index in enumerate(indices):
            if not isinstance(index, Const):
                return self._choice(name, indices, position, node)
        place = tuple(int(i.value) for i in indices if isinstance(i, Const))
        if name in self.integers:
            return self._element_value(name, place, node.span)
        return Ref(element(name, place), span=node.span)

    def _choice(
        self, name: str, indices: tuple[Expr, ...], position: int, node: Ref
    ) -> Expr:
        result: Expr = _UNDEFINED
        axis = self.axes[name][position]
        for place in reversed(range(extent(axis, self.sizes))):
            chosen = (*indices[:position], const(place), *indices[position + 1 :])
            here = Apply("eq", (indices[position], const(place)))
            result = Select(here, self._ref(name, chosen, node), result)
        return result

    def _element_value(self, name: str, index: Index, span: Span | None) -> Expr:
        value: Nested = self.integers[name]
        for place in index:
            if isinstance(value, int) or not 0 <= place < len(value):
                return Ref(element(name, index), span=span)
            value = value[place]
        return const(value) if isinstance(value, int) else Ref(element(name, index))

    def _terms(self, node: Reduce, env: Env) -> Terms:
        terms: Terms = []
        axes = tuple(bound.axis for bound in node.bounds)
        for index in places(axes, self.sizes):
            pairs = zip(node.bounds, index, strict=True)
            inner = {**env, **{bound.index: place for bound, place in pairs}}
            where = None if node.where is None else self.expand(node.where, inner)
            decided = True if where is None else decide(where)
            if decided is not False:
                condition = None if decided else where
                terms.append((condition, self.expand(node.body, inner)))
        return terms


def above_reductions(expr: Expr) -> Iterator[Expr]:
    """Every node that is in no reduction, children before parents."""
    seen: set[Key] = set()
    todo: list[tuple[Expr, bool]] = [(expr, False)]
    while todo:
        node, is_below_done = todo.pop()
        if is_below_done:
            yield node
        elif node.key not in seen:
            seen.add(node.key)
            todo.append((node, True))
            if not isinstance(node, Reduce):
                todo.extend((child, False) for child in reversed(node.below))


# --- reductions as scalars ---------------------------------------------------------------
#
# A term may count on a condition only (``sum(x[j] for j if x[j] > 0)``). A reduction of
# no terms is what the frameworks make of it: 0, 1, -inf or inf, and a mean is undefined.


Terms: TypeAlias = "list[tuple[Expr | None, Expr]]"
"""Each term with the condition on which it counts; None: it counts."""

Join: TypeAlias = Callable[[Terms], Expr]

_INF = Apply("inf")
_MINUS_INF = Apply("neg", (_INF,))


def add_up(terms: Terms) -> Expr:
    return _chain("add", _or_else(terms, ZERO), ZERO)


def multiply(terms: Terms) -> Expr:
    return _chain("mul", _or_else(terms, ONE), ONE)


def average(terms: Terms) -> Expr:
    """The mean of the terms that count."""
    if all(condition is None for condition, _ in terms):
        return fold(Apply("div", (add_up(terms), const(len(terms)))))
    number = add_up([(condition, ONE) for condition, _ in terms])
    return fold(Apply("div", (add_up(terms), number)))


def largest(terms: Terms) -> Expr:
    """A tie of more than two is not shared evenly by the derivative of this chain."""
    return _extreme("max", terms, _MINUS_INF)


def smallest(terms: Terms) -> Expr:
    return _extreme("min", terms, _INF)


def log_of_sum(terms: Terms) -> Expr:
    """As defined, which is the form that proofs like; see also :func:`shifted_logsumexp`."""
    if not terms:
        return _MINUS_INF
    powers: Terms = [(c, fold(Apply("exp", (term,)))) for c, term in terms]
    return fold(Apply("log", (add_up(powers),)))


def shifted_logsumexp(terms: Terms) -> Expr:
    """``logsumexp`` as it is evaluated: with the largest term taken out."""
    if not terms:
        return _MINUS_INF
    top = largest(terms)
    lower = [(c, fold(Apply("sub", (term, top)))) for c, term in terms]
    return fold(Apply("add", (top, log_of_sum(lower))))


def root_of_squares(terms: Terms) -> Expr:
    """As defined; 0 of nothing."""
    squares: Terms = [(c, fold(Apply("square", (term,)))) for c, term in terms]
    return fold(Apply("sqrt", (add_up(squares),)))


def scaled_norm(terms: Terms) -> Expr:
    """``norm`` as it is evaluated: divided by the largest element, so that no square
    overflows or is lost; as defined where that is 0 or infinite."""
    if not terms:
        return ZERO
    top = largest([(c, fold(Apply("abs", (term,)))) for c, term in terms])
    in_range = Apply("and", (Apply("gt", (top, ZERO)), Apply("lt", (top, _INF))))
    by = fold(Select(in_range, top, ONE))
    shares: Terms = [(c, fold(Apply("div", (term, by)))) for c, term in terms]
    return fold(Apply("mul", (by, root_of_squares(shares))))


PLAIN: Mapping[str, Join] = {
    "sum": add_up,
    "mean": average,
    "prod": multiply,
    "max": largest,
    "min": smallest,
    "peak": largest,
    "logsumexp": log_of_sum,
    "norm": root_of_squares,
}
"""By definition: for derivatives, proofs and exact values."""

EVALUATED: Mapping[str, Join] = {
    **PLAIN,
    "logsumexp": shifted_logsumexp,
    "norm": scaled_norm,
}
"""As the targets evaluate them: for measurements in floating point."""


def _or_else(terms: Terms, neutral: Expr) -> list[Expr]:
    return [t if c is None else fold(Select(c, t, neutral)) for c, t in terms]


def _chain(op: str, terms: list[Expr], empty: Expr) -> Expr:
    if not terms:
        return empty
    result = terms[0]
    for term in terms[1:]:
        result = fold(Apply(op, (result, term)))
    return result


def _extreme(op: str, terms: Terms, empty: Expr) -> Expr:
    """Infinity takes part only if nothing counts: balls and derivatives dislike it."""
    if all(condition is None for condition, _ in terms):
        return _chain(op, [term for _, term in terms], empty)
    best: Expr = empty
    found: Expr = Apply("ne", (ZERO, ZERO))
    for condition, term in terms:
        joined = fold(Select(found, fold(Apply(op, (best, term))), term))
        if condition is None:
            best, found = joined, Apply("eq", (ZERO, ZERO))
        else:
            best = fold(Select(condition, joined, best))
            found = fold(Apply("or", (found, condition)))
    return best
