"""The terms of a reduction, unrolled into scalars.

A term may count on a condition only (``sum(x[j] for j if x[j] > 0)``). A reduction of
no terms is what the frameworks make of it: 0, 1, -inf or inf, and a mean is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from gradspec.ir.expr import ONE, ZERO, Apply, Expr, Select, const
from gradspec.ir.tidy import fold

Terms: TypeAlias = "list[tuple[Expr | None, Expr]]"
"""Each term with the condition on which it counts; None: it counts."""

Join: TypeAlias = Callable[[Terms], Expr]

_INF = Apply("inf")
_MINUS_INF = Apply("neg", (_INF,))


def join(op: str, terms: Terms, joins: Mapping[str, Join]) -> Expr:
    """The reduction ``op`` of ``terms``."""
    return joins[op](terms)


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
    """As defined, which is the form that proofs like; see also :func:`shifted`."""
    if not terms:
        return _MINUS_INF
    powers: Terms = [(c, fold(Apply("exp", (term,)))) for c, term in terms]
    return fold(Apply("log", (add_up(powers),)))


def shifted(terms: Terms) -> Expr:
    """``logsumexp`` as it is evaluated: with the largest term taken out."""
    if not terms:
        return _MINUS_INF
    top = largest(terms)
    lower = [(c, fold(Apply("sub", (term, top)))) for c, term in terms]
    return fold(Apply("add", (top, log_of_sum(lower))))


PLAIN: Mapping[str, Join] = {
    "sum": add_up,
    "mean": average,
    "prod": multiply,
    "max": largest,
    "min": smallest,
    "peak": largest,
    "logsumexp": log_of_sum,
}
"""By definition: for derivatives, proofs and exact values."""

EVALUATED: Mapping[str, Join] = {**PLAIN, "logsumexp": shifted}
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
