"""A declared gradient that is right for a parameter of the default's sign only.

The usual case is a backward in terms of outputs: `slope * dy if y <= 0 else dy` is the
gradient of a leaky ReLU as long as the slope is positive; with a negative one the output
does not tell any more on which side the input was.
"""

from __future__ import annotations

from collections.abc import Iterator

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
                yield from _other_sign(subject, variable, entry, static)


def _other_sign(
    subject: Subject, variable: Input, entry: Declared, static: Input
) -> Iterator[Diagnostic]:
    stated, derived = subject.stated[variable.name], subject.derived[variable.name]
    if _differs(stated, derived, subject.points[:_POINTS], subject):
        return  # refuted as it is
    turned: list[Point] = [
        {**p, static.name: -p[static.name]} for p in subject.points[:_POINTS]
    ]
    found = _differs(stated, derived, tuple(turned), subject)
    if found is not None:
        yield _finding(subject, variable, entry, static, found)


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
    subject: Subject, variable: Input, entry: Declared, static: Input, point: Point
) -> Diagnostic:
    rule, name = subject.rule, f"d{variable.name}"
    stated, derived = subject.stated[variable.name], subject.derived[variable.name]
    seen = compare(stated, derived, point)
    declared, true = decimals(seen.left, seen.right)
    used = names(stated) | names(derived)
    place = said(point, tuple(n for n in subject.shown if n in used))
    sign = ">" if (static.default or 0) > 0 else "<"
    outputs = [o.name for o in rule.outputs if o.name in names(entry.value)]
    notes = [f"`{o}` does not tell the inputs apart there" for o in outputs]
    return warning(
        "GS445",
        f"{name} of {rule.name} is the derivative only for {static.name} {sign} 0",
        rule.source,
        entry.span,
        label=f"gives {declared} at {place}, where the derivative is {true}",
        notes=notes,
        help=f"say `assume {static.name} {sign} 0`, or write {name} in terms of the"
        f" inputs (the default is {number(static.default or point[static.name])})",
    )
