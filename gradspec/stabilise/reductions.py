"""Other evaluations of expressions with reductions: the same functions over the reals.

Candidates proposed here are used only where they measure better (`choice.py`). A value
is rewritten as it stands, then with locals inlined, and named again where the values of
locals remain; a cotangent also has candidates derived from the forward as selected, and
quotients that are 0 at the tips of norms (`tips.py`).

Sums of exponentials are scaled by the largest of them. Among second moments,
``mean(x**2) - mean(x)**2`` loses all digits where the mean is large relative to the
spread (Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The
American Statistician 37, 1983); ``mean((x - mean(x))**2)`` is the same function, and
so are means with weights. The square root of a sum of squares overflows at the root of
the largest number, and is 0 below that of the smallest; scaled by its largest element
first (Blue, "A portable Fortran program to find the Euclidean norm of a vector", ACM
TOMS 4, 1978) it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import takewhile
from typing import TypeAlias

from gradspec.derive.scopes import unify
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Bound,
    Const,
    Expr,
    Reduce,
    Select,
    Size,
    apply,
)
from gradspec.ir.products import Product, element_count, product, terms, total
from gradspec.ir.rule import Definition, Rule
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import axis_names
from gradspec.ir.walk import children, nodes, size, transform, with_children
from gradspec.stabilise.names import (
    Quantity,
    Scope,
    copy_fresh,
    degree,
    inline_lets,
    is_positive,
    is_same,
    place,
    use_names,
    weight,
)
from gradspec.stabilise.rewriting import Search
from gradspec.stabilise.tips import norm, with_tips
from gradspec.symbolic.gather import factored_fraction
from gradspec.symbolic.points.domain import signs

# --- sums of exponentials -------------------------------------------------------------
# An expression is *of degree one* in its exponentials if they all scale with it:
# ``exp(a)``, ``sum(w * exp(a[j]) for j)``, sums of such. Then, for any ``m``,
# ``E(exp(a)) = exp(m) E(exp(a - m))`` over the reals; with ``m`` the largest exponent
# nothing overflows and the largest term is 1. A quotient of two of them does not change
# at all, and the logarithm of one is ``m`` plus a logarithm.
#
# Where every exponent is -inf (a fully masked row) ``m`` is -inf: a softmax is NaN and a
# logsumexp is -inf there, as in the frameworks' own functions.

_NO_WEIGHT = apply("neg", Apply("inf"))


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
            body, where = _split_mask(body, where)
            inner = peak(body)
            if inner is None or not {b.index for b in bounds} & {*inner.free}:
                return inner
            return Reduce("peak", bounds, inner, where)
        case _:
            return None


def _split_mask(body: Expr, where: Expr | None) -> tuple[Expr, Expr | None]:
    """The body and condition of a sum; a summand ``a if c else 0`` counts where ``c``
    holds.
    """
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


def shift_exponents(expr: Expr, by: Expr) -> Expr:
    """An expression that scales with its exponentials, with ``by`` subtracted from its
    exponents.
    """
    match expr:
        case Apply(op="exp", args=(a,)):
            less = ZERO if a == by else fold(apply("sub", a, copy_fresh(by)))
            return apply("exp", less)
    parts = (x if degree(x) == 0 else shift_exponents(x, by) for x in children(expr))
    return with_children(expr, tuple(parts))


def balance(expr: Expr) -> Expr | None:
    """A quotient of degree 0, over sums of exponentials, with the peak subtracted."""
    found = product(expr)
    loud = [f for f in (*found.below, *found.above) if degree(f) not in (0, None)]
    if len(loud) < 2 or degree(expr) != 0:
        return None
    peaks = (peak(factor) for factor in loud if _is_sum(factor))
    by = next((by for by in peaks if by is not None), None)
    return _inside(found) or (None if by is None else _over(found, by))


def _inside(found: Product) -> Expr | None:
    """``exp(a) * sum(b[j] / (exp(a) + exp(c[j])) for j)`` with the exponential moved
    into the sum, where it is balanced.
    """
    for whole in found.above:
        others = tuple(f for f in found.above if f is not whole)
        factor = next((f for f in others if degree(f) == 1), None)
        match whole:
            case Reduce(op="sum", bounds=bounds, body=body, where=where) if (
                factor is not None and degree(whole) == -1
            ):
                inner = product(body).times(product(copy_fresh(factor))).expr()
                new = Reduce("sum", bounds, balance(inner) or inner, where)
                rest = tuple(f for f in others if f is not factor)
                return replace(found, above=(*rest, new)).expr()
    return None


def _is_sum(expr: Expr) -> bool:
    return degree(expr) == 1 and any(
        isinstance(n, Reduce) or (isinstance(n, Apply) and n.op == "add")
        for n in nodes(expr)
    )


def _over(found: Product, by: Expr) -> Expr:
    above, below = (
        tuple(f if degree(f) == 0 else shift_exponents(f, by) for f in side)
        for side in (found.above, found.below)
    )
    return replace(found, above=above, below=below).expr()


def logarithm(expr: Expr) -> Expr | None:
    """``log`` of exponentials and their sums, without computing the exponentials
    themselves.
    """
    match expr:
        case Apply(op="log", args=(a,)):
            whole = _split(product(a))
            return _shifted_log(a) if whole is None else _plus_log(*whole)
        case _:
            return None


def _split(found: Product) -> tuple[Product, Expr] | None:
    """A product as ``rest * exp(value)``; None if there is no exponential in it."""
    logs = {f: _log(f) for f in (*found.above, *found.below)}
    sides = ((False, found.above), (True, found.below))
    parts = [
        term
        for is_below, side in sides
        for factor in side
        if (value := logs[factor]) is not None
        for term in terms(value, is_below)
    ]
    if not parts:
        return None
    above, below = (tuple(f for f in side if logs[f] is None) for _, side in sides)
    return replace(found, above=above, below=below), _difference(parts)


def _difference(parts: list[tuple[bool, Expr]]) -> Expr:
    """The sum of terms, differences flattened; terms that are added and subtracted
    cancel.
    """
    plus = [t for is_minus, t in parts if not is_minus]
    left = []
    for term in (t for is_minus, t in parts if is_minus):
        gain = next((g for g in plus if is_same(g, term)), None)
        if gain is None:
            left.append(term)
        else:
            plus.remove(gain)
    return total([*((False, t) for t in plus), *((True, t) for t in left)])


def _plus_log(rest: Product, value: Expr) -> Expr:
    """``value + log(rest)``, a size or a number in the denominator as a difference."""
    minus = rest.inverse()
    is_below = minus.number >= 1 and all(isinstance(f, Size) for f in minus.above)
    if is_below and not minus.below and minus.expr() != ONE:
        return apply("sub", value, apply("log", minus.expr()))
    whole = rest.expr()
    return value if whole == ONE else apply("add", value, apply("log", whole))


def _log(expr: Expr) -> Expr | None:
    """The logarithm of an exponential or of a sum of them; None otherwise."""
    match expr:
        case Apply(op="exp", args=(a,)):
            return a
        case Reduce(op="sum", bounds=bounds, body=body, where=where):
            split = _split(product(body))
            if split is not None and split[0].expr() == ONE:
                return _logsumexp(Reduce("logsumexp", bounds, split[1], where))
    return _shifted_log(expr) if is_positive(expr, True) else None


def _shifted_log(expr: Expr) -> Expr | None:
    by = peak(expr) if _is_sum(expr) else None
    if by is None:
        return None
    return apply("add", by, apply("log", shift_exponents(expr, by)))


def _logsumexp(expr: Reduce) -> Expr:
    """A logsumexp; factors independent of the summed indices are moved outside."""
    indices = {b.index for b in expr.bounds}
    parts = terms(expr.body)
    inner = [part for part in parts if not indices.isdisjoint(part[1].free)]
    outer = [part for part in parts if part not in inner]
    if not inner or not outer:
        return expr
    core = Reduce(expr.op, expr.bounds, _difference(inner), expr.where)
    return _difference([(False, core), *outer])


# --- candidates for a rule ------------------------------------------------------------


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
        units = (_unit(assume.condition) for assume in written.assumes)
        self._units = frozenset(unit for unit in units if unit is not None)
        self._outputs = frozenset(output.name for output in written.outputs)

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
        before, wholes = self._before(of), [self._whole(form, of)]
        if of.is_gradient:  # outputs are there already, as accurate as selected
            wholes.insert(0, self._whole(form, of, self._outputs))
        selected = chosen.forward[: len(before)]
        for whole in dict.fromkeys(wholes):
            for found in self._forms(whole, of) if whole != form else ():
                yield use_names(use_names(found, before), selected)
                if not of.is_gradient:
                    yield use_names(found, selected)
        for start in (form, wholes[-1]) if of.is_derived else ():
            short = transform(start, _shorten)
            if short != start:
                for found in self._search.forms(short):
                    yield use_names(use_names(found, before), selected)
                break
        for other in of.others:
            yield other
            yield from self._forms(other, of)

    def _whole(
        self, form: Expr, of: Quantity, kept: frozenset[str] = frozenset()
    ) -> Expr:
        """A form with locals inlined, but not ``kept`` ones, if that is not too large."""
        before, kept = self._before(of), kept.union(self._written.exacts)
        values = {let.name: let for let in before if let.name not in kept}
        if weight(form, values) > _LARGEST:
            return form
        return inline_lets(form, values, self._scope.union(of.indices))

    def _before(self, of: Quantity) -> tuple[Definition, ...]:
        """The lets, as written, that a value may use."""
        return tuple(takewhile(lambda x: x.name != of.name, self._written.forward))

    def _forms(self, form: Expr, of: Quantity) -> Iterator[Expr]:
        scope = self._scope.union(of.indices)
        if not of.is_gradient:
            yield from forms(form, scope, self._units)
            return
        values = {let.name: let for let in self._before(of)}
        for found in (form, *forms(form, scope, self._units)):
            whole = with_tips(found, values, signs(self._written), of.is_derived)
            yield from (one for one in (found, whole) if one != form)


def forms(
    expr: Expr, scope: Scope, units: frozenset[Expr] = frozenset()
) -> Iterator[Expr]:
    """Forms of ``expr`` that differ from it. ``scope`` contains the names that no new
    index may have, ``units`` the sums that are 1.
    """
    for steps in _steps(units):
        new = transform(expr, partial(_rewritten, steps))
        if new != expr:
            yield place(new, {}, scope)


def _unit(condition: Expr) -> Expr | None:
    """The sum that a condition says is 1."""
    match condition:
        case Apply(
            op="eq", args=(Reduce(op="sum", where=None) as whole, Const(value=1))
        ):
            return whole
        case _:
            return None


def _rewritten(steps: tuple[_Step, ...], node: Expr) -> Expr:
    """A node rewritten by the first step that applies to it."""
    found = (step(node) for step in steps)
    return next((new for new in found if new is not None), node)


def _shorten(expr: Expr) -> Expr:
    """A sum as a shorter product: ``exp(-r) - exp(-r) * (1 + r)`` is ``-r * exp(-r)``."""
    match expr:
        case Apply(op="add" | "sub") if not any(
            isinstance(n, Select) for n in nodes(expr)
        ):
            found = factored_fraction(expr)
            return expr if found is None or size(found) >= size(expr) else found
        case _:
            return expr


def _reverse_differences(expr: Expr) -> Expr | None:
    """Differences reversed: ``-(a - b)`` becomes ``b - a``."""
    match expr:
        case Apply(op="neg", args=(Apply(op="sub", args=(a, b)),)):
            return Apply("sub", (b, a))
        case _:
            return None


# --- variances and covariances ---------------------------------------------------------


def centred_form(units: frozenset[Expr], expr: Expr) -> Expr | None:
    """The centred form of ``mean(u*v) - mean(u)*mean(v)``, however its sizes are
    written: ``c * Σuv - c/n * Σu Σv`` is ``c * Σ(u - mean u)(v - mean v)``. So are those
    of means with weights, ``Σwu / Σw``; ``units`` are the sums that are 1.
    """
    match expr:
        case Apply(op="sub", args=(a, b)) if any(_sums(product(a).above)):
            sides = (place(copy_fresh(side), {}, Scope(side.free)) for side in (a, b))
            raw, square = map(product, sides)  # equal sums have equal indices here
        case _:
            return None
    for whole, outside in _sums(raw.above):
        body = product(whole.body)
        factor = Product(raw.number * body.number, outside, raw.below)
        body = replace(body, number=Fraction(1))
        for sums, rest in _two_sums(square.above, whole):
            v, u = (body.over(product(one.body)) for one in sums)
            if any(not x.above or x.below or x.number != 1 for x in (u, v)):
                continue
            weights = body.over(u.times(v))
            many = _total(weights, whole.bounds, units)
            if factor.over(replace(square, above=rest).times(many)) == Product():
                u, v = sorted((u, v), key=lambda x: body.above.index(x.above[0]))
                return _covariance(factor, (u, v), weights, many, whole.bounds)
    return None


def _sums(factors: tuple[Expr, ...]) -> Iterator[tuple[Reduce, tuple[Expr, ...]]]:
    for place_, factor in enumerate(factors):
        match factor:
            case Reduce(op="sum", where=None):
                yield factor, factors[:place_] + factors[place_ + 1 :]


def _two_sums(
    factors: tuple[Expr, ...], total: Reduce
) -> Iterator[tuple[tuple[Reduce, Reduce], tuple[Expr, ...]]]:
    for left, others in _sums(factors):
        for right, rest in _sums(others):
            if left.bounds == right.bounds == total.bounds:
                yield (left, right), rest


def _total(
    weights: Product, bounds: tuple[Bound, ...], units: frozenset[Expr]
) -> Product:
    """The sum of the weights: 1 for one of the ``units``, and for a quotient by it."""
    if weights == Product():
        return element_count(bounds)
    found = Reduce("sum", bounds, weights.expr())
    for divisor in weights.below:
        above = weights.times(Product(above=(divisor,))).lowest_terms()
        units |= {found} if is_same(divisor, found.over((above.expr(),))) else set()
    is_unit = any(is_same(found, unit) for unit in units)
    return Product(above=() if is_unit else (found,))


def _covariance(
    factor: Product,
    parts: tuple[Product, Product],
    weights: Product,
    many: Product,
    bounds: tuple[Bound, ...],
) -> Expr:
    is_plain = weights == Product()

    def put_weight(value: Expr) -> Expr:
        return value if is_plain else apply("mul", weights.expr(), value)

    def apart(part: Product) -> Expr:
        whole = Product(above=(Reduce("sum", bounds, put_weight(part.expr())),))
        mean = Reduce("mean", bounds, part.expr())
        return apply(
            "sub",
            part.expr(),
            copy_fresh(mean if is_plain else whole.over(many).expr()),
        )

    u, v = map(apart, parts)
    is_square = parts[0] == parts[1]
    body = apply("pow", u, Const(Fraction(2))) if is_square else apply("mul", u, v)
    whole, op = factor.over(many.inverse()), "sum"
    sides = (*whole.above, *whole.below)
    is_mean = whole.number == 1 and not any(isinstance(part, Size) for part in sides)
    if is_mean and is_plain:
        op, factor = "mean", whole
    return factor.times(Product(above=(Reduce(op, bounds, put_weight(body)),))).expr()


# --- norms -----------------------------------------------------------------------------


def scaled_form(expr: Expr) -> Expr | None:
    """A norm that no square takes out of range. Also under a root
    with a bound: ``sqrt(max(sum(x[j]**2 for j), c))`` is ``max(norm, sqrt(c))``.
    """
    match expr:
        case Apply(op="rsqrt", args=(a,)):
            root = scaled_form(apply("sqrt", a))
            return None if root is None else apply("div", ONE, root)
        case Apply(op="sqrt", args=(Apply(op="max", args=(a, b)),)):
            for one, other in ((a, b), (b, a)):
                root = scaled_form(apply("sqrt", one))
                if root is not None:
                    return apply("max", root, fold(apply("sqrt", other)))
    return _norm(expr)


def _norm(expr: Expr) -> Reduce | None:
    """The norm that a root is, of elements along all of its axes."""
    found = norm(expr)
    if found is None:
        return None
    total, part = found
    if not {bound.index for bound in total.bounds} <= {*part.free}:
        return None
    return Reduce("norm", total.bounds, part, total.where)


def with_norms(expr: Expr, values: Iterable[Expr]) -> Expr:
    """A gradient with the norms of the forward ``values`` in the places of their roots,
    so that both passes compute a norm in one way."""
    every = (node for value in values for node in nodes(value))
    known = [node for node in every if isinstance(node, Reduce) and node.op == "norm"]

    def visit(node: Expr) -> Expr:
        root = _norm(node)
        if root is None:
            return node
        is_known = any(unify(one, root, Scope(one.free)) is not None for one in known)
        return root if is_known else node

    return transform(expr, visit) if known else expr


_Step: TypeAlias = Callable[[Expr], Expr | None]
"""The rewrite of one node; None where the step does not apply."""


def _steps(units: frozenset[Expr]) -> Iterator[tuple[_Step, ...]]:
    sums = (logarithm, balance, partial(centred_form, units), _reverse_differences)
    yield from (sums, (*sums, scaled_form))
