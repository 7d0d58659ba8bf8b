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
from gradspec.plan.array import Expr, Name, children, names, nodes, substitute
from gradspec.plan.axes import size_of
from gradspec.plan.batches import parted
from gradspec.plan.broadcast import reach_of
from gradspec.plan.closing import Closed
from gradspec.plan.plan import Gradient, Term
from gradspec.plan.ranked import Spread
from gradspec.plan.tensors import NotEmitted, Tensors
from gradspec.plan.translate import ONE, ZERO, operation, rebuilt


def gradients_of(rule: Rule, closed: Closed) -> tuple[Gradient | None, ...]:
    """One entry for each input."""
    return tuple(
        _gradient(rule, closed, variable.name)
        if f"d{variable.name}" in closed.cotangents
        else None
        for variable in rule.inputs
    )


def ranked_gradients(rule: Rule, closed: Tensors) -> tuple[Gradient | None, ...]:
    """The same of a rule over named axes.

    Each term has the input's own axes in full, and as batch axes those of what it spans.
    """
    return tuple(
        _ranked_gradient(rule, closed, variable)
        if f"d{variable.name}" in closed.cotangents
        else None
        for variable in rule.inputs
    )


def _ranked_gradient(rule: Rule, closed: Tensors, variable: Input) -> Gradient:
    whole = closed.cotangents[f"d{variable.name}"]
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    if _unspread(whole) == ZERO:
        return Gradient(variable.name, ZERO, (), ())
    _require_one_batch(rule, variable, names(whole))
    parts = linear.terms(whole, upstream)
    if parts is None:
        used = tuple(u for u in upstream if u in names(whole))
        parts = {" ".join(used): whole}
    terms = tuple(
        Term(
            _in_full(value, variable) if len(parts) > 1 else value,
            tuple(used.split()),
            _ranked_spans(rule, closed, tuple(used.split()), value, variable),
        )
        for used, value in parts.items()
    )
    return Gradient(variable.name, whole, terms, (None,) * len(terms))


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


def _ranked_spans(
    rule: Rule,
    closed: Tensors,
    upstream: tuple[str, ...],
    value: Expr,
    variable: Input,
) -> tuple[str, ...]:
    if not variable.shape.batch:
        return (variable.name,)  # it is summed over batch axes already
    return _spans(rule, closed, upstream, value)


def tangents_of(
    rule: Rule, closed: Closed, gradients: tuple[Gradient | None, ...]
) -> tuple[tuple[Expr, ...] | None, str]:
    """One tangent for each output, in ``<input>_dot``; or why there is none."""
    for gradient in gradients:
        if gradient is not None and None in gradient.locals:
            return None, _not_linear(rule, gradient.input)
    for variable in rule.inputs:
        if variable.name.removesuffix("_dot") in {i.name for i in rule.inputs} - {
            variable.name
        }:
            other = variable.name.removesuffix("_dot")
            return None, f"the input {variable.name} has the name of {other}'s tangent"
    values = {let.name: let.value for let in closed.forward}
    given = {name: values[name] for name in closed.saved}
    return tuple(_tangent(f"d{o.name}", gradients, given) for o in rule.outputs), ""


def ranked_tangents(
    rule: Rule, closed: Tensors, gradients: tuple[Gradient | None, ...]
) -> tuple[tuple[Expr, ...] | None, str]:
    """The same of a rule over named axes. Only an override may not be linear; it is
    asked by form, for the derivative of a step would be 0.
    """
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    for entry, gradient in zip(rule.backward, gradients, strict=True):
        if gradient is None or not isinstance(entry, Override):
            continue
        if linear.terms(gradient.whole, upstream) is None:
            return None, _not_linear(rule, gradient.input)
    if closed.no_tangents:
        return None, closed.no_tangents
    return tuple(closed.tangents.get(f"{o.name}_dot", ZERO) for o in rule.outputs), ""


def _gradient(rule: Rule, closed: Closed, name: str) -> Gradient:
    whole = closed.cotangents[f"d{name}"]
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    parts = linear.terms(whole, upstream)
    if parts is None:
        used = tuple(u for u in upstream if u in names(whole))
        term = Term(whole, used, _spans(rule, closed, used or upstream, whole))
        return Gradient(name, whole, (term,), (None,))
    terms = tuple(
        Term(value, (u,), _spans(rule, closed, (u,), value))
        for u, value in parts.items()
    )
    locals_ = tuple(with_values(value, {u: ONE}) for u, value in parts.items())
    return Gradient(name, whole, terms, locals_)


def _spans(
    rule: Rule, closed: Closed | Tensors, upstream: tuple[str, ...], value: Expr
) -> tuple[str, ...]:
    """The tensor inputs of free shape that the outputs and the value depend on."""
    values = {let.name: let.value for let in closed.forward}
    used = set(names(value))
    for name in (*(u.removeprefix("d") for u in upstream), *names(value)):
        if name in values:
            used |= reach_of(values[name], rule.tensor_inputs)
    return tuple(i.name for i in rule.tensor_inputs if i.shape.batch and i.name in used)


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


def with_values(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Names replaced, and tidied where that is exact."""
    done: dict[Expr, Expr] = {}
    for node in nodes(expr):
        if isinstance(node, Name):
            done[node] = values.get(node.id, node)
        else:
            done[node] = rebuilt(node, tuple(done[child] for child in children(node)))
    return done[expr]


def _not_linear(rule: Rule, name: str) -> str:
    overridden = any(
        isinstance(entry, Override) and variable.name == name
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
    )
    what = "the override of " if overridden else ""
    return f"{what}d{name} is not linear in the upstream gradient"
