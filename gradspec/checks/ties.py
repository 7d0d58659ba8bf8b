"""Ties on whole intervals: where a step equals a bound, and what the gradient is there.

`x` equals a bound at one point, `round(x)` on an interval. So whether a clamp is
written with `<` or `<=` does not matter before a step, and decides after it whether the
values next to the bound are learned from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gradspec.checks.instances import Instance, Point, said
from gradspec.diagnostics import Diagnostic, Label, Severity
from gradspec.ir.expr import Apply, Const, Expr, Ref
from gradspec.ir.rule import Backward, Input, Override
from gradspec.ir.walk import names, nodes, transform
from gradspec.primitives.lookup import rows
from gradspec.symbolic.breaks import borders, solutions
from gradspec.symbolic.enclose import defined, enclose, program

_LOWEST = {row.name: row.zero_from for row in rows() if row.zero_from is not None}
"""The lower end of the interval on which a step function is 0; its length is 1."""

_INSIDE = (Fraction(1, 16), Fraction(1, 2), Fraction(15, 16))
_MIDDLE = Fraction(1, 2)
_BASES = 2
_STEP = "the step"  # a name that nothing has


@dataclass(frozen=True, slots=True)
class _Tie:
    """A step of an input that the gradient compares with ``bound``."""

    step: Apply
    bound: Expr


def check(instance: Instance) -> Iterator[Diagnostic]:
    """Diagnostics for gradients that are 0 on the whole interval on which a step equals
    the bound of a clamp, though the value there is the same without the clamp."""
    rule = instance.rule
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        stated = instance.stated.get(variable.name)
        if not variable.takes_gradient or stated is None:
            continue
        for tie in _ties(stated, variable.name):
            for base in instance.points[:_BASES]:
                point = _lost(instance, variable.name, stated, tie, base)
                if point is not None:
                    yield _finding(instance, variable, entry, point)
                    break
            else:
                continue
            break


def _ties(stated: Expr, name: str) -> Iterator[_Tie]:
    for left, right in borders(stated):
        steps = (node for side in (left, right) for node in nodes(side))
        for step in dict.fromkeys(steps):
            if isinstance(step, Apply) and step.op in _LOWEST and name in names(step):
                sides = (_put(side, step) for side in (left, right))
                for bound in solutions(*sides, _STEP):
                    yield _Tie(step, bound)


def _put(expr: Expr, step: Apply) -> Expr:
    return transform(expr, lambda node: Ref(_STEP) if node == step else node)


def _lost(
    instance: Instance, name: str, stated: Expr, tie: _Tie, base: Point
) -> Point | None:
    """A point of the interval, if the gradient is 0 on all of it and beyond the bound
    and is not on the side before it, and the value is that of the bound."""
    bound = _whole(tie.bound, base)
    if bound is None:
        return None
    start = bound + _LOWEST[tie.step.op]
    compiled = program(stated, *instance.forward.values())

    def at(place: Fraction) -> tuple[Point, tuple[Any, ...]] | None:
        for solved in solutions(tie.step.args[0], Const(place), name):
            value = enclose(solved, base)
            if defined(value):
                point = {**base, name: Fraction(float(value.mid()))}
                found = compiled.run(point)
                return (point, found) if all(map(defined, found)) else None
        return None

    inside = [at(start + part) for part in _INSIDE]
    sides = [at(start + _MIDDLE + way) for way in (-1, 1)]
    tied = [one for one in inside if one is not None and one[1][0].is_zero()]
    if len(tied) < len(_INSIDE) or None in sides:
        return None
    point, (_, *values) = tied[1]
    beyond, before = sorted(
        (one[1] for one in sides if one is not None),
        key=lambda found: not found[0].is_zero(),
    )
    is_clamp = beyond[0].is_zero() and not before[0].contains(0)
    is_same = all(a.overlaps(b) for a, b in zip(values, beyond[1:], strict=True))
    is_other = any(not a.overlaps(b) for a, b in zip(values, before[1:], strict=True))
    return point if is_clamp and is_same and is_other else None


def _whole(bound: Expr, base: Point) -> Fraction | None:
    """A bound that a step can equal."""
    if not names(bound) <= set(base):
        return None
    value = enclose(bound, base)
    number = value.unique_fmpz() if defined(value) else None
    return None if number is None else Fraction(int(number))


def _finding(
    instance: Instance, variable: Input, entry: Backward, point: Point
) -> Diagnostic:
    rule, name = instance.rule, f"d{variable.name}"
    used = names(instance.stated[variable.name]) | {variable.name}
    shown = tuple(i.name for i in rule.inputs if i.name in used)
    span = getattr(entry, "span", variable.span)
    label = Label(
        rule.source, span, f"0 at {said(point, shown)}, as it is beyond the bound"
    )
    return Diagnostic(
        "GS435",
        Severity.NOTE if isinstance(entry, Override) else Severity.WARNING,
        f"{name} of {rule.name} is 0 on a whole interval on which a step equals a bound",
        (label,),
        help="compare with `<=` or `>=`: there the value is what it is without the clamp",
    )
