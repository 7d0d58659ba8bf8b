"""Overrides: recorded with their reason, and not needed if they are the derivative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gradspec.checks.mending import left_out
from gradspec.checks.subject import Point, Subject, said
from gradspec.derive import linear
from gradspec.diagnostics import Diagnostic, Label, Severity, warning
from gradspec.ir import closed
from gradspec.ir.calls import expand
from gradspec.ir.expr import ZERO, Expr, apply, const
from gradspec.ir.rule import Input, Override, Rule
from gradspec.ir.walk import names, substitute
from gradspec.symbolic.compare import Relation, compare
from gradspec.symbolic.sampling import sample

_SCALES = (1, 2**20, -(2**20), 3)
"""A gradient that is clipped at 10 is the derivative as long as it is small."""


def check(subject: Subject) -> Iterator[Diagnostic]:
    rule = subject.rule
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if not isinstance(entry, Override):
            continue
        derived = subject.derived.get(variable.name)
        stated = subject.stated[variable.name]
        if derived is not None and _same(subject, stated, derived):
            yield warning(
                "GS406",
                f"the override of d{variable.name} in {rule.name} is the derivative",
                rule.source,
                entry.span,
                label="equal to the derivative at every sampled point",
                help=f"or write `d{variable.name} = …` to have it proved",
                fixes=((left_out(rule, entry.span),),),
            )
        elif derived is not None and _same(_usual(subject), stated, derived):
            yield _at_defaults(rule, variable, entry)


def _usual(subject: Subject) -> Subject:
    """The statics with their defaults, or nothing if there are none."""
    usual = {
        v.name: v.default for v in subject.rule.static_inputs if v.default is not None
    }
    points = tuple({**point, **usual} for point in subject.points if usual)
    survey = replace(subject.survey, points=points)
    return replace(subject, survey=survey)


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


def deaf(subject: Subject) -> Iterator[Diagnostic]:
    """An override that is the same whatever comes from above (0 stops a gradient, and
    is meant)."""
    rule = subject.rule
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if not isinstance(entry, Override):
            continue
        stated = subject.stated[variable.name]
        if names(stated).isdisjoint(subject.upstream) and stated != ZERO:
            upstream = " or ".join(subject.upstream)
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


def _same(subject: Subject, stated: Expr, derived: Expr) -> bool:
    """Equal at every point where both are defined, for every size of the upstream."""
    seen = [
        compare(stated, derived, _scaled(point, subject.upstream, scale)).relation
        for point in subject.points
        for scale in _SCALES
    ]
    return Relation.EQUAL in seen and all(
        relation in (Relation.EQUAL, Relation.RIGHT_UNDEFINED) for relation in seen
    )


def _scaled(point: Point, upstream: tuple[str, ...], scale: int) -> Point:
    return {**point, **{name: scale * point[name] for name in upstream}}


def is_linear(rule: Rule, position: int) -> bool:
    """Whether the cotangent of an input is linear in the upstream gradients.

    By structure where that shows it, otherwise by balls: ``f(2 u - 3 v)`` against
    ``2 f(u) - 3 f(v)`` at the sampled points, with values of very different size.
    """
    name = f"d{rule.inputs[position].name}"
    value = closed.cotangents(rule).get(name)
    if value is None:
        return True
    value = expand(value)
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    if linear.is_linear(value, frozenset(upstream)):
        return True
    return _superposes(rule, value, upstream)


def _superposes(rule: Rule, value: Expr, upstream: tuple[str, ...]) -> bool:
    relations = []
    for number, point in enumerate(sample(rule, 12)):
        u = {n: const(5 + 3 * k + number) for k, n in enumerate(upstream)}
        for size in (1, 2**20):
            v = {n: const((2 - 7 * k - number) * size) for k, n in enumerate(upstream)}
            both = {n: const(2 * u[n].value - 3 * v[n].value) for n in upstream}
            apart = apply(
                "sub",
                apply("mul", const(2), substitute(value, u)),
                apply("mul", const(3), substitute(value, v)),
            )
            together = substitute(value, both)
            relations.append(compare(together, apart, point).relation)
    return Relation.EQUAL in relations and Relation.DIFFERENT not in relations
