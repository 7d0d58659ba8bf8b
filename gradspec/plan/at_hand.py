"""What a backward pass refers to by name: outputs, and the locals that are saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gradspec.plan.array import Expr, Name, children, names, substitute
from gradspec.plan.plan import Assign, Gradient, RulePlan
from gradspec.plan.translate import replaced


def with_outputs_at_hand(plan: RulePlan) -> RulePlan:
    """For a backward pass that has the outputs before they are rounded: what is equal to
    one needs no computing, unless the author asks for it (``recompute``).
    """
    outputs = {output.name for output in plan.outputs} - {*plan.recomputed}
    lets = [let for let in plan.forward if let.name in outputs and children(let.value)]
    values: dict[Expr, Expr] = {let.value: Name(let.name) for let in lets}
    plan = _with_gradients(plan, lambda value: replaced(value, values))
    used = names(*(g.whole for g in plan.gradients if g))
    saved = tuple(
        let.name for let in plan.forward if let.name in used or let.name in plan.saved
    )
    return replace(plan, saved=saved)


def without_locals(plan: RulePlan) -> RulePlan:
    """The plan with saved locals written out in its gradients: only outputs go by name.
    For targets that decide by themselves what is kept of them.
    """
    outputs = {output.name for output in plan.outputs}
    return _written_out(plan, [a for a in plan.forward if a.name not in outputs])


def without_names(plan: RulePlan) -> RulePlan:
    """The same with outputs written out as well: for targets that differentiate an output
    by its declared gradient, where that may be another than the derivative of its value.
    """
    return _written_out(plan, plan.forward)


def _written_out(plan: RulePlan, lets: Iterable[Assign]) -> RulePlan:
    values = {a.name: a.value for a in lets}

    def written(value: Expr) -> Expr:
        return substitute(value, values)

    behind = (Assign(a.name, written(a.value), a.comment) for a in plan.backward_locals)
    return replace(
        _with_gradients(plan, written),
        backward_locals=tuple(behind),
        saved=tuple(name for name in plan.saved if name not in values),
    )


def _with_gradients(plan: RulePlan, change: Callable[[Expr], Expr]) -> RulePlan:
    def changed(gradient: Gradient) -> Gradient:
        terms = (replace(t, value=change(t.value)) for t in gradient.terms)
        return replace(gradient, whole=change(gradient.whole), terms=tuple(terms))

    return replace(plan, gradients=tuple(g and changed(g) for g in plan.gradients))
