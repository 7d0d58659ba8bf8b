"""Gradients at the tip of a norm, where a derived one is 0 / 0: they become 0.

A sum of squares (of powers of absolute values) is 0 where all of its parts are. A
product that divides by a power of it gets the divisor 1 there, so that it is 0, if two
things are shown: a factor vanishes with the parts, and the product as a whole has no
negative degree in them. Then 0 is its limit, or the mean over all directions. All other
divisors stay: at an infinite slope the result is that of IEEE 754.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from gradspec.derive.normal_form import is_zero
from gradspec.derive.scopes import replace_indices, unify
from gradspec.derive.simplify import straighten
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
    Reduce,
    Select,
    apply,
    const,
)
from gradspec.ir.products import Product, base_of_square, product, product_of
from gradspec.ir.rule import Definition
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import children, names, nodes, with_children
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.names import (
    Scope,
    divisors,
    inline_lets,
    is_positive,
    signed,
)
from gradspec.stabilise.overflow import NORM
from gradspec.symbolic.points.domain import Signs

_HALF = const(Fraction(1, 2))
_NO_FACTORS = Product()


def norm(expr: Expr) -> tuple[Reduce, Expr] | None:
    """The sum of squares whose root ``expr`` is, or the norm itself, and the element
    that is squared; None if it is no such root.
    """
    match expr:
        case Reduce(op="norm", body=body):
            return expr, body
        case (
            Apply(op="sqrt", args=(Reduce(op="sum") as total,))
            | Apply(op="pow", args=(Reduce(op="sum") as total, Const(value=0.5)))
        ):
            part = base_of_square(total.body)
            return None if part is None else (total, part)
        case _:
            return None


def with_tips(
    expr: Expr,
    values: Mapping[str, Definition],
    signs: Signs,
    is_derived: bool = True,
) -> Expr:
    """A gradient that is 0 at the tips of norms; ``values`` are the locals that it
    uses, and ``signs`` those that are assumed. In a declared gradient only roots of sums
    of squares over an index are seen."""
    tips = _Tips(values, is_derived, signs)
    if all(tips.cone(divisor) is None for divisor in {*divisors(expr)}):
        return expr
    made = tips.run(expr)
    selects = [node for node in nodes(made) if isinstance(node, Select)]
    mended = {node.other for node in selects if node == _safe(node.other)}
    return made if mended.isdisjoint(divisors(made)) else expr  # NaN would be left


@dataclass(frozen=True, slots=True)
class _Cone:
    """A value that is 0 where all ``parts`` are, for all of their ``bound`` indices,
    and homogeneous in them with a ``degree``.
    """

    parts: tuple[Expr, ...]
    bound: Scope
    degree: Expr

    def power(self, exponent: Expr) -> _Cone:
        return replace(self, degree=fold(apply("mul", self.degree, exponent)))

    def has(self, expr: Expr) -> bool:
        """True if an expression is one of the parts, or its negative."""
        forms = [expr]
        match expr:
            case Apply(op="sub", args=(a, b)):
                forms.append(apply("sub", b, a))
        pieces = [(p,) for p in self.parts] + [product(p).above for p in self.parts]
        return any(_places(p, [form], self.bound) for p in pieces for form in forms)


def _size(expr: Expr) -> _Cone:
    """The size of a value: that of its parts, if it is a norm itself."""
    return _cone(expr) or _Cone((expr,), Scope(), ONE)


def _cone(expr: Expr) -> _Cone | None:
    base = base_of_square(expr)
    if base is not None:
        return _size(base).power(const(2))
    match expr:
        case Apply(op="abs", args=(a,)):
            return _size(a)
        case Apply(op=op, args=parts) if op == NORM:
            return _join(*map(_size, parts))
        case Apply(op="sqrt" | "rsqrt" as op, args=(a,)):
            found = _cone(a)
            half = Fraction(1 if op == "sqrt" else -1, 2)
            return found and found.power(const(half))
        case Apply(op="pow", args=(a, exponent)):
            found = _cone(a)
            return found and found.power(exponent)
        case Apply(op="mul", args=(Apply(op="mul", args=(a, b)), c)) if b == c:
            return _cone(apply("mul", a, apply("square", b)))
        case Apply(op="mul", args=(a, b)) if is_positive(a, True):
            return _weighted_cone(a, _cone(b))
        case Apply(op="mul", args=(a, b)) if is_positive(b, True):
            return _weighted_cone(b, _cone(a))
        case Apply(op="div", args=(a, _)):
            return _cone(a)  # where the divisor is 0 too, the quotient is not 0
        case Apply(op="add", args=(a, b)):
            return _join(_cone(a), _cone(b))
        case Reduce(
            op="sum" | "mean" | "peak" | "max" | "norm" as op, bounds=bounds, body=body
        ):
            found = _size(body) if op == "norm" else _cone(body)
            indices = Scope(b.index for b in bounds)
            return found and replace(found, bound=found.bound | indices)
        case _:
            return None


def _weighted_cone(weight: Expr, cone: _Cone | None) -> _Cone | None:
    """The cone of its parts times a weight of theirs, which may be 0 too: ``w * x`` for
    ``w * x**2`` and for ``w**2 * x**2``."""
    if cone is None or not names(weight):
        return cone if is_positive(weight) else None
    root = base_of_square(weight)
    if not _is_at_least(cone.degree, 1 if root is None else 2):
        return None
    parts = tuple(apply("mul", root or weight, part) for part in cone.parts)
    return replace(cone, parts=parts)


def _join(one: _Cone | None, other: _Cone | None) -> _Cone | None:
    if one is None or other is None or one.degree != other.degree:
        return None
    return _Cone(one.parts + other.parts, one.bound | other.bound, one.degree)


_Order: TypeAlias = "tuple[Expr, bool]"
"""A degree in the parts of a cone that a value has at least, if it is finite, and True
if the value vanishes with them.
"""

_UNKNOWN: _Order = (ZERO, False)


def _order(expr: Expr, cone: _Cone) -> _Order:
    if cone.has(expr):
        return ONE, True
    other = _cone(expr)
    if (
        other is not None
        and len(other.parts) == len(cone.parts)
        and all(map(cone.has, other.parts))
    ):
        return other.degree, _is_at_least(other.degree, 0, strictly=True)
    match expr:
        case Apply(op="mul" | "div" | "neg" | "square"):
            return _order_of_product(product(expr), cone)
        case Apply(op="sqrt", args=(a,)):
            degree, vanishes = _order(a, cone)
            return fold(apply("mul", degree, _HALF)), vanishes
        case Apply(op="pow", args=(a, exponent)):
            degree, vanishes = _order(a, cone)
            is_root = vanishes and _is_at_least(exponent, 0, strictly=True)
            return fold(apply("mul", degree, exponent)), is_root
        case Select(condition=Apply(op="eq", args=(a, Const(value=0))), other=b) if (
            a == b
        ):
            return _order(a, cone)[0], False  # a divisor that is 1 at a tip
        case Apply(op="add" | "sub", args=(a, b)) | Select(then=a, other=b):
            orders = [_order(part, cone) for part in (a, b) if part != ZERO]
            gaps = {a: [fold(apply("sub", b, a)) for b, _ in orders] for a, _ in orders}
            least = (a for a in gaps if all(_is_at_least(gap, 0) for gap in gaps[a]))
            return next(least, ZERO), all(vanishes for _, vanishes in orders)
        case Reduce(op="sum" | "mean", body=body):
            return _order(body, cone)
        case Apply(op=op, args=(a,)) if primitive(op).symmetry == "odd":
            return ZERO, _order(a, cone)[1]
        case _:
            return _UNKNOWN


def _order_of_product(found: Product, cone: _Cone) -> _Order:
    """A part that is a product itself is one factor."""
    factors = list(found.above)
    above: list[_Order] = []
    for part in cone.parts:
        pieces = product(part).above
        while len(pieces) > 1 and (places := _places(pieces, factors, cone.bound)):
            factors = [f for n, f in enumerate(factors) if n not in places]
            above.append((ONE, True))
    above += [_order(factor, cone) for factor in factors]
    below = [_order(factor, cone)[0] for factor in found.below]
    total: Expr = ZERO
    for degree, _ in above:
        total = fold(apply("add", total, degree))
    for degree in below:
        total = fold(apply("sub", total, degree))
    return total, any(vanishes for _, vanishes in above)


def _places(pieces: tuple[Expr, ...], factors: list[Expr], bound: Scope) -> list[int]:
    """The places of an instance of the pieces among the factors; none if there is no
    such instance. A positive piece may be missing.
    """
    values: dict[str, Expr] = {}
    places: list[int] = []
    for piece in sorted(pieces, key=is_positive, reverse=True):
        for place, factor in enumerate(factors):
            found = unify(straighten(replace_indices(piece, values), {}), factor, bound)
            if place not in places and found is not None:
                places.append(place)
                values |= found
                break
        else:
            if not is_positive(piece):
                return []
    return places


def _is_at_least(degree: Expr, least: int, strictly: bool = False) -> bool:
    """True if that is shown for all values of the statics."""
    match degree:
        case Const(value=value):
            return value > least or (value == least and not strictly)
        case _:
            return not strictly and is_zero(apply("sub", degree, const(least)))


@dataclass(frozen=True, slots=True)
class _Tips:
    values: Mapping[str, Definition]
    is_derived: bool
    signs: Signs

    def run(self, expr: Expr, outer: Product = _NO_FACTORS) -> Expr:
        """The expression with guards; the ``outer`` factors multiply it."""
        if isinstance(expr, Apply) and expr.op in ("mul", "div"):
            found = product(expr)
            sides = (tuple(map(self._whole, s)) for s in (found.above, found.below))
            whole = Product(found.number, *sides)
            if not expr.free:
                return self._in_place(expr, outer.times(whole))
            made = self._product(found, whole, outer)
            return expr if made == found else made.expr()
        linear = ("sum", "mean", "add", "sub", "neg", None)  # None: a conditional
        inner = outer if getattr(expr, "op", None) in linear else _NO_FACTORS
        return with_children(expr, tuple(self.run(c, inner) for c in children(expr)))

    def _in_place(self, factor: Expr, whole: Product, is_below: bool = False) -> Expr:
        """A product of numbers, whose order was chosen so that it stays in range."""
        match factor:
            case Apply(op="mul" | "div" | "neg" | "square" as op, args=(a, *others)):
                side = is_below != (op == "div")
                made = (self._in_place(part, whole, side) for part in others)
                first = self._in_place(a, whole, is_below)
                return with_children(factor, (first, *made))
        if is_below:
            return _safe(factor) if self._is_tip(factor, whole) else self.run(factor)
        above, own, rest = list(whole.above), self._whole(factor), _NO_FACTORS
        if own in above:
            above.remove(own)
            rest = replace(whole, above=tuple(above))
        return self._power(self.run(factor, rest), whole)

    def _product(self, found: Product, whole: Product, outer: Product) -> Product:
        """The product with 1 in place of divisors that are 0 at a tip; a NaN stays. A
        divisor is applied to the last factor with an index that it lacks (an entry of
        the vector), so that the product of a tiny norm's inverse with the rest does not
        overflow.
        """
        own, below = whole.above, whole.below
        whole = outer.times(whole)
        zeros = [factor for factor in found.below if self._is_tip(factor, whole)]
        above = []
        for n, factor in enumerate(found.above):
            rest = outer.times(Product(above=own[:n] + own[n + 1 :], below=below))
            above.append(self._power(self.run(factor, rest), whole))
        for zero in zeros:
            _divide(above, _safe(zero))
        below = tuple(self.run(f) for f in found.below if f not in zeros)
        return replace(found, above=tuple(above), below=below)

    def _power(self, factor: Expr, whole: Product) -> Expr:
        match factor:
            case Apply(op="pow", args=(_, Const(value=value))) if value >= 0:
                return factor
            case Apply(op="rsqrt" | "pow" as op, args=(a, *rest)) if self._is_tip(
                a, whole
            ):
                return Apply(op, (_safe(a), *rest))
            case _:
                return factor

    def _is_tip(self, divisor: Expr, whole: Product) -> bool:
        cone = self.cone(divisor)
        if cone is None:
            return False
        degree, vanishes = _order_of_product(whole, cone)
        return vanishes and _is_at_least(degree, 0)

    def cone(self, divisor: Expr) -> _Cone | None:
        """The cone at whose tip a divisor is 0; None if there is none."""
        value = self._whole(divisor)
        cone = _cone(value) if self.is_derived or norm(value) else None
        return None if cone is None or any(map(is_positive, cone.parts)) else cone

    def _whole(self, expr: Expr) -> Expr:
        return signed(tidy(inline_lets(expr, self.values, Scope())), self.signs)


def _safe(divisor: Expr) -> Expr:
    return Select(apply("eq", divisor, ZERO), ONE, divisor)


def _divide(above: list[Expr], by: Expr) -> None:
    """Divide the last factor with an index that the norm lacks: a vector entry."""
    places = [n for n, factor in enumerate(above) if {*factor.free} - {*by.free}]
    if places:
        above[places[-1]] = apply("div", above[places[-1]], by)
    else:
        above[:] = [apply("div", product_of(above), by)]
