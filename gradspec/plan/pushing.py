"""Tangents, term by term: what each input's tangent adds to that of each output.

What multiplies ``dz`` in the gradient of ``x`` multiplies the tangent of ``x`` in that of
``z``: the slope. Slopes are all that is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradspec.plan import linear
from gradspec.plan.array import Expr
from gradspec.plan.plan import Assign, RulePlan
from gradspec.plan.sharing import Words, shared, tensor_gradients
from gradspec.plan.translate import ONE, with_values


@dataclass(frozen=True, slots=True)
class Summand:
    """What the tangent of ``output`` has of the tangent of ``input``, times ``slope``."""

    input: str
    output: str
    slope: Expr
    comment: str


@dataclass(frozen=True, slots=True)
class Pushforward:
    """Shared statements and the summands, in the order of inputs, then of outputs."""

    statements: tuple[Assign, ...]
    summands: tuple[Summand, ...]


def is_linear(plan: RulePlan) -> bool:
    """Whether every gradient is linear in the upstream gradients, by form."""
    wholes = [g.whole for g in plan.gradients if g is not None]
    return all(linear.terms(whole, plan.upstream) is not None for whole in wholes)


def pushforward(plan: RulePlan, words: Words) -> Pushforward:
    """Of a rule that is linear in its upstream gradients. With named axes there are no
    slopes.
    """
    if plan.is_ranked:
        return Pushforward((), ())
    comments = dict(plan.comments)
    found = [
        Summand(
            g.input,
            u.removeprefix("d"),
            words.expand(with_values(value, {u: ONE})),
            comments.get(f"d{g.input}", ""),
        )
        for g in tensor_gradients(plan)
        if g is not None
        for u, value in (linear.terms(g.whole, plan.upstream) or {}).items()
    ]
    statements, slopes = shared(plan, words, tuple(s.slope for s in found))
    pairs = zip(found, slopes, strict=True)
    return Pushforward(statements, tuple(replace(s, slope=v) for s, v in pairs))
