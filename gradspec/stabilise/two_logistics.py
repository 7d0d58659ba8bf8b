"""One logistic at two places that are near each other, in logarithms.

``log(sigmoid(a)) - log(sigmoid(b))`` is ``log1p(expm1(a - b) * sigmoid(-a))``. Where ``a`` and
``b`` are near each other, or both near 0, it cancels as it is written, in float64 too, and so
does what such differences are the exponents of: the likelihood ratio ``(sigmoid(s) /
sigmoid(t))**p * (sigmoid(-s) / sigmoid(-t))**q`` is ``exp(p * (log(sigmoid(s)) -
log(sigmoid(t))) + q * (log(sigmoid(-s)) - log(sigmoid(-t))))``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from gradspec.derive.build import negate, plus, times
from gradspec.ir.expr import ONE, ZERO, Apply, Expr, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import nodes, size, transform
from gradspec.stabilise.product import Product
from gradspec.stabilise.terms import in_sums, terms_of, total, without
from gradspec.stabilise.united import may_go
from gradspec.symbolic.gather import gathered

_LARGEST = 400
_LOG = "logsigmoid"


def at_two_logistics(form: Expr, meaning: Expr) -> Iterator[Expr]:
    """``form`` with such differences in that way, or what stands in one of its branches:
    these are the whole function where ``meaning`` has no cases, so that those of ``form``
    are the search's own."""
    if size(form) > _LARGEST:
        return
    for branch in _branches(form) if _has_no_cases(meaning) else (form,):
        plain = transform(branch, _plain)
        if sum(map(_is_log, nodes(plain))) > 1:
            paired = in_sums(plain, _paired)
            if paired != plain:
                yield tidy(paired)


def _has_no_cases(meaning: Expr) -> bool:
    """None but for the 0 that the slope of a power is where its exponent is 0."""
    return all(map(_asks_for_zero, filter(_is_divided, nodes(meaning))))


def _is_divided(node: Expr) -> bool:
    return isinstance(node, Select)


def _asks_for_zero(node: Expr) -> bool:
    match node:
        case Select(condition=Apply(op="ne", args=(asked, number)), then=then):
            return node.other == ZERO == number and may_go(asked, then)
        case _:
            return False


def _branches(form: Expr) -> Iterator[Expr]:
    """It as a whole, and what it is wherever its conditions say so."""
    yield form
    if isinstance(form, Select) and not _asks_for_zero(form):
        yield from _branches(form.then)
        yield from _branches(form.other)


def _is_log(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op == _LOG


def _plain(node: Expr) -> Expr:
    """Logarithms of logistics, however they are written."""
    match node:
        case Apply(op="log", args=(Apply(op="sigmoid", args=(u,)),)):
            return Apply(_LOG, (u,))
        case Apply(op="xlogy", args=(c, Apply(op="sigmoid", args=(u,)))):
            return times(c, Apply(_LOG, (u,)))
        case Apply(op="softplus", args=(u,)):
            return negate(Apply(_LOG, (negate(u),)))
        case _:
            return node


def _paired(expr: Expr) -> Expr | None:
    """A sum with the terms of such differences as one each."""
    terms = [*terms_of(expr)]
    found: list[Expr] = []
    while (pair := _pair(terms)) is not None:
        one, other, difference = pair
        terms = [t for t in terms if t is not one and t is not other]
        found.append(difference)
    if not found:
        return None
    whole = total(terms) if terms else found.pop(0)
    for difference in found:
        whole = plus(whole, difference)
    return whole


def _pair(terms: list[Product]) -> tuple[Product, Product, Expr] | None:
    logs = [(t, f) for t in terms for f in t.above if _is_log(f)]
    pairs = [pair for pair in permutations(logs, 2) if pair[0][0].number > 0]
    for (one, first), (other, second) in sorted(pairs, key=_is_across):
        factors = [without(one, first).expr(), without(other, second).expr()]
        if gathered(plus(*factors)) == ZERO:
            (a,), (b,) = first.below, second.below
            return one, other, times(tidy(factors[0]), _difference(a, b))
    return None


def _is_across(pair: tuple[tuple[Product, Expr], tuple[Product, Expr]]) -> bool:
    """Whether one is of ``u`` and the other of ``-v``."""
    one, other = (
        isinstance(u, Apply) and u.op == "neg" for _, log in pair for u in log.below
    )
    return one != other


def _difference(a: Expr, b: Expr) -> Expr:
    apart = fold(Apply("sub", (a, b)))
    grown = Apply("mul", (Apply("expm1", (apart,)), Apply("sigmoid", (negate(a),))))
    logs = Apply(_LOG, (a,)), Apply(_LOG, (b,))
    is_near = Apply("lt", (Apply("abs", (apart,)), ONE))
    return Select(is_near, Apply("log1p", (grown,)), Apply("sub", logs))
