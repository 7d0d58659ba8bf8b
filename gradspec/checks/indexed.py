"""Check a ranked rule, by what it is at small sizes.

A lint of elementwise rules is asked of the unrolled rule; what it says of every element
of a variable is said once, of the variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from gradspec.checks import (
    assumptions,
    indexed_absent,
    indexed_boundaries,
    indexed_cotangents,
    indexed_examples,
    indexed_partial,
    indexed_shapes,
    inputs,
    overrides,
    parameters,
    surrogates,
)
from gradspec.checks.claims import Judgement
from gradspec.checks.indexed_cases import (
    Case,
    Cases,
    cases,
    few,
    is_too_large,
)
from gradspec.checks.subject import Subject
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.rule import Declared, Rule

Check = Callable[[Subject], Iterable[Diagnostic]]

_OF_ALL: tuple[Check, ...] = (
    inputs.steps,
    inputs.vanishing,
    surrogates.check,
    overrides.check,
    overrides.deaf,
    parameters.check,
)
"""What is worth saying only if it holds of every element."""

_ELEMENT = re.compile(r"(\w+)\[[\d, ]+\]")


def examine(
    rule: Rule, budget: float
) -> tuple[tuple[Judgement, ...], tuple[Diagnostic, ...]]:
    """The judgements on the declared cotangents, and what else is found."""
    meaningless = tuple(indexed_shapes.check(rule))
    if meaningless:
        return (), meaningless
    if is_too_large(rule):
        judgements = indexed_cotangents.judge_by_calculus(rule)
        return judgements, tuple(inputs.unused_in(rule))
    is_claimed = any(isinstance(entry, Declared) for entry in rule.backward)
    known = cases(rule) if is_claimed else few(rule)
    if known.first is None and not known.larger:
        return (), (*inputs.unused_in(rule), *_nowhere(rule, known))
    indexed_cotangents.recheck(rule, known)
    judgements = indexed_cotangents.judge(rule, known, budget)
    judgements = indexed_absent.judge(rule, known, judgements)
    at_breaks: tuple[Diagnostic, ...] = ()
    if known.usual is not None:
        judgements, at_breaks = indexed_boundaries.judge(known.usual, judgements)
    found = (
        *map(_of_variable, at_breaks),
        *inputs.unused_in(rule),
        *indexed_partial.check(rule),
        *_lints(rule, known),
        *indexed_examples.check(rule),
    )
    return judgements, found


def _nowhere(rule: Rule, known: Cases) -> Iterator[Diagnostic]:
    """There is no size at which every element exists, or none that is assumed."""
    if known.lost:
        fault = known.lost[-1]
        yield error(
            "GS420",
            f"{rule.name} uses elements that do not exist, at every size",
            rule.source,
            fault.span or rule.name_span,
            label=f"`{fault.name}` is outside its axis",
            help="narrow the range, `sum(… for i if i < n - 1)`, or give the border a"
            " value of its own, `… if i < n - 1 else …`",
        )
    elif rule.assumes:
        yield assumptions.unsatisfiable(rule)


def _lints(rule: Rule, known: Cases) -> Iterator[Diagnostic]:
    usual = known.usual or known.larger[0]
    if usual.subject.points:
        yield from map(_of_variable, assumptions.check(usual.subject, rule))
    elif not any(case.subject.points for case in known.small):
        met = (case for case in known.small if case.subject.survey.undefined)
        yield from map(_of_variable, assumptions.check(next(met, usual).subject, rule))
        return
    for check in _OF_ALL:
        yield from _of_all(list(check(usual.subject)), usual)


def _of_all(found: list[Diagnostic], case: Case) -> Iterator[Diagnostic]:
    """One finding for a place of the text, if every element that stems from it has it."""
    rule = case.unrolled.rule
    stems = [variable.span for variable in rule.inputs]
    stems += [surrogate.span for surrogate in rule.surrogates]
    stems += [entry.span for entry in rule.backward if hasattr(entry, "span")]
    places = dict.fromkeys((d.code, d.labels[0].span) for d in found)
    for place in places:
        alike = [d for d in found if (d.code, d.labels[0].span) == place]
        if len(alike) == stems.count(place[1]):
            yield _of_variable(alike[0])


def _of_variable(found: Diagnostic) -> Diagnostic:
    """The variable in place of its element; points keep their elements."""
    return replace(
        found,
        headline=_ELEMENT.sub(r"\1", found.headline),
        help=_ELEMENT.sub(r"\1", found.help),
    )


def typical(rule: Rule) -> Case | None:
    """The rule at two elements an axis, to look at its elementwise parts."""
    if is_too_large(rule):
        return None
    known = few(rule)
    return known.usual or next(iter(known.larger), None)
