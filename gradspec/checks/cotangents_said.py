"""What is said of a declared cotangent that is not the derivative."""

from __future__ import annotations

from gradspec.checks.boundaries import (
    Finding,
    bent_said,
    fault,
    place_said,
    short,
    slopes_said,
)
from gradspec.checks.breaks import Break
from gradspec.checks.claims import Claim, Judgement, is_rounding
from gradspec.checks.cure import cures, guilty, meant
from gradspec.checks.diagnosis import diagnose
from gradspec.checks.instances import Point, said
from gradspec.checks.mending import left_out, probably
from gradspec.diagnostics import Diagnostic, Label, error, warning
from gradspec.ir.rule import Status, Verdict
from gradspec.symbolic.compare import (
    Comparison,
    Relation,
    decimal,
    decimals,
)
from gradspec.symbolic.limit import in_time
from gradspec.symbolic.neighbours import PRECISION

_FOR_WORDS = 2.0
"""Seconds for a diagnosis."""


def refuted(claim: Claim, point: Point, seen: Comparison) -> Judgement:
    declared, true = _values(seen)
    place = said(point, claim.shown)
    notes = [f"at {place}: declared {declared}, derivative {true}"]
    guess = in_time(_FOR_WORDS, lambda: diagnose(claim, point))
    also: tuple[Label, ...] = ()
    if guess is not None and guess.new is None:
        notes.append(guess.sentence)
        span = guilty(claim, guess)
        also = () if span is None else (probably(claim.instance.rule, span),)
    if claim.instance.rule.surrogates:
        notes.append("the derivative is that of the surrogate")
    return Judgement(
        Verdict(claim.input.name, Status.REFUTED, "ball arithmetic", 1, bits=seen.bits),
        (
            error(
                *refusal(claim, point),
                claim.instance.rule.source,
                claim.entry.span,
                label=f"gives {declared} at {place}, where the derivative is {true}",
                notes=notes,
                help=meant(claim.name),
                fixes=cures(claim, guess),
                also=also,
            ),
        ),
    )


def refusal(claim: Claim, point: Point) -> tuple[str, str]:
    """The code and the headline: a hair is no mistake in the formula, but no equality."""
    name = claim.input.name.partition("[")[0]
    what = f"d{name} of {claim.instance.rule.name}"
    if is_rounding(claim, point):
        return "GS416", f"{what} and the derivative are equal up to rounding, not equal"
    return "GS401", f"{what} is not the derivative"


def _values(seen: Comparison) -> tuple[str, str]:
    if seen.relation is Relation.DIFFERENT:
        return decimals(seen.left, seen.right)
    return decimal(seen.left), decimal(seen.right)


def outside(
    claim: Claim, point: Point, seen: Comparison, ends: tuple[object, ...]
) -> Judgement:
    slopes = tuple(dict.fromkeys(decimal(end, 10) for end in ends))
    gives = f"gives {decimal(seen.left, 10)} at {said(point, claim.shown)}"
    if len(slopes) == 1:
        return _no_limit(claim, f"{gives}; the slope there is {slopes[0]}")
    return _beyond(claim, f"{gives}; the slopes there are {' and '.join(slopes)}")


def broken(claim: Claim, met: tuple[Break, ...]) -> Judgement | None:
    """The same at the first break where it is wrong, with the upstream gradient 1."""
    seen = fault(claim.instance, claim.input, claim.entry, met)
    if seen is None:
        return None
    finding, found = seen
    place, slopes = place_said(claim.instance, found), slopes_said(found)
    gives = f"gives {short(found.stated)} at {place}, d{found.output.name} = 1"
    note = f"a boundary: {found.place.where}"
    match finding:
        case Finding.LIMIT:
            return _no_limit(claim, f"{gives}; the slope there is {slopes}", note)
        case Finding.BENT:
            values = bent_said(claim.instance, found)
            return _beyond(claim, f"not linear at {place}: {values}", note)
        case _:
            return _beyond(claim, f"{gives}; the slopes there are {slopes}", note)


def _no_limit(claim: Claim, told: str, *notes: str) -> Judgement:
    """The derivative exists at the point and is another."""
    name = f"{claim.name} of {claim.instance.rule.name}"
    return _at_a_point(
        claim,
        "GS431",
        f"{name} has a value at a point that is not the limit of the derivative",
        told,
        "give this point the limit, times the upstream gradient",
        notes,
    )


def _beyond(claim: Claim, told: str, *notes: str) -> Judgement:
    name = f"{claim.name} of {claim.instance.rule.name}"
    return _at_a_point(
        claim,
        "GS402",
        f"{name} is outside the one-sided slopes at a kink",
        told,
        "give this point the value of one side, or one between both: the upstream"
        " gradient times a number between the slopes",
        notes,
    )


def _at_a_point(
    claim: Claim,
    code: str,
    headline: str,
    told: str,
    advice: str,
    notes: tuple[str, ...],
) -> Judgement:
    return Judgement(
        Verdict(
            claim.input.name, Status.REFUTED, "one-sided limits", 1, bits=PRECISION
        ),
        (
            error(
                code,
                headline,
                claim.instance.rule.source,
                claim.entry.span,
                label=told,
                notes=notes,
                help=advice,
            ),
        ),
    )


def hole(claim: Claim, point: Point, seen: Comparison) -> Diagnostic:
    at = said(point, claim.shown)
    return warning(
        "GS403",
        f"{claim.name} of {claim.instance.rule.name} is undefined where the derivative"
        " is not",
        claim.instance.rule.source,
        claim.entry.span,
        label=f"undefined at {at}, where the derivative is {decimal(seen.right)}",
        help="or give the limit there with a conditional that is false at this point only",
        fixes=((left_out(claim.instance.rule, claim.entry.span),),),
    )
