"""Declared gradients: refuted, proved, or agreeing with the derivative.

In the order of the cost: balls at small sizes and at one larger combination refute; the
index calculus proves for every size where the two forms are one; failing that, each
element is proved at every small size, within the budget. What is neither agrees, at
enough points. A rule of rank 0 has one size and one element for each input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from time import process_time

from gradspec.checks.breaks import Break
from gradspec.checks.diagnosis import wording
from gradspec.checks.diagnosis.wording import Witness
from gradspec.checks.evidence import (
    Claim,
    Evidence,
    everywhere,
    examine,
    far_apart,
    hole_at_end,
)
from gradspec.checks.instances import Instance, Instances, Point, stem
from gradspec.checks.proofs import is_defined, prove
from gradspec.checks.regions import Reached, reach
from gradspec.derive.chain import Underivable, is_linear
from gradspec.derive.indexed import (
    closed_cotangent,
    indexed_cotangents,
    same,
)
from gradspec.derive.recurrence import is_proved
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.elements import OutOfRange, element, places
from gradspec.ir.recurrence import states
from gradspec.ir.rule import (
    Definition,
    Input,
    Kind,
    Rule,
    Status,
    Verdict,
)
from gradspec.ir.unroll import Gap, axis_names, unroll
from gradspec.ir.walk import follows_surrogate, memo, size
from gradspec.symbolic.borders.limits import PRECISION, on_border
from gradspec.symbolic.compare import Comparison, Relation, compare, relative_digits
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.points.domain import EDGE, Limits, constraints_of, whole_range
from gradspec.symbolic.points.simple import generic_points
from gradspec.symbolic.proof.prove import Proof, Prover

LEAST = 32
"""Different generic points at which an unproved claim has to agree."""

DRAWN = 48
"""Points drawn; a few of them may be kinks, or not decided."""

_MOST_DIGITS = 50
_CONFIRMED = 4
"""Elements that are examined at more points, or a few more."""

_PRUNING = 0.05
"""The budget for determining which assumptions a proof needs."""

_LOOK, _REACHED = 64, 256
"""Nodes of an element that make its examination one step; the same of each point in its
regions."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one cotangent, and its diagnostics."""

    verdict: Verdict
    found: tuple[Diagnostic, ...] = ()


def judge(
    rule: Rule, known: Instances, met: tuple[Break, ...], budget: float
) -> tuple[Judgement, ...]:
    """Every declared cotangent, in input order; they share the budget. ``met`` are the
    nonsmooth points of the usual instance."""
    declared, done = rule.declared, []
    for variable in (v for v in rule.inputs if v.name in declared):
        begun = process_time()
        share = budget / len(declared)
        entry = declared[variable.name]
        judged = _judge(rule, variable, entry, known, met, share)
        judged = _with_all_elements(rule, variable, known, judged)
        verdict = replace(judged.verdict, seconds=process_time() - begun)
        done.append(replace(judged, verdict=verdict))
    return tuple(done)


def judge_by_calculus(rule: Rule) -> tuple[Judgement, ...]:
    """For fixed sizes that are too large to unroll: equal for every size, or
    unknown."""
    done = []
    for name, entry in rule.declared.items():
        if is_equal(rule, entry):
            done.append(Judgement(Verdict(name, Status.PROVED, "index calculus")))
        else:
            unknown = wording.unknown(rule, name, entry)
            done.append(Judgement(Verdict(name, Status.AGREES), (unknown,)))
    return tuple(done)


