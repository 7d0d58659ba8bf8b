"""Each input's gradient as a sum of terms, and the tangents that follow from them.

A term has the shape of its output, which is the broadcast shape of the inputs that the
output depends on; terms of different shapes must be reduced to the input's shape before
they are added. The derivative in the other direction needs no second derivation: what
multiplies ``dz`` in the gradient of ``x`` multiplies the tangent of ``x`` in that of
``z``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from gradspec.ir.rule import Input, Override, Rule
from gradspec.plan import linear
from gradspec.plan.array import Expr, Name, names, substitute
from gradspec.plan.axes import size_of
from gradspec.plan.batches import parted
from gradspec.plan.broadcast import reach_of
from gradspec.plan.closing import Closed, NotEmitted
from gradspec.plan.plan import Gradient, Term
from gradspec.plan.ranked import Spread
from gradspec.plan.translate import ONE, ZERO, operation, with_values


def gradients_of(rule: Rule, closed: Closed) -> tuple[Gradient | None, ...]:
    """One entry for each input. Each term has the input's own axes in full, and as batch
    axes those of what it spans.
    """
    return tuple(
        _gradient(rule, closed, variable)
        if f"d{variable.name}" in closed.cotangents
        else None
        for variable in rule.inputs
    )


def _gradient(rule: Rule, closed: Closed, variable: Input) -> Gradient:
    whole = closed.cotangents[f"d{variable.name}"]
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    if _unspread(whole) == ZERO:
        return Gradient(variable.name, ZERO, (), ())
    if not rule.is_elementwise:
        _require_one_batch(rule, variable, names(whole))
    parts = linear.terms(whole, upstream)
    if parts is None:
        used = tuple(u for u in upstream if u in names(whole))
        spans = _spans(rule, closed, used, whole, variable)
        return Gradient(variable.name, whole, (Term(whole, used, spans),), (None,))
    terms = tuple(
        Term(
            _in_full(value, variable) if len(parts) > 1 else value,
            (u,),
            _spans(rule, closed, (u,), value, variable),
        )
        for u, value in parts.items()
    )
    slopes = (
        with_values(value, {u: ONE}) if rule.is_elementwise else None
        for u, value in parts.items()
    )
    return Gradient(variable.name, whole, terms, tuple(slopes))


def _require_one_batch(rule: Rule, variable: Input, used: tuple[str, ...]) -> None:
    """What comes from an output without batch axes counts once, and must not be summed
    over the batch of another output. An override cannot be parted (`plan.batches`)."""
    if f"d{variable.name}" in parted(rule):
        return
    reached = [o for o in rule.outputs if f"d{o.name}" in used]
    if not variable.shape.batch and len({o.shape.batch for o in reached}) > 1:
        raise NotEmitted(
            f"{variable.name} has no batch axes, and of the outputs that use it some have"
        )


def _unspread(value: Expr) -> Expr:
    while isinstance(value, Spread):
        value = value.arg
    return value


def _in_full(value: Expr, variable: Input) -> Expr:
    """A summand by itself may lack an axis that others have."""
    axes = variable.shape.axes
    for position, axis in enumerate(axes):
        value = Spread(value, position - len(axes), size_of(axis))
    return value


def _spans(
    rule: Rule,
    closed: Closed,
    upstream: tuple[str, ...],
    value: Expr,
    variable: Input,
) -> tuple[str, ...]:
    """The tensor inputs of free shape that the outputs and the value depend on; of a
    gradient that is summed over batch axes already, its input alone. A gradient without
    cotangents has the shape of all outputs.
    """
    if not variable.shape.batch and not rule.is_elementwise:
        return (variable.name,)
    if not upstream and rule.is_elementwise:
        upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    values = {let.name: let.value for let in closed.forward}
    used = set(names(value))
    for name in (*(u.removeprefix("d") for u in upstream), *names(value)):
        if name in values:
            used |= reach_of(values[name], rule.tensor_inputs)
    return tuple(i.name for i in rule.tensor_inputs if i.shape.batch and i.name in used)


def tangents_of(
    rule: Rule, closed: Closed, gradients: tuple[Gradient | None, ...]
) -> tuple[tuple[Expr, ...] | None, str]:
    """One tangent for each output, in ``<input>_dot``; or why there is none. Only an
    override may not be linear; it is asked by form, for the derivative of a step would be
    0.
    """
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    for entry, gradient in zip(rule.backward, gradients, strict=True):
        if gradient is None or not isinstance(entry, Override):
            continue
        if linear.terms(gradient.whole, upstream) is None:
            return None, _not_linear(rule, gradient.input)
    if closed.no_tangents:
        return None, closed.no_tangents
    if not rule.is_elementwise:
        tangents = (closed.tangents.get(f"{o.name}_dot", ZERO) for o in rule.outputs)
        return tuple(tangents), ""
    for gradient in gradients:
        if gradient is not None and None in gradient.locals:
            return None, _not_linear(rule, gradient.input)
    values = {let.name: let.value for let in closed.forward}
    given = {name: values[name] for name in closed.saved}
    return tuple(_tangent(f"d{o.name}", gradients, given) for o in rule.outputs), ""


def _tangent(
    upstream: str, gradients: tuple[Gradient | None, ...], given: Mapping[str, Expr]
) -> Expr:
    terms = [
        substitute(
            with_values(term.value, {upstream: Name(f"{gradient.input}_dot")}), given
        )
        for gradient in gradients
        if gradient is not None
        for term in gradient.terms
        if term.upstream == (upstream,)
    ]
    return reduce(lambda a, b: operation("add", (a, b)), terms) if terms else ZERO


def _not_linear(rule: Rule, name: str) -> str:
    overridden = any(
        isinstance(entry, Override) and variable.name == name
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
    )
    what = "the override of " if overridden else ""
    return f"{what}d{name} is not linear in the upstream gradient"
