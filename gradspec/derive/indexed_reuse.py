"""Values of the forward pass found again in a derivative.

``e[i] / s * (dy[i] - …)`` is ``y[i] * (dy[i] - …)`` where ``y[i] = e[i] / s``: what is
there already is not computed again, and reads as an expert would write it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from gradspec.derive.indexed_forms import Product, averaged, joined, product
from gradspec.derive.indexed_scopes import Value
from gradspec.ir.expr import Apply, Const, Expr, Idx, Ref, Select
from gradspec.ir.walk import children, with_children


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A value and the factors that it consists of."""

    value: Value
    parts: Product
    is_exponent: bool = False

    def at(self, found: dict[str, Expr]) -> Expr:
        """What stands for the factors, the indices put in."""
        reference = _reference(self.value, found)
        return Apply("exp", (reference,)) if self.is_exponent else reference


def _exponential(value: Value) -> tuple[_Pattern, ...]:
    """``exp(a) / s`` is ``exp(y)`` where ``y = a - log(s)``, and does not overflow."""
    match value.expr:
        case Apply(op="sub", args=(left, Apply(op="log", args=(total,)))):
            powers = {Apply("exp", (left,)): Fraction(1), total: Fraction(-1)}
            return (_Pattern(value, Product(powers=dict(powers)), True),)
        case _:
            return ()


class Reuse:
    """Expressions rewritten in terms of the ``values`` that are worth a name."""

    def __init__(self, values: Iterable[Value]) -> None:
        found = [
            pattern
            for v in values
            for pattern in (_Pattern(v, product(v.expr)), *_exponential(v))
        ]
        self.patterns = [p for p in found if _is_worth(p)]

    def __call__(self, expr: Expr) -> Expr:
        return self._visit(expr, {})

    def _visit(self, expr: Expr, done: dict[Expr, Expr]) -> Expr:
        if expr not in done:
            done[expr] = self._rewritten(expr, done)
        return done[expr]

    def _rewritten(self, expr: Expr, done: dict[Expr, Expr]) -> Expr:
        if not _is_product(expr):
            parts = tuple(self._visit(child, done) for child in children(expr))
            return self._whole(with_children(expr, parts))
        whole = product(expr)
        made = Product(whole.number, {}, dict(whole.guards))
        for factor, power in whole.powers.items():
            made.multiply(self._visit(factor, done), power)
        for pattern in self.patterns:
            made = _matched(pattern, made)
        return averaged(joined(made))

    def _whole(self, expr: Expr) -> Expr:
        for pattern in self.patterns:
            found: dict[str, Expr] = {}
            if pattern.is_exponent:
                continue
            variables = frozenset(pattern.value.indices)
            if _unify(pattern.value.expr, expr, variables, found):
                return _reference(pattern.value, found)
        return expr


def _is_product(expr: Expr) -> bool:
    match expr:
        case Apply(op="mul" | "div" | "neg" | "square"):
            return True
        case Select(other=Const(value=value)):
            return value == 0
        case _:
            return False


def _is_worth(pattern: _Pattern) -> bool:
    """A multiple of a single reference is no shorter by another name."""
    parts = pattern.parts
    if parts.guards or not parts.powers:
        return False
    composite = [f for f in parts.powers if not isinstance(f, Ref | Const | Idx)]
    return bool(composite) or len(parts.powers) > 1


def _reference(value: Value, found: dict[str, Expr]) -> Expr:
    return Ref(value.name, tuple(found[index] for index in value.indices))


def _matched(pattern: _Pattern, whole: Product) -> Product:
    """The product with the value as a factor, if its factors are all there."""
    variables = frozenset(pattern.value.indices)
    found: dict[str, Expr] = {}
    taken: dict[Expr, Expr] = {}
    for part, power in pattern.parts.powers.items():
        for factor, there in whole.powers.items():
            trial = dict(found)
            fits = there * power > 0 and abs(there) >= abs(power)
            if fits and factor not in taken and _unify(part, factor, variables, trial):
                found, taken[factor] = trial, part
                break
        else:
            return whole
    if set(found) != variables:
        return whole
    powers = pattern.parts.powers
    times = min(int(whole.powers[f] / powers[p]) for f, p in taken.items())
    number = pattern.parts.number
    made = Product(whole.number / number**times, {}, dict(whole.guards))
    for factor, power in whole.powers.items():
        made.multiply(factor, power)
    for factor, part in taken.items():
        made.multiply(factor, -powers[part] * times)
    reference = product(pattern.at(found))
    for factor, power in reference.powers.items():
        made.multiply(factor, power * times)
    return made


def _unify(
    pattern: Expr, expr: Expr, variables: frozenset[str], found: dict[str, Expr]
) -> bool:
    """Whether ``expr`` is ``pattern`` with expressions for its index variables."""
    if isinstance(pattern, Idx) and pattern.name in variables:
        return found.setdefault(pattern.name, expr) == expr
    if type(pattern) is not type(expr):
        return False
    below, other = children(pattern), children(expr)
    if len(below) != len(other) or not below:
        return pattern == expr
    if with_children(expr, below) != pattern:
        return False
    return all(
        _unify(a, b, variables, found) for a, b in zip(below, other, strict=True)
    )
