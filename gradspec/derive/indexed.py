"""The cotangents of a ranked rule's inputs, for all sizes, by index calculus.

:func:`indexed_cotangents` derives them; :func:`canonical` is a normal form that is the
same for expressions that differ in the names of indices, the order of sums and
products, or in what stands inside and outside of a sum; :func:`closed_cotangent` puts
locals in place, so that what an author declared can be compared with what was derived.
"""

from __future__ import annotations

from gradspec.derive.deltas import straightened
from gradspec.derive.flow import Accumulation, Values
from gradspec.derive.normal_form import Effort, canonical, is_zero
from gradspec.derive.partials import Underivable
from gradspec.derive.scopes import (
    AT,
    Fresh,
    Value,
    inlined,
    named,
    refreshed,
    replaced,
)
from gradspec.derive.simplify import Reuse
from gradspec.ir.expr import Apply, Const, Expr, Idx
from gradspec.ir.rule import Declared, Derived, Input, Output, Override, Rule
from gradspec.ir.walk import transform

__all__ = ["Underivable", "canonical", "closed_cotangent", "indexed_cotangents", "same"]

_STEPS = 6_000
"""Steps for proving that parts of a cotangent vanish, which makes it shorter."""


def indexed_cotangents(rule: Rule) -> dict[str, Derived]:
    """The derived cotangent of every floating input, whatever the rule declares.

    Raises :class:`Underivable` where a call has a backward that is no derivative.
    """
    values = Values(rule)
    known = {v.name: v for v in values.order}
    lifted = {n: v for n, v in known.items() if n.startswith("%")}

    effort = Effort(_STEPS)

    def vanishes(expr: Expr) -> bool:
        return effort.left > 0 and is_zero(inlined(expr, known, values.fresh), effort)

    accumulation = Accumulation(rule, values, vanishes, Reuse(_by_worth(rule, values)))
    found = accumulation.run()
    result = {}
    for name, expr in found.items():
        indices = _indices(rule, name)
        target = accumulation.targets[name]
        at: dict[str, Expr] = {
            b.index: Idx(i) for b, i in zip(target, indices, strict=True)
        }
        whole = inlined(straightened(expr, values.axes), lifted, values.fresh)
        taken = frozenset((*indices, *_variables(rule)))
        result[name] = Derived(named(_stated(replaced(whole, at)), taken), indices)
    return result


def same(left: Expr, right: Expr) -> bool:
    """True if two closed expressions are shown to be equal for all sizes."""
    return left == right or is_zero(Apply("sub", (left, right)))


def closed_cotangent(
    rule: Rule, name: str, entry: Declared | Derived | Override
) -> Expr:
    """The entry of input ``name`` in terms of inputs and upstream gradients, its free
    indices called ``0``, ``1``, … in order."""
    fresh = Fresh()
    values = {
        let.name: Value(let.name, let.indices, let.axes, let.value)
        for let in (*rule.forward, *rule.backward_locals)
    }
    for variable, other in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(other, Declared | Override) and variable.name != name:
            axes = variable.shape.axes
            key = f"d{variable.name}"
            values[key] = Value(key, other.indices, axes, other.value)
    at: dict[str, Expr] = {i: Idx(str(p)) for p, i in enumerate(entry.indices)}
    return inlined(refreshed(entry.value, at, fresh), values, fresh)


def _stated(expr: Expr) -> Expr:
    """The expression without ``AT``, which a rule may not have."""

    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(Const() as index, place)) if op == AT:
                return Apply("eq", (place, index))
            case Apply(op=op, args=args) if op == AT:
                return Apply("eq", args)
            case _:
                return node

    return transform(expr, visit)


def _by_worth(rule: Rule, values: Values) -> list[Value]:
    """Values worth reusing: outputs first, which exist anyway; then the later locals,
    which contain more."""
    outputs = [o.name for o in rule.outputs if o.takes_gradient]
    named_ = [v for v in reversed(values.order) if not v.name.startswith("%")]
    return [
        *(v for v in named_ if v.name in outputs),
        *(v for v in named_ if v.name not in outputs),
    ]


def _indices(rule: Rule, name: str) -> tuple[str, ...]:
    """The free indices of a cotangent, with the shortest names."""
    variable = next(i for i in rule.inputs if i.name == name)
    taken = _variables(rule)
    letters = [c for c in "ijklpqrstuvw" if c not in taken]
    letters += [f"i{n}" for n in range(64) if f"i{n}" not in taken]
    return tuple(letters[: len(variable.shape.axes)])


def _variables(rule: Rule) -> dict[str, None]:
    """Names that an index must not have."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    found: dict[str, None] = {}
    for variable in variables:
        found |= {variable.name: None, f"d{variable.name}": None}
        found |= {a: None for a in variable.shape.axes if isinstance(a, str)}
    return found | {let.name: None for let in (*rule.forward, *rule.backward_locals)}
