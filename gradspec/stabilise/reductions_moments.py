"""Second moments: variances without cancellation, norms without overflow.

``mean(x**2) - mean(x)**2`` loses all digits where the mean is large against the spread
(Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The American
Statistician 37, 1983); ``mean((x - mean(x))**2)`` is the same function. The square root
of a sum of squares overflows at the root of the largest number, and is 0 below that of
the smallest; divided by its largest part first (Blue, "A portable Fortran program to
find the Euclidean norm of a vector", ACM TOMS 4, 1978) it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Bound,
    Const,
    Expr,
    Reduce,
    Ref,
    Select,
    apply,
)
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, names, nodes, with_children
from gradspec.stabilise.product import Product, extent, multiplied, product
from gradspec.stabilise.scopes import Scope, free, is_same, place

Step: TypeAlias = Callable[[Expr, Scope], Iterator[Expr]]

_HALF = Const(Fraction(1, 2))
_PAIR = 2


# --- variances and covariances ---------------------------------------------------------


def centred(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """``mean(u*v) - mean(u)*mean(v)``, however its sizes are written."""
    match expr:
        case Apply(op="sub", args=(a, b)):
            raw, square = product(a), product(b)
            if square.below or raw.below:
                return
            yield from _centred(raw, square, scope)


def _centred(raw: Product, square: Product, scope: Scope) -> Iterator[Expr]:
    """``c * Σuv - c/n * Σu Σv`` as ``c * Σ(u - mean u)(v - mean v)``."""
    for total, outside in _sums(raw.above):
        match product(total.body):
            case Product(number=number, above=(u, v), below=()) as body:
                pass
            case _:
                continue
        pairs = [(s, rest) for s, rest in _two_sums(square.above, total)]
        for (left, right), rest in pairs:
            if sorted(map(_key, rest)) != sorted(map(_key, outside)):
                continue
            if not _are_sums_of(left, right, u, v, total):
                continue
            raw_factor = Product(raw.number * number, raw.sizes).times(
                Product(sizes=body.sizes)
            )
            if _is_nth(raw_factor, Product(square.number, square.sizes), total.bounds):
                yield _covariance(raw_factor, outside, (u, v), total, scope)
                return


def _key(expr: Expr) -> str:
    return repr(expr)


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


def _are_sums_of(left: Reduce, right: Reduce, u: Expr, v: Expr, total: Reduce) -> bool:
    """Whether the two are the sums of ``u`` and of ``v`` over the bounds of ``total``."""
    u_sum, v_sum = (Reduce("sum", total.bounds, x) for x in (u, v))
    return (is_same(left, u_sum) and is_same(right, v_sum)) or (
        is_same(left, v_sum) and is_same(right, u_sum)
    )


def _is_nth(raw: Product, square: Product, bounds: tuple[Bound, ...]) -> bool:
    ratio = raw.times(square.inverse()).times(extent(bounds).inverse())
    return ratio.number == 1 and not ratio.sizes


def _covariance(
    factor: Product,
    outside: tuple[Expr, ...],
    parts: tuple[Expr, Expr],
    total: Reduce,
    scope: Scope,
) -> Expr:
    bounds = total.bounds
    under = scope.union(b.index for b in bounds)
    u, v = (apply("sub", x, place(Reduce("mean", bounds, x), {}, under)) for x in parts)
    body = apply("pow", u, Const(Fraction(2))) if u == v else apply("mul", u, v)
    whole = factor.times(extent(bounds))
    op = "sum"
    if whole.number == 1 and not whole.sizes:
        op, factor = "mean", whole
    value = Reduce(op, bounds, body)
    return Product(factor.number, factor.sizes, (*outside, value)).expr()


# --- norms -----------------------------------------------------------------------------


def norm(expr: Expr) -> Reduce | None:
    """The sum of squares of which ``expr`` is the root; None if it is no such root."""
    match expr:
        case Apply(op="sqrt", args=(Reduce(op="sum") as total,)):
            return total if _root(total.body) is not None else None
        case Apply(op="pow", args=(Reduce(op="sum") as total, half)) if half == _HALF:
            return total if _root(total.body) is not None else None
        case _:
            return None


def _root(body: Expr) -> Expr | None:
    """``a`` if ``body`` is ``a * a``."""
    match body:
        case Apply(op="square", args=(a,)):
            return a
        case Apply(
            op="pow", args=(a, Const(value=Fraction(numerator=2, denominator=1)))
        ):
            return a
        case Apply(op="mul", args=(a, b)) if a == b:
            return a
        case _:
            return None


def scaled(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """A norm with its largest part taken out; it is 0 at the vector 0. Also under a root
    with a bound: ``sqrt(max(sum(x[j]**2 for j), c))`` is ``max(norm, sqrt(c))``."""
    match expr:
        case Apply(op="rsqrt", args=(a,)):
            for root in scaled(apply("sqrt", a), scope):
                yield apply("div", ONE, root)
        case Apply(op="sqrt", args=(Apply(op="max", args=(a, b)),)):
            for one, other in ((a, b), (b, a)):
                for root in scaled(apply("sqrt", one), scope):
                    yield apply("max", root, fold(apply("sqrt", other)))
        case _:
            total = norm(expr)
            part = None if total is None else _root(total.body)
            if total is not None and part is not None:
                yield _scaled_norm(total, part, scope)


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
    """``sum(u * v) / norm(u) / norm(v)`` as the sum of products of directions: the
    product of two large vectors overflows, of their directions it does not."""
    match expr:
        case Apply(op="div" | "mul"):
            found = product(expr)
        case _:
            return
    for total, others in _sums(found.above):
        body = product(total.body)
        if body.below or len(body.above) != _PAIR:
            continue
        factors, below = _directions(body.above, total, found.below, scope)
        if len(below) < len(found.below):
            inner = Product(body.number, body.sizes, factors, ()).expr()
            value = Reduce("sum", total.bounds, inner)
            above = (value, *others)
            yield Product(found.number, found.sizes, above, below).expr()
            return


def _directions(
    factors: tuple[Expr, ...], total: Reduce, below: tuple[Expr, ...], scope: Scope
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Each factor divided by its own norm, and the divisors that are left."""
    under = scope.union(b.index for b in total.bounds)
    left = list(below)
    made = []
    for factor in factors:
        whole = Reduce("sum", total.bounds, factor)
        own = next((n for n in left if _is_norm_of(n, whole)), None)
        if own is None:
            made.append(factor)
        else:
            left.remove(own)
            made.append(apply("div", factor, place(own, {}, under)))
    return tuple(made), tuple(left)


