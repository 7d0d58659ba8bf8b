"""Two shares of one number in float64, `u / (1 + exp(b - a))` and `u / (1 + exp(a - b))` (the
gradients of a logarithm of two exponentials): one exponential gives both.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations

from gradspec.plan.array import Expr, Literal, Name, Op
from gradspec.plan.plan import Backward, Step
from gradspec.targets.lines import Lines
from gradspec.targets.signature import fresh

_MOST = Literal(Fraction(1201, 2))
"""Of the exponent: the smaller share is then 0 in float32, and the least number of float32
over the exponential still a normal one in float64."""


def with_shared_exponential(backward: Backward, taken: Collection[str]) -> Backward:
    """The same where the second share is the first times the exponential."""
    shares = [(s, share) for s in backward.statements if (share := _share(s.value))]
    for (one, (u, b, a)), (other, opposite) in combinations(shares, 2):
        if opposite == (u, a, b):
            names = frozenset(s.name for s in backward.statements)
            name = fresh("exp", names.union(taken))
            changed = {
                one.name: _first(one, name, u, Op("sub", (b, a))),
                other.name: (_named(other, Op("mul", (Name(one.name), Name(name)))),),
            }
            steps = (changed.get(s.name, (s,)) for s in backward.statements)
            return replace(backward, statements=tuple(chain.from_iterable(steps)))
    return backward


def moderate_shares(backward: Backward, tensors: Collection[str]) -> Lines:
    """The two shares in float32, where there is much to do and the exponential and the
    opposite are normal numbers of it: only their difference takes float64.
    """
    groups = [group for group in backward.gradients if group]
    match [(s.name, s.value) for s in backward.statements]:
        case [
            (exp, Op("exp", (Op("min", (Op("sub", (Name(id=b), Name(id=a))), _)),))),
            (one, Op("div", (Name(id=u), Op("add", (Literal(value=1), Name(id=e)))))),
            (other, Op("mul", (Name(id=first), Name(id=by)))),
        ] if (e, first, by) == (exp, one, exp) and {a, b} <= {*tensors}:
            ends = [g[0].value.id for g in groups if isinstance(g[0].value, Name)]
            if len(ends) == len(groups) and {*ends} <= {one, other} and u not in (a, b):
                return [
                    f"{exp} = np.subtract({b}, {a}, dtype=np.float64)",
                    f"if _is_moderate({exp}):",
                    f"    {exp} = np.exp({exp}, out={exp}).astype(np.float32)",
                    f"    {one} = {u} / (1.0 + {exp})",
                    f"    {other} = {one} * {exp}",
                    f"    return {', '.join(ends)}",
                ]
    return []


def _share(value: Expr) -> tuple[Expr, Expr, Expr] | None:
    """``u``, ``b`` and ``a``."""
    match value:
        case Op(
            "div",
            (u, Op("add", (Literal(value=1), Op("exp", (Op("sub", (b, a)),))))),
        ):
            return u, b, a
        case _:
            return None


def _first(step: Step, name: str, u: Expr, exponent: Expr) -> tuple[Step, Step]:
    exponential = Op("exp", (Op("min", (exponent, _MOST)),))
    total = Op("add", (Literal(Fraction(1)), Name(name)))
    return replace(step, name=name, value=exponential), _named(
        step, Op("div", (u, total))
    )


def _named(step: Step, value: Expr) -> Step:
    return replace(step, value=value, comment="")
