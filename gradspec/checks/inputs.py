"""Inputs that nothing uses, and gradients that are 0 because of a step."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.checks.subject import Subject, depends
from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.expr import ZERO, Apply, Expr, Select, Size
from gradspec.ir.rule import Derived, Input, Override, Rule
from gradspec.ir.walk import names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.enclose import defined, program

_CERTAIN, _NOTHING = 512, 1e-100


def unused(subject: Subject) -> Iterator[Diagnostic]:
    yield from unused_in(subject.rule)


def unused_in(rule: Rule) -> Iterator[Diagnostic]:
    """No output, cotangent, surrogate or assumption mentions the input, and it does not
    serve to say the size of an axis either."""
    entries = (getattr(entry, "value", None) for entry in rule.backward)
    texts: tuple[Expr, ...] = (
        *(let.value for let in (*rule.forward, *rule.backward_locals)),
        *(value for value in entries if value is not None),
        *(surrogate.value for surrogate in rule.surrogates),
        *(assume.condition for assume in rule.assumes),
    )
    used = frozenset[str]().union(*(names(text) for text in texts))
    used |= frozenset(axis for v in rule.outputs for axis in _names(v.shape.axes))
    used |= {n.axis for text in texts for n in nodes(text) if isinstance(n, Size)}
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(entry, Override):
            continue  # it is there for the sake of this gradient
        if used.isdisjoint((variable.name, *_only_here(variable, rule))):
            yield warning(
                "GS408",
                f"{variable.name} of {rule.name} is never used",
                rule.source,
                variable.span,
                label="not used by any output or gradient",
                help="remove it, or use it",
            )


def _only_here(variable: Input, rule: Rule) -> tuple[str, ...]:
    """The axes that no other input has."""
    others = [i for i in rule.inputs if i.name != variable.name]
    known = {axis for other in others for axis in _names(other.shape.axes)}
    return tuple(axis for axis in _names(variable.shape.axes) if axis not in known)


def _names(axes: tuple[str | int, ...]) -> tuple[str, ...]:
    return tuple(axis for axis in axes if isinstance(axis, str))


def steps(subject: Subject) -> Iterator[Diagnostic]:
    """A derived gradient that is 0 everywhere because the input goes through a step."""
    rule = subject.rule
    if rule.surrogates:
        return
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(entry, Derived) and _is_stepped(subject, variable):
            output = next(
                name
                for name, value in subject.forward.items()
                if depends(value, variable.name)
            )
            yield warning(
                "GS407",
                f"the gradient of {rule.name} by {variable.name} is 0 everywhere",
                rule.source,
                variable.span,
                label=f"{variable.name} goes through a step",
                help=f"give a smooth stand-in, `surrogate {output} = …`; if 0 is meant,"
                f" say `{variable.name}: nograd`",
            )


def vanishing(subject: Subject) -> Iterator[Diagnostic]:
    """A derived gradient that is 0 everywhere though no step is in the way: the formula
    does not depend on the input after all."""
    rule = subject.rule
    if rule.surrogates:
        return
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if not isinstance(entry, Derived) or not variable.takes_gradient:
            continue
        name = variable.name
        using = [n for n, v in subject.forward.items() if depends(v, name)]
        stepped = any(_has_step(subject.forward[n], name) for n in using)
        if using and not stepped and _cancels(subject, subject.derived.get(name)):
            yield warning(
                "GS448",
                f"the gradient of {rule.name} by {name} is 0 everywhere",
                rule.source,
                variable.span,
                label=f"{using[0]} does not change with it",
                help=f"correct the formula; if {name} is meant to take no gradient, say"
                f" `{name}: nograd`",
            )


def _cancels(subject: Subject, gradient: Expr | None) -> bool:
    """0 at every sampled point to a hundred digits: what is left of a sum that cancels."""
    if gradient is None or not subject.points:
        return False
    compiled = program(gradient)
    first = compiled.run(subject.points[0])[0]
    if not defined(first) or not first.contains(0):
        return False
    values = (compiled.run(point, _CERTAIN)[0] for point in subject.points)
    return all(defined(v) and v.contains(0) and abs(v) < _NOTHING for v in values)


def _is_stepped(subject: Subject, variable: Input) -> bool:
    """0 at every point, and not because nothing depends on the input."""
    name = variable.name
    using = [value for value in subject.forward.values() if depends(value, name)]
    if not using or not any(_has_step(value, name) for value in using):
        return False
    return vanishes(subject, subject.derived.get(name))


def _has_step(expr: Expr, name: str) -> bool:
    """A step applied to the input, or a condition on it."""
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


def vanishes(subject: Subject, gradient: Expr | None) -> bool:
    """Exactly 0 at every sampled point."""
    if gradient is None or not subject.points:
        return False
    if gradient == ZERO:
        return True
    compiled = program(gradient)
    values = [compiled.run(point)[0] for point in subject.points]
    return all(defined(value) and value.is_zero() for value in values)
