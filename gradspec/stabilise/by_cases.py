"""What stands around a conditional, moved into its branches.

``a + (p if c else q)`` is ``a + p if c else a + q``, and there each branch is a formula of
its own, which can be gathered: ``p + 1 - min(p, 0)**2 / (min(p, 0) - 1)`` cancels far out on
the left, where it is ``1 / (1 - p)``; on the right it is ``1 + p``. A minimum, a maximum, an
absolute value and a sign are conditionals as well. All that compares the same two numbers
is one question with three answers; the third, that they are equal, goes with one of the
others wherever it has the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from gradspec.derive.build import negate
from gradspec.ir.expr import ONE, ZERO, Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes, size, substitute, transform
from gradspec.symbolic.gather import gathered

_LARGEST = 100
_MOST = 2
"""Pairs of numbers that are compared."""

_HOLDS: dict[str, tuple[int, ...]] = {
    "lt": (-1,),
    "le": (-1, 0),
    "gt": (1,),
    "ge": (0, 1),
    "eq": (0,),
    "ne": (-1, 1),
}
_OF_ONE, _OF_TWO = ("abs", "sign", "relu"), ("min", "max")

_Pair: TypeAlias = tuple[Expr, Expr]


def by_cases(expr: Expr) -> Iterator[Expr]:
    """``expr`` with its conditionals outside of all but factors that have none."""
    form = _moved(expr, _MOST) if size(expr) <= _LARGEST else None
    if form is not None and form != expr:
        yield form


def _moved(expr: Expr, most: int) -> Expr | None:
    match expr:
        case Apply(op="neg", args=(inner,)):
            return _around(negate, inner, most)
        case Apply(op="mul", args=(a, b)) if not _pairs(a):
            return _around(lambda form: fold(Apply("mul", (a, form))), b, most)
        case Apply(op="mul", args=(a, b)) if not _pairs(b):
            return _around(lambda form: fold(Apply("mul", (form, b))), a, most)
    pairs = _pairs(expr)
    if not 0 < len(pairs) <= most:
        return None
    return _divided(expr, pairs[0], most)


def _around(put: Callable[[Expr], Expr], inner: Expr, most: int) -> Expr | None:
    form = _moved(inner, most)
    return None if form is None else put(form)


def _divided(expr: Expr, pair: _Pair, most: int) -> Expr | None:
    """Below, where both are equal, and above. What is not a number is above: it has to be
    in the form there if it is in what is left where no comparison holds."""
    cases = [
        tidy(transform(expr, partial(_answered, pair=pair, sign=sign)))
        for sign in (-1, 0, 1)
    ]
    below, same, above = (_gathered(case, most) for case in cases)
    asked = names(pair[0]) | names(pair[1])
    if not asked & names(_unanswered(expr, pair)) <= names(above):
        return None
    if same == above or _at(pair, cases[1]) == _at(pair, above):
        return Select(Apply("lt", pair), below, above)
    if same == below or _at(pair, cases[1]) == _at(pair, below):
        return Select(Apply("le", pair), below, above)
    rest = Select(Apply("eq", pair), same, above)
    return Select(Apply("lt", pair), below, rest)


def _gathered(case: Expr, most: int) -> Expr:
    """A branch in one fraction, or with what is left to ask moved outside of it."""
    if any(isinstance(node, Call) for node in nodes(case)):
        return case
    if _pairs(case):
        return _moved(case, most - 1) or case
    plain = not any(isinstance(node, Select) for node in nodes(case))
    form = gathered(case) if plain else None
    return case if form is None else tidy(form)


def _at(pair: _Pair, form: Expr) -> Expr:
    """A form where both are equal, as far as that tells its value."""
    match pair:
        case (Ref(name=name, indices=()), Const() as number):
            return tidy(substitute(form, {name: number}))
        case _:
            return form


# --- who is compared --------------------------------------------------------------------


def _pairs(expr: Expr) -> tuple[_Pair, ...]:
    """What is compared with what, in the order in which it first is."""
    found: dict[_Pair, None] = {}
    for node in nodes(expr):
        pair = _pair(node)
        if pair is not None and pair[::-1] not in found:
            found[pair] = None
    return tuple(found)


def _pair(node: Expr) -> _Pair | None:
    match node:
        case Select(condition=Apply(op=op, args=(a, b))) if op in _HOLDS:
            return a, b
        case Apply(op=op, args=(a, b)) if op in _OF_TWO:
            return a, b
        case Apply(op=op, args=(a,)) if op in _OF_ONE:
            return a, ZERO
        case _:
            return None


def _unanswered(expr: Expr, pair: _Pair) -> Expr:
    """What is evaluated where one of the two is not a number."""

    def other(node: Expr) -> Expr:
        match node:
            case Select(condition=Apply(op=op)) if _pair(node) in (pair, pair[::-1]):
                return node.then if op == "ne" else node.other
            case _:
                return node

    return tidy(transform(expr, other))


def _answered(node: Expr, pair: _Pair, sign: int) -> Expr:
    """A node where the first number is less (-1), equal or larger (1) than the other."""
    found = _pair(node)
    if found == pair[::-1] and found != pair:
        sign = -sign
    elif found != pair:
        return node
    match node:
        case Select(condition=Apply(op=op), then=then, other=other):
            return then if sign in _HOLDS[op] else other
        case Apply(op="min", args=(a, b)):
            return a if sign < 0 else b
        case Apply(op="max", args=(a, b)):
            return b if sign < 0 else a
        case Apply(op="relu", args=(a,)):
            return a if sign > 0 else ZERO
        case Apply(op="abs", args=(a,)):
            return a if sign > 0 else negate(a)
        case Apply(op="sign"):
            return (negate(ONE), ZERO, ONE)[sign + 1]
        case _:
            return node
