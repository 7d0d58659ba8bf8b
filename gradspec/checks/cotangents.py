"""Declared cotangents: refuted, proved, or agreeing with the derivative.

Order of the means, by measured cost: balls at sampled points refute in a millisecond,
then a proof is looked for within the budget, and what is neither is said to agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from time import process_time

from gradspec.checks import cotangents_said as words
from gradspec.checks.breaks import Break
from gradspec.checks.claims import Claim, Judgement
from gradspec.checks.enough import further, is_enough, too_few
from gradspec.checks.quotient import by_quotient
from gradspec.checks.subject import Point, Subject
from gradspec.checks.turning import probes
from gradspec.derive.linear import is_linear
from gradspec.ir.calls import follows_surrogate
from gradspec.ir.rule import Kind, Status, Verdict
from gradspec.ir.tidy import tidy
from gradspec.symbolic.attempts import attempt
from gradspec.symbolic.compare import (
    Comparison,
    Relation,
    compare,
    compare_finely,
    relative_digits,
)
from gradspec.symbolic.meaning import elementary
from gradspec.symbolic.meeting import choices
from gradspec.symbolic.neighbours import beside, lies_between, limits, on_border
from gradspec.symbolic.regions import Question
from gradspec.symbolic.rounded import meets
from gradspec.symbolic.zero import (
    NORMAL,
    Proof,
    Search,
    Sides,
    by_normal_form,
    search,
)

_REAL = (Kind.FLOAT, Kind.NOGRAD)
_FINELY = 4
"""Points at which two sides that are not proved equal are compared in many digits."""

_PRUNING = 0.05
"""Seconds for finding out which assumptions a proof needs."""


def judge(
    subject: Subject, budget: float, met: tuple[Break, ...] = ()
) -> tuple[Judgement, ...]:
    """Every declared cotangent, in input order; they share the budget. ``met`` are the
    breaks of the rule.
    """
    deadline = process_time() + budget
    done: list[Judgement] = []
    declared = tuple(subject.declared())
    for done_already, (variable, entry) in enumerate(declared):
        derived = subject.derived.get(variable.name)
        if derived is None:
            done.append(Judgement(*by_quotient(subject, variable, entry)))
            continue
        stated = subject.stated[variable.name]
        claim = Claim(subject, variable, entry, stated, derived)
        begun = process_time()
        share = max(deadline - begun, 0.0) / (len(declared) - done_already)
        done.append(_timed(_judge(claim, met, begun + share), begun))
    return tuple(done)


def _timed(judgement: Judgement, begun: float) -> Judgement:
    verdict = replace(judgement.verdict, seconds=process_time() - begun)
    return replace(judgement, verdict=verdict)


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
    def bits(self) -> int:
        """The highest precision that was needed."""
        return max((seen.bits for _, seen in self.evidence), default=0)

    @property
    def agreeing(self) -> tuple[int, ...]:
        """The digits at every point that agrees."""
        equal = (s for _, s in self.evidence if s.relation is Relation.EQUAL)
        return tuple(seen.digits for seen in equal)

    @property
    def supporting(self) -> tuple[Point, ...]:
        """The points that agree, be it to the digits of the numbers that are written."""
        rounded = {id(seen) for seen in self.rounded}
        return tuple(
            point
            for point, seen in self.evidence
            if seen.relation is Relation.EQUAL or id(seen) in rounded
        )


def _judge(claim: Claim, met: tuple[Break, ...], deadline: float) -> Judgement:
    seen = examine(claim, everywhere(claim))
    if seen.refuted is not None:
        return words.refuted(claim, *seen.refuted)
    at_break = words.broken(claim, met)
    if at_break is not None:
        return at_break
    if seen.outside is not None:
        return words.outside(claim, *seen.outside)
    found = () if seen.hole is None else (words.hole(claim, *seen.hole),)
    verdict = (
        _rounded(claim, seen) if seen.rounded else _accepted(claim, seen, deadline)
    )
    if verdict.status is Status.PROVED or not claim.subject.points:
        return Judgement(verdict, found)
    more = further(claim)
    seen = examine(claim, (*(point for point, _ in seen.evidence), *more))
    if seen.refuted is not None:
        return words.refuted(claim, *seen.refuted)
    if seen.outside is not None:
        return words.outside(claim, *seen.outside)
    apart = None if seen.rounded else _far_apart(claim, seen)
    if apart is not None:
        return words.refuted(claim, *apart)
    drawn = [p for p in seen.supporting if any(p is one for one in more)]
    if not is_enough(claim, drawn):
        rule = claim.subject.rule
        found = (*found, too_few(rule, claim.input, claim.entry, len(drawn)))
    again = _rounded(claim, seen) if seen.rounded else _agreeing(claim, seen)
    return Judgement(replace(again, stopped=verdict.stopped), found)


def _far_apart(claim: Claim, seen: Examined) -> tuple[Point, Comparison] | None:
    """What is not proved is looked at again in very many digits: ``1e-300`` is no 0."""
    equal = (p for p, found in seen.evidence if found.relation is Relation.EQUAL)
    borders = (*claim.subject.forward.values(), claim.declared, claim.derived)
    for point in islice(equal, _FINELY):
        finer = compare_finely(claim.declared, claim.derived, point)
        if finer is not None and not on_border(borders, point):
            return point, finer
    return None


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
            if _is_each_slope(claim, point, seen, ends):
                continue
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


def _is_each_slope(
    claim: Claim, point: Point, seen: Comparison, ends: tuple[object, ...]
) -> bool:
    """Where kinks meet: is it a sum of slopes, one of each kink?"""
    values = choices(claim.derived, point)
    return values is None or (
        bool(values) and lies_between(seen.left, (*ends, *values))
    )


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
        bits=seen.bits,
    )


def _agreeing(claim: Claim, seen: Examined) -> Verdict:
    return Verdict(
        claim.input.name,
        Status.AGREES,
        "ball arithmetic",
        points=len(seen.agreeing),
        digits=min((*seen.agreeing, 50)) if seen.agreeing else 0,
        through_surrogate=follows_surrogate(claim.subject.rule),
        bits=seen.bits,
    )


def _accepted(claim: Claim, seen: Examined, deadline: float) -> Verdict:
    verdict = _agreeing(claim, seen)
    seconds = max(deadline - process_time(), 0.0)
    with attempt(claim.name, seconds) as may:
        found = prove(claim, seconds) if may else Search(None, (NORMAL,))
    proof = found.proof if seen.agreeing else None
    if proof is None:
        return replace(verdict, stopped=found.stopped)
    return replace(
        verdict,
        status=Status.PROVED,
        method=proof.method,
        on_domain=proof.assumed,
        assumed=_needed(claim, proof),
    )


def prove(claim: Claim, budget: float) -> Search:
    """A proof of the claim, if one is found in so many seconds."""
    return search(
        claim.declared,
        claim.derived,
        claim.subject.assumed,
        budget,
        wrt=claim.input.name,
        whole=claim.subject.whole,
    )


def _needed(claim: Claim, proof: Proof) -> tuple[str, ...]:
    """The assumptions without which the proof fails, as they are written."""
    rule = claim.subject.rule
    used = [a for a in rule.assumes if not a.indices]
    if not proof.assumed:
        return ()
    question = Question(frozenset((claim.input.name,)), claim.subject.whole)
    declared, derived = tidy(claim.declared), tidy(claim.derived)
    sides = Sides(elementary(declared), elementary(derived), question)
    deadline = process_time() + _PRUNING
    for one in tuple(used) if len(used) > 1 else ():
        rest = [a for a in used if a is not one]
        given = tuple(a.condition for a in rest)
        if by_normal_form(sides, given, max(deadline - process_time(), 1e-3)):
            used = rest
    return tuple(rule.source.slice(a.span).removeprefix("assume ") for a in used)
