"""A logistic function and a softplus of one argument: one exponential gives both, and the
logistic function of the opposite.

Taken separately they cost NumPy two, and a bound each. The exponential is bounded where it
could overflow: the quotient is then 1, and the softplus its argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from gradspec.plan.array import Expr, Literal, Op, children, names, nodes
from gradspec.plan.program import Vocabulary
from gradspec.primitives.table_known import LOGISTIC_KNOWN, LOGISTIC_SHARE
from gradspec.targets.expansion import then

_ONE = Literal(Fraction(1))
_BOUND = Literal(Fraction(177, 2))
"""Its exponential is finite in float32."""


def with_one_exponential(words: Vocabulary, values: Iterable[Expr]) -> Vocabulary:
    """The words for the values of one pass."""
    expanded = [words.expand(value) for value in values]
    shared = _arguments(expanded, "sigmoid") & _arguments(expanded, "softplus")
    if not shared:
        return words
    return replace(
        words, expand=then(words.expand, lambda node: _in_exponential(node, shared))
    )


def _arguments(values: Iterable[Expr], name: str) -> frozenset[Expr]:
    return frozenset(
        _signed(node.args[0])
        for node in nodes(*values)
        if isinstance(node, Op) and node.primitive == name
    )


def _in_exponential(node: Expr, shared: frozenset[Expr]) -> Expr:
    match node:
        case Op("sigmoid" | "softplus" as name, (arg,)) if (
            x := _signed(arg)
        ) in shared:
            exp = _exponential(x)
            if name == "sigmoid":
                return Op("div", (exp, Op("add", (_ONE, exp))))
            return Op("max", (Op("log1p", (exp,)), x))
        case Op("sigmoid", (arg,)) if (x := _opposite(_signed(arg))) in shared:
            return Op(LOGISTIC_KNOWN, (x, _exponential(x)))
        case _:
            return node


def _exponential(x: Expr) -> Expr:
    return Op("exp", (Op("min", (x, _BOUND)),))


def _opposite(x: Expr) -> Expr:
    match x:
        case Op("neg", (one,)):
            return one
        case _:
            return Op("neg", (x,))


def with_shares(
    words: Vocabulary, values: Iterable[Expr], scalars: frozenset[str]
) -> Vocabulary:
    """The words for the values of one pass: the product of an array with a logistic
    function that nothing else asks for is one quotient.
    """
    users: dict[Expr, set[Expr]] = {}
    for value in values:
        for node in (expanded := words.expand(value), *nodes(expanded)):
            for part in children(node):
                users.setdefault(part, set()).add(node)
    alone = {
        part
        for part, found in users.items()
        if isinstance(part, Op) and part.primitive == "sigmoid" and len(found) == 1
    }

    def shared(node: Expr) -> Expr:
        match node:
            case Op("mul", (x, Op("sigmoid", (z,)) as share)) | Op(
                "mul", (Op("sigmoid", (z,)) as share, x)
            ):
                are_arrays = all(not {*names(part)} <= scalars for part in (x, z))
                is_alone = share in alone and are_arrays
                return Op(LOGISTIC_SHARE, (x, z)) if is_alone else node
            case _:
                return node

    return replace(words, expand=then(words.expand, shared))


def _signed(node: Expr) -> Expr:
    """The same with the sign of a product in front of it."""
    match node:
        case Op("mul", (Op("neg", (one,)), other)):
            return Op("neg", (Op("mul", (one, other)),))
        case _:
            return node
