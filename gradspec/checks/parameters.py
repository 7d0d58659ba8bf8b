"""A declared gradient that is right only for parameters on the default's side of 0 or 1.

The usual case is a backward in terms of outputs: `slope * dy if y <= 0 else dy` is the
gradient of a leaky ReLU as long as the slope is positive; with a negative one the output
does not tell any more on which side the input was. The sample that refutes keeps statics
to the side of their defaults (`symbolic.sampling`), so that this is only told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from gradspec.checks.mending import assuming
from gradspec.checks.subject import Point, Subject, number, said
from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Input, Kind
from gradspec.ir.walk import names
from gradspec.symbolic.compare import Relation, compare, decimals
from gradspec.symbolic.enclose import defined, enclose
from gradspec.symbolic.neighbours import on_border

_POINTS = 10


def check(subject: Subject) -> Iterator[Diagnostic]:
    statics = [v for v in subject.rule.inputs if v.kind is Kind.STATIC and v.default]
    for variable, entry in subject.declared():
        derived = subject.derived.get(variable.name)
        for static in statics:
            if derived is not None and static.name in names(derived):
                yield from _elsewhere(subject, variable, entry, static)


def _elsewhere(
    subject: Subject, variable: Input, entry: Declared, static: Input
) -> Iterator[Diagnostic]:
    stated, derived = subject.stated[variable.name], subject.derived[variable.name]
    usual = subject.points[:_POINTS]
    if _differs(stated, derived, usual, subject):
        return  # refuted as it is
    for condition, move in _moves(static):
        moved = [{**p, static.name: move(p[static.name])} for p in usual]
        found = _differs(stated, derived, tuple(moved), subject)
        if found is not None:
            yield _finding(subject, variable, entry, static, condition, found)
            return


def _moves(static: Input) -> Iterator[tuple[str, Callable[[Fraction], Fraction]]]:
    """To the other side, and the condition that excludes it."""
    default = static.default or Fraction(0)
    yield f"{static.name} {'>' if default > 0 else '<'} 0", lambda value: -value
    if default > 0:
        side = "<" if default < 1 else ">="
        yield f"{static.name} {side} 1", lambda value: 1 / value if value else value


def _differs(
    stated: Expr, derived: Expr, points: tuple[Point, ...], subject: Subject
) -> Point | None:
    borders = (*subject.forward.values(), stated, derived)
    for point in points:
        if not all(enclose(c, point) is True for c in subject.assumed):
            continue
        if not all(defined(enclose(v, point)) for v in subject.forward.values()):
            continue
        different = compare(stated, derived, point).relation is Relation.DIFFERENT
        if different and not on_border(borders, point):
            return point
    return None


def _finding(
    subject: Subject,
    variable: Input,
    entry: Declared,
    static: Input,
    condition: str,
    point: Point,
) -> Diagnostic:
    rule, name = subject.rule, f"d{variable.name}"
    stated, derived = subject.stated[variable.name], subject.derived[variable.name]
    seen = compare(stated, derived, point)
    declared, true = decimals(seen.left, seen.right)
    used = names(stated) | names(derived)
    place = said(point, tuple(n for n in subject.shown if n in used))
    outputs = [o.name for o in rule.outputs if o.name in names(entry.value)]
    notes = [f"`{o}` does not tell the inputs apart there" for o in outputs]
    return warning(
        "GS445",
        f"{name} of {rule.name} is the derivative only for {condition}",
        rule.source,
        entry.span,
        label=f"gives {declared} at {place}, where the derivative is {true}",
        notes=notes,
        fixes=((assuming(rule, condition),),),
        help=f"or write {name} in terms of the inputs (the default is"
        f" {number(static.default or point[static.name])})",
    )
