"""Sums of exponentials: what they weigh is taken out of the exponents.

An expression is *of degree one* in its exponentials if they all scale with it: ``exp(a)``,
``sum(w * exp(a[j]) for j)``, sums of such. Then, for any ``m``, ``E(exp(a)) = exp(m)
E(exp(a - m))`` over the reals; with ``m`` the largest exponent nothing overflows and the
largest term is 1. A quotient of two of them does not change at all, and the logarithm of
one is ``m`` plus a logarithm.

Where every exponent is -inf (a row that is masked altogether) ``m`` is -inf: a softmax
is NaN and a logsumexp is -inf there, which is what the frameworks' own give.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Reduce, Select, Size, apply
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, nodes, with_children
from gradspec.stabilise.product import Product, product
from gradspec.stabilise.scopes import Scope, free, is_same, place

_NO_WEIGHT = apply("neg", Apply("inf"))


@lru_cache(maxsize=4096)
def degree(expr: Expr) -> int | None:
    """In its exponentials; None if they do not all scale alike."""
    match expr:
        case Apply(op="exp"):
            return 1
        case Apply(op="mul", args=(a, b)):
            return _total(degree(a), degree(b), 1)
        case Apply(op="div", args=(a, b)):
            return _total(degree(a), degree(b), -1)
        case Apply(op="neg", args=(a,)):
            return degree(a)
        case Apply(op="square", args=(a,)):
            return _total(degree(a), degree(a), 1)
        case Apply(op="pow", args=(a, Const(value=n))) if n.denominator == 1:
            one = degree(a)
            return None if one is None else one * int(n)
        case Apply(op="add" | "sub", args=(a, b)):
            return _common(a, b)
        case Select(condition=condition, then=a, other=b) if not has_exp(condition):
            return _common(a, b)
        case Reduce(op="sum" | "mean", body=body, where=where) if (
            where is None or not has_exp(where)
        ):
            return degree(body)
        case _:
            return None if _is_bare(expr) else 0


def _total(left: int | None, right: int | None, sign: int) -> int | None:
    return None if left is None or right is None else left + sign * right


def _common(left: Expr, right: Expr) -> int | None:
    if ZERO in (left, right):
        return degree(right if left == ZERO else left)
    one, other = degree(left), degree(right)
    return one if one == other else None


def has_exp(expr: Expr) -> bool:
    return any(isinstance(n, Apply) and n.op == "exp" for n in nodes(expr))


def _is_bare(expr: Expr) -> bool:
    """Whether what is no product or sum hides exponentials that do not cancel."""
    return any(degree(child) != 0 for child in children(expr))


def peak(expr: Expr) -> Expr | None:
    """The largest exponent in an expression of degree one."""
    match expr:
        case Apply(op="exp", args=(a,)):
            return a
        case Apply(op="mul", args=(a, b)):
            return peak(a) if degree(b) == 0 else peak(b) if degree(a) == 0 else None
        case Apply(op="div", args=(a, b)):
            return peak(a) if degree(b) == 0 else None
        case Apply(op="neg", args=(a,)):
            return peak(a)
        case Apply(op="add" | "sub", args=(a, b)):
            return _larger(peak(a), peak(b))
        case Select(condition=condition, then=a, other=b):
            one, other = (_NO_WEIGHT if x == ZERO else peak(x) for x in (a, b))
            if one is None or other is None:
                return None
            return Select(condition, one, other)
        case Reduce(op="sum" | "mean", bounds=bounds, body=body, where=where):
            body, where = _masked(body, where)
            inner = peak(body)
            if inner is None or not free(inner) & {b.index for b in bounds}:
                return inner
            return Reduce("peak", bounds, inner, where)
        case _:
            return None


def _masked(body: Expr, where: Expr | None) -> tuple[Expr, Expr | None]:
    """A summand ``a if c else 0`` counts where ``c`` holds."""
    match body:
        case Select(condition=condition, then=a, other=other) if other == ZERO:
            both = condition if where is None else apply("and", where, condition)
            return a, both
        case _:
            return body, where


def _larger(left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None:
        return None
    return left if left == right else apply("max", left, right)


def shifted(expr: Expr, by: Expr, scope: Scope) -> Expr:
    """An expression that scales with its exponentials, with ``by`` taken off its exponents."""
    match expr:
        case Apply(op="exp", args=(a,)):
            return apply("exp", _less(a, place(by, {}, scope)))
        case Apply(op="mul" | "div" | "pow", args=(a, b)):
            parts = tuple(
                x if degree(x) == 0 else shifted(x, by, scope) for x in (a, b)
            )
            return with_children(expr, parts)
        case Select(condition=condition, then=a, other=b):
            parts = tuple(x if x == ZERO else shifted(x, by, scope) for x in (a, b))
            return with_children(expr, (condition, *parts))
        case Reduce(bounds=bounds, body=body, where=where):
            under = scope.union(b.index for b in bounds)
            new = shifted(body, by, under)
            return with_children(expr, (new,) if where is None else (new, where))
        case _:
            parts = tuple(shifted(child, by, scope) for child in children(expr))
            return with_children(expr, parts)


def _less(left: Expr, right: Expr) -> Expr:
    return ZERO if left == right else fold(apply("sub", left, right))


def spread(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """``exp(a) * (1 / s - 1 / exp(a))`` with the exponential inside: ``exp(a) / s - 1``;
    as it stands it is 0 times infinity where ``exp(a)`` is too small."""
    if not isinstance(expr, Apply) or expr.op not in ("mul", "div"):
        return
    if degree(expr) != 0:
        return
    found = product(expr)
    for number, factor in enumerate(found.above):
        match factor:
            case Apply(op="add" | "sub" as op, args=parts) if degree(factor):
                rest = found.above[:number] + found.above[number + 1 :]
                loud = Product(
                    above=tuple(f for f in rest if degree(f)),
                    below=tuple(f for f in found.below if degree(f)),
                )
                terms = (_term(loud.times(product(part)), scope) for part in parts)
                above = (*(f for f in rest if not degree(f)), fold(apply(op, *terms)))
                below = tuple(f for f in found.below if not degree(f))
                yield Product(found.number, found.sizes, above, below).expr()
                return


def _term(found: Product, scope: Scope) -> Expr:
    """A product without what is above and below, its peak taken off."""
    above, below = list(found.above), []
    for factor in found.below:
        same = next((f for f in above if is_same(f, factor)), None)
        if same is None:
            below.append(factor)
        else:
            above.remove(same)
    left = Product(found.number, found.sizes, tuple(above), tuple(below)).expr()
    return next(balanced(left, scope), left)


def balanced(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """A quotient of degree 0, over sums of exponentials, with the peak taken off."""
    found = product(expr)
    loud = [f for f in (*found.below, *found.above) if degree(f) not in (0, None)]
    if len(loud) < 2 or degree(expr) != 0:
        return
    inside = _inside(found, scope)
    if inside is not None:
        yield inside
        return
    for factor in loud:
        by = peak(factor) if _is_sum(factor) else None
        if by is not None:
            if not _is_low(factor):
                yield _over(found, by, scope)
            return


def _inside(found: Product, scope: Scope) -> Expr | None:
    """``exp(a) * sum(b[j] / (exp(a) + exp(c[j])) for j)`` with the exponential inside of
    the sum, where it is balanced."""
    for number, total in enumerate(found.above):
        match total:
            case Reduce(op="sum", bounds=bounds, body=body, where=where) if (
                degree(total) == -1
            ):
                pass
            case _:
                continue
        others = found.above[:number] + found.above[number + 1 :]
        factor = next((f for f in others if degree(f) == 1), None)
        if factor is None:
            continue
        under = scope.union(b.index for b in bounds)
        inner = product(body).times(product(place(factor, {}, under))).expr()
        value = Reduce("sum", bounds, next(balanced(inner, under), inner), where)
        rest = tuple(f for f in others if f is not factor)
        return Product(found.number, found.sizes, (*rest, value), found.below).expr()
    return None


def _is_low(expr: Expr) -> bool:
    """Whether a maximum has been taken off the exponents already."""
    found = [n.args[0] for n in nodes(expr) if isinstance(n, Apply) and n.op == "exp"]
    return all(
        isinstance(exponent, Apply)
        and exponent.op == "sub"
        and any(
            isinstance(n, Reduce) and n.op in ("max", "peak") for n in nodes(exponent)
        )
        for exponent in found
    )


def _is_sum(expr: Expr) -> bool:
    return degree(expr) == 1 and any(
        isinstance(n, Reduce) or (isinstance(n, Apply) and n.op == "add")
        for n in nodes(expr)
    )


def _over(found: Product, by: Expr, scope: Scope) -> Expr:
    above, below = (
        tuple(f if degree(f) == 0 else shifted(f, by, scope) for f in side)
        for side in (found.above, found.below)
    )
    return Product(found.number, found.sizes, above, below).expr()


def exponential(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """``exp(a) / sum(exp(b[j]) for j)`` as ``exp(a - logsumexp(b[j] for j))``."""
    if degree(expr) == 0 and isinstance(expr, Apply) and expr.op in ("mul", "div"):
        found = product(expr)
        if not any(_is_sum(f) for f in found.below):
            return
        whole = _split(found, scope)
        if whole is not None:
            rest, exponent = whole
            value = apply("exp", exponent)
            if rest.below == () and rest.expr() == ONE:
                yield value
            else:
                yield Product(
                    rest.number, rest.sizes, (*rest.above, value), rest.below
                ).expr()


def logarithm(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """``log`` of exponentials and their sums: what it takes apart is not computed."""
    match expr:
        case Apply(op="log", args=(a,)) if has_exp(a):
            whole = _split(product(a), scope)
            if whole is not None:
                rest, value = whole
                yield _plus_log(value, rest)
                return
            weighted = _shifted_log(a, scope)
            if weighted is not None:
                yield weighted


def _split(found: Product, scope: Scope) -> tuple[Product, Expr] | None:
    """A product as ``rest * exp(value)``; None if there is no exponential in it."""
    above = [(f, _log(f, scope)) for f in found.above]
    below = [(f, _log(f, scope)) for f in found.below]
    gains = [v for _, v in above if v is not None]
    losses = [v for _, v in below if v is not None]
    if not gains and not losses:
        return None
    rest = Product(
        found.number,
        found.sizes,
        tuple(f for f, v in above if v is None),
        tuple(f for f, v in below if v is None),
    )
    return rest, _difference(gains, losses)


def _difference(gains: list[Expr], losses: list[Expr]) -> Expr:
    """Sum of ``gains`` less ``losses``; what is in both is in neither."""
    gains, losses = _terms(gains, losses)
    for loss in list(losses):
        gain = next((g for g in gains if is_same(g, loss)), None)
        if gain is not None:
            gains.remove(gain)
            losses.remove(loss)
    value: Expr | None = None
    for gain in gains:
        value = gain if value is None else apply("add", value, gain)
    for loss in losses:
        value = apply("neg", loss) if value is None else apply("sub", value, loss)
    return ZERO if value is None else fold(value)


def _terms(gains: list[Expr], losses: list[Expr]) -> tuple[list[Expr], list[Expr]]:
    """Differences taken apart: ``(a - m) - (b - m)``."""
    plus: list[Expr] = []
    minus: list[Expr] = []
    todo = [(True, g) for g in gains] + [(False, x) for x in losses]
    while todo:
        is_gain, term = todo.pop(0)
        match term:
            case Apply(op="sub", args=(a, b)):
                todo[:0] = [(is_gain, a), (not is_gain, b)]
            case Apply(op="add", args=(a, b)):
                todo[:0] = [(is_gain, a), (is_gain, b)]
            case Apply(op="neg", args=(a,)):
                todo.insert(0, (not is_gain, a))
            case _:
                (plus if is_gain else minus).append(term)
    return plus, minus


def _plus_log(value: Expr, rest: Product) -> Expr:
    """``value + log(rest)``, a size or a number below the line as a difference."""
    if rest.number > 0 and not rest.above and not rest.below:
        minus = Product(1 / rest.number).times(
            Product(sizes={a: -p for a, p in rest.sizes.items()})
        )
        under = minus.expr()
        if under == ONE:
            return value
        if minus.number >= 1 and all(p > 0 for p in minus.sizes.values()):
            return apply("sub", value, apply("log", under))
    whole = rest.expr()
    return value if whole == ONE else apply("add", value, apply("log", whole))


def _log(expr: Expr, scope: Scope) -> Expr | None:
    """The logarithm of an exponential or of a sum of them; None for all else."""
    match expr:
        case Apply(op="exp", args=(a,)):
            return a
        case Reduce(op="sum", bounds=bounds, body=body, where=where):
            under = scope.union(b.index for b in bounds)
            inner = _whole(body, under)
            if inner is not None:
                return _logsumexp(Reduce("logsumexp", bounds, inner, where))
    return _shifted_log(expr, scope) if _is_positive(expr) else None


def _shifted_log(expr: Expr, scope: Scope) -> Expr | None:
    by = peak(expr) if _is_sum(expr) else None
    if by is None:
        return None
    return apply("add", by, apply("log", shifted(expr, by, scope)))


def _is_positive(expr: Expr) -> bool:
    """Plainly: sums and products of exponentials and positive numbers."""
    match expr:
        case Apply(op="exp") | Size():
            return True
        case Const(value=value):
            return value > 0
        case Apply(op="add" | "mul" | "div", args=(a, b)):
            return _is_positive(a) and _is_positive(b)
        case Reduce(op="sum" | "mean", body=body):
            return _is_positive(body)
        case _:
            return False


def _whole(body: Expr, scope: Scope) -> Expr | None:
    """The logarithm of a summand that is positive as it stands."""
    if not has_exp(body):
        return None
    split = _split(product(body), scope)
    if split is None:
        return None
    rest, value = split
    return value if rest.expr() == ONE else None


def _logsumexp(expr: Reduce) -> Expr:
    """What does not depend on the indices summed over stands outside."""
    indices = {b.index for b in expr.bounds}
    plus, minus = _terms([expr.body], [])
    inner = (
        [t for t in plus if free(t) & indices],
        [t for t in minus if free(t) & indices],
    )
    if not any(inner):
        return expr
    outer = (
        [t for t in plus if t not in inner[0]],
        [t for t in minus if t not in inner[1]],
    )
    if not any(outer):
        return expr
    core = Reduce(expr.op, expr.bounds, _difference(*inner), expr.where)
    return _difference([core, *outer[0]], outer[1])
