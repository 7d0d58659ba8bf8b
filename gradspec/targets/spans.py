"""The shape of a gradient's term beside that of its input, as far as it is known."""

from __future__ import annotations

from gradspec.plan.array import names
from gradspec.plan.plan import RulePlan, Term
from gradspec.targets.signature import scalars


def is_reduced(plan: RulePlan, name: str, term: Term) -> bool:
    """Whether the term may have axes that the input has not."""
    others = any(v != name and has_axes(plan, v) for v in term.spans)
    return others and not is_number(plan, term)


def lacks_axes(plan: RulePlan, name: str, term: Term) -> bool:
    """Whether the input may have axes that the term has not."""
    return has_axes(plan, name) and name not in term.spans


def is_number(plan: RulePlan, term: Term) -> bool:
    """Whether no tensor takes part in the term."""
    return set(names(term.value)) <= scalars(plan)


def has_axes(plan: RulePlan, name: str) -> bool:
    """Whether an input may have axes that broadcast."""
    return next(i.shape.batch for i in plan.inputs if i.name == name)
