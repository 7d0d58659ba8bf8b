"""Inputs that nothing uses, gradients that vanish, and the reach of parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from gradspec.checks.claims import Claim
from gradspec.checks.diagnosis.mending import assuming
from gradspec.checks.evidence import examine
from gradspec.checks.instances import Instance, Point, depends, number, said
from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.expr import ZERO, Apply, Expr, Select, Size
from gradspec.ir.rule import Derived, Input, Kind, Override, Rule
from gradspec.ir.walk import names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.compare import Comparison, Relation, decimals
from gradspec.symbolic.enclose import defined, program

_CERTAIN, _NOTHING = 512, 1e-100
_POINTS = 10
"""Points at which a parameter is varied."""


def unused(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for inputs that no output, cotangent, surrogate or assumption uses,
    and that do not define the size of an axis either."""
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


def unused_locals(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for unused locals, often gradients under another framework's name."""
    lets = (*rule.forward, *rule.backward_locals)
    others = [getattr(entry, "value", None) for entry in rule.backward]
    others += [surrogate.value for surrogate in rule.surrogates]
    used = {*rule.saves, *rule.recomputes, *(o.name for o in rule.outputs)}
    used = used.union(*(names(text) for text in others if text is not None))
    used = used.union(*(names(let.value) for let in lets))
    for let in lets:
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


def _only_here(variable: Input, rule: Rule) -> tuple[str, ...]:
    """The axes that no other input has."""
    others = [i for i in rule.inputs if i.name != variable.name]
    known = {axis for other in others for axis in _names(other.shape.axes)}
    return tuple(axis for axis in _names(variable.shape.axes) if axis not in known)


def _names(axes: tuple[str | int, ...]) -> tuple[str, ...]:
    return tuple(axis for axis in axes if isinstance(axis, str))


def vanishing(instance: Instance) -> Iterator[Diagnostic]:
    """Diagnostics for a derived gradient that is 0 everywhere: the input passes through
    a step, or the formula does not depend on it after all."""
    rule = instance.rule
    if rule.surrogates or not instance.points:
        return
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        name, gradient = variable.name, instance.derived.get(variable.name)
        using = [n for n, v in instance.forward.items() if depends(v, name)]
        if not isinstance(entry, Derived) or gradient is None or not using:
            continue
        is_stepped = any(_has_step(instance.forward[n], name) for n in using)
        if is_stepped and vanishes(instance, gradient):
            label = f"{name} goes through a step"
            help = f"give a smooth stand-in, `surrogate {using[0]} = …`; if 0 is meant,"
            yield _vanishes(rule, variable, "GS407", label, f"{help} say")
        elif not is_stepped and _cancels(instance, gradient):
            label = f"{using[0]} does not change with it"
            help = f"correct the formula; if {name} is meant to take no gradient, say"
            yield _vanishes(rule, variable, "GS448", label, help)


def _vanishes(
    rule: Rule, variable: Input, code: str, label: str, help: str
) -> Diagnostic:
    name = variable.name
    return warning(
        code,
        f"the gradient of {rule.name} by {name} is 0 everywhere",
        rule.source,
        variable.span,
        label=label,
        help=f"{help} `{name}: nograd`",
    )


def _cancels(instance: Instance, gradient: Expr) -> bool:
    """True if 0 at every sampled point to a hundred digits: the residue of
    cancellation."""
    compiled = program(gradient)
    first = compiled.run(instance.points[0])[0]
    if not defined(first) or not first.contains(0):
        return False
    values = (compiled.run(point, _CERTAIN)[0] for point in instance.points)
    return all(defined(v) and v.contains(0) and abs(v) < _NOTHING for v in values)


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


def vanishes(instance: Instance, gradient: Expr | None) -> bool:
    """True if exactly 0 at every sampled point."""
    if gradient is None or not instance.points:
        return False
    if gradient == ZERO:
        return True
    compiled = program(gradient)
    values = [compiled.run(point)[0] for point in instance.points]
    return all(defined(value) and value.is_zero() for value in values)


# --- parameters ---------------------------------------------------------------------------


def parameters(instance: Instance) -> Iterator[Diagnostic]:
    """A declared gradient that is right only on the default's side of 0 or 1.

    The usual case is a backward in terms of outputs: `slope * dy if y <= 0 else dy` is
    the gradient of a leaky ReLU as long as the slope is positive; with a negative one
    the output does not tell any more on which side the input was. The sample that
    refutes keeps statics to the side of their defaults (`symbolic.sampling`), so this
    is a warning.
    """
    statics = [v for v in instance.rule.inputs if v.kind is Kind.STATIC and v.default]
    for variable, entry in instance.declared():
        derived = instance.derived.get(variable.name)
        if derived is None:
            continue
        stated = instance.stated[variable.name]
        claim = Claim(instance, variable, entry, stated, derived)
        for static in statics:
            if static.name in names(derived):
                yield from _elsewhere(claim, static)


def _elsewhere(claim: Claim, static: Input) -> Iterator[Diagnostic]:
    usual = claim.instance.points[:_POINTS]
    if examine(claim, usual).refuted is not None:
        return  # refuted as it is
    for condition, move in _moves(static):
        moved = ({**p, static.name: move(p[static.name])} for p in usual)
        found = examine(claim, filter(claim.instance.is_inside, moved)).refuted
        if found is not None and found[1].relation is Relation.DIFFERENT:
            yield _finding(claim, static, condition, *found)
            return


def _moves(static: Input) -> Iterator[tuple[str, Callable[[Fraction], Fraction]]]:
    """Moves to the other side of 0 or 1, each with the condition that excludes it."""
    default = static.default or Fraction(0)
    yield f"{static.name} {'>' if default > 0 else '<'} 0", lambda value: -value
    if default > 0:
        side = "<" if default < 1 else ">="
        yield f"{static.name} {side} 1", lambda value: 1 / value if value else value


def _finding(
    claim: Claim, static: Input, condition: str, point: Point, seen: Comparison
) -> Diagnostic:
    rule = claim.instance.rule
    declared, true = decimals(seen.left, seen.right)
    outputs = [o.name for o in rule.outputs if o.name in names(claim.entry.value)]
    return warning(
        "GS445",
        f"{claim.name} of {rule.name} is the derivative only for {condition}",
        rule.source,
        claim.entry.span,
        label=f"gives {declared} at {said(point, claim.shown)}, where the derivative is"
        f" {true}",
        notes=[f"`{o}` does not tell the inputs apart there" for o in outputs],
        fixes=((assuming(rule, condition),),),
        help=f"or write {claim.name} in terms of the inputs (the default is"
        f" {number(static.default or point[static.name])})",
    )
