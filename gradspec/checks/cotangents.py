"""Declared cotangents: refuted, proved, or agreeing with the derivative.

Order of the means, by measured cost: balls at sampled points refute in a millisecond,
then a proof is looked for within the budget, and what is neither is said to agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import monotonic

from gradspec.checks.boundaries import (
    Finding,
    bent_said,
    fault,
    place_said,
    short,
    slopes_said,
)
from gradspec.checks.breaks import Break
from gradspec.checks.cure import cure
from gradspec.checks.diagnosis import diagnose
from gradspec.checks.guess import Guess
from gradspec.checks.quotient import by_quotient
from gradspec.checks.statics import beyond_defaults
from gradspec.checks.subject import Point, Subject, number, said
from gradspec.checks.turning import probes
from gradspec.derive.linear import is_linear
from gradspec.diagnostics import Diagnostic, Label, error, warning
from gradspec.ir.calls import follows_surrogate
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Input, Kind, Status, Verdict
from gradspec.ir.walk import names
from gradspec.symbolic.compare import (
    Comparison,
    Relation,
    compare,
    decimal,
    decimals,
    relative_digits,
)
from gradspec.symbolic.neighbours import beside, lies_between, limits, on_border
from gradspec.symbolic.rounded import meets
from gradspec.symbolic.zero import Proof, prove_equal

_REAL = (Kind.FLOAT, Kind.NOGRAD)
_LONGEST = 160
"""Characters of a derived expression beyond which it is no help to read."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one cotangent and what is to be said of it."""

    verdict: Verdict
    found: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """One declared cotangent beside the true one, both closed."""

    subject: Subject
    input: Input
    entry: Declared
    declared: Expr
    derived: Expr

    @property
    def name(self) -> str:
        return f"d{self.input.name}"

    @property
    def shown(self) -> tuple[str, ...]:
        """The names that a witness has to tell."""
        used = names(self.declared) | names(self.derived)
        return tuple(name for name in self.subject.shown if name in used)


def judge(
    subject: Subject, budget: float, met: tuple[Break, ...] = ()
) -> tuple[Judgement, ...]:
    """Every declared cotangent, in input order; they share the budget. ``met`` are the
    breaks of the rule.
    """
    deadline = monotonic() + budget
    done: list[Judgement] = []
    for variable, entry in subject.declared():
        derived = subject.derived.get(variable.name)
        if derived is None:
            done.append(Judgement(*by_quotient(subject, variable, entry)))
            continue
        stated = subject.stated[variable.name]
        claim = Claim(subject, variable, entry, stated, derived)
        done.append(_judge(claim, met, deadline))
    return tuple(done)


@dataclass(frozen=True, slots=True)
class Examined:
    """What balls say of a claim: a contradiction, or what may be said for it."""

    evidence: tuple[tuple[Point, Comparison], ...]
    refuted: tuple[Point, Comparison] | None = None
    outside: tuple[Point, Comparison, tuple[object, ...]] | None = None
    hole: tuple[Point, Comparison] | None = None
    rounded: tuple[Comparison, ...] = ()

    @property
    def is_refuted(self) -> bool:
        return self.refuted is not None or self.outside is not None

    @property
    def agreeing(self) -> tuple[int, ...]:
        """The digits at every point that agrees."""
        equal = (s for _, s in self.evidence if s.relation is Relation.EQUAL)
        return tuple(seen.digits for seen in equal)


def _judge(claim: Claim, met: tuple[Break, ...], deadline: float) -> Judgement:
    seen = examine(claim, everywhere(claim))
    if seen.refuted is not None:
        return _refuted(claim, *seen.refuted)
    at_break = broken(claim, met)
    if at_break is not None:
        return at_break
    if seen.outside is not None:
        return _outside(claim, *seen.outside)
    found = () if seen.hole is None else (_hole(claim, *seen.hole),)
    if seen.rounded:
        return Judgement(_rounded(claim, seen), found)
    verdict = _accepted(claim, seen, deadline)
    if verdict.status is Status.AGREES:
        return Judgement(verdict, (*found, *_elsewhere(claim)))
    return Judgement(verdict, found)


