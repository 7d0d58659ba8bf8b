"""A second witness of the derivatives: SymPy differentiates the forward by itself.

Every verdict compares a gradient with the derivative that our own chain rule gives. Here
that derivative is compared with SymPy's, in balls at sampled points, element by element
at small sizes. At a point every conditional has one branch, a maximum one operand and a
step one value: SymPy is given what is left, which is smooth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from gradspec.checks.instances import Instance, few, stem
from gradspec.derive.chain import plus, times
from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select, show
from gradspec.ir.rule import Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.unroll import is_too_large
from gradspec.ir.walk import (
    calls_surrogate,
    expand,
    names,
    size,
    substitute,
    transform,
)
from gradspec.primitives.lookup import formula, primitive
from gradspec.symbolic.borders.limits import on_border
from gradspec.symbolic.compare import Relation, compare, point_text
from gradspec.symbolic.consult import LARGEST, derivative
from gradspec.symbolic.enclose import Point, enclose, is_defined, middle
from gradspec.symbolic.limit import Effort

_POINTS = 4
"""Points of an instance: a wrong derivative is wrong nearly everywhere."""

_STEPS = 20_000
"""Nodes that SymPy is given for one rule: a few seconds."""


@dataclass(frozen=True, slots=True)
class Witness:
    """The points at which SymPy's derivative by an input agrees with ours."""

    line: int
    rule: str
    input: str
    points: int


class _Unsettled(Exception):
    """A conditional is not decided, or a step has no value, at a point."""


def witnesses(rule: Rule) -> Outcome[tuple[Witness, ...]]:
    """SymPy's word on every derivative of a complete rule. None on one that goes through
    the override of another rule, which is no derivative, or an equation, which has no
    formula, or is too large."""
    has_equations = any(d.is_equation for d in rule.definitions)
    if is_too_large(rule) or calls_surrogate(rule) or has_equations:
        return Outcome(())
    known = few(rule)
    counts: dict[str, int] = {}
    effort = Effort(_STEPS)
    for instance in known.small:
        for name, point, agrees, theirs in _comparisons(instance, effort):
            if not agrees:
                return Outcome(None, (_fault(instance, name, point, theirs),))
            counts[stem(name)] = counts.get(stem(name), 0) + 1
    line, _ = rule.source.position(rule.name_span.start)
    return Outcome(tuple(Witness(line, rule.name, n, k) for n, k in counts.items()))


def _comparisons(
    instance: Instance, effort: Effort
) -> Iterator[tuple[str, Point, bool, Expr]]:
    """Inputs and points at which both derivatives are known, whether they agree there,
    and SymPy's."""
    paths = instance.backward_path()
    upstream = [
        (o.name, o.cotangent) for o in instance.rule.outputs if o.takes_gradient
    ]
    total: Expr = ZERO
    for name, cotangent in upstream:
        total = plus(total, times(Ref(cotangent), paths[name]))
    total, known = expand(total), dict[tuple[Expr, str], Expr | None]()
    inside = (p for p in instance.points if not on_border((total,), p))
    for point in islice(inside, _POINTS):
        try:
            smooth = tidy(_settle(total, point))
        except _Unsettled:
            continue
        for name, ours in instance.derived.items():
            key = smooth, name
            if key not in known:
                fits = size(smooth) <= LARGEST and effort.take(size(smooth))
                known[key] = derivative(smooth, name) if fits else None
            theirs = known[key]
            if theirs is None or not names(theirs) <= point.keys():
                continue
            match compare(theirs, ours, point).relation:
                case Relation.EQUAL:
                    yield name, point, True, theirs
                case Relation.DIFFERENT if not on_border((ours,), point):
                    yield name, point, False, theirs


def _settle(expr: Expr, point: Point) -> Expr:
    """The expression as it is around a point, without conditionals and steps."""

    def settle(node: Expr) -> Expr:
        match node:
            case Select(condition=condition, then=then, other=other):
                return then if _truth(condition, point) else other
            case Apply(op=op) if primitive(op).is_step:
                return _number(node, point)
            case Apply(op=op, args=args) if op == "abs" or _is_choice(op):
                row = primitive(op)
                given = dict(zip(row.params, args, strict=True))
                return _settle(substitute(formula(str(row.meaning)), given), point)
            case _:
                return node

    return transform(expr, settle)


def _is_choice(op: str) -> bool:
    """True of ``max``, ``clip``, …, whose meaning has branches or steps."""
    row = primitive(op)
    return row.sympy is None and row.meaning is not None


def _truth(condition: Expr, point: Point) -> bool:
    found = enclose(condition, point)
    if found is not True and found is not False:
        raise _Unsettled
    return found


def _number(step: Expr, point: Point) -> Expr:
    value = enclose(step, point)
    if not is_defined(value) or not value.is_exact():
        raise _Unsettled
    return Const(middle(value))


def _fault(instance: Instance, name: str, point: Point, theirs: Expr) -> Diagnostic:
    rule, ours = instance.written, instance.derived[name]
    used = names(theirs) | names(ours) | {name}
    place = point_text(point, tuple(n for n in instance.shown if n in used))
    return error(
        "GS751",
        f"gradspec and SymPy differentiate {rule.name} differently by {name}",
        rule.source,
        rule.name_span,
        label=f"the derivatives differ at {place}",
        notes=(f"gradspec: {show(ours)}", f"SymPy: {show(theirs)}"),
        help="this is a fault of gradspec's: please report it with the rule",
    )
