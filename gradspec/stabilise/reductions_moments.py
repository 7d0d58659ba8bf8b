"""Second moments: variances without cancellation, norms without overflow.

``mean(x**2) - mean(x)**2`` loses all digits where the mean is large relative to the
spread (Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The
American Statistician 37, 1983); ``mean((x - mean(x))**2)`` is the same function. The
square root of a sum of squares overflows at the root of the largest number, and is 0
below that of the smallest; scaled by its largest element first (Blue, "A portable
Fortran program to find the Euclidean norm of a vector", ACM TOMS 4, 1978) it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
    Reduce,
    Ref,
    Select,
    Size,
    apply,
)
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, names, nodes, with_children
from gradspec.stabilise.product import (
    Product,
    base_of_square,
    extent,
    is_positive,
    multiplied,
    product,
)
from gradspec.stabilise.scopes import Scope, is_same, place

_PAIR = 2


# --- variances and covariances ---------------------------------------------------------


def centred(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """The centred form of ``mean(u*v) - mean(u)*mean(v)``, however its sizes are
    written.
    """
    match expr:
        case Apply(op="sub", args=(a, b)):
            yield from _centred(product(a), product(b), scope)


def _centred(raw: Product, square: Product, scope: Scope) -> Iterator[Expr]:
    """``c * Σuv - c/n * Σu Σv`` as ``c * Σ(u - mean u)(v - mean v)``."""
    for whole, outside in _sums(raw.above):
        body = product(whole.body)
        factor = Product(raw.number * body.number, outside, raw.below)
        many = extent(whole.bounds)
        for sums, rest in _two_sums(square.above, whole):
            ratio = factor.times(replace(square, above=rest).inverse())
            is_nth = ratio.times(many.inverse()).reduced() == Product()
            if is_nth and _are_sums_of(sums, body, whole):
                yield _covariance(factor, body.above, whole, scope)
                return


def _sums(factors: tuple[Expr, ...]) -> Iterator[tuple[Reduce, tuple[Expr, ...]]]:
    for place_, factor in enumerate(factors):
        match factor:
            case Reduce(op="sum", where=None):
                yield factor, factors[:place_] + factors[place_ + 1 :]


def _two_sums(
    factors: tuple[Expr, ...], total: Reduce
) -> Iterator[tuple[tuple[Reduce, Reduce], tuple[Expr, ...]]]:
    axes = [b.axis for b in total.bounds]
    for left, others in _sums(factors):
        for right, rest in _sums(others):
            if all([b.axis for b in s.bounds] == axes for s in (left, right)):
                yield (left, right), rest


def _are_sums_of(sums: tuple[Reduce, Reduce], body: Product, whole: Reduce) -> bool:
    """True if the two are the sums of the two factors of the body."""
    if len(body.above) != _PAIR or body.below:
        return False
    u, v = (_of(whole, factor) for factor in body.above)
    pairs = (sums, sums[::-1])
    return any(is_same(one, u) and is_same(other, v) for one, other in pairs)


def _covariance(
    factor: Product, parts: tuple[Expr, ...], total: Reduce, scope: Scope
) -> Expr:
    bounds = total.bounds
    under = scope.union(b.index for b in bounds)
    u, v = (apply("sub", x, place(Reduce("mean", bounds, x), {}, under)) for x in parts)
    body = apply("pow", u, Const(Fraction(2))) if u == v else apply("mul", u, v)
    whole, op = factor.times(extent(bounds)).reduced(), "sum"
    sides = (*whole.above, *whole.below)
    if whole.number == 1 and not any(isinstance(part, Size) for part in sides):
        op, factor = "mean", whole
    return factor.times(Product(above=(Reduce(op, bounds, body),))).expr()


# --- norms -----------------------------------------------------------------------------


def norm(expr: Expr) -> tuple[Reduce, Expr] | None:
    """The sum of squares whose root ``expr`` is, and the squared element; None if it is
    no such root.
    """
    match expr:
        case (
            Apply(op="sqrt", args=(Reduce(op="sum") as total,))
            | Apply(op="pow", args=(Reduce(op="sum") as total, Const(value=0.5)))
        ):
            part = base_of_square(total.body)
            return None if part is None else (total, part)
        case _:
            return None


def scaled(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """A norm scaled by its largest element; it is 0 at the vector 0. Also under a root
    with a bound: ``sqrt(max(sum(x[j]**2 for j), c))`` is ``max(norm, sqrt(c))``.
    """
    match expr:
        case Apply(op="rsqrt", args=(a,)):
            for root in scaled(apply("sqrt", a), scope):
                yield apply("div", ONE, root)
        case Apply(op="sqrt", args=(Apply(op="max", args=(a, b)),)):
            for one, other in ((a, b), (b, a)):
                for root in scaled(apply("sqrt", one), scope):
                    yield apply("max", root, fold(apply("sqrt", other)))
        case _:
            found = norm(expr)
            if found is not None:
                yield _scaled_norm(*found, scope)


def _scaled_norm(total: Reduce, part: Expr, scope: Scope) -> Expr:
    largest = Reduce("peak", total.bounds, apply("abs", part), total.where)
    usable = apply(
        "and", apply("gt", largest, ZERO), apply("lt", largest, Apply("inf"))
    )
    by = Select(usable, largest, ONE)
    under = scope.union(b.index for b in total.bounds)
    share = apply("div", part, place(by, {}, under))
    body = apply("pow", share, Const(Fraction(2)))
    inner = Reduce("sum", total.bounds, body, total.where)
    return apply("mul", by, apply("sqrt", inner))


def aligned(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """``sum(u * v) / norm(u) / norm(v)`` as the sum of products of unit vectors: the
    product of two large vectors overflows, that of their directions does not.
    """
    found = product(expr)
    for whole, others in _sums(found.above) if found.below else ():
        under = scope.union(b.index for b in whole.bounds)
        left, body = list(found.below), product(whole.body)
        parts = list(body.above)
        for n, part in enumerate(parts):
            own = next((x for x in left if _is_norm_of(x, part, whole)), None)
            if own is not None:
                left.remove(own)
                parts[n] = apply("div", part, place(own, {}, under))
        if len(parts) > 1 and len(left) < len(found.below):
            inner = replace(body, above=tuple(parts)).expr()
            value = Reduce("sum", whole.bounds, inner)
            above = (value, *others)
            yield replace(found, above=above, below=tuple(left)).expr()
            return


def _is_norm_of(expr: Expr, part: Expr, whole: Reduce) -> bool:
    """True if ``expr`` is the norm of the vector whose elements are ``part``."""
    found = norm(expr)
    if found is None:
        return False
    return is_same(_of(*found), _of(whole, part))


def _of(whole: Reduce, body: Expr) -> Expr:
    """The same reduction of another body."""
    return whole.over((body, *whole.below[1:]))


# --- 0 / 0 in gradients ----------------------------------------------------------------


def without_zero_divisors(
    expr: Expr, norms: frozenset[str], statics: Scope | None
) -> Iterator[Expr]:
    """A gradient with divisors that may be 0 replaced by 1 there: the norms (``norms``
    are names of norms), and, in a derived one (``statics`` are the names of the
    statics), any one of them, or all.

    Where the forward is finite and a derived gradient is 0 / 0, there is a nonsmooth
    point of a root or a power, as of a norm at the vector 0, or a smooth function
    passes through one. The gradient becomes 0: the chosen subgradient, or the limit. A
    divisor is applied to the last factor with an index that it lacks (an entry of the
    vector), so that the product of a tiny norm's inverse with the rest does not
    overflow.
    """
    every = tuple(dict.fromkeys(_divisors(expr)))
    yield _guarded(expr, frozenset(d for d in every if _is_norm(d, norms)))
    if statics is None:
        return
    found = [d for d in every if not (names(d) <= statics or is_positive(d))]
    for chosen in ([d] for d in found) if len(found) > 1 else ():
        yield _guarded(expr, frozenset(chosen))
    if found:
        yield _guarded(expr, frozenset(found))


def _divisors(expr: Expr) -> Iterator[Expr]:
    for node in nodes(expr):
        match node:
            case Apply(op="div", args=(_, below)):
                yield from product(below).above
                yield from product(below).below
            case Apply(op="rsqrt", args=(a,)):
                yield a
            case Apply(op="pow", args=(a, exponent)) if not _is_natural(exponent):
                yield a


def _is_natural(exponent: Expr) -> bool:
    return isinstance(exponent, Const) and exponent.value >= 0


def _guarded(expr: Expr, zeros: frozenset[Expr]) -> Expr:
    """The expression with 1 in place of divisors that are 0; a NaN stays."""

    def safe(divisor: Expr) -> Expr:
        return Select(apply("eq", divisor, ZERO), ONE, divisor)

    match expr:
        case Apply(op="div" | "mul"):
            found = product(expr)
            if zeros & set(found.below):
                above = [_guarded(factor, zeros) for factor in found.above]
                below = [f for f in found.below if f not in zeros]
                for factor in found.below:
                    if factor in zeros:
                        _divide(above, safe(factor))
                left = tuple(_guarded(factor, zeros) for factor in below)
                return replace(found, above=tuple(above), below=left).expr()
        case Apply(op="rsqrt", args=(a,)) if a in zeros:
            return apply("rsqrt", safe(a))
        case Apply(op="pow", args=(a, exponent)) if a in zeros:
            return apply("pow", safe(_guarded(a, zeros)), _guarded(exponent, zeros))
    parts = tuple(_guarded(child, zeros) for child in children(expr))
    return with_children(expr, parts)


def _divide(above: list[Expr], by: Expr) -> None:
    """Divide the last factor with an index that the norm lacks: a vector entry."""
    places = [n for n, factor in enumerate(above) if {*factor.free} - {*by.free}]
    if places:
        above[places[-1]] = apply("div", above[places[-1]], by)
    else:
        above[:] = [apply("div", multiplied(above), by)]


def _is_norm(expr: Expr, norms: frozenset[str]) -> bool:
    match expr:
        case Ref(name=name):
            return name in norms
        case Apply(op="mul", args=(Select(), root)):
            return norm(root) is not None
        case _:
            return norm(expr) is not None
