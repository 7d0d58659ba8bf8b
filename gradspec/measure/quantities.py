"""The measured quantities of a rule: its outputs, ∂output/∂input, ∂²output/∂input²."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from gradspec.checks.instances import stem
from gradspec.derive.chain import Underivable
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import ONE, ZERO, Apply, Call, Const, Expr, Ref, Select, const
from gradspec.ir.rule import Definition, Role, Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import (
    closed_cotangents,
    closed_outputs,
    expand,
    follows_surrogate,
    names,
    nodes,
    stops,
    substitute,
)
from gradspec.primitives.table_operators import STOP
from gradspec.stabilise.names import with_stops
from gradspec.symbolic.truth import nearest


@dataclass(frozen=True, slots=True)
class Quantity:
    """``order`` 0: the output; 1: its derivative by ``input`` (by the rule's own
    backward, whose truth an override or a surrogate defines); 2: the derivative of
    that by the same input. Of a rule over axes ``output`` at order 0 and ``input`` are
    elements, and the derivative is that of the sum of the output's elements, times
    their `weights`. ``forms`` are expressions of it in the inputs and statics
    alone, as written first: where balls cannot decide one of them the next is asked
    (``x / cosh(x)**2`` at 1e38 is infinity over infinity to a ball).
    """

    order: int
    output: str
    input: str
    forms: tuple[Expr, ...]

    @property
    def key(self) -> str:
        return ":".join((str(self.order), self.output, self.input))


def quantities(written: Rule, chosen: Rule, order: int) -> tuple[Quantity, ...]:
    """The quantities of a complete rule, up to an order of derivatives (0, 1 or 2). ``chosen``
    is the same rule with its evaluations chosen: equal functions in other forms.
    """
    others = {q.key: q.forms for q in _quantities(chosen, order)}
    return tuple(
        replace(q, forms=tuple(dict.fromkeys((*q.forms, *others.get(q.key, ())))))
        for q in _quantities(written, order)
    )


def _quantities(rule: Rule, order: int) -> tuple[Quantity, ...]:
    values = closed_outputs(rule)
    floats = [o.name for o in rule.outputs if o.takes_gradient]
    found = [Quantity(0, name, "", (expand(values[name]),)) for name in floats]
    if order >= 1:
        gradients = closed_cotangents(rule)
        for output in dict.fromkeys(map(stem, floats)):
            own = [name for name in floats if stem(name) == output]
            seeds: dict[str, Expr] = {f"d{name}": ZERO for name in floats}
            for name, weight in zip(own, weights(len(own)), strict=True):
                seeds[f"d{name}"] = const(weight)
            for name, value in gradients.items():
                expr = tidy(substitute(expand(value), seeds))
                found.append(Quantity(1, output, name[1:], (expr,)))
    if order >= 2:
        found += [s for q in found if q.order == 1 for s in _second(q)]
    return tuple(found)


def weights(count: int) -> list[Fraction]:
    """The upstream gradients of the elements of an output: 1, then numbers of other
    signs and sizes, which every format has."""
    return [Fraction((-1) ** k * (4 + 5 * k % 8), 4) for k in range(count)]


def _second(first: Quantity) -> tuple[Quantity, ...]:
    let = Definition("slope", Role.LOCAL, first.forms[0])
    try:
        expr = vjps((let,), (), {"slope": ONE}, (first.input,))[first.input]
    except Underivable:
        return ()
    return (Quantity(2, first.output, first.input, (tidy(expr),)),)


def written_outputs(rule: Rule) -> dict[str, Expr]:
    """The outputs with calls inlined, except those that stop gradients."""
    found = closed_outputs(rule).items()
    return {name: with_stops(value) for name, value in found}


def written_program(exprs: dict[str, Expr]) -> dict[str, Any]:
    """``nodes`` in order, children first, and ``roots``: places of the expressions."""
    known: dict[Expr, int] = {}
    steps: list[list[Any]] = []
    for root in exprs.values():
        for node in nodes(root):
            if node not in known:
                steps.append(_step(node, known))
                known[node] = len(steps) - 1
    return {"nodes": steps, "roots": {key: known[e] for key, e in exprs.items()}}


def is_derivative(rule: Rule) -> bool:
    """True if the rule's backward is the derivative of its forward, where no gradient
    is stopped: else a framework's own differentiation concerns another function.
    """
    if rule.overrides or rule.surrogates:
        return False
    values = (let.value for let in rule.forward)
    called = (n.rule for value in values for n in nodes(value) if isinstance(n, Call))
    return all(
        stops(callee) or not (callee.overrides or follows_surrogate(callee))
        for callee in called
    )


def _step(node: Expr, known: dict[Expr, int]) -> list[Any]:
    match node:
        case Ref(name=name):
            return ["ref", name]
        case Const(value=value):
            return ["const", _double(float(value))]
        case Select(condition=condition, then=then, other=other):
            return ["select", *(known[part] for part in (condition, then, other))]
        case Apply(op="stop", args=(arg,)):
            return [STOP, known[arg]]
        case Apply(op=op, args=args):
            folded = math.nan if names(node) else nearest(node, [{}], "float64")[0]
            if not math.isnan(folded):
                return ["const", _double(folded)]
            return [op, *(known[arg] for arg in args)]
        case _:
            raise NotImplementedError("indexed expressions")


def _double(value: float) -> float | str:
    """A number for JSON, which has no infinity."""
    return value if math.isfinite(value) else repr(value)
