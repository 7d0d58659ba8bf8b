"""Difference quotients for a declared cotangent whose derivative cannot be derived.

Some primitives have no derivative that we know of (an author then has to write it).
Quotients of exact enclosures are not rigorous, but with a step of 2**-200 they have no
rounding to speak of, and a wrong cotangent misses them by far more than the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from gradspec.checks.claims import DRAWN, Claim, is_enough, too_few
from gradspec.checks.instances import Instance, Point, said
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.expr import Apply, Expr, Ref
from gradspec.ir.rule import Declared, Input, Status, Verdict
from gradspec.ir.walk import names
from gradspec.symbolic.enclose import defined, enclose
from gradspec.symbolic.neighbours import central_slope
from gradspec.symbolic.sampling import generic_points

_TOLERANCE = 1e-12
_DIGITS = 12


def by_quotient(
    instance: Instance, variable: Input, entry: Declared
) -> tuple[Verdict, tuple[Diagnostic, ...]]:
    """The verdict on one cotangent: agrees, or refuted at the first point that
    differs."""
    declared = instance.stated[variable.name]
    met: list[Point] = []
    for point, true in _slopes(instance, variable.name):
        ball = enclose(declared, point)
        if not defined(ball):
            continue
        value = float(ball.mid())
        if abs(value - true) > _TOLERANCE * max(1.0, abs(true)):
            place = said(point, instance.shown)
            told = f"gives {value:.12g} at {place}, where the derivative is {true:.12g}"
            found = (_differs(instance, variable, entry, told),)
            return Verdict(variable.name, Status.REFUTED, "difference quotient"), found
        met.append(point)
    verdict = Verdict(
        variable.name, Status.AGREES, "difference quotient", len(met), _DIGITS
    )
    claim = Claim(instance, variable, entry, declared, _total(instance))
    drawn = [p for p in met if not any(p is one for one in instance.points)]
    if not instance.points or is_enough(claim, drawn):
        return verdict, ()
    return verdict, (too_few(instance.rule, variable, entry, len(drawn)),)


def _slopes(instance: Instance, name: str) -> Iterator[tuple[Point, float]]:
    """The derivative of the sum of outputs times upstream gradients."""
    total = _total(instance)
    if name not in names(total):
        return
    for point in (*instance.points, *generic_points(instance.rule, DRAWN)):
        slope = central_slope(total, point, name)
        if slope is not None:
            yield point, slope


def _total(instance: Instance) -> Expr:
    paths: Mapping[str, Expr] = instance.backward_path()
    terms = [
        Apply("mul", (Ref(f"d{o.name}"), paths[o.name]))
        for o in instance.rule.outputs
        if o.takes_gradient
    ]
    return reduce(lambda a, b: Apply("add", (a, b)), terms)


def _differs(
    instance: Instance, variable: Input, entry: Declared, told: str
) -> Diagnostic:
    return error(
        "GS401",
        f"d{variable.name} of {instance.rule.name} is not the derivative",
        instance.rule.source,
        entry.span,
        label=told,
        notes=("found by difference quotients: no formula of it is known",),
        help="correct it; if it is meant, say"
        f' `override d{variable.name} = … because "…"`',
    )