def _is_norm_of(expr: Expr, whole: Reduce) -> bool:
    """Whether ``expr`` is the norm of the vector whose sum ``whole`` is."""
    match expr:
        case Apply(op="mul", args=(Select(), root)):
            total = norm(root)
        case _:
            total = norm(expr)
    part = None if total is None else _root(total.body)
    if total is None or part is None:
        return False
    if isinstance(part, Apply) and part.op == "div" and total is not norm(expr):
        part = part.args[0]
    return is_same(Reduce("sum", total.bounds, part, total.where), whole)


# --- 0 / 0 in gradients ----------------------------------------------------------------


def without_zero_divisors(expr: Expr, statics: Scope) -> Iterator[Expr]:
    """A gradient with divisors that may be 0 replaced by 1 there: one of them, or all.

    Where the forward is finite and a derived gradient is 0 / 0, a root or a power has a
    tip, as a norm at the vector 0, or something smooth passes through one. The gradient
    becomes 0: the subgradient chosen, or the limit. A divisor goes to the last factor with
    an index that it has not (an entry of the vector), so that the product of a tiny norm's
    inverse with the rest does not overflow.
    """
    found = [d for d in dict.fromkeys(_divisors(expr)) if not _is_plain(d, statics)]
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


def _is_plain(divisor: Expr, statics: Scope) -> bool:
    """No data in it, or positive as it stands: it is not 0."""
    return names(divisor) <= statics or _is_above(divisor, strictly=True)


def _is_above(expr: Expr, strictly: bool) -> bool:
    """Whether an expression is plainly positive (or at least not negative)."""
    match expr:
        case Const(value=value):
            return value > 0 or (value == 0 and not strictly)
        case Apply(op="exp" | "sigmoid" | "softplus"):
            return True
        case Apply(op="square" | "abs") | Apply(op="pow", args=(_, Const(value=2))):
            return not strictly
        case Apply(op="sqrt", args=(a,)):
            return _is_above(a, strictly)
        case Apply(op="max", args=parts):
            return any(_is_above(part, strictly) for part in parts)
        case Apply(op="add", args=(a, b)):
            both = _is_above(a, strictly=False) and _is_above(b, strictly=False)
            return both and (
                not strictly or any(_is_above(x, strictly=True) for x in (a, b))
            )
        case Reduce(op="sum" | "mean", body=body):
            return not strictly and _is_above(body, strictly=False)
        case _:
            return False


def _guarded(expr: Expr, zeros: frozenset[Expr]) -> Expr:
    """With 1 in place of divisors that are 0; a NaN stays."""

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
                return Product(found.number, found.sizes, tuple(above), left).expr()
        case Apply(op="rsqrt", args=(a,)) if a in zeros:
            return apply("rsqrt", safe(a))
        case Apply(op="pow", args=(a, exponent)) if a in zeros:
            return apply("pow", safe(_guarded(a, zeros)), _guarded(exponent, zeros))
    parts = tuple(_guarded(child, zeros) for child in children(expr))
    return with_children(expr, parts)


def without_nought(norms: frozenset[str]) -> Step:
    """Division by a norm at the vector 0: by 1 instead, and before anything else, so
    that a gradient ``dy * (x[i] / norm)`` is 0 there and its product does not overflow.
    ``norms`` are the names of norms.
    """

    def step(expr: Expr, scope: Scope) -> Iterator[Expr]:
        match expr:
            case Apply(op="div" | "mul"):
                found = product(expr)
            case _:
                return
        if not any(_is_norm(f, norms) for f in found.below):
            return
        above, below = list(found.above), []
        for factor in found.below:
            if not _is_norm(factor, norms):
                below.append(factor)
                continue
            safe = Select(apply("eq", factor, ZERO), ONE, factor)  # a NaN stays
            _divide(above, safe)
        yield Product(found.number, found.sizes, tuple(above), tuple(below)).expr()

    return step


def _divide(above: list[Expr], by: Expr) -> None:
    """The last factor with an index that the norm has not is an entry of the vector."""
    places = [n for n, factor in enumerate(above) if free(factor) - free(by)]
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
