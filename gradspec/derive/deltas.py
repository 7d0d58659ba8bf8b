"""Positions of an input that an indexed reference reads: resolved Kronecker deltas.

``x[e]`` under the indices of a scope adds to ``dx[k]`` the sum over the scope of the
incoming cotangents where ``k == e``. If ``e`` is an index, or an index and a shift, the
sum over that index has one term; anything else (a constant, a repeated index, a
position that depends on data) stays as a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from gradspec.derive.scopes import AT, Axis, replaced
from gradspec.derive.simplify import guarded, summed
from gradspec.ir.expr import ZERO, Apply, Bound, Const, Expr, Idx, Ref, Size
from gradspec.ir.tidy import decide, fold
from gradspec.ir.walk import transform

Terms = dict[Expr, Fraction]
"""A linear form: integer terms by what they multiply, the constant under 1."""

_ONE = Const(Fraction(1))


def linear(expr: Expr) -> Terms:
    """An index as a linear form; a nonlinear part is a term of its own."""
    match expr:
        case Const(value=value):
            return {_ONE: value} if value else {}
        case Apply(op="add", args=(a, b)):
            return _added(linear(a), linear(b), Fraction(1))
        case Apply(op="sub", args=(a, b)):
            return _added(linear(a), linear(b), Fraction(-1))
        case Apply(op="neg", args=(a,)):
            return _added({}, linear(a), Fraction(-1))
        case Apply(op="mul", args=(Const(value=value), a)):
            return _added({}, linear(a), value)
        case Apply(op="mul", args=(a, Const(value=value))):
            return _added({}, linear(a), value)
        case _:
            return {expr: Fraction(1)}


def _added(a: Terms, b: Terms, factor: Fraction) -> Terms:
    found = dict(a)
    for term, number in b.items():
        found[term] = found.get(term, Fraction(0)) + factor * number
    return {term: number for term, number in found.items() if number}


def written(terms: Terms) -> Expr:
    """A linear form as one writes it: ``i - 1``."""
    result: Expr = ZERO
    ordered = [(t, n) for t, n in terms.items() if t != _ONE]
    ordered.sort(key=lambda pair: pair[1] < 0)
    for term, number in ordered:
        part = fold(Apply("mul", (Const(abs(number)), term)))
        op = "add" if number > 0 else "sub"
        result = fold(Apply(op, (result, part)))
    return fold(Apply("add", (result, Const(terms.get(_ONE, Fraction(0))))))


def straightened(expr: Expr, axes: Mapping[str, Axis]) -> Expr:
    """``expr`` with its index arithmetic simplified and tautologies removed."""
    return transform(expr, lambda node: _straight(node, axes))


def _straight(node: Expr, axes: Mapping[str, Axis]) -> Expr:
    match node:
        case Apply(op="add" | "sub") if is_index(node):
            return written(linear(node))
        case Apply(op="lt" | "le" | "gt" | "ge" | "eq" | "ne", args=args) if all(
            is_index(arg) for arg in args
        ):
            return _comparison(node, axes)
        case _:
            return fold(node)


def is_index(expr: Expr) -> bool:
    """True if it is an integer made of indices and sizes alone."""
    match expr:
        case Idx() | Size():
            return True
        case Const(value=value):
            return value.denominator == 1
        case Apply(op="add" | "sub" | "neg" | "mul", args=args):
            return all(is_index(arg) for arg in args)
        case _:
            return False


TRUE = Apply("eq", (ZERO, ZERO))
FALSE = Apply("ne", (ZERO, ZERO))


def _comparison(node: Apply, axes: Mapping[str, Axis]) -> Expr:
    """A comparison simplified: ``k < n`` of an index of axis ``n`` always holds; ``(k -
    1) + 1 < m`` is ``k < m``."""
    left, right = node.args
    difference = _added(linear(left), linear(right), Fraction(-1))
    low, high = _range(difference, axes)
    known = _decided(node.op, low, high)
    if known is not None:
        return TRUE if known else FALSE
    number = difference.pop(_ONE, Fraction(0))
    above = {t: n for t, n in difference.items() if n > 0}
    below = {t: -n for t, n in difference.items() if n < 0}
    side = above if number > 0 and above else below
    if side is above:
        above = _added(above, {_ONE: Fraction(1)}, number)
    else:
        below = _added(below, {_ONE: Fraction(1)}, -number)
    if not above:
        flipped = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
        op = flipped.get(node.op, node.op)
        return Apply(op, (written(below), written(above)))
    return Apply(node.op, (written(above), written(below)))


def _range(
    terms: Terms, axes: Mapping[str, Axis]
) -> tuple[Fraction | None, Fraction | None]:
    """Bounds of a linear form of indices, where sizes cancel (sizes are at least 1
    wherever an index of that axis has a value at all)."""
    return _least(terms, axes), _negated(_least(_added({}, terms, Fraction(-1)), axes))


def _negated(value: Fraction | None) -> Fraction | None:
    return None if value is None else -value


def _least(terms: Terms, axes: Mapping[str, Axis]) -> Fraction | None:
    least: Terms = {_ONE: Fraction(0)}
    for term, number in terms.items():
        match term:
            case Idx(name=name) if number < 0 and name in axes:
                axis = axes[name]
                size: Expr = Size(axis) if isinstance(axis, str) else _whole(axis)
                least = _added(least, linear(size), number)
                least = _added(least, {_ONE: Fraction(1)}, -number)
            case Idx(name=name) if number > 0 and name in axes:
                continue
            case _:
                least = _added(least, {term: Fraction(1)}, number)
    constant = least.pop(_ONE, Fraction(0))
    for term, number in least.items():
        if not isinstance(term, Size) or number < 0:
            return None
        constant += number
    return constant


def _whole(number: int) -> Const:
    return Const(Fraction(number))


def _decided(op: str, low: Fraction | None, high: Fraction | None) -> bool | None:
    below = high is not None and high < 0
    above = low is not None and low > 0
    below_or_at = high is not None and high <= 0
    above_or_at = low is not None and low >= 0
    known = {
        "lt": (below, above_or_at),
        "le": (below_or_at, above),
        "gt": (above, below_or_at),
        "ge": (above_or_at, below),
        "eq": (low == high == 0, below or above),
        "ne": (below or above, low == high == 0),
    }
    holds, fails = known[op]
    return True if holds else False if fails else None


# --- resolving ------------------------------------------------------------------------


@dataclass(slots=True)
class _Scope:
    bounds: dict[str, Axis]
    values: dict[str, Expr] = field(default_factory=dict)
    guards: list[Expr] = field(default_factory=list)


def scattered(
    bounds: tuple[Bound, ...],
    at: tuple[Expr, ...],
    target: tuple[Bound, ...],
    value: Expr,
    axes: Mapping[str, Axis],
) -> Expr:
    """``Σ over bounds of value where target == at``; ``axes`` of all indices."""
    scope = _Scope({b.index: b.axis for b in bounds})
    pairs = [(b, index, Idx(b.index)) for b, index in zip(target, at, strict=True)]
    pairs.sort(key=lambda pair: not isinstance(pair[1], Idx))
    for bound, index, place in pairs:
        _resolve(scope, bound, replaced(index, scope.values), place)
    left = tuple(Bound(index, axis) for index, axis in scope.bounds.items())
    body = _at_places(scope, straightened(_substituted(value, scope.values), axes))
    guards = [straightened(_substituted(g, scope.values), axes) for g in scope.guards]
    return summed(left, guarded([g for g in guards if decide(g) is not True], body))


def _at_places(scope: _Scope, body: Expr) -> Expr:
    """``x[t[i]]`` that reaches the place ``k`` is ``x[k]``, and leaves a sum over i."""
    places: dict[Expr, Expr] = {
        guard.args[0]: guard.args[1]
        for guard in scope.guards
        if isinstance(guard, Apply) and guard.op == AT
        if isinstance(guard.args[0], Ref)
    }
    return transform(body, lambda node: places.get(node, node)) if places else body


def _substituted(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """``expr`` with resolved indices substituted, those in their values too."""
    while True:
        made = replaced(expr, values)
        if made == expr:
            return made
        expr = made


def _resolve(scope: _Scope, bound: Bound, index: Expr, place: Idx) -> None:
    """``place == index``: solved for an index of the scope, or kept as a condition."""
    terms = linear(index)
    for name, axis in scope.bounds.items():
        number = terms.get(Idx(name), Fraction(0))
        others = {t: n for t, n in terms.items() if t != Idx(name)}
        if abs(number) != 1 or any(_mentions(t, name) for t in others):
            continue
        solution = _added({place: number}, others, -number)
        scope.values[name] = written(solution)
        del scope.bounds[name]
        if others or axis != bound.axis or number != 1:
            _guard_range(scope, scope.values[name], axis)
        return
    scope.guards.append(Apply(AT, (index, place)))


def _mentions(term: Expr, name: str) -> bool:
    return name in term.free


def _guard_range(scope: _Scope, value: Expr, axis: Axis) -> None:
    size: Expr = Size(axis) if isinstance(axis, str) else _whole(axis)
    scope.guards.append(Apply("ge", (value, ZERO)))
    scope.guards.append(Apply("lt", (value, size)))
