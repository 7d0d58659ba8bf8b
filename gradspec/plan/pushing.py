"""Tangents, term by term: what each input's tangent adds to that of each output.

What multiplies ``dz`` in the gradient of ``x`` multiplies the tangent of ``x`` in that of
``z``, so that the terms of the gradients are all that is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradspec.plan import linear
from gradspec.plan.array import Expr, Name, names, substitute
from gradspec.plan.plan import Assign, RulePlan
from gradspec.plan.sharing import Words, shared, tensor_gradients


@dataclass(frozen=True, slots=True)
class Push:
    """A statement and the tangent that it needs, if any: ``<input>_dot``."""

    name: str
    value: Expr
    comment: str
    tangent: str


@dataclass(frozen=True, slots=True)
class Summand:
    """What the tangent of ``input`` adds to the tangent of ``output``."""

    input: str
    output: str
    value: Expr
    comment: str


@dataclass(frozen=True, slots=True)
class Pushforward:
    """Shared statements and the summands, in the order of inputs, then of outputs."""

    statements: tuple[Push, ...]
    summands: tuple[Summand, ...]


def is_linear(plan: RulePlan) -> bool:
    """Whether every gradient is linear in the upstream gradients, by form."""
    wholes = [g.whole for g in plan.gradients if g is not None]
    return all(linear.terms(whole, plan.upstream) is not None for whole in wholes)


def pushforward(plan: RulePlan, words: Words) -> Pushforward:
    """Of a rule that is linear in its upstream gradients."""
    comments = dict(plan.comments)
    found = [
        Summand(g.input, u.removeprefix("d"), value, comments.get(f"d{g.input}", ""))
        for g in tensor_gradients(plan)
        if g is not None
        for u, value in (linear.terms(g.whole, plan.upstream) or {}).items()
    ]
    roots = tuple(words.expand(_pushed(summand)) for summand in found)
    statements, values = shared(plan, words, roots)
    return Pushforward(
        tuple(_pushes(plan, statements)),
        tuple(replace(s, value=v) for s, v in zip(found, values, strict=True)),
    )


def _pushed(summand: Summand) -> Expr:
    dot = Name(f"{summand.input}_dot")
    return substitute(summand.value, {f"d{summand.output}": dot})


def _pushes(plan: RulePlan, statements: tuple[Assign, ...]) -> list[Push]:
    """A summand has one tangent, and so has what it is made of."""
    tangent = {f"{i.name}_dot": f"{i.name}_dot" for i in plan.tensors}
    found = []
    for s in statements:
        of = next((tangent[n] for n in names(s.value) if n in tangent), "")
        if of:
            tangent[s.name] = of
        found.append(Push(s.name, s.value, s.comment, of))
    return found
