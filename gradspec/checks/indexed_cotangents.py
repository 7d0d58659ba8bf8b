"""Declared cotangents of ranked rules: refuted, proved, or agreeing.

In the order of the cost: balls at small sizes and at one larger combination refute;
the index calculus proves for every size where the two forms are one; failing that, each
element is proved at every small size, within the budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import process_time

from gradspec.checks.claims import Claim, Judgement
from gradspec.checks.cotangents import (
    Examined,
    everywhere,
    examine,
    prove,
)
from gradspec.checks.enough import further, is_enough, too_few
from gradspec.checks.indexed_calculus import is_equal
from gradspec.checks.indexed_cases import Case, Cases
from gradspec.checks.indexed_words import Witness, hole, outside, refuted, unknown
from gradspec.checks.subject import Subject
from gradspec.ir.calls import follows_surrogate
from gradspec.ir.elements import element, places
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Derived, Input, Rule, Status, Verdict
from gradspec.ir.unroll import axis_names
from gradspec.symbolic.compare import Relation, compare, relative_digits
from gradspec.symbolic.neighbours import on_border

_MOST_DIGITS = 50
_CONFIRMED = 4
"""Elements that are looked at in more points, or a few more."""

_LONGEST_PROOF = 2.0
"""Seconds for one element: one that needs more needs more than we have for all."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One element of a declared cotangent at given sizes, examined."""

    case: Case
    claim: Claim
    examined: Examined


def judge(rule: Rule, known: Cases, budget: float) -> tuple[Judgement, ...]:
    """Every declared cotangent, in input order; they share the budget."""
    deadline = process_time() + budget
    declared = [
        (variable, entry)
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
        if isinstance(entry, Declared)
    ]
    done = []
    for number, (variable, entry) in enumerate(declared):
        left = max(deadline - process_time(), 0.0) / (len(declared) - number)
        begun = process_time()
        judgement = _judge(rule, variable, entry, known, begun + left)
        verdict = replace(judgement.verdict, seconds=process_time() - begun)
        done.append(replace(judgement, verdict=verdict))
    return tuple(done)


def judge_by_calculus(rule: Rule) -> tuple[Judgement, ...]:
    """Fixed sizes that are too large to write out: equal for every size, or not known."""
    done = []
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(entry, Declared) and is_equal(rule, variable.name, entry):
            verdict = Verdict(variable.name, Status.PROVED, "index calculus")
            done.append(Judgement(verdict))
        elif isinstance(entry, Declared):
            verdict = Verdict(variable.name, Status.AGREES)
            done.append(Judgement(verdict, (unknown(rule, variable, entry),)))
    return tuple(done)


def _judge(
    rule: Rule, variable: Input, entry: Declared, known: Cases, deadline: float
) -> Judgement:
    seen: list[Seen] = []
    half = deadline - max(deadline - process_time(), 0.0) / 2
    equal = is_equal(rule, variable.name, entry)
    always = _always(known)
    every = dict.fromkeys((*known.small, *always, *known.larger))
    for case in always if equal else every:
        if process_time() > half and case not in always:
            continue
        for claim in _claims(variable, case):
            points = claim.subject.points if equal else everywhere(claim)
            one = Seen(case, claim, examine(claim, points))
            if one.examined.is_refuted:
                return _refuted(rule, entry, one, known)
            seen.append(one)
    verdict = _verdict(rule, variable, seen)
    if not any(s.examined.rounded for s in seen):
        verdict = _proved(rule, equal, verdict, seen, known, deadline)
    holes = (s for s in seen if s.examined.hole is not None)
    first = next(holes, None)
    found = () if first is None else (hole(_witness(first), entry),)
    if verdict.status is Status.PROVED or not any(c.subject.points for c in every):
        return Judgement(verdict, found)
    return _confirmed(rule, variable, entry, known, Judgement(verdict, found))


