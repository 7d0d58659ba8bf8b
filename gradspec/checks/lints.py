"""Inputs and locals that nothing uses, gradients that vanish or hold for some parameters
only, gradients that differ from the derivative by intent (surrogates, overrides), and
ties of steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from gradspec.checks.diagnosis.wording import left_out
from gradspec.checks.instances import Instance, Point, depends
from gradspec.diagnostics import Diagnostic, Label, Severity, warning
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select, Size
from gradspec.ir.rule import Rule
from gradspec.ir.walk import expand, inline, names, nodes, substitute, transform
from gradspec.primitives.lookup import primitive, rows
from gradspec.symbolic.borders.bounds import borders, solutions
from gradspec.symbolic.compare import Relation, compare, point_text
from gradspec.symbolic.enclose import enclose, is_defined, program

# --- names -------------------------------------------------------------------------------


def unused_inputs(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for inputs that no output, cotangent, surrogate or assumption uses,
    and that do not define the size of an axis either."""
    texts = (*_texts(rule), *(assume.condition for assume in rule.assumes))
    used = frozenset[str]().union(*(names(text) for text in texts))
    used |= frozenset(axis for v in rule.outputs for axis in _named_axes(v.shape.axes))
    used |= {i.name for i in rule.static_inputs if i.is_size}
    used |= {n.axis for text in texts for n in nodes(text) if isinstance(n, Size)}
    for variable in rule.inputs:
        others = (i for i in rule.inputs if i is not variable)
        shared = {axis for other in others for axis in _named_axes(other.shape.axes)}
        own = {variable.name, *({*_named_axes(variable.shape.axes)} - shared)}
        # The input of an override is there for the sake of its gradient.
        if variable.name not in rule.overrides and used.isdisjoint(own):
            yield warning(
                "GS408",
                f"{variable.name} of {rule.name} is never used",
                rule.source,
                variable.span,
                label="not used by any output or gradient",
                help="remove it, or use it",
            )


