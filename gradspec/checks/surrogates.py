"""Checks of gradients that differ from the derivative by intent: surrogates,
overrides."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.checks.diagnosis.mending import left_out
from gradspec.checks.inputs import vanishes
from gradspec.checks.instances import Instance, Point, depends, said
from gradspec.diagnostics import Diagnostic, Label, Severity, warning
from gradspec.ir.expr import ZERO, Expr
from gradspec.ir.rule import Input, Override, Rule
from gradspec.ir.walk import expand, inline, names, substitute
from gradspec.symbolic.compare import Relation, compare

_SCALES = (1, 2**20, -(2**20), 3)
"""Scales of the upstream gradient: one clipped at 10 is the derivative while small."""


def surrogates(instance: Instance) -> Iterator[Diagnostic]:
    rule = instance.rule
    for surrogate in rule.surrogates:
        value = expand(inline(rule.forward, surrogate.value))
        reached = [
            variable.name
            for variable, entry in zip(rule.inputs, rule.backward, strict=True)
            if variable.takes_gradient
            and not isinstance(entry, Override)
            and depends(instance.forward[surrogate.output], variable.name)
        ]
        if reached and all(
            _is_dead(instance, name, surrogate.output) for name in reached
        ):
            yield warning(
                "GS405",
                f"the surrogate of {surrogate.output} in {rule.name} gives no gradient",
                rule.source,
                surrogate.span,
                label="its derivative is 0 at every sampled point"
                if any(depends(value, name) for name in reached)
                else f"it does not depend on {', '.join(reached)}",
                help="give a smooth function of the inputs",
            )


def _is_dead(instance: Instance, name: str, output: str) -> bool:
    """True if the output's own contribution to the gradient is 0."""
    gradient = instance.derived.get(name)
    if gradient is None:
        return False
    others = {n: ZERO for n in instance.upstream if n != f"d{output}"}
    return vanishes(instance, substitute(gradient, others))


# --- overrides ---------------------------------------------------------------------------


def overrides(instance: Instance) -> Iterator[Diagnostic]:
    rule = instance.rule
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if not isinstance(entry, Override):
            continue
        derived = instance.derived.get(variable.name)
        stated = instance.stated[variable.name]
        if derived is not None and _same(
            instance.points, instance.upstream, stated, derived
        ):
            yield warning(
                "GS406",
                f"the override of d{variable.name} in {rule.name} is the derivative",
                rule.source,
                entry.span,
                label="equal to the derivative at every sampled point",
                help=f"or write `d{variable.name} = …` to have it proved",
                fixes=((left_out(rule, entry.span),),),
            )
        elif derived is not None and _same(
            _at_usual(instance), instance.upstream, stated, derived
        ):
            yield _at_defaults(rule, variable, entry)


def _at_usual(instance: Instance) -> tuple[Point, ...]:
    """The points with statics at their defaults; empty without such statics."""
    usual = {
        v.name: v.default for v in instance.rule.static_inputs if v.default is not None
    }
    return tuple({**point, **usual} for point in instance.points if usual)


def _at_defaults(rule: Rule, variable: Input, entry: Override) -> Diagnostic:
    usual = ((v.name, v.default) for v in rule.static_inputs if v.default is not None)
    used = {name: value for name, value in usual if name in names(entry.value)}
    place = said(used, tuple(used))
    label = Label(rule.source, entry.span, f"the same as the derivative at {place}")
    headline = (
        f"the override of d{variable.name} in {rule.name} is the derivative at the"
        " defaults"
    )
    help = "nothing has to be done if only other values are to change the gradient"
    return Diagnostic("GS417", Severity.NOTE, headline, (label,), help=help)


def unheeding(instance: Instance) -> Iterator[Diagnostic]:
    """Diagnostics for an override that ignores the upstream gradient (0 stops a
    gradient, by intent)."""
    rule = instance.rule
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if not isinstance(entry, Override):
            continue
        stated = instance.stated[variable.name]
        if names(stated).isdisjoint(instance.upstream) and stated != ZERO:
            upstream = " or ".join(instance.upstream)
            yield warning(
                "GS446",
                f"the override of d{variable.name} in {rule.name} ignores the upstream"
                " gradient",
                rule.source,
                entry.span,
                label=f"does not use {upstream}: it is the same however little the"
                " output matters",
                help=f"multiply by {upstream}",
            )


def _same(
    points: tuple[Point, ...], upstream: tuple[str, ...], stated: Expr, derived: Expr
) -> bool:
    """True if equal at every point where both are defined, for every upstream size."""
    found = [
        compare(stated, derived, _scaled(point, upstream, scale)).relation
        for point in points
        for scale in _SCALES
    ]
    return Relation.EQUAL in found and all(
        relation in (Relation.EQUAL, Relation.RIGHT_UNDEFINED) for relation in found
    )


def _scaled(point: Point, upstream: tuple[str, ...], scale: int) -> Point:
    return {**point, **{name: scale * point[name] for name in upstream}}
