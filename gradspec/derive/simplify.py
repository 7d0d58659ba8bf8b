"""Products and sums over indices, put together as an expert would write them.

A product is taken apart into a number, powers of its factors, and the conditions
outside which it is 0. So a factor without the summed index leaves the sum, sums of
independent factors become products of sums, and terms share what they have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gradspec.derive import chain
from gradspec.derive.scopes import (
    AT,
    Axis,
    Value,
    connected_groups,
    extent,
    replace_indices,
    tied,
    unify,
    uses,
)
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Bound,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.products import (
    Product,
    Terms,
    add_multiple,
    conjuncts,
    element_count,
    guarded_product,
    is_index,
    linear,
    linear_expr,
    product_of_powers,
)
from gradspec.ir.tidy import decide, fold
from gradspec.ir.walk import children, nodes, transform, with_children


def join_factors(parts: Product) -> Expr:
    """The product as an expression; sums come last, guards go around all of it."""
    if not parts.number or ZERO in parts.above:
        return ZERO
    powers = parts.powers
    above = [(f, p) for f, p in powers.items() if p > 0]
    above.sort(key=lambda pair: _is_sum(pair[0]))
    result: Expr = ONE
    for factor, power in above:
        result = _times(result, _power(factor, power))
    below: Expr = ONE
    for factor, power in powers.items():
        if power < 0:
            below = _times(below, _power(factor, -power))
    number = parts.number
    if below != ONE and number.denominator != 1 and result == ONE:
        result, number = Const(Fraction(number.numerator)), number / number.numerator
        below, number = _times(Const(1 / number), below), Fraction(1)
    result = chain.scale(number, result)
    result = result if below == ONE else fold(Apply("div", (result, below)))
    return guard_by(parts.guards, result)


def _times(left: Expr, right: Expr) -> Expr:
    return fold(Apply("mul", (left, right)))


def _is_sum(expr: Expr) -> bool:
    return isinstance(expr, Apply) and expr.op in ("add", "sub")


def _power(factor: Expr, power: int) -> Expr:
    return fold(Apply("pow", (factor, Const(Fraction(power)))))


def guard_by(guards: Iterable[Expr], expr: Expr) -> Expr:
    """``expr`` where the guards hold, else 0."""
    condition: Expr | None = None
    for guard in guards:
        condition = guard if condition is None else Apply("and", (condition, guard))
    return expr if condition is None else fold(Select(condition, expr, ZERO))


def times(left: Expr, right: Expr) -> Expr:
    """``left * right``, factors merged and cancelled."""
    conditional = isinstance(left, Select) or isinstance(right, Select)
    if conditional and not (_is_guard(left) or _is_guard(right)):
        return chain.times(left, right)
    return join_factors(guarded_product(Apply("mul", (left, right))))


def _is_guard(expr: Expr) -> bool:
    return isinstance(expr, Select) and expr.other == ZERO


def plus(left: Expr, right: Expr) -> Expr:
    """``left + right`` with the common factors in front."""
    if ZERO in (left, right):
        return right if left == ZERO else left
    a, b = guarded_product(left), guarded_product(right)
    common = a.common(b)
    if {*a.guards} != {*b.guards}:
        # the guards of one term may be what permits a factor
        common = replace(common.filter(_exists), guards=common.guards)
    if not common.parts:
        return chain.plus(left, right)
    whole = _sum(a.without(common), b.without(common))
    return ZERO if whole == ZERO else join_factors(common.times(guarded_product(whole)))


def _exists(factor: Expr) -> bool:
    """True if its elements exist wherever its indices range."""
    elements = (node for node in nodes(factor) if isinstance(node, Ref))
    return all(isinstance(index, Idx) for ref in elements for index in ref.indices)


def _sum(a: Product, b: Product) -> Expr:
    if a.powers == b.powers and {*a.guards} == {*b.guards}:
        return join_factors(replace(a, number=a.number + b.number))
    return chain.plus(join_factors(a), join_factors(b))


# --- sums over indices ----------------------------------------------------------------


def sum_over(bounds: tuple[Bound, ...], expr: Expr) -> Expr:
    """``expr`` summed over ``bounds``; factors without the indices leave the sum."""
    if expr == ZERO:
        return ZERO
    whole = guarded_product(expr)
    for guard in whole.guards:
        reached = tied(guard, bounds)
        if reached is not None:
            bound, index = reached
            left = tuple(b for b in bounds if b != bound)
            rest = tuple(g for g in whole.guards if g != guard)
            body = join_factors(replace(whole, guards=rest))
            return sum_over(left, replace_indices(body, {bound.index: index}))
    outer = whole.filter(lambda part: not uses(part, bounds))
    for group in connected_groups(bounds, whole.parts):
        inner = tuple(part for part in whole.parts if uses(part, group))
        parts = replace(whole.filter(inner.__contains__), number=Fraction(1))
        sums = (
            Product(above=(_reduce(group, parts),)) if inner else element_count(group)
        )
        outer = outer.times(sums)
    return join_factors(outer)


def _reduce(bounds: tuple[Bound, ...], parts: Product) -> Expr:
    """The sum itself; a sum within it alone becomes one over all indices."""
    body = join_factors(parts)
    match body:
        case Reduce(op="sum", bounds=inner, body=below, where=None):
            return Reduce("sum", (*bounds, *inner), below)
        case _:
            return Reduce("sum", bounds, body)


def as_mean(expr: Expr) -> Expr:
    """A product with a sum over an axis and its size below the line has a mean."""
    parts = guarded_product(expr)
    powers = parts.powers
    for factor, power in powers.items():
        if isinstance(factor, Reduce) and factor.op == "sum" and power == 1:
            sizes = [Size(b.axis) for b in factor.bounds if isinstance(b.axis, str)]
            enough = all(powers.get(s, 0) <= -1 for s in sizes)
            alone = len(set(sizes)) == len(sizes) == len(factor.bounds)
            if enough and alone and not isinstance(factor.body, Select):
                mean = Reduce("mean", factor.bounds, factor.body)
                more = Product(above=(*sizes, mean), below=(factor,))
                return join_factors(parts.times(more))
    return expr


# --- values of the forward pass -------------------------------------------------------
#
# Values of the forward pass found again in a derivative.
#
# ``e[i] / s * (dy[i] - …)`` is ``y[i] * (dy[i] - …)`` where ``y[i] = e[i] / s``: what is
# there already is not computed again, and reads as an expert would write it.


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A value and the factors that it consists of."""

    value: Value
    parts: Product
    is_exponent: bool = False

    def at(self, found: Mapping[str, Expr]) -> Expr:
        """The expression that replaces the factors, with indices substituted."""
        reference = _reference(self.value, found)
        return Apply("exp", (reference,)) if self.is_exponent else reference


