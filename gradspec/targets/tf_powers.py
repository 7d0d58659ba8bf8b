"""Powers whose exponent is a Python number that the text does not know.

TensorFlow's derivative of ``x**n`` is ``n * x**(n - 1)``, also where ``n`` is 0: of a power
that has been differentiated down to a constant it is NaN at 0. With an exponent that is
written as a number there is no such power; a static parameter may be any.
"""

from __future__ import annotations

from collections.abc import Callable

from gradspec.plan.array import Expr, Op, ToFloat, children, names, nodes
from gradspec.plan.translate import rebuilt
from gradspec.primitives.table_known import POWER
from gradspec.targets.expansion import then


def with_powers(
    expand: Callable[[Expr], Expr], scalars: frozenset[str]
) -> Callable[[Expr], Expr]:
    """What ``expand`` gives, with powers whose derivatives are numbers at 0."""

    def mended(node: Expr) -> Expr:
        match node:
            case Op("pow", (x, n)):
                named = {*names(n)}
                is_given = bool(named) and named <= scalars
                is_array = not {*names(x)} <= scalars
                return Op(POWER, (x, _bare(n))) if is_given and is_array else node
            case _:
                return node

    return then(expand, mended)


def _bare(number: Expr) -> Expr:
    """A Python number that no tensor is made of."""
    done: dict[Expr, Expr] = {}
    for node in nodes(number):
        parts = tuple(done[part] for part in children(node))
        is_cast = isinstance(node, ToFloat)
        done[node] = parts[0] if is_cast else rebuilt(node, parts)
    return done[number]