def examine(claim: Claim, points: Iterable[Point]) -> Examined:
    """The claim at points."""
    evidence = tuple(
        (point, compare(claim.declared, claim.derived, point)) for point in points
    )
    borders = (*claim.subject.forward.values(), claim.declared, claim.derived)
    kinks: list[tuple[Point, Comparison]] = []
    holes: list[tuple[Point, Comparison]] = []
    rounded: list[Comparison] = []
    for point, seen in evidence:
        match seen.relation:
            case Relation.DIFFERENT if meets(claim.declared, claim.derived, point):
                rounded.append(seen)
            case Relation.DIFFERENT if on_border(borders, point):
                kinks.append((point, seen))
            case Relation.DIFFERENT:
                return Examined(evidence, (point, seen))
            case Relation.LEFT_UNDEFINED:
                holes.append((point, seen))
            case _:
                continue
    for point, seen in holes:
        if not _fills(claim, point):
            return Examined(evidence, (point, seen))
    for point, seen in kinks:
        ends = limits(claim.derived, point, claim.input.name, claim.subject.assumed)
        if ends and not lies_between(seen.left, ends):
            is_kink = not all(lies_between(seen.right, (end,)) for end in ends)
            if not is_kink and not _fills(claim, point):
                return Examined(evidence, (point, seen))  # it differs beside it too
            return Examined(evidence, outside=(point, seen, ends))
    hole = holes[0] if holes else None
    return Examined(evidence, hole=hole, rounded=tuple(rounded))


def everywhere(claim: Claim) -> Iterator[Point]:
    """The sample, thresholds that only one of the two has, and huge and tiny upstream
    gradients if it is not plainly linear (a clipped gradient is the derivative as long
    as it is small)."""
    yield from claim.subject.points
    reals = tuple(i.name for i in claim.subject.rule.inputs if i.kind in _REAL)
    both = claim.declared, claim.derived
    yield from probes(*both, claim.subject.points, reals, claim.subject.assumed)
    upstream = claim.subject.upstream
    if is_linear(claim.declared, frozenset(upstream)):
        return
    for point in claim.subject.points[:4]:
        for factor in (2**20, -(2**10)):
            yield {**point, **{name: factor * point[name] for name in upstream}}


def _fills(claim: Claim, point: Point) -> bool:
    """Beside a point where the declared value does not exist (or is another), do both
    agree? Then the derivative is its limit: a removable singularity."""
    assumed = claim.subject.assumed
    sides = [
        compare(claim.declared, claim.derived, near).relation
        for variable in claim.subject.rule.tensor_inputs
        for near in beside(point, variable.name, assumed)
    ]
    return Relation.EQUAL in sides and Relation.DIFFERENT not in sides


def _rounded(claim: Claim, seen: Examined) -> Verdict:
    """The formula is right as far as the digits of its numbers go."""
    apart = seen.rounded
    return Verdict(
        claim.input.name,
        Status.AGREES,
        "ball arithmetic, numbers as exact as they are written",
        points=len(seen.agreeing) + len(apart),
        digits=max(0, min(relative_digits(s.left, s.right) for s in apart)),
        through_surrogate=follows_surrogate(claim.subject.rule),
    )


def _accepted(claim: Claim, seen: Examined, deadline: float) -> Verdict:
    through = follows_surrogate(claim.subject.rule)
    verdict = Verdict(
        claim.input.name,
        Status.AGREES,
        points=len(seen.agreeing),
        digits=min((*seen.agreeing, 50)) if seen.agreeing else 0,
        through_surrogate=through,
    )
    proof = prove(claim, max(deadline - monotonic(), 0.0))
    if proof is None or not seen.agreeing:
        return replace(verdict, method="ball arithmetic")
    return replace(
        verdict, status=Status.PROVED, method=proof.method, on_domain=proof.assumed
    )


def prove(claim: Claim, budget: float) -> Proof | None:
    """A proof of the claim, if one is found in so many seconds."""
    return prove_equal(
        claim.declared,
        claim.derived,
        claim.subject.assumed,
        budget,
        wrt=claim.input.name,
        whole=claim.subject.whole,
    )


# --- what is said --------------------------------------------------------------------


def _refuted(claim: Claim, point: Point, seen: Comparison) -> Judgement:
    declared, true = _values(seen)
    place = said(point, claim.shown)
    notes = [f"at {place}: declared {declared}, derivative {true}"]
    guess = diagnose(claim, point)
    notes += [guess.sentence] if guess else []
    if claim.subject.rule.surrogates:
        notes.append("the derivative is that of the surrogate")
    return Judgement(
        Verdict(claim.input.name, Status.REFUTED, "ball arithmetic"),
        (
            error(
                "GS401",
                f"{claim.name} of {claim.subject.rule.name} is not the derivative",
                claim.subject.rule.source,
                claim.entry.span,
                label=f"gives {declared} at {place}, where the derivative is {true}",
                notes=notes,
                help=cure(claim, guess),
                also=_guilty(claim, guess),
            ),
        ),
    )