def _confirmed(
    rule: Rule, variable: Input, entry: Declared, known: Cases, judged: Judgement
) -> Judgement:
    """What is not proved agrees at enough generic points, at some size."""
    count = 0
    for case in dict.fromkeys((*_always(known)[::-1], *known.larger)):
        claims = tuple(_claims(variable, case))
        some = claims[:: max(1, len(claims) // _CONFIRMED)]
        seen = [Seen(case, claim, examine(claim, further(claim))) for claim in some]
        for one in seen:
            if one.examined.is_refuted:
                return _refuted(rule, entry, one, known)
        if seen and all(is_enough(s.claim, s.examined.supporting) for s in seen):
            return judged
        count = max((count, *(len(s.examined.supporting) for s in seen)))
    found = (*judged.found, too_few(rule, variable, entry, count))
    return replace(judged, found=found)


def _always(known: Cases) -> tuple[Case, ...]:
    """The cases that are looked at however short the time. What the index calculus has
    proved for every size is looked at in no more, by means that know no indices: a fault
    of the calculus would show nearly everywhere.
    """
    some = (known.first, known.apart)
    return tuple(dict.fromkeys(case for case in some if case is not None))


def _claims(variable: Input, case: Case) -> Iterator[Claim]:
    """Its elements."""
    subject = case.subject
    inputs = {i.name: i for i in subject.rule.inputs}
    entries = {variable.name: entry for variable, entry in subject.declared()}
    for index in places(variable.shape.axes, case.sizes):
        name = element(variable.name, index)
        if name in subject.derived and name in entries:
            stated, derived = subject.stated[name], subject.derived[name]
            yield Claim(subject, inputs[name], entries[name], stated, derived)


def _refuted(rule: Rule, entry: Declared, seen: Seen, known: Cases) -> Judgement:
    name = _of(seen)
    status = Verdict(name, Status.REFUTED, "ball arithmetic")
    if seen.examined.refuted is not None:
        found = refuted(rule, entry, _witness(seen), known)
    else:
        status = replace(status, method="one-sided limits")
        found = outside(_witness(seen), entry)
    return Judgement(status, (found,))


def _of(seen: Seen) -> str:
    """The ranked input that an element belongs to."""
    return seen.claim.input.name.partition("[")[0]


def _witness(seen: Seen) -> Witness:
    examined = seen.examined
    if examined.outside is not None:
        point, comparison, ends = examined.outside
        return Witness(seen.case, seen.claim, point, comparison, ends)
    found = examined.refuted or examined.hole
    assert found is not None
    return Witness(seen.case, seen.claim, *found)


# --- derived ones -------------------------------------------------------------------------


_RECHECKED = 5
"""Points: a wrong derivation is wrong nearly everywhere."""


class WronglyDerived(RuntimeError):
    """A fault of ours: the index calculus and the chain rule do not agree."""


def recheck(rule: Rule, known: Cases) -> None:
    """Derived cotangents against the chain rule on elements, which knows no indices.

    The derivation for all sizes is long and this is short, independent, and cheap at
    small sizes. At a tie of a maximum the two may share differently.
    """
    if known.apart is not None:
        subject = known.apart.subject
        entries = zip(subject.rule.inputs, subject.rule.backward, strict=True)
        for variable, entry in entries:
            true = subject.derived.get(variable.name)
            if not isinstance(entry, Derived) or true is None:
                continue
            stated = subject.stated[variable.name]
            _require_equal(rule, variable, subject, stated, true)


def _require_equal(
    rule: Rule, variable: Input, subject: Subject, stated: Expr, true: Expr
) -> None:
    borders = (*subject.forward.values(), stated, true)
    for point in subject.points[:_RECHECKED]:
        relation = compare(stated, true, point).relation
        if relation is Relation.DIFFERENT and not on_border(borders, point):
            raise WronglyDerived(f"d{variable.name} of {rule.name} at {dict(point)}")


# --- what is established -----------------------------------------------------------------


def _verdict(rule: Rule, variable: Input, seen: list[Seen]) -> Verdict:
    """As far as balls go."""
    digits = [d for one in seen for d in one.examined.agreeing]
    apart = [c for one in seen for c in one.examined.rounded]
    verdict = Verdict(
        variable.name,
        Status.AGREES,
        "ball arithmetic",
        points=len(digits) + len(apart),
        digits=min((*digits, _MOST_DIGITS)) if digits else 0,
        through_surrogate=follows_surrogate(rule),
        bits=max((one.examined.bits for one in seen), default=0),
    )
    if apart:
        least = min(relative_digits(c.left, c.right) for c in apart)
        method = "ball arithmetic, numbers as exact as they are written"
        return replace(verdict, method=method, digits=max(0, least))
    return verdict


def _proved(
    rule: Rule,
    is_equal_everywhere: bool,
    verdict: Verdict,
    seen: list[Seen],
    known: Cases,
    deadline: float,
) -> Verdict:
    """For every size, or at every small one, or as it is."""
    if not verdict.points:
        return verdict
    if is_equal_everywhere:
        sizes = "every size" if axis_names(rule) else ""
        return replace(
            verdict, status=Status.PROVED, method="index calculus", sizes=sizes
        )
    return _proved_small(verdict, seen, known, deadline) or verdict


def _proved_small(
    verdict: Verdict, seen: list[Seen], known: Cases, deadline: float
) -> Verdict | None:
    """Every element at every small size, each where anything is known of it."""
    small = {id(case) for case in known.small}
    looked = [one for one in seen if id(one.case) in small]
    reached = {id(one.case) for one in looked}
    if not known.is_whole or reached != small:
        return None
    methods: dict[str, None] = {}
    on_domain = False
    for one in reversed(looked):
        left = min(deadline - process_time(), _LONGEST_PROOF)
        proof = prove(one.claim, left).proof if left > 0 else None
        if proof is None:
            return None
        methods[proof.method] = None
        on_domain = on_domain or proof.assumed
    return replace(
        verdict,
        status=Status.PROVED,
        method=" and ".join(sorted(methods)),
        on_domain=on_domain,
        sizes=f"sizes 1 to {known.largest}" if known.small[0].sizes else "",
    )
