"""Claims that a declared cotangent makes, and judgements on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradspec.checks.subject import Point, Subject
from gradspec.diagnostics import Diagnostic
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Input, Kind, Verdict
from gradspec.ir.walk import names


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