def _exponential(value: Value) -> tuple[_Pattern, ...]:
    """``exp(a) / s`` is ``exp(y)`` where ``y = a - log(s)``, and does not overflow."""
    match value.expr:
        case Apply(op="sub", args=(left, Apply(op="log", args=(total,)))):
            parts = Product(above=(Apply("exp", (left,)),), below=(total,))
            return (_Pattern(value, parts, True),)
        case _:
            return ()


class Reuse:
    """Expressions rewritten in terms of the ``values`` that are worth a name."""

    def __init__(self, values: Iterable[Value]) -> None:
        found = [
            pattern
            for v in values
            for pattern in (_Pattern(v, guarded_product(v.expr)), *_exponential(v))
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
        whole = guarded_product(expr)
        above, below = (
            tuple(self._visit(factor, done) for factor in side)
            for side in (whole.above, whole.below)
        )
        made = replace(whole, above=above, below=below)
        for pattern in self.patterns:
            made = _match(pattern, made)
        return as_mean(join_factors(made))

    def _whole(self, expr: Expr) -> Expr:
        for pattern in self.patterns:
            if pattern.is_exponent:
                continue
            variables = frozenset(pattern.value.indices)
            found = unify(pattern.value.expr, expr, variables)
            # a value may use none of its own indices
            if found is not None and variables <= found.keys():
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
    """False for a multiple of a single reference, which is no shorter by another
    name."""
    powers = pattern.parts.powers
    composite = [f for f in powers if not isinstance(f, Ref | Const | Idx)]
    return bool(composite) or (len(powers) > 1 and ZERO not in powers)


def _reference(value: Value, found: Mapping[str, Expr]) -> Expr:
    return Ref(value.name, tuple(found[index] for index in value.indices))


def _match(pattern: _Pattern, whole: Product) -> Product:
    """The product with the value as a factor, if its factors are all there."""
    variables = frozenset(pattern.value.indices)
    found: Mapping[str, Expr] = {}
    taken: dict[Expr, Expr] = {}
    powers, needed = whole.powers, pattern.parts.powers
    for part, power in needed.items():
        for factor, there in powers.items():
            fits = there * power > 0 and abs(there) >= abs(power)
            if not fits or factor in taken:
                continue
            trial = unify(part, factor, variables, found)
            if trial is not None:
                found, taken[factor] = trial, part
                break
        else:
            return whole
    implied = set[Expr]()
    for guard in pattern.parts.guards:
        for other in whole.guards:
            trial = unify(guard, other, variables, found)
            if trial is not None:
                found, implied = trial, implied | {other}
                break
    if set(found) != variables or len(implied) < len(pattern.parts.guards):
        return whole
    times = min(powers[f] // needed[p] for f, p in taken.items())
    number = whole.number / pattern.parts.number**times
    beside = [factor for factor in powers if factor not in taken]
    left = tuple(g for g in whole.guards if g not in implied or _needs(beside, g))
    for factor, part in taken.items():
        powers[factor] -= needed[part] * times
    reference = Product(above=times * (pattern.at(found),))
    return product_of_powers(number, powers, left).times(reference)


def _needs(beside: Iterable[Expr], guard: Expr) -> bool:
    """True if a guard protects more than the value, which is 0 where it does not hold:
    an element beside it that may be infinite there.
    """
    todo = list(beside)
    while todo:
        node = todo.pop()
        if isinstance(node, Ref) and {*guard.free} <= {*node.free}:
            return True
        todo += () if isinstance(node, Reduce) else children(node)
    return False


# --- Kronecker deltas -----------------------------------------------------------------
#
# Positions of an input that an indexed reference reads: ``x[e]`` under the indices of a
# scope adds to ``dx[k]`` the sum over the scope of the incoming cotangents where
# ``k == e``. If ``e`` is an index, or an index and a shift, the sum over that index has one
# term; anything else (a constant, a repeated index, a position that depends on data)
# stays as a condition.


def straighten(expr: Expr, axes: Mapping[str, Axis]) -> Expr:
    """``expr`` with its index arithmetic simplified and tautologies removed."""
    return transform(expr, lambda node: _straight(node, axes))


def _straight(node: Expr, axes: Mapping[str, Axis]) -> Expr:
    match node:
        case Apply(op="add" | "sub") if is_index(node):
            return linear_expr(linear(node))
        case Apply(op=op, args=args) if op in _COMPARISONS and all(map(is_index, args)):
            return _comparison(node, axes)
        case _:
            return fold(node)


_COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))

