"""The true cotangent of an input: upstream gradients times derivatives, summed.

Calls of other rules use the callee's own backward. Where that is not linear in the
upstream gradient (an override may be anything) the derivative of the call cannot be
split off as a factor: the call is then a leaf of its own, its whole upstream gradient
is gathered first (over all of its outputs), goes through the callee's backward, and
what comes out is the upstream gradient of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from gradspec.derive.chain import gradient, is_linear, plus, times
from gradspec.ir.expr import ZERO, Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.rule import Definition, Rule
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import (
    closed_cotangents,
    inline,
    memo,
    names,
    nodes,
    size,
    substitute,
    transform,
)

_Seeds: TypeAlias = list[tuple[Expr, Expr]]
"""Expressions with their upstream gradients."""


def vjps(
    forward: tuple[Definition, ...],
    surrogates: tuple[Definition, ...],
    cotangents: Mapping[str, Expr],
    wrt: tuple[str, ...],
) -> dict[str, Expr]:
    """The cotangents of ``wrt`` as closed expressions; 0 where nothing depends on an
    input.

    ``cotangents`` are the upstream gradients of outputs by the outputs' names. A
    surrogate takes the place of its own output only: where other values use that output
    they use, and are differentiated through, its forward. Raises
    :class:`~gradspec.derive.chain.Underivable`.
    """
    paths = {surrogate.name: surrogate.value for surrogate in surrogates}
    seeds = [
        (tidy(inline(forward, paths.get(name, Ref(name)))), upstream)
        for name, upstream in cotangents.items()
    ]
    return _Accumulation(wrt).run(seeds)


def cotangents(rule: Rule) -> dict[str, Expr]:
    """The derived cotangents of all floating inputs of an elementwise rule."""
    upstream = {o.name: Ref(o.cotangent) for o in rule.outputs if o.takes_gradient}
    wrt = tuple(i.name for i in rule.inputs if i.takes_gradient)
    return vjps(fill_slopes(rule.forward), rule.surrogates, upstream, wrt)


@memo(512)
def own_backward(rule: Rule, position: int) -> Expr:
    """A callee's closed cotangent: as it stands in the rule, or derived."""
    if not rule.inputs[position].takes_gradient:
        return ZERO
    name = rule.inputs[position].name
    known = closed_cotangents(rule).get(f"d{name}")
    return cotangents(rule)[name] if known is None else known


class _Accumulation:
    """Sums over outputs, and over the calls that are not linear, outermost first."""

    def __init__(self, wrt: tuple[str, ...]) -> None:
        self.wrt = wrt
        self.totals: dict[Expr, Expr] = {}
        self.crooked: dict[tuple[Rule, tuple[Expr, ...]], None] = {}

    def run(self, seeds: _Seeds) -> dict[str, Expr]:
        self._add(seeds)
        while self.crooked:
            call = self._outermost()
            del self.crooked[call]
            self._add(self._arguments(*call))
        return {name: self.totals.get(Ref(name), ZERO) for name in self.wrt}

    def _is_leaf(self, node: Expr) -> bool:
        match node:
            case Ref(name=name, indices=()):
                return name in self.wrt
            case Call():
                return is_crooked(node.rule)
            case _:
                return False

    def _add(self, seeds: _Seeds) -> None:
        for expr, upstream in seeds:
            found = gradient(expr, self._is_leaf, own_backward)
            for leaf, factor in found.items():
                before = self.totals.get(leaf, ZERO)
                self.totals[leaf] = plus(before, times(upstream, factor))
                if isinstance(leaf, Call):
                    self.crooked[leaf.rule, leaf.args] = None

    def _outermost(self) -> tuple[Rule, tuple[Expr, ...]]:
        """A call that is in no argument of the others: its upstream is complete."""
        inside = {
            (node.rule, node.args)
            for _, args in self.crooked
            for arg in args
            for node in nodes(arg)
            if isinstance(node, Call)
        }
        return next(call for call in self.crooked if call not in inside)

    def _arguments(self, rule: Rule, args: tuple[Expr, ...]) -> _Seeds:
        values = {i.name: arg for i, arg in zip(rule.inputs, args, strict=True)}
        for number, output in enumerate(rule.outputs):
            call = Call(rule, number, args)
            values[output.cotangent] = self.totals.get(call, ZERO)
        return [
            (arg, tidy(substitute(own_backward(rule, position), values)))
            for position, arg in enumerate(args)
            if rule.inputs[position].takes_gradient
        ]


@lru_cache(maxsize=512)
def is_crooked(rule: Rule) -> bool:
    """True if some cotangent of a rule is not linear in its upstream gradients."""
    upstream = frozenset(rule.cotangents)
    return not all(
        is_linear(own_backward(rule, position), upstream)
        for position in range(len(rule.inputs))
    )


# --- points defined by hand -----------------------------------------------------------
#
# ``… if x != 0 else 1`` differentiated piece by piece: the constant has slope 0, the
# function that it completes has another. So the constant becomes ``1 + slope * (x - 0)``,
# which is the same at that point. The slope is the second coefficient of the function's
# Taylor series, if that is rational and the first is the constant.


_WIDTH, _ORDER = Fraction(1, 64), 8
_LARGEST = 60  # nodes
_FREE = "·"  # no name of a rule


def fill_slopes(forward: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Values with a slope at each point that is defined by hand, ready for
    derivation."""
    return tuple(_fill(forward, let) for let in forward)


def _fill(forward: tuple[Definition, ...], let: Definition) -> Definition:
    if not any(isinstance(node, Select) for node in nodes(let.value)):
        return let
    whole = tidy(inline(forward, let.value))
    found = transform(whole, _with_slope)
    return let if found == whole else replace(let, value=found)


def _with_slope(node: Expr) -> Expr:
    match node:
        case Select(
            condition=Apply(op="ne" | "eq" as op, args=(place, Const(value=at))),
            then=then,
            other=other,
        ):
            whole, patch = (then, other) if op == "ne" else (other, then)
            if not isinstance(patch, Const) or not names(place):
                return node
            slope = _slope(whole, place, at, patch.value)
            if not slope:
                return node
            step = fold(Apply("sub", (place, Const(at))))
            line = plus(patch, times(Const(slope), step))
            branches = (whole, line) if op == "ne" else (line, whole)
            return Select(node.condition, *branches, span=node.span)
        case _:
            return node


@lru_cache(maxsize=256)
def _slope(whole: Expr, place: Expr, at: Fraction, value: Fraction) -> Fraction | None:
    """The slope of a function of ``place`` alone where it is ``at``, if its limit there
    is ``value`` and the slope is rational."""
    if size(whole) > _LARGEST:
        return None
    alone = transform(whole, lambda n: Ref(_FREE) if n == place else n)
    if names(alone) != {_FREE}:
        return None
    from gradspec.symbolic.series import rational_start

    found = rational_start(alone, _FREE, at, _WIDTH, _ORDER)
    return found[1] if found is not None and found[0] == value else None