def unused_locals(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for unused locals, often gradients under another framework's name."""
    used = {*rule.saves, *rule.recomputes, *(o.name for o in rule.outputs)}
    used = used.union(*(names(text) for text in _texts(rule)))
    for let in (*rule.forward, *rule.backward_locals):
        if let.name not in used:
            help = "remove it, or use it"
            called = _GRADIENT.fullmatch(let.name)
            meant = called[1] or called[2] if called else ""
            if meant in {v.name for v in rule.inputs if v.takes_gradient}:
                help = f"the gradient of `{meant}` is called `d{meant}`"
            span = let.span or rule.name_span
            headline = f"{let.name} of {rule.name} is never used"
            label = "no output or gradient uses it"
            yield warning("GS418", headline, rule.source, span, label=label, help=help)


_GRADIENT = re.compile(r"(?:grad|gradient|d[A-Za-z]*_d)_?(\w+)|(\w+)_(?:grad|bar)")
"""Names of gradients: ``grad_x``, ``dy_dx``, ``dL_dx``, ``x_grad``, ``x_bar``."""


def _texts(rule: Rule) -> tuple[Expr, ...]:
    return tuple(definition.value for definition in rule.definitions)


def _named_axes(axes: tuple[str | int, ...]) -> tuple[str, ...]:
    return tuple(axis for axis in axes if isinstance(axis, str))


# --- gradients that vanish ---------------------------------------------------------------

_CERTAIN, _NOTHING = 512, 1e-100


def vanishing(instance: Instance) -> Iterator[Diagnostic]:
    """Diagnostics for a derived gradient that is 0 everywhere: the input passes through
    a step, or the formula does not depend on it after all."""
    rule = instance.rule
    if rule.surrogates or not instance.points:
        return
    for entry in rule.backward:
        name, gradient = entry.input, instance.derived.get(entry.input)
        using = [n for n, v in instance.forward.items() if depends(v, name)]
        if not entry.is_derived or gradient is None or not using:
            continue
        if any(_has_step(instance.forward[n], name) for n in using):
            code, label = "GS407", f"{name} goes through a step"
            help = f"give a smooth stand-in, `surrogate {using[0]} = …`; if 0 is meant,"
        else:
            code, label = "GS448", f"{using[0]} does not change with it"
            help = f"correct the formula; if {name} is meant to take no gradient,"
        if _vanishes(instance, gradient):
            yield warning(
                code,
                f"the gradient of {rule.name} by {name} is 0 everywhere",
                rule.source,
                entry.span,
                label=label,
                help=f"{help} say `{name}: nograd`",
            )


def _vanishes(instance: Instance, gradient: Expr) -> bool:
    """True if 0 at every sampled point to a hundred digits: the residue of
    cancellation."""
    compiled = program(gradient)
    first = [compiled.run(point)[0] for point in instance.points[:1]]
    if not all(is_defined(value) and value.contains(0) for value in first):
        return False
    values = (compiled.run(point, _CERTAIN)[0] for point in instance.points)
    return bool(first) and all(
        is_defined(v) and v.contains(0) and abs(v) < _NOTHING for v in values
    )


def _has_step(expr: Expr, name: str) -> bool:
    """True if a step is applied to the input, or a condition depends on it."""
    for node in nodes(expr):
        match node:
            case Apply(op=op, args=args) if args and primitive(op).is_step:
                if any(name in names(arg) for arg in args):
                    return True
            case Select(condition=condition) if name in names(condition):
                return True
            case _:
                continue
    return False


# --- surrogates and overrides ------------------------------------------------------------

_SCALES = (1, 2**20, -(2**20), 3)
"""Scales of the upstream gradient: one clipped at 10 is the derivative while small."""


def surrogates(instance: Instance) -> Iterator[Diagnostic]:
    """Diagnostics for a surrogate whose contribution to every gradient is 0."""
    rule = instance.rule
    for surrogate in rule.surrogates:
        output = surrogate.name
        value = expand(inline(rule.forward, surrogate.value))
        reached = [
            entry.input
            for entry in rule.backward
            if not entry.is_override and depends(instance.forward[output], entry.input)
        ]
        others = {n: ZERO for n in instance.rule.cotangents if n != f"d{output}"}
        own = (substitute(instance.derived[n], others) for n in reached)
        if reached and instance.derived and all(_vanishes(instance, e) for e in own):
            yield warning(
                "GS405",
                f"the surrogate of {output} in {rule.name} gives no gradient",
                rule.source,
                surrogate.span,
                label="its derivative is 0 at every sampled point"
                if any(depends(value, name) for name in reached)
                else f"it does not depend on {', '.join(reached)}",
                help="give a smooth function of the inputs",
            )


def overrides(instance: Instance) -> Iterator[Diagnostic]:
    """Diagnostics for an override that is the derivative, at least at the defaults, and
    for one that ignores the upstream gradient (0 stops a gradient, by intent)."""
    rule, upstream = instance.rule, " or ".join(instance.rule.cotangents)
    usual = {v.name: v.default for v in rule.static_inputs if v.default is not None}
    at_usual = tuple({**point, **usual} for point in instance.points if usual)
    for name, entry in rule.overrides.items():
        stated, derived = instance.stated[name], instance.derived.get(name)
        subject = f"the override of {entry.name} in {rule.name}"
        if derived is not None and _same(instance, instance.points, stated, derived):
            yield warning(
                "GS406",
                f"{subject} is the derivative",
                rule.source,
                entry.span,
                label="equal to the derivative at every sampled point",
                help=f"or write `{entry.name} = …` to have it proved",
                tries=((left_out(rule, entry.span),),),
            )
        elif derived is not None and _same(instance, at_usual, stated, derived):
            used = tuple(name for name in usual if name in names(entry.value))
            told = f"the same as the derivative at {point_text(usual, used)}"
            yield Diagnostic(
                "GS417",
                Severity.NOTE,
                f"{subject} is the derivative at the defaults",
                (Label(rule.source, entry.span, told),),
                help="nothing has to be done if only other values are to change the"
                " gradient",
            )
        if names(stated).isdisjoint(instance.rule.cotangents) and stated != ZERO:
            yield warning(
                "GS446",
                f"{subject} ignores the upstream gradient",
                rule.source,
                entry.span,
                label=f"does not use {upstream}: it is the same however little the"
                " output matters",
                help=f"multiply by {upstream}",
            )


def _same(
    instance: Instance, points: tuple[Point, ...], stated: Expr, derived: Expr
) -> bool:
    """True if equal at every point where both are defined, for every upstream size."""
    found = [
        compare(
            stated,
            derived,
            {**point, **{n: scale * point[n] for n in instance.rule.cotangents}},
        ).relation
        for point in points
        for scale in _SCALES
    ]
    return Relation.EQUAL in found and all(
        relation in (Relation.EQUAL, Relation.RIGHT_UNDEFINED) for relation in found
    )


# --- ties of steps -----------------------------------------------------------------------
# `x` equals a bound at one point, `round(x)` on an interval. So whether a clamp is written
# with `<` or `<=` does not matter before a step, and decides after it whether the values
# next to the bound are learned from.

_LOWEST = {row.name: row.zero_from for row in rows() if row.zero_from is not None}
"""The lower end of the interval on which a step function is 0; its length is 1."""

_PLACES = tuple(map(Fraction, ("1/16", "1/2", "15/16", "-1/2", "3/2", "-1/4", "5/4")))
"""Three places of the interval on which a step has one value, and two on either side."""

_BASES = 2
_STEP = "the step"  # a name that nothing has


def ties(instance: Instance) -> Iterator[Diagnostic]:
    """Diagnostics for gradients that are 0 on the whole interval on which a step equals
    the bound of a clamp, though the value there is the same without the clamp."""
    rule, bases = instance.rule, instance.points[:_BASES]
    for entry in rule.backward:
        stated = instance.stated.get(entry.input)
        if stated is None:
            continue
        found = (
            _lost_point(instance, entry.input, stated, *tie, base)
            for tie in _tied(stated, entry.input)
            for base in bases
        )
        point = next(filter(None, found), None)
        if point is None:
            continue
        used = names(stated) | {entry.input}
        place = point_text(point, tuple(i.name for i in rule.inputs if i.name in used))
        yield Diagnostic(
            "GS435",
            Severity.NOTE if entry.is_override else Severity.WARNING,
            f"{entry.name} of {rule.name} is 0 on a whole interval on which a step"
            " equals a bound",
            (
                Label(
                    rule.source, entry.span, f"0 at {place}, as it is beyond the bound"
                ),
            ),
            help="compare with `<=` or `>=`: there the value is what it is without the"
            " clamp",
        )


def _tied(stated: Expr, name: str) -> Iterator[tuple[Apply, Expr]]:
    """Steps of an input, each with a bound that the gradient compares it with."""
    for sides in borders(stated):
        for step in dict.fromkeys(node for side in sides for node in nodes(side)):
            if isinstance(step, Apply) and step.op in _LOWEST and name in names(step):

                def visit(node: Expr, step: Apply = step) -> Expr:
                    return Ref(_STEP) if node == step else node

                left, right = (transform(side, visit) for side in sides)
                for bound in solutions(left, right, _STEP):
                    yield step, bound


def _lost_point(
    instance: Instance, name: str, stated: Expr, step: Apply, bound: Expr, base: Point
) -> Point | None:
    """A point of the interval, if the gradient is 0 on all of it and beyond the bound
    and is not on the side before it, and the value is that of the bound. Where a value
    changes along a step, its gradient is its slope, which no clamp has cut."""
    ball = enclose(bound, base) if names(bound) <= set(base) else None
    whole = ball.unique_fmpz() if ball is not None and is_defined(ball) else None
    if whole is None:
        return None
    compiled = program(stated, *instance.forward.values())

    def at(part: Fraction) -> tuple[Point, tuple[Any, ...]] | None:
        place = Const(int(whole) + _LOWEST[step.op] + part)
        for solved in solutions(step.args[0], place, name):
            value = enclose(solved, base)
            if is_defined(value):
                point = {**base, name: Fraction(float(value.mid()))}
                found = compiled.run(point)
                return (point, found) if all(map(is_defined, found)) else None
        return None

    seen = [one for one in map(at, _PLACES) if one is not None]
    if len(seen) < len(_PLACES) or not all(one[1][0].is_zero() for one in seen[:3]):
        return None
    point, (_, *values) = seen[1]
    sides = [(one[1], other[1]) for one, other in zip(seen[3:5], seen[5:], strict=True)]
    (beyond, _), (before, along) = sorted(
        sides, key=lambda side: not side[0][0].is_zero()
    )
    is_clamp = beyond[0].is_zero() and not before[0].contains(0)
    is_clamp &= all(a.overlaps(b) for a, b in zip(before[1:], along[1:], strict=True))
    is_same = all(a.overlaps(b) for a, b in zip(values, beyond[1:], strict=True))
    is_other = any(not a.overlaps(b) for a, b in zip(values, before[1:], strict=True))
    return point if is_clamp and is_same and is_other else None
