"""Other evaluations of expressions with reductions: the same functions over the reals.

Candidates proposed here are used only where they measure better (`choice.py`). A value
is rewritten as it stands, then with locals inlined, and named again where the values of
locals remain; a cotangent also has candidates derived from the forward as selected, and
quotients without a divisor of 0.

Sums of exponentials are in `reductions_exponential.py`, second moments here.
``mean(x**2) - mean(x)**2`` loses all digits where the mean is large relative to the
spread (Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The
American Statistician 37, 1983); ``mean((x - mean(x))**2)`` is the same function. The
square root of a sum of squares overflows at the root of the largest number, and is 0
below that of the smallest; scaled by its largest element first (Blue, "A portable
Fortran program to find the Euclidean norm of a vector", ACM TOMS 4, 1978) it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import takewhile
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
    Size,
    apply,
)
from gradspec.ir.rule import Let, Rule
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import axis_names
from gradspec.ir.walk import children, names, nodes, transform, with_children
from gradspec.stabilise.matching import Search
from gradspec.stabilise.names import (
    Quantity,
    Scope,
    copied,
    inlined,
    is_same,
    named,
    place,
    weight,
)
from gradspec.stabilise.product import (
    Product,
    base_of_square,
    extent,
    is_positive,
    multiplied,
    product,
)
from gradspec.stabilise.reductions_exponential import balanced, logarithm

_PAIR = 2
_LARGEST = 600  # nodes (locals put in) of an expression beyond which it is left alone


class IndexedProposals:
    """Candidates for the values of an indexed rule. ``near`` and ``far`` take a
    candidate, the quantity it evaluates, and the rule as selected so far.
    """

    def __init__(self, search: Search, written: Rule) -> None:
        self._search, self._written = search, written
        taken = [variable.name for variable in written.inputs]
        taken += [output.name for output in written.outputs]
        taken += [let.name for let in (*written.forward, *written.backward_locals)]
        self._scope = Scope((*taken, *axis_names(written)))
        self._statics = frozenset(static.name for static in written.static_inputs)

    def near(self, form: Expr, of: Quantity, chosen: Rule) -> Iterator[Expr]:
        """Rewrites of a form as it stands; for a derived one of all derivations."""
        if weight(form, {}) <= _LARGEST:
            yield from self._forms(form, of)
        if of.is_derived:
            yield from self._with_locals(form, of, chosen)
        yield from self._search.forms(form)[1:]

    def far(self, form: Expr, of: Quantity, chosen: Rule) -> Iterator[Expr]:
        """Rewrites with locals inlined."""
        if not of.is_derived:
            yield from self._with_locals(form, of, chosen)
        yield from self._search.forms(self._whole(form, of))[1:]

    def _with_locals(self, form: Expr, of: Quantity, chosen: Rule) -> Iterator[Expr]:
        before, whole = self._before(of), self._whole(form, of)
        selected = chosen.forward[: len(before)]
        for found in self._forms(whole, of) if whole != form else ():
            yield named(named(found, before), selected)
            if not of.is_gradient:
                yield named(found, selected)
        for other in of.others:
            yield other
            yield from self._forms(other, of)

    def _whole(self, form: Expr, of: Quantity) -> Expr:
        """A form with locals inlined, if that is not too large."""
        before, exacts = self._before(of), self._written.exacts
        values = {let.name: let for let in before if let.name not in exacts}
        if weight(form, values) > _LARGEST:
            return form
        return inlined(form, values, self._scope.union(of.indices))

    def _before(self, of: Quantity) -> tuple[Let, ...]:
        """The lets, as written, that a value may use."""
        return tuple(takewhile(lambda x: x.name != of.name, self._written.forward))

    def _forms(self, form: Expr, of: Quantity) -> Iterator[Expr]:
        scope = self._scope.union(of.indices)
        if not of.is_gradient:
            yield from forms(form, scope)
            return
        norms = _norms(self._before(of))
        statics = self._statics if of.is_derived else None
        for found in (form, *forms(form, scope)):
            others = without_zero_divisors(found, norms, statics)
            yield from (one for one in (found, *others) if one != form)


def forms(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """Forms of ``expr`` that differ from it. ``scope`` contains the names that no new
    index may have.
    """
    for steps in _STEPS:
        new = transform(expr, partial(_rewritten, steps))
        if new != expr:
            yield place(new, {}, scope)


def _rewritten(steps: tuple[_Step, ...], node: Expr) -> Expr:
    """A node rewritten by the first step that applies to it."""
    found = (step(node) for step in steps)
    return next((new for new in found if new is not None), node)


def _turned(expr: Expr) -> Expr | None:
    """Differences reversed: ``-(a - b)`` becomes ``b - a``."""
    match expr:
        case Apply(op="neg", args=(Apply(op="sub", args=(a, b)),)):
            return Apply("sub", (b, a))
        case _:
            return None


# --- variances and covariances ---------------------------------------------------------


def centred(expr: Expr) -> Expr | None:
    """The centred form of ``mean(u*v) - mean(u)*mean(v)``, however its sizes are
    written: ``c * Σuv - c/n * Σu Σv`` is ``c * Σ(u - mean u)(v - mean v)``.
    """
    match expr:
        case Apply(op="sub", args=(a, b)):
            raw, square = product(a), product(b)
        case _:
            return None
    for whole, outside in _sums(raw.above):
        body = product(whole.body)
        factor = Product(raw.number * body.number, outside, raw.below)
        many = extent(whole.bounds)
        for sums, rest in _two_sums(square.above, whole):
            ratio = factor.times(replace(square, above=rest).inverse())
            is_nth = ratio.times(many.inverse()).reduced() == Product()
            if is_nth and _are_sums_of(sums, body, whole):
                return _covariance(factor, body.above, whole.bounds)
    return None


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
    u, v = (whole.over((factor,)) for factor in body.above)
    pairs = (sums, sums[::-1])
    return any(is_same(one, u) and is_same(other, v) for one, other in pairs)


def _covariance(
    factor: Product, parts: tuple[Expr, ...], bounds: tuple[Bound, ...]
) -> Expr:
    u, v = (apply("sub", x, copied(Reduce("mean", bounds, x))) for x in parts)
    is_square = parts[0] == parts[1]
    body = apply("pow", u, Const(Fraction(2))) if is_square else apply("mul", u, v)
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


def scaled(expr: Expr) -> Expr | None:
    """A norm scaled by its largest element; it is 0 at the vector 0. Also under a root
    with a bound: ``sqrt(max(sum(x[j]**2 for j), c))`` is ``max(norm, sqrt(c))``.
    """
    match expr:
        case Apply(op="rsqrt", args=(a,)):
            root = scaled(apply("sqrt", a))
            return None if root is None else apply("div", ONE, root)
        case Apply(op="sqrt", args=(Apply(op="max", args=(a, b)),)):
            for one, other in ((a, b), (b, a)):
                root = scaled(apply("sqrt", one))
                if root is not None:
                    return apply("max", root, fold(apply("sqrt", other)))
    found = norm(expr)
    if found is None:
        return None
    total, part = found
    largest = Reduce("peak", total.bounds, apply("abs", part), total.where)
    usable = apply(
        "and", apply("gt", largest, ZERO), apply("lt", largest, Apply("inf"))
    )
    by = Select(usable, largest, ONE)
    share = apply("pow", apply("div", part, copied(by)), Const(Fraction(2)))
    inner = Reduce("sum", total.bounds, share, total.where)
    return apply("mul", by, apply("sqrt", inner))


_Step: TypeAlias = Callable[[Expr], Expr | None]
"""The rewrite of one node; None where the step does not apply."""

_SUMS: tuple[_Step, ...] = (logarithm, balanced, centred, _turned)
_STEPS = _SUMS, (*_SUMS, scaled)


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


def _norms(lets: tuple[Let, ...]) -> frozenset[str]:
    """The lets whose value is the root of a sum of squares."""
    values = {let.name: let for let in lets}
    return frozenset(
        let.name
        for let in lets
        if norm(inlined(let.value, values, Scope(let.indices))) is not None
    )
