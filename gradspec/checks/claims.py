"""Claims that a declared cotangent makes, and judgements on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from gradspec.checks.subject import Point, Subject
from gradspec.diagnostics import Diagnostic
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.rule import Declared, Input, Kind, Verdict
from gradspec.ir.walk import names, transform
from gradspec.symbolic.compare import Relation, compare


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
    """Whether at least ``least`` of the points differ in the inputs on which the claim
    depends. What is seen at one place only, at several upstream gradients, is no pattern.
    """
    used = names(claim.declared) | names(claim.derived)
    numbers = [v.name for v in claim.subject.rule.inputs if v.kind is not Kind.BOOL]
    shown = [name for name in numbers if name in used]
    places = {tuple(point[name] for name in shown) for point in points}
    return not shown or len(places) >= least


_RELATIVE, _ABSOLUTE = 1e-15, 1e-18


def is_rounding(claim: Claim, witness: Point) -> bool:
    """Whether the declared cotangent and the derivative differ by a relative 1e-15 or an
    absolute 1e-18 at most, at the witness and at every sampled point, constants of that
    size that guard divisors (``y + 1e-19``) left out."""
    forms = claim.declared, claim.derived
    bare = transform(forms[0], _without_hair), transform(forms[1], _without_hair)
    points = (witness, *claim.subject.points)
    seen = [compare(*bare, point) for point in points]
    apart = [one for one in seen if one.relation is Relation.DIFFERENT]
    sizes = [max(abs(one.left), abs(one.right)) for one in apart]
    # An absolute hair is one beside values of ordinary size.
    least = _ABSOLUTE if any(_RELATIVE * size >= _ABSOLUTE for size in sizes) else 0
    return (bool(apart) or bare != forms) and all(
        abs(one.left - one.right) <= max(_RELATIVE * size.lower(), least)
        for one, size in zip(apart, sizes, strict=True)
    )


def _without_hair(node: Expr) -> Expr:
    match node:
        case Apply(op="add" | "sub", args=(rest, Const(value=value))) if _is_hair(
            value
        ):
            return rest
        case Apply(op="add", args=(Const(value=value), rest)) if _is_hair(value):
            return rest
        case _:
            return node


def _is_hair(value: Fraction) -> bool:
    return abs(value) <= _ABSOLUTE