TRUE = Apply("eq", (ZERO, ZERO))
FALSE = Apply("ne", (ZERO, ZERO))


def _comparison(node: Apply, axes: Mapping[str, Axis]) -> Expr:
    """A comparison simplified: ``k < n`` of an index of axis ``n`` always holds; ``(k -
    1) + 1 < m`` is ``k < m``."""
    left, right = node.args
    difference = add_multiple(linear(left), linear(right), Fraction(-1))
    low, high = _range(difference, axes)
    known = _truth(node.op, low, high)
    if known is not None:
        return TRUE if known else FALSE
    number = difference.pop(ONE, Fraction(0))
    above = {t: n for t, n in difference.items() if n > 0}
    below = {t: -n for t, n in difference.items() if n < 0}
    side = above if number > 0 and above else below
    if side is above:
        above = add_multiple(above, {ONE: Fraction(1)}, number)
    else:
        below = add_multiple(below, {ONE: Fraction(1)}, -number)
    if not above:
        flipped = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
        op = flipped.get(node.op, node.op)
        return Apply(op, (linear_expr(below), linear_expr(above)))
    return Apply(node.op, (linear_expr(above), linear_expr(below)))


def _range(
    terms: Terms, axes: Mapping[str, Axis]
) -> tuple[Fraction | None, Fraction | None]:
    """Bounds of a linear form of indices, where sizes cancel (sizes are at least 1
    wherever an index of that axis has a value at all)."""
    most = _least(add_multiple({}, terms, Fraction(-1)), axes)
    return _least(terms, axes), None if most is None else -most


