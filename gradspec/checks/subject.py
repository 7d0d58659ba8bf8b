"""What the checks look at: a rule, its closed expressions, and the sampled points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from gradspec.derive.partials import Underivable
from gradspec.derive.vjp import cotangents
from gradspec.ir import closed
from gradspec.ir.calls import expand
from gradspec.ir.expr import ZERO, Expr
from gradspec.ir.rule import Declared, Input, Kind, Rule
from gradspec.ir.walk import inline, names
from gradspec.symbolic.sampling import Survey, survey, usual_count

Point = Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class Subject:
    """A complete elementwise rule and what is worked out of it once.

    ``forward``: each output in the inputs. ``stated``: each input's cotangent as it
    stands in the rule. ``derived``: the true one, by input; none of them if a primitive
    without a known derivative is in the way.
    """

    rule: Rule
    survey: Survey
    forward: Mapping[str, Expr]
    stated: Mapping[str, Expr]
    derived: Mapping[str, Expr]

    @property
    def points(self) -> tuple[Point, ...]:
        return self.survey.points

    @property
    def upstream(self) -> tuple[str, ...]:
        """The names of the upstream gradients."""
        return tuple(f"d{o.name}" for o in self.rule.outputs if o.takes_gradient)

    @property
    def assumed(self) -> tuple[Expr, ...]:
        return tuple(a.condition for a in self.rule.assumes if not a.indices)

    @property
    def whole(self) -> frozenset[str]:
        """The names of integer inputs."""
        whole = (Kind.INT, Kind.STATIC_INT)
        return frozenset(i.name for i in self.rule.inputs if i.kind in whole)

    @property
    def shown(self) -> tuple[str, ...]:
        """Every name of a point, in the order in which a reader wants them."""
        return (*(i.name for i in self.rule.inputs), *self.upstream)

    def backward_path(self) -> dict[str, Expr]:
        """Each output as the backward pass sees it: surrogates in place."""
        paths = dict(self.forward)
        for surrogate in self.rule.surrogates:
            value = inline(self.rule.forward, surrogate.value)
            paths[surrogate.output] = expand(value)
        return paths

    def declared(self) -> Iterator[tuple[Input, Declared]]:
        """The inputs whose cotangent the author wrote."""
        for variable, entry in zip(self.rule.inputs, self.rule.backward, strict=True):
            if isinstance(entry, Declared):
                yield variable, entry


def subject(rule: Rule, most: int = 48) -> Subject:
    """Work out closed expressions and points (at most so many) of an elementwise rule."""
    stated = {
        name.removeprefix("d"): expand(value)
        for name, value in closed.cotangents(rule).items()
    }
    return Subject(
        rule,
        survey(rule, min(usual_count(rule), most)),
        {name: expand(value) for name, value in closed.outputs(rule).items()},
        stated,
        _derived(rule),
    )


def _derived(rule: Rule) -> dict[str, Expr]:
    try:
        found = cotangents(rule)
    except Underivable:
        return {}
    return {name: expand(value) for name, value in found.items()}


def depends(expr: Expr, name: str) -> bool:
    return expr != ZERO and name in names(expr)


def said(point: Point, only: tuple[str, ...]) -> str:
    """A point as a reader writes it: ``x = 2, dy = 1``."""
    return ", ".join(f"{name} = {number(point[name])}" for name in only)


def number(value: Fraction) -> str:
    """A whole number as such, another as the shortest decimal of its double."""
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
