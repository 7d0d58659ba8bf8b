"""Outputs that nothing is asked of: their upstream gradient is 0.

TensorFlow's tapes and callers of a pullback hand zeros for an output that a loss does not
use (PyTorch and JAX hand nothing). What stands beside such a 0 may be infinite, and the
gradient of the others would be NaN: ``dz * x + dw * 2 * y`` where only ``w`` is used and
``x`` is infinite, or where ``x`` is a difference that overflows. ``times(x, dz)`` is 0
where ``dz`` is, and the product elsewhere. A rule with one output has none: 0 times
infinity of the only gradient there is has no answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from gradspec.plan.array import Expr, Op, Where, names, nodes, transform
from gradspec.plan.plan import Gradient, RulePlan
from gradspec.primitives.table_bounds import TIMES
from gradspec.targets.signature import scalars


def answered(plan: RulePlan) -> RulePlan:
    """The plan with such products in its gradients, if it has several outputs."""
    if not has_unasked(plan):
        return plan
    gradients = tuple(g and _answered(plan, g) for g in plan.gradients)
    return replace(plan, gradients=gradients)


def has_unasked(plan: RulePlan) -> bool:
    """Whether a loss may use one output of several."""
    several = sum(o.takes_gradient for o in plan.outputs) > 1
    linear = all(None not in g.locals for g in plan.gradients if g)
    return several and linear and not plan.is_ranked


def _answered(plan: RulePlan, gradient: Gradient) -> Gradient:
    terms = (replace(t, value=with_times(t.value, plan)) for t in gradient.terms)
    whole = with_times(gradient.whole, plan)
    return replace(gradient, whole=whole, terms=tuple(terms))


def with_times(value: Expr, plan: RulePlan) -> Expr:
    """A value that is linear in upstream gradients, with ``times`` for their products."""
    upstream, numbers = frozenset(plan.upstream), scalars(plan)

    def made(node: Expr) -> Expr:
        if upstream.isdisjoint(names(node)):
            return node
        match node:
            case Op(primitive="neg" | "add" | "sub", args=args):
                return replace(node, args=tuple(map(made, args)))
            case Where(condition=condition, then=then, other=other):
                return Where(condition, made(then), made(other))
            case Op(primitive="mul"):
                return product(node, _factors(node), node)
            case Op(primitive="div", args=(top, below)):
                return product(node, _factors(top), below)
            case _:
                return node

    def product(node: Op, factors: list[Expr], below: Expr) -> Expr:
        """What comes before the first factor with a tensor in it goes with the gradient."""
        ahead = [f for f in factors if {*names(f)} <= numbers | upstream]
        rest = [f for f in factors if f not in ahead]
        if not rest or any(not upstream.isdisjoint(names(f)) for f in rest):
            return replace(node, args=tuple(map(made, node.args)))
        factor = _product(rest)
        if node.primitive == "div":
            factor = Op("div", (factor, below))
        return Op(TIMES, (factor, _product(ahead)))

    return made(value)


def uses_times(value: Expr) -> bool:
    return any(isinstance(n, Op) and n.primitive == TIMES for n in nodes(value))


def plain(value: Expr) -> Expr:
    """With products in place of ``times``: for upstream gradients that are not 0."""

    def visit(node: Expr) -> Expr:
        match node:
            case Op(primitive=op, args=(factor, upstream)) if op == TIMES:
                return Op("mul", (upstream, factor))
            case _:
                return node

    return transform(value, visit)


def _factors(node: Expr) -> list[Expr]:
    match node:
        case Op(primitive="mul", args=(one, other)):
            return [*_factors(one), *_factors(other)]
        case _:
            return [node]


def _product(factors: list[Expr]) -> Expr:
    return reduce(lambda one, other: Op("mul", (one, other)), factors)