def _least(terms: Terms, axes: Mapping[str, Axis]) -> Fraction | None:
    least: Terms = {ONE: Fraction(0)}
    for term, number in terms.items():
        match term:
            case Idx(name=name) if number < 0 and name in axes:
                least = add_multiple(least, linear(extent(axes[name])), number)
                least = add_multiple(least, {ONE: Fraction(1)}, -number)
            case Idx(name=name) if number > 0 and name in axes:
                continue
            case _:
                least = add_multiple(least, {term: Fraction(1)}, number)
    constant = least.pop(ONE, Fraction(0))
    for term, number in least.items():
        if not isinstance(term, Size) or number < 0:
            return None
        constant += number
    return constant


def _truth(op: str, low: Fraction | None, high: Fraction | None) -> bool | None:
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


def scatter_sum(
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
        _resolve(scope, bound.axis, replace_indices(index, scope.values), place)
    left = tuple(Bound(index, axis) for index, axis in scope.bounds.items())
    body = _at_places(scope, straighten(_substitute(value, scope.values), axes))
    guards = [straighten(_substitute(g, scope.values), axes) for g in scope.guards]
    return sum_over(left, guard_by([g for g in guards if decide(g) is not True], body))


def _at_places(scope: _Scope, body: Expr) -> Expr:
    """``x[t[i]]`` that reaches the place ``k`` is ``x[k]``, and leaves a sum over i. A
    condition on ``t[i]`` itself stays: it may be why the place exists.
    """
    places: dict[Expr, Expr] = {
        guard.args[0]: guard.args[1]
        for guard in scope.guards
        if isinstance(guard, Apply) and guard.op == AT
        if isinstance(guard.args[0], Ref)
        if not scope.bounds.keys().isdisjoint(guard.args[0].free)
    }
    if not places:
        return body
    done: dict[Expr, Expr] = {}
    for node in nodes(body):
        parts = tuple(done[child] for child in node.below)
        if isinstance(node, Apply) and node.op in _COMPARISONS:
            pairs = zip(node.below, parts, strict=True)
            parts = tuple(old if is_index(new) else new for old, new in pairs)
        made = with_children(node, parts)
        done[node] = places.get(made, made)
    return done[body]


def _substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """``expr`` with resolved indices substituted, those in their values too."""
    while True:
        made = replace_indices(expr, values)
        if made == expr:
            return made
        expr = made


def _resolve(
    scope: _Scope, axis: Axis | None, index: Expr, place: Idx, strided: bool = False
) -> None:
    """``place == index``: solved for an index of the scope, or kept as a condition.
    Only where asked for is a ``strided`` one solved: one element of it has few places,
    which a sum by position finds; what is solved looks at all."""
    terms = linear(index)
    for name, own in scope.bounds.items():
        number = terms.get(Idx(name), Fraction(0))
        others = {t: n for t, n in terms.items() if t != Idx(name)}
        if abs(number) != 1 or any(name in term.free for term in others):
            continue
        steps = (_is_step(term, n, scope.bounds) for term, n in others.items())
        if any(steps) and not strided:
            continue
        solution = add_multiple({place: number}, others, -number)
        scope.values[name] = linear_expr(solution)
        del scope.bounds[name]
        if others or own != axis or number != 1:
            _guard_range(scope, scope.values[name], own)
        return
    scope.guards.append(Apply(AT, (index, place)))


def _is_step(term: Expr, number: Fraction, bounds: Mapping[str, Axis]) -> bool:
    """True if a term of a position moves by other steps than of 1 as an index does."""
    is_plain = isinstance(term, Idx) and abs(number) == 1
    return not is_plain and not bounds.keys().isdisjoint(term.free)


def solve_places(expr: Expr) -> Expr:
    """Sums under a condition on a position, over the indices that it does not solve."""

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Reduce) or node.op != "sum" or node.where is not None:
            return node
        whole = guarded_product(node.body)
        for guard in whole.guards:
            match guard:
                case Apply(op="eq", args=(index, Idx() as place)):
                    scope = _Scope({b.index: b.axis for b in node.bounds})
                    if place.name not in scope.bounds:
                        _resolve(scope, None, index, place, strided=True)
                    if scope.values:
                        rest = tuple(g for g in whole.guards if g != guard)
                        body = join_factors(replace(whole, guards=rest))
                        left = tuple(b for b in node.bounds if b.index in scope.bounds)
                        made = guard_by(scope.guards, body)
                        return visit(sum_over(left, _substitute(made, scope.values)))
        return node

    return transform(expr, visit)