def _judge(
    rule: Rule,
    variable: Input,
    entry: Definition,
    known: Instances,
    met: tuple[Break, ...],
    budget: float,
) -> Judgement:
    usual = known.usual or known.larger[0]
    equal = is_equal(rule, entry)
    looking = Effort.of(budget)
    seen: list[Evidence] = []
    # What the index calculus has proved is looked at by means that know no indices, too:
    # a fault of the calculus would show nearly everywhere.
    always = (*known.always, *known.further)
    for instance in always if equal else known.every:
        if looking.steps < 0 and instance not in always:
            continue
        for claim in _claims(variable, instance):
            looking.take(1 + (size(claim.declared) + size(claim.derived)) // _LOOK)
            points = instance.points if equal else everywhere(claim)
            one = examine(claim, points)
            if one.refuted is not None:
                return _refutation(one, one.refuted, known)
            seen.append(one)
    for claim in _claims(variable, usual):
        at_break = wording.break_error(claim, met)
        if at_break is not None:
            beside = reach(claim).evidence  # a threshold is wrong on one side, too
            if beside.refuted is not None:
                return _refutation(beside, beside.refuted, known)
            return _at_a_point(claim, at_break)
    outside = next((one for one in seen if one.outside is not None), None)
    if outside is not None:
        return _outside(outside)
    found = tuple(islice(_holes(variable, usual, seen), 1))
    verdict = agreeing(variable.name, seen)
    verdict = replace(verdict, through_surrogate=follows_surrogate(rule))
    if verdict.points and not any(one.rounded for one in seen):
        verdict = _prove(rule, equal, verdict, seen, known, Effort.of(budget))
    if verdict.status is Status.PROVED or not any(i.points for i in known.every):
        return Judgement(verdict, found)
    judged = Judgement(verdict, found)
    contrary = _contrary_beyond(rule, variable, known, judged, budget)
    if contrary is not None or verdict.sizes:
        return contrary or judged
    if not all(
        is_linear(claim.declared, usual.linear) for claim in _claims(variable, usual)
    ):
        return Judgement(verdict, (*found, wording.not_linear(rule, variable, entry)))
    return _confirm(rule, variable, entry, known, seen, judged)


def _claims(variable: Input, instance: Instance) -> Iterator[Claim]:
    """The elements of one cotangent."""
    inputs = {i.name: i for i in instance.rule.inputs}
    entries = instance.rule.declared
    for index in places(variable.shape.axes, instance.sizes):
        name = element(variable.name, index)
        if name in instance.derived and name in entries:
            stated, derived = instance.stated[name], instance.derived[name]
            yield Claim(instance, inputs[name], entries[name], stated, derived)


def _confirm(
    rule: Rule,
    variable: Input,
    entry: Definition,
    known: Instances,
    seen: list[Evidence],
    judged: Judgement,
) -> Judgement:
    """The judgement of an unproved claim after it is checked at enough generic
    points."""
    count, found = 0, judged.found
    done = list(seen)
    for instance in dict.fromkeys((*known.always[::-1], *known.larger)):
        claims = tuple(_claims(variable, instance))
        some = claims[:: max(1, len(claims) // _CONFIRMED)]
        more = [examine(claim, further(claim)) for claim in some]
        reached = [reach(claim) for claim in some] if instance in known.always else []
        for region in (*map(Reached, more), *reached):
            contrary = _contrary(region, known, judged)
            if contrary is not None:
                return contrary
            hole = region.evidence.hole
            if hole is not None and not found:
                found = (wording.hole(Witness(region.evidence.claim, *hole)),)
        for one in (*(s for s in seen if s.claim in some), *more):
            apart = None if one.rounded else far_apart(one)
            if apart is not None:
                return _refutation(one, apart, known)
        done += more
        if more and all(is_enough(one.claim, one.supporting) for one in more):
            break
        count = max((count, *(len(one.supporting) for one in more)))
    else:
        found = (*found, too_few(rule, variable, entry, count))
    verdict = replace(
        agreeing(variable.name, done),
        stopped=judged.verdict.stopped,
        through_surrogate=judged.verdict.through_surrogate,
    )
    return Judgement(verdict, found)


def _contrary(region: Reached, known: Instances, judged: Judgement) -> Judgement | None:
    """The judgement that refuses a claim for its regions: for a point at which it is
    wrong, or for a region without a point; None if nothing is against it."""
    one = region.evidence
    if one.refuted is not None:
        return _refutation(one, one.refuted, known)
    if one.outside is not None:
        return _outside(one)
    if region.missed is None:
        return None
    missed = wording.unreached_region(one.claim, region.missed.gap)
    return replace(judged, found=(*judged.found, missed))


def _contrary_beyond(
    rule: Rule, variable: Input, known: Instances, judged: Judgement, budget: float
) -> Judgement | None:
    """The judgement that refuses a cotangent at further sizes, where an element is not
    proved and differs or is not compared; None if nothing is against it."""
    proving, reaching, unseen = Effort.of(budget), Effort.of(budget), known.beyond[1]
    claims = (claim for one in known.further for claim in _claims(variable, one))
    for claim in claims if unseen is None else ():
        if prove(claim, proving).proof is not None:
            continue
        region = reach(claim)
        contrary = _contrary(region, known, judged)
        if contrary is not None:
            return contrary
        nodes = size(claim.declared) + size(claim.derived)
        points = region.evidence.supporting
        if not points or not reaching.take(len(points) * nodes // _REACHED):
            unseen = claim.instance.sizes
            break
    if unseen is None:
        return None
    found = wording.unreached_size(rule, variable, rule.declared[variable.name], unseen)
    return replace(judged, found=(*judged.found, found))


# --- enough points -----------------------------------------------------------------------
# Where the domain is thin (an equation), narrow, or few points of it are decided, the
# points that happen to be met may have in common what hides an error. So a claim that is
# not proved has to agree at enough different generic points.


def further(claim: Claim) -> tuple[Point, ...]:
    """Generic points for a claim, or every point of a finite domain."""
    drawn = generic_points(claim.instance.rule, DRAWN)
    return (*drawn, *_every(claim, drawn[0])) if drawn else ()


def is_enough(claim: Claim, agreeing: Iterable[Point]) -> bool:
    """True if enough points differ in the inputs of the claim."""
    used = claim.used
    met = {_key(point, used) for point in agreeing}
    if len(met) >= LEAST:
        return True
    drawn = generic_points(claim.instance.rule, DRAWN)
    every = {_key(p, used) for p in _every(claim, drawn[0])} if drawn else set()
    return bool(met) and bool(every) and every <= met


def too_few(rule: Rule, variable: Input, entry: Definition, count: int) -> Diagnostic:
    where = "no point" if count == 0 else f"{count} point{'s'[: count != 1]} only"
    return error(
        "GS415",
        f"{variable.cotangent} of {rule.name} is not proved, and agrees at too few"
        " points",
        rule.source,
        entry.span,
        label=f"agrees with the derivative at {where}: {LEAST} different ones are needed",
        help="assume less, or in a simpler way (an equation solved for one input, an input"
        " that is given by others replaced by them); or leave the line out: a derived"
        " gradient is right without points",
    )


def _key(point: Point, used: tuple[Input, ...]) -> tuple[int, ...]:
    return tuple(round(point[i.name] * 2**EDGE) for i in used)


def _every(claim: Claim, base: Point) -> Iterator[Point]:
    """All values of the claim's inputs, if they are fewer than enough: each input is
    pinned (``x == 2``), a truth value or one of a few integers."""
    rule, used = claim.instance.rule, claim.used
    limits = Limits(rule)
    pinned = limits.pinned_inputs()
    pools = [_pool(i, limits) for i in used if i.name not in pinned]
    if any(pool is None for pool in pools):
        return
    inside = constraints_of(rule, limits.conditions)
    free = [i.name for i in used if i.name not in pinned]
    for number, values in enumerate(product(*(pool or () for pool in pools))):
        if number > LEAST:
            return
        point: Mapping[str, Fraction] = {**base, **dict(zip(free, values, strict=True))}
        if inside.holds(point):
            yield point


def _pool(variable: Input, limits: Limits) -> tuple[Fraction, ...] | None:
    if variable.kind is Kind.BOOL:
        return (Fraction(0), Fraction(1))
    if variable.kind not in (Kind.INT, Kind.STATIC_INT):
        return None
    low, high = whole_range(limits.room(variable.name, {}), variable.default)
    return tuple(map(Fraction, range(low, high + 1))) if high - low < LEAST else None


# --- index calculus ----------------------------------------------------------------------


@memo(16)
def derived_cotangents(rule: Rule) -> dict[str, Definition]:
    """The derived cotangents by input; none if some derivative is not known."""
    try:
        return indexed_cotangents(rule)
    except Underivable:
        return {}


def is_equal(rule: Rule, entry: Definition) -> bool:
    """True if the declared cotangent equals the derived one for all sizes. (A rule
    without axes has no sizes, and a proof of its own.)"""
    if states(rule):
        return is_proved(rule, entry)
    true = derived_cotangents(rule).get(entry.input) if rule.has_axes else None
    if true is None:
        return False
    stated = closed_cotangent(rule, entry)
    return same(stated, closed_cotangent(rule, true))


# --- what is said ------------------------------------------------------------------------


def _refutation(
    seen: Evidence, found: tuple[Point, Comparison], known: Instances
) -> Judgement:
    name, bits = stem(seen.claim.input.name), found[1].bits
    verdict = Verdict(name, Status.REFUTED, "ball arithmetic", 1, bits=bits)
    witness = Witness(seen.claim, *found)
    return Judgement(verdict, (wording.refutation(witness, known.varied),))


def _outside(seen: Evidence) -> Judgement:
    assert seen.outside is not None
    return _at_a_point(seen.claim, wording.outside(Witness(seen.claim, *seen.outside)))


def _at_a_point(claim: Claim, found: Diagnostic) -> Judgement:
    name, how = stem(claim.input.name), "one-sided limits"
    return Judgement(Verdict(name, Status.REFUTED, how, 1, bits=PRECISION), (found,))


def _holes(
    variable: Input, usual: Instance, seen: list[Evidence]
) -> Iterator[Diagnostic]:
    for one in seen:
        if one.hole is not None:
            yield wording.hole(Witness(one.claim, *one.hole))
    for claim in _claims(variable, usual):
        at_end = hole_at_end(claim)
        if at_end is not None:
            yield wording.hole(Witness(claim, *at_end))


# --- what is established -----------------------------------------------------------------


def agreeing(name: str, seen: Iterable[Evidence]) -> Verdict:
    """The verdict on agreeing values: the digits of balls, or those of rounded
    numbers."""
    seen = tuple(seen)
    is_solved = any(one.claim.instance.equations for one in seen)
    how = "ball arithmetic" + " where the equations hold" * is_solved
    digits = [d for one in seen for d in one.agreeing]
    apart = [c for one in seen for c in one.rounded]
    verdict = Verdict(
        name,
        Status.AGREES,
        how,
        points=len(digits) + len(apart),
        digits=min((*digits, _MOST_DIGITS)) if digits else 0,
        bits=max((one.bits for one in seen), default=0),
    )
    if apart:
        least = min(relative_digits(c.left, c.right) for c in apart)
        method = f"{how}, numbers as exact as they are written"
        return replace(verdict, method=method, digits=max(0, least))
    return verdict


def _prove(
    rule: Rule,
    equal: bool,
    verdict: Verdict,
    seen: list[Evidence],
    known: Instances,
    effort: Effort,
) -> Verdict:
    """A proof for every size, else for every element at every small size, else
    unchanged."""
    far = {known.first, *known.further}
    some = [one.claim for one in seen if one.claim.instance in far]
    if equal and all(is_defined(claim, effort) for claim in some):
        sizes = "every size" if axis_names(rule) else ""
        return replace(
            verdict, status=Status.PROVED, method="index calculus", sizes=sizes
        )
    small = set(known.small)
    looked = [one.claim for one in seen if one.claim.instance in small]
    if not known.is_whole or {claim.instance for claim in looked} != small:
        return verdict
    methods: dict[str, None] = {}
    assumed: tuple[str, ...] = ()
    for claim in reversed(looked):
        found = prove(claim, effort)
        if found.proof is None:
            return replace(verdict, stopped=found.stopped)
        methods[found.proof.method] = None
        if found.proof.assumed and not verdict.on_domain:
            verdict = replace(verdict, on_domain=True)
            assumed = _needed_assumptions(claim, found.proof)
    # What is proved at small sizes is not proved.
    has_sizes = bool(axis_names(rule))
    return replace(
        verdict,
        status=Status.AGREES if has_sizes else Status.PROVED,
        method=" and ".join(sorted(methods)),
        sizes=f"sizes 1 to {known.largest}" if has_sizes else "",
        assumed=assumed,
    )


def _needed_assumptions(claim: Claim, proof: Proof) -> tuple[str, ...]:
    """The assumptions without which the proof fails, as they are written."""
    rule = claim.instance.rule
    used = [a for a in rule.assumes if not a.indices]
    wrt, whole = frozenset((claim.input.name,)), claim.instance.whole
    given = tuple(claim.instance.forward.values())
    sides = claim.declared, claim.derived
    prover = Prover(*sides, wrt, whole, Effort.of(_PRUNING), given)
    for one in tuple(used) if len(used) > 1 else ():
        rest = [a for a in used if a is not one]
        given = tuple(a.condition for a in rest)
        if prover.proof(given):
            used = rest
    texts = (rule.source.slice(a.span).removeprefix("assume ") for a in used)
    return tuple(dict.fromkeys(texts))


# --- derived gradients -------------------------------------------------------------------


_RECHECKED = 5
"""Points: a wrong derivation is wrong nearly everywhere."""


class WronglyDerived(RuntimeError):
    """A fault of gradspec: the index calculus and the chain rule do not agree."""


def recheck(rule: Rule, known: Instances) -> None:
    """Derived cotangents compared with the chain rule on elements, which has no
    indices. The derivation for all sizes is long and this is short, independent, and
    cheap at small sizes. At a tie of a maximum the two may share differently.
    """
    instance = known.apart
    if instance is None:
        return
    for entry in instance.rule.backward:
        true = instance.derived.get(entry.input)
        if not entry.is_derived or true is None:
            continue
        stated = instance.stated[entry.input]
        borders = (*instance.forward.values(), stated, true)
        for point in instance.points[:_RECHECKED] if stated != true else ():
            relation = compare(stated, true, point).relation
            if relation is Relation.DIFFERENT and not on_border(borders, point):
                raise WronglyDerived(f"{entry.name} of {rule.name} at {dict(point)}")


# --- elements that do not exist ----------------------------------------------------------


def _with_all_elements(
    rule: Rule, variable: Input, known: Instances, judged: Judgement
) -> Judgement:
    """The judgement, refuted if the cotangent forgets an end of an axis: it uses
    elements that do not exist, at sizes that the forward knows (``x[i + 2]`` under ``if
    i + 1 < n``).

    Sizes at which the forward itself lacks an element are sizes of which the rule says
    nothing (a stencil is longer than its axis). But a cotangent has to have a value
    wherever the forward has one: what agrees at the sizes that are left proves nothing.
    """
    if judged.verdict.status is Status.REFUTED:
        return judged
    entry = rule.declared[variable.name]
    forward = rule.keep((*rule.forward, *rule.surrogates))
    alone = forward.redefine(*rule.backward_locals, entry)
    for gap in known.missed:
        fault = fault_at(alone, gap)
        if fault is not None and fault_at(forward, gap) is None:
            method = "elements that do not exist"
            verdict = replace(
                judged.verdict, status=Status.REFUTED, method=method, sizes=""
            )
            return Judgement(verdict, (_lacks_element(rule, entry, gap, fault),))
    return judged


def fault_at(rule: Rule, gap: Gap) -> OutOfRange | None:
    """The use of an element that does not exist at the sizes of a gap, if there is one."""
    try:
        unroll(rule, gap.sizes, gap.integers)
    except OutOfRange as fault:
        return fault
    return None


def _lacks_element(
    rule: Rule, entry: Definition, gap: Gap, fault: OutOfRange
) -> Diagnostic:
    given = {**gap.sizes, **gap.integers}
    where = ", ".join(f"{name} = {value}" for name, value in given.items())
    return error(
        "GS420",
        f"{entry.name} of {rule.name} uses an element that does not exist",
        rule.source,
        fault.span or entry.span,
        label=f"`{fault.name}` is outside its axis" + (f" at {where}" if where else ""),
        help="narrow the condition around it, so that it holds only where the element"
        " exists; the forward has a value there, and so must its gradient",
    )
