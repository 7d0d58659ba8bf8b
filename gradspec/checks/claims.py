"""Claims that a declared cotangent makes, and judgements on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradspec.checks.subject import Point, Subject
from gradspec.diagnostics import Diagnostic
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Input, Kind, Verdict
from gradspec.ir.walk import names
from gradspec.symbolic.compare import Comparison, Relation, compare


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


def at_several_places(claim: Claim, points: Iterable[Point], least: int) -> bool:
    """Whether so many points differ in the inputs that the claim depends on: what is seen
    at one place only, whatever the upstream gradient, is no pattern."""
    used = names(claim.declared) | names(claim.derived)
    numbers = [v.name for v in claim.subject.rule.inputs if v.kind is not Kind.BOOL]
    shown = [name for name in numbers if name in used]
    places = {tuple(point[name] for name in shown) for point in points}
    return not shown or len(places) >= least


_RELATIVE, _ABSOLUTE = 1e-15, 1e-18


def is_rounding(claim: Claim, witness: Comparison) -> bool:
    """Whether what is declared and the derivative differ by a hair at the witness and at
    every sampled point. (An absolute hair is one beside values of ordinary size.)"""
    points = claim.subject.points
    sampled = [compare(claim.declared, claim.derived, point) for point in points]
    apart = [s for s in (witness, *sampled) if s.relation is Relation.DIFFERENT]
    sizes = [max(abs(one.left), abs(one.right)) for one in apart]
    least = _ABSOLUTE if any(_RELATIVE * size >= _ABSOLUTE for size in sizes) else 0
    return bool(apart) and all(
        abs(one.left - one.right) <= max(_RELATIVE * size.lower(), least)
        for one, size in zip(apart, sizes, strict=True)
    )