def _guilty(claim: Claim, guess: Guess | None) -> tuple[Label, ...]:
    """The piece of text that is probably at fault."""
    if guess is None or guess.span is None or guess.span == claim.entry.span:
        return ()
    return (Label(claim.subject.rule.source, guess.span, "probably here"),)


def _values(seen: Comparison) -> tuple[str, str]:
    if seen.relation is Relation.DIFFERENT:
        return decimals(seen.left, seen.right)
    return decimal(seen.left), decimal(seen.right)


def _outside(
    claim: Claim, point: Point, seen: Comparison, ends: tuple[object, ...]
) -> Judgement:
    slopes = tuple(dict.fromkeys(decimal(end, 10) for end in ends))
    gives = f"gives {decimal(seen.left, 10)} at {said(point, claim.shown)}"
    if len(slopes) == 1:
        return _no_limit(claim, f"{gives}; the slope there is {slopes[0]}")
    return _beyond(claim, f"{gives}; the slopes there are {' and '.join(slopes)}")


def broken(claim: Claim, met: tuple[Break, ...]) -> Judgement | None:
    """The same at the first break where it is wrong, with the upstream gradient 1."""
    seen = fault(claim.subject, claim.input, claim.entry, met)
    if seen is None:
        return None
    finding, found = seen
    place, slopes = place_said(claim.subject, found), slopes_said(found)
    gives = f"gives {short(found.stated)} at {place}, d{found.output.name} = 1"
    note = f"a boundary: {found.place.where}"
    match finding:
        case Finding.LIMIT:
            return _no_limit(claim, f"{gives}; the slope there is {slopes}", note)
        case Finding.BENT:
            values = bent_said(claim.subject, found)
            return _beyond(claim, f"not linear at {place}: {values}", note)
        case _:
            return _beyond(claim, f"{gives}; the slopes there are {slopes}", note)


def _no_limit(claim: Claim, told: str, *notes: str) -> Judgement:
    """The derivative exists at the point and is another."""
    name = f"{claim.name} of {claim.subject.rule.name}"
    return _at_a_point(
        claim,
        "GS431",
        f"{name} has a value at a point that is not the limit of the derivative",
        told,
        "give this point the limit, times the upstream gradient",
        notes,
    )


def _beyond(claim: Claim, told: str, *notes: str) -> Judgement:
    name = f"{claim.name} of {claim.subject.rule.name}"
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
        Verdict(claim.input.name, Status.REFUTED, "one-sided limits"),
        (
            error(
                code,
                headline,
                claim.subject.rule.source,
                claim.entry.span,
                label=told,
                notes=notes,
                help=advice,
            ),
        ),
    )


def _elsewhere(claim: Claim) -> tuple[Diagnostic, ...]:
    """What holds on the side of a static's default alone."""
    beyond = beyond_defaults(claim.subject, claim.declared, claim.derived)
    if beyond is None:
        return ()
    declared, true = _values(beyond.seen)
    place = said(beyond.point, claim.shown)
    return (
        warning(
            "GS470",
            f"{claim.name} of {claim.subject.rule.name} does not hold for every"
            f" {beyond.static}",
            claim.subject.rule.source,
            claim.entry.span,
            label=f"gives {declared} at {place}, where the derivative is {true}",
            help=f"if it is meant so, write `assume {beyond.condition}`",
        ),
    )


def _hole(claim: Claim, point: Point, seen: Comparison) -> Diagnostic:
    at = said(point, claim.shown)
    names_here = (i.name for i in claim.subject.rule.tensor_inputs)
    first = next(name for name in names_here if name in point)
    return warning(
        "GS403",
        f"{claim.name} of {claim.subject.rule.name} is undefined where the derivative"
        " is not",
        claim.subject.rule.source,
        claim.entry.span,
        label=f"undefined at {at}, where the derivative is {decimal(seen.right)}",
        help=f"give the limit there: `… if {first} != {number(point[first])} else …`,"
        " or leave the line out",
    )
