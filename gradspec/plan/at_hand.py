"""What a backward pass refers to by name: outputs, and the locals that are saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gradspec.plan.array import Expr, substitute
from gradspec.plan.plan import Assign, Gradient, RulePlan


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
