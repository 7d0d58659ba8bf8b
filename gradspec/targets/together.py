"""Functions of functions that need one exponential together, where compilers fuse: the
hyperbolic tangent of a softplus has two and a logarithm as it stands, and logistic functions
of a difference and of its opposite one each.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from gradspec.plan.array import Expr, Literal, Name, Op, Where, names
from gradspec.primitives.table_known import (
    EXP_DOWN,
    SIGMOID_DOWN,
    SIGMOID_OPPOSITE,
    SIGMOID_REST,
    SOFTPLUS_OPPOSITE,
    TANH_SOFTPLUS,
)
from gradspec.targets.expansion import then
from gradspec.targets.gelu_slope import gelu_slope
from gradspec.targets.short_series import shortened


def together(
    expand: Callable[[Expr], Expr], scalars: frozenset[str]
) -> Callable[[Expr], Expr]:
    """What ``expand`` gives, with such functions in one, each value used once, and
    series of fewer terms."""

    def mended(node: Expr) -> Expr:
        return gelu_slope(_once(shortened(_paired(_joined(node, scalars)))))

    return then(expand, mended)


def with_forward(expand: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """What ``expand`` gives, with exponentials of -abs(x) as logistic functions have
    them, and those alike: XLA computes that of both passes once."""
    return then(expand, lambda node: _opposite(_down(node)))


def paired(expand: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """The same of logistic functions alone."""
    return then(expand, _paired)


def _joined(node: Expr, scalars: frozenset[str]) -> Expr:
    match node:
        case Op("tanh", (Op("softplus", (x,)),)) if not {*names(x)} <= scalars:
            return Op(TANH_SOFTPLUS, (x,))
        case _:
            return node


def _once(node: Expr) -> Expr:
    """``k * r`` or ``r`` is ``r`` times ``k`` or 1: XLA keeps a quotient that is used twice
    in memory, which takes a pass more.
    """
    match node:
        case Where(
            condition=condition, then=Op("mul", (Literal() as k, r)), other=other
        ) if r == other and not isinstance(r, Name):
            return Op("mul", (r, Where(condition, k, Literal(Fraction(1)))))
        case _:
            return node


def _paired(node: Expr) -> Expr:
    """Of a difference and its opposite, both say the one whose names are in order: they
    share all that costs."""
    match node:
        case Op(
            "sigmoid_sum", (Name(id=first) as x, Op("neg", (Name(id=second) as y,)))
        ):
            return Op(SIGMOID_REST, (y, Op("neg", (x,)))) if first > second else node
        case _:
            return node


_OPPOSITES = {"sigmoid": SIGMOID_OPPOSITE, "softplus": SOFTPLUS_OPPOSITE}


def _opposite(node: Expr) -> Expr:
    """A logistic function or a softplus of ``-x`` as one of ``x``: those of a number and of
    its opposite share what costs."""
    match node:
        case Op("sigmoid" | "softplus" as name, (x,)):
            sign, bare = _unsigned(x)
            return Op(_OPPOSITES[name] if sign < 0 else name, (bare,))
        case _:
            return node


def _unsigned(x: Expr) -> tuple[int, Expr]:
    """A product without the signs of its factors, and the sign that they make: no bit of
    it depends on where they stand."""
    match x:
        case Op("neg", (inner,)):
            sign, bare = _unsigned(inner)
            return -sign, bare
        case Op("mul", (a, b)):
            (first, a), (second, b) = _unsigned(a), _unsigned(b)
            return first * second, Op("mul", (a, b))
        case _:
            return 1, x


_GONE = 10_000
"""Beyond it an exponential is 0 in every format."""


def _down(node: Expr) -> Expr:
    match node:
        case Op(
            "exp", (Where(condition=Op("lt", (a, Literal(value=0))), then=b, other=c),)
        ) if a == b and c == Op("neg", (a,)):
            return Op(EXP_DOWN, (_unclipped(a),))
        case Op(
            "sigmoid",
            (Where(condition=Op("lt", (a, Literal(value=0))), then=b, other=c),),
        ) if a == b and c == Op("neg", (a,)):
            return Op(SIGMOID_DOWN, (_unclipped(a),))
        case _:
            return node


def _unclipped(x: Expr) -> Expr:
    """Without bounds that make no difference; what is shifted there is not by much."""
    match x:
        case Op("clip", (inner, Literal(value=low), Literal(value=high))):
            return inner if low <= -_GONE and high >= _GONE else x
        case Op("add", (inner, Literal(value=shift) as by)) if abs(shift) < _GONE / 2:
            return Op("add", (_unclipped(inner), by))
        case Where(condition=condition, then=then_, other=other):
            return Where(condition, _unclipped(then_), _unclipped(other))
        case _:
            return x