def _guard_range(scope: _Scope, value: Expr, axis: Axis) -> None:
    scope.guards.append(Apply("ge", (value, ZERO)))
    scope.guards.append(Apply("lt", (value, extent(axis))))


def factor_choice(expr: Expr) -> Expr:
    """``expr`` with what both branches of a choice have in common outside of it, unless
    it is one of the values at fixed positions (``... if i == 0 else ...``).
    """

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Select) or ZERO in (node.then, node.other):
            return node
        compared = node.condition.below
        fixed = any(isinstance(part, Const) for part in compared)
        sides = guarded_product(node.then), guarded_product(node.other)
        common = sides[0].common(sides[1])
        if not common.parts or any(side.guards for side in sides):
            return node
        if fixed and all(map(is_index, compared)):
            return node
        branches = (join_factors(side.without(common)) for side in sides)
        choice = fold(Select(node.condition, *branches))
        return join_factors(common.times(Product(above=(choice,))))

    return transform(expr, visit)


def with_known_extrema(expr: Expr) -> Expr:
    """``expr`` with the larger of two values in the place of their maximum, and the
    smaller in that of their minimum, in branches whose condition says which it is.
    """

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Select):
            return node
        known: dict[Expr, Expr] = {}
        for larger, smaller in _ordered_pairs(node.condition):
            for pair in ((larger, smaller), (smaller, larger)):
                known |= {Apply("max", pair): larger, Apply("min", pair): smaller}
        then = transform(node.then, lambda part: known.get(part, part))
        if then == node.then:
            return node
        return fold(Select(node.condition, _with_merged_factors(then), node.other))

    return transform(expr, visit)


def _ordered_pairs(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The larger and the smaller side of each comparison that must hold."""
    for conjunct in conjuncts(condition):
        match conjunct:
            case Apply(op="gt" | "ge" | "eq", args=(a, b)):
                yield a, b
            case Apply(op="lt" | "le", args=(a, b)):
                yield b, a


def _with_merged_factors(expr: Expr) -> Expr:
    """``expr`` with the factors of its terms merged."""
    match expr:
        case Apply(op="add" | "sub", args=args):
            return fold(Apply(expr.op, tuple(map(_with_merged_factors, args))))
        case Apply(op="mul" | "div" | "neg"):
            return join_factors(guarded_product(expr))
        case _:
            return expr
