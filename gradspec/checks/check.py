"""Check a complete rule. Each check is entered once, for rules with axes and without.

A rule is checked as its instances at small sizes; an elementwise rule has one instance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from gradspec.checks import boundaries, domain, examples, gradients, lints
from gradspec.checks.breaks import typical_breaks
from gradspec.checks.given import with_givens
from gradspec.checks.gradients import Judgement
from gradspec.checks.instances import Instance, few, instances
from gradspec.diagnostics import Diagnostic, Outcome, warning
from gradspec.ir.rule import (
    Complete,
    Judged,
    Rule,
    Status,
    Verdict,
)
from gradspec.ir.unroll import is_too_large
from gradspec.ir.walk import follows_surrogate
from gradspec.primitives.foreign import is_plain

OF_RULE: tuple[Callable[[Rule], Iterable[Diagnostic]], ...] = (
    domain.constants,
    lints.unused_inputs,
    lints.unused_locals,
    domain.missing_elements,
    domain.lasting_gaps,
    examples.check,
)

OF_ELEMENTS: tuple[Callable[[Instance], Iterable[Diagnostic]], ...] = (
    lints.vanishing,
    lints.surrogates,
    lints.overrides,
    lints.ties,
)
"""Checks reported only if they hold for every element of a variable."""

_ELEMENT = re.compile(r"(\w+)\[[\d, ]+\]")


def check(rule: Complete, budget: float = 10.0) -> Outcome[Judged]:
    """The rule with its verdicts and diagnostics. ``budget``: the effort of proofs. A
    refuted rule has its verdicts too; the errors stop it. Fixes are not tried yet
    (``mend``).
    """
    meaningless = tuple(domain.shapeless(rule))
    if meaningless:
        return _outcome(rule, (), meaningless)
    if is_too_large(rule):
        return _outcome(
            rule, gradients.judge_by_calculus(rule), tuple(lints.unused_inputs(rule))
        )
    known = instances(rule) if rule.declared else few(rule)
    found = list(map(_of_variable, domain.check(rule, known)))
    usual = known.usual or next(iter(known.larger), None)
    if usual is None:
        return _outcome(rule, (), (*found, *lints.unused_inputs(rule)))
    gradients.recheck(rule, known)
    # Of a foreign function no limit is known, and none is sought where equations hold.
    plain = is_plain(rule) and not usual.equations
    met = tuple(typical_breaks(usual)) if plain else ()
    judgements = gradients.judge(rule, known, met, budget)
    found += [diagnostic for one in OF_RULE for diagnostic in one(rule)]
    found += map(_of_variable, boundaries.check(usual, met) if plain else ())
    for one in OF_ELEMENTS if plain else ():
        some = list(_of_all(list(one(usual)), usual))
        for longer in known.long if some and one is lints.vanishing else ():
            every = longer and _of_all(list(one(longer)), longer)
            headlines = {found.headline for found in every or ()}
            some = [found for found in some if found.headline in headlines]
        found += some
    outcome = _outcome(rule, judgements, found)
    if outcome.value is None or rule.has_axes or not plain:
        return outcome
    holes = boundaries.holes(usual, met)
    return replace(outcome, value=replace(outcome.value, holes=holes))


def _outcome(
    rule: Complete, judgements: tuple[Judgement, ...], others: Iterable[Diagnostic]
) -> Outcome[Judged]:
    judged = {one.verdict.input: one.verdict for one in judgements}
    verdicts = tuple(
        with_givens(rule, judged.get(v.input, v)) for v in _verdicts_by_kind(rule)
    )
    found = [*others, *(d for one in judgements for d in one.found)]
    found += _shortage_warnings(rule, verdicts)
    found.sort(key=lambda d: d.labels[0].span.start if d.labels else 0)
    return Outcome(Judged(rule, verdicts), tuple(found))


# --- elements ----------------------------------------------------------------------------


def _of_all(found: list[Diagnostic], instance: Instance) -> Iterator[Diagnostic]:
    """One diagnostic for a place of the text, if every element that stems from it has
    it."""
    rule = instance.rule
    origins = [variable.span for variable in rule.inputs]
    origins += [d.span for d in (*rule.surrogates, *rule.backward) if not d.is_derived]
    for place in dict.fromkeys((d.code, d.labels[0].span) for d in found):
        alike = [d for d in found if (d.code, d.labels[0].span) == place]
        if len(alike) == origins.count(place[1]):
            yield _of_variable(alike[0])


def _of_variable(found: Diagnostic) -> Diagnostic:
    """The variable in place of its element; points keep their elements."""
    return replace(
        found,
        headline=_ELEMENT.sub(r"\1", found.headline),
        help=_ELEMENT.sub(r"\1", found.help),
    )


# --- verdicts ----------------------------------------------------------------------------


def _verdicts_by_kind(rule: Rule) -> Iterator[Verdict]:
    """The verdicts that follow from the origins of the cotangents alone."""
    declared, overrides = rule.declared, rule.overrides
    for variable in rule.inputs:
        name = variable.name
        if not variable.takes_gradient:
            yield Verdict(name, Status.NONE)
        elif name in overrides:
            yield Verdict(name, Status.OVERRIDE)
        else:
            status = Status.AGREES if name in declared else Status.DERIVED
            through = follows_surrogate(rule)
            yield Verdict(name, status, through_surrogate=through)


def _shortage_warnings(rule: Rule, verdicts: Iterable[Verdict]) -> Iterator[Diagnostic]:
    """Diagnostics for proofs that ran out of steps."""
    for verdict in verdicts:
        if verdict.status is Status.AGREES and verdict.stopped:
            strategies = " and ".join(verdict.stopped)
            yield warning(
                "GS460",
                f"the proof of d{verdict.input} of {rule.name} was stopped with its effort"
                f" spent ({strategies})",
                rule.source,
                rule.declared[verdict.input].span,
                label=f"agrees with the derivative at {verdict.points} points to"
                f" {verdict.digits} digits",
                help="leave the line out, write it in a form nearer to the derivative, or"
                " give the proof more steps with `--budget`",
            )
