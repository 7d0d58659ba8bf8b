"""Upstream gradients outside of conditionals, quotients and long products, for a target
that transposes tangents.

JAX is told tangents and transposes them. Of `dy * a if c else dy * b` the branch that is
not taken is transposed too, with the cotangent 0: times an infinite `b` that is NaN. And
`dy * x / y` becomes `dy / y * x`, which is 0 where `1 / y` is subnormal. The factors of
`dy * a * b * c` are taken from the last to the first, so that what was chosen to stay in
the range does not. In `dy * (a if c else b)`, `dy * (x / y)` and `dy * (a * b * c)` nothing
is transposed but the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from gradspec.derive.build import plus
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.rule import Backward, CheckedRule, Declared, Derived, Override
from gradspec.ir.walk import names, nodes

_LONG = 3
"""Of two factors the order says nothing."""


def outside(checked: CheckedRule) -> CheckedRule:
    """The rule as it is planned for such a target."""
    rule = checked.rule
    if not rule.is_elementwise:
        return checked
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    backward = tuple(_entry(entry, upstream) for entry in rule.backward)
    if backward == rule.backward:
        return checked
    return replace(checked, rule=replace(rule, backward=backward))


def _entry(entry: Backward, upstream: tuple[str, ...]) -> Backward:
    match entry:
        case Derived(value=value) | Declared(value=value) | Override(value=value):
            return replace(entry, value=_outside(value, upstream))
        case _:
            return entry


def _outside(value: Expr, upstream: tuple[str, ...]) -> Expr:
    known = frozenset(upstream)
    if not any(_hides(node, known) for node in nodes(value)):
        return value
    if not is_linear(value, known):
        return value
    used = [name for name in upstream if name in names(value)]
    factors = (coefficient(value, name, known) for name in used)
    terms: list[Expr] = [
        Apply("mul", (Ref(name), factor))
        for name, factor in zip(used, factors, strict=True)
    ]
    return reduce(plus, terms)


def _behind(node: Expr, upstream: frozenset[str]) -> Iterator[Expr]:
    """The factors of a product that are transposed one by one."""
    while isinstance(node, Apply) and node.op == "mul":
        ahead, factor = node.args
        if upstream & names(factor):
            ahead, factor = factor, ahead
        if not isinstance(factor, Const):
            yield factor
        node = ahead


def _hides(node: Expr, upstream: frozenset[str]) -> bool:
    """Whether the transposed form computes something else than the form."""
    match node:
        case Select(then=then, other=other):
            return bool(upstream & (names(then) | names(other)))
        case Apply(op="div", args=(Apply() as above, below)):
            return bool(upstream & names(above)) and not isinstance(below, Const)
        case Apply(op="mul") if upstream & names(node):
            return len([*_behind(node, upstream)]) >= _LONG
        case _:
            return False
