"""Gradients written where they are returned or reduced."""

from __future__ import annotations

from dataclasses import replace

from gradspec.plan.array import Expr, Name, names
from gradspec.plan.plan import Backward, Step, Term


def unnamed(backward: Backward) -> Backward:
    """The same with ``dx = …`` put in place of a term that is the name ``dx``, where
    nothing else needs that name: the target assigns it itself, in the input's shape.
    """
    terms = [term for group in backward.gradients for term in group or ()]
    uses = [*(s.value for s in backward.statements), *(t.value for t in terms)]
    steps = {
        step.name: step
        for step in backward.statements
        if sum(step.name in names(value) for value in uses) == 1
        and Name(step.name) in [term.value for term in terms]
    }
    return replace(
        backward,
        statements=tuple(s for s in backward.statements if s.name not in steps),
        gradients=tuple(
            group if group is None else tuple(_written(term, steps) for term in group)
            for group in backward.gradients
        ),
    )


def _written(term: Term, steps: dict[str, Step]) -> Term:
    value: Expr = term.value
    if isinstance(value, Name) and value.id in steps:
        step = steps[value.id]
        return replace(term, value=step.value, comment=step.comment or term.comment)
    return term
