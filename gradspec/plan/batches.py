"""Gradients of an input without batch axes that outputs with and without them use.

What comes from an output without batch axes counts once; what comes from one that has
them is summed over the batch. A gradient is linear in the upstream gradients, so it is
the sum of what it is with either kind set to 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.derive.indexed_scopes import Fresh, Value, inlined, named
from gradspec.ir.expr import ZERO, Expr, Reduce, Ref
from gradspec.ir.rule import Declared, Derived, Rule
from gradspec.ir.tidy import fold
from gradspec.ir.walk import names, transform


def parted(rule: Rule) -> dict[str, tuple[Expr, Expr]]:
    """By ``d<input>``: the part that is summed over the batch, and the part that is not;
    only of inputs for which there are both.
    """
    upstream = {f"d{o.name}": o.shape.batch for o in rule.outputs if o.takes_gradient}
    lets = _mixing(rule, upstream)
    found = {}
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if variable.shape.batch or not isinstance(entry, Declared | Derived):
            continue
        whole = entry.value
        if names(whole) & set(lets):
            whole = named(inlined(whole, lets, Fresh()), frozenset(entry.indices))
        used = names(whole) & set(upstream)
        if len({upstream[name] for name in used}) > 1:
            batched = [name for name in used if upstream[name]]
            found[f"d{variable.name}"] = (
                _without(whole, used - set(batched)),
                _without(whole, batched),
            )
    return found


def _mixing(rule: Rule, upstream: dict[str, bool]) -> dict[str, Value]:
    """The values of the backward pass that use upstream gradients."""
    values = [(b.name, b.indices, b.axes, b.value) for b in rule.backward_locals]
    values += [
        (f"d{v.name}", entry.indices, v.shape.axes, entry.value)
        for v, entry in zip(rule.inputs, rule.backward, strict=True)
        if isinstance(entry, Declared | Derived)
    ]
    found = {name: Value(name, i, axes, value) for name, i, axes, value in values}
    using = set(upstream)
    while more := {n for n, v in found.items() if names(v.expr) & using} - using:
        using |= more
    return {name: value for name, value in found.items() if name in using}


def _without(expr: Expr, gone: Iterable[str]) -> Expr:
    """``expr`` where some upstream gradients are 0."""
    zero = frozenset(gone)

    def visit(node: Expr) -> Expr:
        match node:
            case Ref(name=name) if name in zero:
                return ZERO
            case Reduce(op="sum" | "mean", body=body) if body == ZERO:
                return ZERO
            case _:
                return fold(node)

    return transform(expr, visit)
