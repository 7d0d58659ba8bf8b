"""The rewrite rules, pattern matching, and the search through the forms they reach.

A pattern is an expression whose references are variables that stand for anything (the
same for each occurrence). Sums and products match in either order, and ``square(p)``
matches ``p * p`` too. The search is greedy first, one rewrite after the other until
nothing matches (this nearly always reaches the best form), then breadth first.

The rules are identities over the reals, one a line, proposed and then measured: ``left
-> right`` over the variables ``a``, ``b``, …; after ``where`` stands the condition under
which the sides are equal. The right side may be defined at more points (``xlogy`` at 0).
A test proves each rule by balls at random points. Whether a rewrite is used is decided
by measurement alone, so a rule may lose accuracy in some regime. ``~>`` is a detour: no
improvement by itself, or not nearly always. The greedy part of a search skips it (it
would hide ``log(1 + exp(x))`` from the rules that match it).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from gradspec.derive.chain import negate, scale, times
from gradspec.ir.expr import Apply, Const, Expr, Key, Ref
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes, size, transform, with_children
from gradspec.primitives import lookup
from gradspec.primitives.lookup import formula

Binding: TypeAlias = Mapping[str, Expr]

_COMMUTATIVE = frozenset(r.name for r in lookup.rows() if r.is_commutative)


_ODD = frozenset(["xlogy", "xlog1py", "tanh", "erf", "sinh"])
"""Functions odd in the first argument: a minus is moved outside."""

_MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}


def match(pattern: Expr, expr: Expr) -> Binding | None:
    """The binding of the variables; None if the pattern does not match."""
    return next(_matches(pattern, expr, {}), None)


def _matches(pattern: Expr, expr: Expr, bound: Binding) -> Iterator[Binding]:
    match (pattern, expr):
        case (Ref(name=name), _):
            known = bound.get(name)
            if known is None:
                yield {**bound, name: expr}
            elif known == expr:
                yield bound
        case (Apply(op="neg", args=(Ref(name=name),)), _) if (
            name in bound and negate(bound[name]) == expr
        ):
            yield bound  # the minus has gone into a constant: -2 * x for -(2 * x)
        case (Const(value=a), Const(value=b)):
            if a == b:
                yield bound
        case (Apply(op="square", args=(inner,)), Apply(op="mul", args=(a, b))):
            if a == b:
                yield from _matches(inner, a, bound)
        case (Apply(op=op, args=args), Apply(op=other, args=parts)) if op == other:
            yield from _all(args, parts, bound)
            if op in _COMMUTATIVE:
                yield from _all(args, parts[::-1], bound)


def _all(
    patterns: tuple[Expr, ...], exprs: tuple[Expr, ...], bound: Binding
) -> Iterator[Binding]:
    if not patterns:
        yield bound
        return
    for found in _matches(patterns[0], exprs[0], bound):
        yield from _all(patterns[1:], exprs[1:], found)


def instantiate(pattern: Expr, bound: Binding) -> Expr:
    """The pattern with its variables substituted, signs and constants merged."""

    def visit(node: Expr) -> Expr:
        match node:
            case Ref(name=name):
                return bound[name]
            case Apply(op="mul", args=(a, b)):
                return times(a, b)
            case _:
                return _normal(node)

    return transform(pattern, visit)


def _normal(node: Expr) -> Expr:
    """A rebuilt node with signs moved outside, differences and comparisons reversed
    instead, and constants merged: ``0.5 * (2 * ndtr(x))`` is ``ndtr(x)``.
    """
    match node:
        case Apply(op="neg", args=(Apply(op="sub", args=(a, b)),)):
            return Apply("sub", (b, a))
        case Apply(op="neg", args=(a,)):
            return negate(a)
        case Apply(op=op, args=(Apply(op="neg", args=(a,)), *rest)) if op in _ODD:
            return negate(Apply(op, (a, *rest)))
        case Apply(op="mul", args=(a, b)) if _leading(b):
            return times(a, b)
        case Apply(op="div", args=(a, Const(value=value))) if value and _leading(a):
            return scale(1 / value, a)
        case Apply(op="mul" | "div" as op, args=(a, Apply(op="neg", args=(b,)))):
            return negate(fold(Apply(op, (a, b))))
        case Apply(op=op, args=(Apply(op="neg") as a, Apply(op="neg") as b)) if (
            op in _MIRRORED
        ):
            return Apply(_MIRRORED[op], (negate(a), negate(b)))
        case _:
            return fold(node)


def _leading(expr: Expr) -> bool:
    """True if a product begins with a constant."""
    while isinstance(expr, Apply) and expr.op in ("mul", "div"):
        expr = expr.args[0]
    return isinstance(expr, Const)


BUDGET = 20
"""The largest number of forms examined for one expression."""

FEW = BUDGET // 3
"""The largest number for an expression that has been proposed in another way."""

_LARGEST = 400  # nodes of an expression beyond which it is left as it is

Holds = Callable[[Expr], bool]
"""True if a row's condition holds at all points."""


class Search:
    """Rewriting; the rewrites of each node are cached."""

    def __init__(self, holds: Holds) -> None:
        self.holds = holds
        self._known: dict[Expr, tuple[tuple[Expr, bool], ...]] = {}

    def forms(self, expr: Expr, budget: int = BUDGET) -> tuple[Expr, ...]:
        """Distinct forms of ``expr``, itself first."""
        found: dict[Expr, None] = {expr: None}
        if size(expr) >= _LARGEST:
            return (expr,)
        current: Expr | None = expr
        while current is not None and len(found) <= budget // 2:
            ahead = self._ahead(current)
            current = next((form for form in ahead if form not in found), None)
            if current is not None:
                found[current] = None
        waiting = deque(found)
        while waiting and len(found) < budget:
            for form in self._outermost_first(waiting.popleft()):
                if form not in found and len(found) < budget:
                    found[form] = None
                    waiting.append(form)
        return tuple(found)

    def _ahead(self, expr: Expr) -> Iterator[Expr]:
        """``expr`` with one rewrite at one place, inner places first: ``1 - 1 / (1 +
        exp(x))`` is recognised as a sigmoid before a logarithm of it is examined.
        """
        order = tuple(nodes(expr))
        for node, new, is_detour in self._steps(order):
            if not is_detour:
                yield replace_in(expr, node, new)

    def _outermost_first(self, expr: Expr) -> Iterator[Expr]:
        """``expr`` with any one rewrite, outer places first: ``asinh`` is recognised at
        its root.
        """
        order = tuple(nodes(expr))
        for node, new, _ in self._steps(order[::-1]):
            yield replace_in(expr, node, new)

    def _steps(self, order: tuple[Expr, ...]) -> Iterator[tuple[Expr, Expr, bool]]:
        """Rewrites of nodes, except to a longer one that is present already: a regime of
        a conditional is not split again in the same way.
        """
        present = set(order)
        for node in order:
            for new, is_detour in self._made_of(node):
                if new not in present or size(new) < size(node):
                    yield node, new, is_detour

    def _made_of(self, node: Expr) -> tuple[tuple[Expr, bool], ...]:
        if not isinstance(node, Apply):
            return ()
        if node not in self._known:
            self._known[node] = tuple(self._rewritten(node)) if names(node) else ()
        return self._known[node]

    def _rewritten(self, node: Apply) -> Iterator[tuple[Expr, bool]]:
        for left, right, when, is_detour in by_operator().get(node.op, ()):
            bound = match(left, node)
            if bound is None:
                continue
            if when is not None and not self.holds(instantiate(when, bound)):
                continue
            new = instantiate(right, bound)
            if new != node:
                yield new, is_detour


def replace_in(expr: Expr, old: Expr, new: Expr) -> Expr:
    """``expr`` with ``new`` in place of ``old``; constants around it are merged."""
    memo: dict[Key, Expr] = {old.key: new}
    for node in nodes(expr):
        if node.key not in memo:
            parts = tuple([memo[child.key] for child in node.below])
            rebuilt = with_children(node, parts)
            memo[node.key] = node if rebuilt is node else _normal(rebuilt)
    return memo[expr.key]


RULES = """
# Logistic function and hyperbolic tangent
b / (1 + exp(a)) -> b * sigmoid(-a)
exp(a) / (1 + exp(a)) -> sigmoid(a)
b * exp(a) / (1 + exp(a)) -> b * sigmoid(a)
exp(a) / square(1 + exp(a)) -> sigmoid(a) * sigmoid(-a)
b * exp(a) / square(1 + exp(a)) -> b * sigmoid(a) * sigmoid(-a)
1 - sigmoid(a) -> sigmoid(-a)
1 - sigmoid(a) * sigmoid(b) -> sigmoid(-a) + sigmoid(a) * sigmoid(-b)
b + sigmoid(a) - 1 -> b - sigmoid(-a)
exp(a) / (exp(a) + exp(b)) -> sigmoid(a - b)
2 * sigmoid(a) - 1 -> tanh(0.5 * a)
(exp(a) - 1) / (exp(a) + 1) -> tanh(0.5 * a)
expm1(a) / (1 + exp(a)) -> tanh(0.5 * a)
-expm1(a) / (1 + exp(a)) -> -tanh(0.5 * a)
expm1(a) / (2 + expm1(a)) -> tanh(0.5 * a)
(exp(a) - exp(-a)) / (exp(a) + exp(-a)) -> tanh(a)
sinh(a) / cosh(a) -> tanh(a)
cosh(a) / sinh(a) -> 1 / tanh(a)
b * sinh(a) / cosh(a) -> b * tanh(a)
1 + tanh(a) -> 2 * sigmoid(2 * a)
1 - tanh(a) -> 2 * sigmoid(-2 * a)
1 - square(tanh(a)) -> 4 * sigmoid(2 * a) * sigmoid(-2 * a)
b / square(cosh(a)) -> 4 * b * sigmoid(2 * a) * sigmoid(-2 * a)
b / cosh(a) -> 2 * b * exp(-abs(a)) / (1 + exp(-2 * abs(a)))
log((1 + a) / (1 - a)) -> 2 * atanh(a)
log(a + sqrt(square(a) + 1)) -> asinh(a)
log(a + hypot(a, 1)) -> asinh(a)
log(a + sqrt(square(a) - 1)) -> acosh(a) where a >= 1
# where the argument is near 1, the inverse function of what is left of it
acosh(1 + a) -> 2 * asinh(sqrt(0.5 * a))
acosh(exp(a)) -> a + log1p(sqrt(-expm1(-2 * a)))
b * exp(a) / (sqrt(expm1(a)) * sqrt(1 + exp(a))) -> b / sqrt(-expm1(-2 * a))
atanh(1 - a) -> 0.5 * log((2 - a) / a)
atanh(a - 1) -> 0.5 * log(a / (2 - a))
asinh(abs(sinh(a))) -> abs(a)

# Exponentials
# three and more: each step joins the first ones, with 1 as exp(0)
exp(a) + exp(b) + exp(c) -> exp(logaddexp(logaddexp(a, b), c))
1 + exp(a) + exp(b) -> exp(softplus(logaddexp(a, b)))
b * exp(a) + d * exp(c) + f * exp(e) -> exp(logaddexp(logaddexp(a + log(b), c + log(d)),
    e + log(f))) where b > 0 and d > 0 and f > 0
exp(a) / (exp(b) + exp(c)) ~> exp(a - logaddexp(b, c))
exp(a) / (1 + exp(a) + exp(b)) -> sigmoid(a - softplus(b))
exp(a) / (1 + exp(b) + exp(a)) -> sigmoid(a - softplus(b))
exp(a) / (exp(a) + exp(b) + exp(c)) -> sigmoid(a - logaddexp(b, c))
exp(a) / (exp(b) + exp(c) + exp(a)) -> sigmoid(a - logaddexp(b, c))
exp(a) / (exp(a) + exp(b) + exp(c) + exp(d)) -> sigmoid(a - logaddexp(logaddexp(b, c),
    d))
exp(a) / (exp(b) + exp(c) + exp(a) + exp(d)) -> sigmoid(a - logaddexp(logaddexp(b, c),
    d))
exp(a) / (exp(b) + exp(c) + exp(d) + exp(a)) -> sigmoid(a - logaddexp(logaddexp(b, c),
    d))
(b * exp(a) + d * exp(c) + f * exp(e)) / (exp(a) + exp(c) + exp(e)) -> b * sigmoid(a -
    logaddexp(c, e)) + d * sigmoid(c - logaddexp(a, e)) + f * sigmoid(e - logaddexp(a,
    c))
b * exp(a) / (b * exp(a) + d * exp(c)) -> sigmoid(a + log(b) - (c + log(d))) where b > 0
    and d > 0
b * exp(a) / (b * exp(a) + d * exp(c) + f * exp(e)) -> sigmoid(a + log(b) - logaddexp(c
    + log(d), e + log(f))) where b > 0 and d > 0 and f > 0
b * exp(a) / (d * exp(c) + f * exp(e) + b * exp(a)) -> sigmoid(a + log(b) - logaddexp(c
    + log(d), e + log(f))) where b > 0 and d > 0 and f > 0
(b * exp(a) + d * exp(c)) / (exp(a) + exp(c)) -> b * sigmoid(a - c) + d * sigmoid(c - a)
exp(a) - 1 -> expm1(a)
1 - exp(a) -> -expm1(a)
b + exp(a) - 1 -> b + expm1(a)
exp(a) - b - 1 -> expm1(a) - b
b / expm1(a) ~> b * exp(-a) / -expm1(-a)
a**b - 1 -> expm1(b * log(a)) where a > 0
(1 + a)**b - 1 -> expm1(b * log1p(a)) if a > -1 else (1 + a)**b - 1
1 - (1 + a)**b -> -expm1(b * log1p(a)) if a > -1 else 1 - (1 + a)**b
1 - (1 - a)**b -> -expm1(b * log1p(-a)) if a < 1 else 1 - (1 - a)**b
exp(a) / exp(b) -> exp(a - b)
b * exp(a) / exp(c) -> b * exp(a - c)
exp(a) * exp(b) ~> exp(a + b)
b / exp(a) ~> b * exp(-a)
square(exp(a)) ~> exp(2 * a)
exp(log(a)) -> a
exp(-softplus(a)) -> sigmoid(-a)
exp(logsigmoid(a)) -> sigmoid(a)
# exp(a) overflows in both; what is left of the quotient does not
exp(a) / (b * exp(a) + c) ~> 1 / (b + c * exp(-a))

# Logarithms
log(1 + exp(a)) -> softplus(a)
log1p(exp(a)) -> softplus(a)
log(exp(a) + exp(b)) -> logaddexp(a, b)
log(b * exp(a) + d * exp(c)) -> logaddexp(a + log(b), c + log(d)) where b > 0 and d > 0
log(exp(a) + d * exp(c)) -> logaddexp(a, c + log(d)) where d > 0
log(exp(a) - exp(b)) -> a + log(1 - exp(b - a))
log(exp(a) - 1) -> log(expm1(a)) if a < 1 else a + log1p(-exp(-a))
log(1 - square(tanh(a))) -> -2 * log(cosh(a))
log(sigmoid(a) * b) -> logsigmoid(a) + log(b)
log(sigmoid(a)) -> logsigmoid(a)
softplus(a) - a -> softplus(-a)
a - softplus(a) -> logsigmoid(a)
log(1 + a) -> log1p(a)
log(1 - a) -> log1p(-a)
log(1 + a + b) -> log1p(a + b)
log(1 + a - b) -> log1p(a - b)
log(exp(a)) -> a
log(a / (1 - a)) -> logit(a)
log(a) - log(1 - a) -> logit(a)
# Mächler, Accurately computing log(1 - exp(-|a|)), 2012
log(1 - exp(a)) -> log(-expm1(a)) if a > -log(2) else log1p(-exp(a))
log(cosh(a)) -> 0.5 * log1p(square(sinh(a))) if abs(a) < 1 else abs(a) + log1p(exp(-2 *
    abs(a))) - log(2)
log(sinh(a)) ~> log(sinh(a)) if a < 1 else a + log1p(-exp(-2 * a)) - log(2)
log(abs(sinh(a))) ~> log(abs(sinh(a))) if abs(a) < 1 else abs(a) + log1p(-exp(-2 *
    abs(a))) - log(2)
# in two factors, each in range
log1p(square(a)) ~> log1p(square(min(abs(a), 1e9))) + 2 * log(max(abs(a) / 1e9, 1))
log1p(square(a) / b) ~> log1p(square(a / sqrt(b))) where b > 0
log(a / b) ~> 2 * log(sqrt(a) / sqrt(b)) where a > 0
log(gamma(a)) -> lgamma(a)
a * log(b) ~> xlogy(a, b)
a * log(1 + b) ~> xlog1py(a, b)
a * log(1 - b) ~> xlog1py(a, -b)
a * log1p(b) ~> xlog1py(a, b)
xlogy(a, sigmoid(b)) -> a * logsigmoid(b)
xlog1py(a, -sigmoid(b)) -> a * logsigmoid(-b)
xlogy(a, 1 - b) -> xlog1py(a, -b)
(1 + a)**b ~> exp(b * log1p(a)) where a > -1
(1 - a)**b ~> exp(b * log1p(-a)) where a < 1

# Algebra
sqrt(square(a) + square(b)) -> hypot(a, b)
sqrt(1 + square(a)) -> hypot(a, 1)
sqrt(square(a)) -> abs(a)
a * sign(a) -> abs(a)
b * a * sign(a) -> b * abs(a)
square(a) / square(b) ~> square(a / b)
(abs(a) - abs(a - b) + b) / 2 -> clip(a, 0, b) where b > 0
1 / sqrt(a) ~> rsqrt(a)
square(a) - square(b) ~> (a - b) * (a + b)
1 / sqrt(1 - square(a)) - 1 -> square(a) / (sqrt(1 - square(a)) * (1 + sqrt(1 -
    square(a))))
1 - square(a) -> (1 - a) * (1 + a)
square(a) - 1 -> (a - 1) * (a + 1)
sqrt(a) - sqrt(b) -> (a - b) / (sqrt(a) + sqrt(b))
sqrt(a / b) ~> sqrt(a) / sqrt(b) where b > 0
sqrt(a) / a -> 1 / sqrt(a)
b * sqrt(a) / a -> b / sqrt(a)
sqrt(1 + a) - 1 -> a / (1 + sqrt(1 + a))
hypot(a, 1) - 1 -> a / (1 + hypot(a, 1)) * a
a + sqrt(square(a) + b) -> b / (sqrt(square(a) + b) - a) if a < 0 else a +
    sqrt(square(a) + b)
a + hypot(a, b) -> b / (hypot(a, b) - a) * b if a < 0 else a + hypot(a, b)
a / b / b ~> a / square(b)
a / square(b) ~> a / b / b
# squares leave the range though what is made of them does not
square(a) / b ~> a / b * a
c / (1 + square(a)) * b ~> c / hypot(a, 1) * (b / hypot(a, 1))
(a + b) - a -> b
square(cos(a)) - square(sin(a)) -> cos(2 * a)
# quotients with a limit where both sides are 0
d * (b + a * c) / a ~> d * (b / a + c)
d * (b + c * a * e * f) / a ~> d * (b / a + c * e * f)
d * (b + a / c) / a ~> d * (b / a + 1 / c)
sin(a) / a -> sinc(a / pi)
b * sin(a) / a -> b * sinc(a / pi)
sinh(a) / a -> sinh(a) / a if a != 0 else 1
b * sinh(a) / a -> b * sinh(a) / a if a != 0 else b
tanh(a) / a -> tanh(a) / a if a != 0 else 1
b * tanh(a) / a -> b * tanh(a) / a if a != 0 else b
atan(a) / a -> atan(a) / a if a != 0 else 1
b * atan(a) / a -> b * atan(a) / a if a != 0 else b
1 - cos(a) -> 2 * square(sin(0.5 * a))
1 - square(cos(a)) -> square(sin(a))
1 - square(sin(a)) -> square(cos(a))
exp(-abs(a)) * i0(a) -> i0e(a)
exp(-abs(a)) * i1(a) -> i1e(a)
i1e(a) - sign(a) * i0e(a) -> i0e_slope(a)
log(i0(a)) -> abs(a) + log(i0e(a))
log(b * i0(a)) -> abs(a) + log(b * i0e(a))
a * cos(b) - (abs(a) + c) -> -2 * a * square(sin(0.5 * b)) - c where a >= 0
i1(a) / i0(a) -> i1e(a) / i0e(a)
b * i1(a) / i0(a) -> b * i1e(a) / i0e(a)
i1_slope(a) / i0(a) -> 1 - i1e(a) / i0e(a) / a if a != 0 else 0.5
a**b / a ~> a**(b - 1) where a > 0
a**(b - 1) * a -> a**b
c * a**(b - 1) * a -> c * a**b
# b - 1 is rounded, which costs up to log(a) * b ULP
a**(b - 1) ~> power_less_one(a, b) where a > 0
log(square(a)) ~> 2 * log(a) where a > 0

# Differences of gamma functions
lgamma(a + b) - lgamma(a) -> lgamma_difference(a, b) where a > 0 and a + b > 0
lgamma(a) - lgamma(a + b) -> -lgamma_difference(a, b) where a > 0 and a + b > 0
lgamma((a + b) / c) - lgamma(a / c) -> lgamma_difference(a / c, b / c) where a / c > 0
    and (a + b) / c > 0
lgamma(c * (a + b)) - lgamma(c * a) -> lgamma_difference(c * a, c * b) where c * a > 0
    and c * (a + b) > 0
lgamma(a) + lgamma(b) - lgamma(a + b) -> lgamma(min(a, b)) - lgamma_difference(max(a,
    b), min(a, b)) where a > 0 and b > 0
digamma(a + b) - digamma(a) -> digamma_difference(a, b) where a > 0 and a + b > 0
digamma(a) - digamma(a + b) -> -digamma_difference(a, b) where a > 0 and a + b > 0
digamma((a + b) / c) - digamma(a / c) -> digamma_difference(a / c, b / c) where a / c >
    0 and (a + b) / c > 0
digamma(c * (a + b)) - digamma(c * a) -> digamma_difference(c * a, c * b) where c * a >
    0 and c * (a + b) > 0

# Error functions
1 - erf(a) -> erfc(a)
1 - erfc(a) -> erf(a)
1 + erf(a / sqrt(2)) -> 2 * ndtr(a)
1 + erf(a * sqrt(0.5)) -> 2 * ndtr(a)
0.5 + 0.5 * erf(a / sqrt(2)) -> ndtr(a)
erfc(-a / sqrt(2)) -> 2 * ndtr(a)
1 - erf(a / sqrt(2)) -> 2 * ndtr(-a)
1 + erf(a) -> erfc(-a)
1 - ndtr(a) -> ndtr(-a)
log(ndtr(a)) -> log_ndtr(a)
# a difference of tails is that of the lower ones; next to 0 that of two odd functions
log(sigmoid(a) - sigmoid(b)) -> logsigmoid(a) + logsigmoid(-b) + (log(-expm1(b - a)) if
    a - b < 1 else log1p(-exp(b - a)))
log(ndtr(a) - ndtr(b)) -> log(0.5 * (erf(a / sqrt(2)) - erf(b / sqrt(2)))) if
    max(abs(a), abs(b)) < 1 else log_ndtr(min(a, -b)) + log1p(-exp(log_ndtr(min(b, -a))
    - log_ndtr(min(a, -b))))
log(erf(a) - erf(b)) -> log(erf(a) - erf(b)) if max(abs(a), abs(b)) < 0.5 else log(2) +
    log_ndtr(sqrt(2) * min(a, -b)) + log1p(-exp(log_ndtr(sqrt(2) * min(b, -a)) -
    log_ndtr(sqrt(2) * min(a, -b))))
log(erfc(a) - erfc(b)) -> log(erf(b) - erf(a))
erfc(a) - erfc(b) ~> erf(b) - erf(a)
ndtr(a) - ndtr(b) ~> 0.5 * erf(a / sqrt(2)) - 0.5 * erf(b / sqrt(2)) if max(abs(a),
    abs(b)) < 1 else 0.5 * erfc(max(-a, b) / sqrt(2)) - 0.5 * erfc(max(a, -b) / sqrt(2))
erf(a) - erf(b) ~> erf(a) - erf(b) if max(abs(a), abs(b)) < 0.5 else 2 * ndtr(sqrt(2) *
    min(a, -b)) - 2 * ndtr(sqrt(2) * min(b, -a))
exp(square(a)) * erfc(a) -> erfcx(a)
exp(-square(a)) / erfc(a) -> 1 / erfcx(a)
exp(-0.5 * square(a)) / ndtr(a) -> sqrt(2 * pi) * inverse_mills(a)
exp(-0.5 * square(a)) / ndtr(-a) -> sqrt(2 * pi) * inverse_mills(-a)
exp(-0.5 * square(a)) / (b * ndtr(a)) -> sqrt(2 * pi) / b * inverse_mills(a)
exp(-0.5 * square(a)) / (b * ndtr(-a)) -> sqrt(2 * pi) / b * inverse_mills(-a)
b * 2 * (a * erfcx(a) - 1 / sqrt(pi)) -> b * erfcx_slope(a)
a * erfcx(a) - 1 / sqrt(pi) -> 0.5 * erfcx_slope(a)

# Angles
acos(a / sqrt(square(a) + b)) -> atan2(sqrt(b), a) where b >= 0
acos(a / sqrt(square(a) + b + c)) -> atan2(sqrt(b + c), a) where b >= 0 and c >= 0
acos(a / hypot(a, b)) -> atan2(abs(b), a)
asin(a / sqrt(square(a) + b)) -> atan2(a, sqrt(b)) where b >= 0
asin(a / sqrt(square(a) + b + c)) -> atan2(a, sqrt(b + c)) where b >= 0 and c >= 0
asin(a / hypot(a, b)) -> atan2(a, abs(b))
# R. W. Sinnott, Virtues of the haversine, 1984, and the same for the antipode
acos(sin(a) * sin(b) + cos(a) * cos(b) * cos(c)) -> 2 * atan2(sqrt(square(sin(0.5 * (a -
    b))) + cos(a) * cos(b) * square(sin(0.5 * c))), sqrt(square(sin(0.5 * (a + b))) +
    cos(a) * cos(b) * square(cos(0.5 * c))))
sqrt(square(a) + b * square(c)) ~> hypot(a, sqrt(b) * c) where b >= 0
sqrt(square(a) + b * c * c) ~> hypot(a, sqrt(b) * c) where b >= 0

# One plus or minus a cosine
1 + a / hypot(a, b) -> b / hypot(a, b) * (b / (hypot(a, b) - a)) if a < 0 else 1 + a /
    hypot(a, b)
1 - a / hypot(a, b) -> b / hypot(a, b) * (b / (hypot(a, b) + a)) if a > 0 else 1 - a /
    hypot(a, b)
sqrt(0.5 * (1 + a / hypot(a, b))) -> sqrt(0.5 + 0.25 * a / hypot(0.5 * a, 0.5 * b)) if
    a > 0 else sqrt(0.125) * abs(b) / sqrt(hypot(0.5 * a, 0.5 * b)) / sqrt(hypot(0.5 *
    a, 0.5 * b) - 0.5 * a)

# Roots
# 1 - cos(c) is twice the square of the half-angle's sine
square(a) + square(b) - 2 * a * b * cos(c) -> square(a - b) + 4 * a * b * square(sin(0.5
    * c))
sqrt(4 * a * a + square(b)) -> hypot(2 * a, b)
# a complex square root; the norm and its sum with a part stay in range
0.5 * sqrt(2 * (hypot(a, b) + a)) -> sqrt(2) * sqrt(hypot(0.25 * a, 0.25 * b) + 0.25 *
    a) where a >= 0
0.5 * sqrt(2 * (hypot(a, b) + a)) -> sqrt(2) * sqrt(hypot(0.25 * a, 0.25 * b) + 0.25 *
    a) if a >= 0 else sqrt(0.125) * abs(b) / sqrt(hypot(0.25 * a, 0.25 * b) - 0.25 * a)
0.5 * sqrt(2 * (hypot(a, b) - a)) -> sqrt(0.125) * abs(b) / sqrt(hypot(0.25 * a, 0.25 *
    b) + 0.25 * a) if a > 0 else sqrt(2) * sqrt(hypot(0.25 * a, 0.25 * b) - 0.25 * a)
# squares leave the range though the root of their difference does not
sqrt(square(a) - b * (c * d)) ~> discriminant_root(a, 0.25 * b * c, d)
sqrt(square(a) - b * c) ~> discriminant_root(a, 0.25 * b, c)

# Tangents near a quarter of the circle, the Gudermannian
log(tan(pi / 4 + a)) -> asinh(tan(2 * a))
log(tan(a) + 1 / cos(a)) -> asinh(tan(a))
2 * atan(exp(a)) - pi / 2 -> atan(sinh(a))
b / hypot(tan(a), 1) * (1 + square(tan(a))) -> b / abs(cos(a))
b * (1 + square(tan(a))) / hypot(tan(a), 1) -> b / abs(cos(a))

# Two functions joined
# what is left of 1 - tanh(a) * tanh(b) is a sum of two products: it does not cancel
tanh(a) - tanh(b) -> 2 * tanh(a - b) * (sigmoid(2 * a) * sigmoid(-2 * b) + sigmoid(2 *
    b) * sigmoid(-2 * a))
sigmoid(a) - sigmoid(b) -> tanh(0.5 * (a - b)) * (sigmoid(a) * sigmoid(-b) + sigmoid(b)
    * sigmoid(-a))
sigmoid(a) * sigmoid(-a) - sigmoid(b) * sigmoid(-b) -> tanh(0.5 * (b - a)) * tanh(0.5 *
    (a + b)) * (sigmoid(a) * sigmoid(-b) + sigmoid(b) * sigmoid(-a)) * (sigmoid(a) *
    sigmoid(b) + sigmoid(-a) * sigmoid(-b))
sigmoid(2 * a) * sigmoid(-2 * a) - sigmoid(2 * b) * sigmoid(-2 * b) -> tanh(b - a) *
    tanh(a + b) * (sigmoid(2 * a) * sigmoid(-2 * b) + sigmoid(2 * b) * sigmoid(-2 * a))
    * (sigmoid(2 * a) * sigmoid(2 * b) + sigmoid(-2 * a) * sigmoid(-2 * b))
xlogy(a, b) -> a * log(b) where b > 0
a**b * exp(c) -> exp(b * log(a) + c) where a > 0
exp(c) / a**b -> exp(c - b * log(a)) where a > 0

# Differences of one function at two places: that of the places is exact, or rewritten
sin(a) - sin(b) -> 2 * sin(0.5 * (a - b)) * cos(0.5 * (a + b))
cos(a) - cos(b) -> -2 * sin(0.5 * (a - b)) * sin(0.5 * (a + b))
tan(a) - tan(b) -> sin(a - b) / (cos(a) * cos(b))
atan(a) - atan(b) -> atan2(a - b, 1 + a * b)
log(a) - log(b) -> log1p((a - b) / b) where a > 0
log(a) - log(b) ~> log(a / b) where a > 0
exp(a) - exp(b) ~> exp(b) * expm1(a - b)
exp(a) - exp(-a) -> 2 * sinh(a)
exp(-a) - exp(a) -> -2 * sinh(a)
exp(a) - 2 + exp(-a) -> 4 * square(sinh(0.5 * a))
cosh(a) - 1 -> 2 * square(sinh(0.5 * a))
1 / a - 1 / b -> (b - a) / (a * b)
c / a - d / b ~> (c * b - d * a) / (a * b)
c / a + d / b ~> (c * b + d * a) / (a * b)
c - d / b ~> (c * b - d) / b
cbrt(a) - cbrt(b) -> (a - b) / (square(cbrt(a)) + cbrt(a) * cbrt(b) + square(cbrt(b)))
log((a + b) / (a - b)) -> 2 * atanh(b / a)
pi / 2 - 2 * asin(sqrt((1 - a) / 2)) -> asin(a)
log((a + b) / a) -> log1p(b / a)
square(a + b) - square(a) -> b * (2 * a + b)
sin(a + b) ~> sin(a) * cos(b) + cos(a) * sin(b)
(1 - cos(a)) / sin(a) -> tan(0.5 * a)
exp(a) / expm1(a) -> -1 / expm1(-a)
b * exp(a) / expm1(a) -> -b / expm1(-a)
expm1(2 * a) / expm1(a) -> exp(a) + 1

# Mixtures of exponentials
log(b * exp(a) + c) ~> a + log(b + c * exp(-a))
log1p(b * expm1(a)) ~> a + log(b + (1 - b) * exp(-a)) if a > 80 else log1p(b * expm1(a))

# Order of sums and products
a + (b - a) -> b
(a - b) - a -> -b
a - (a + b) -> -b
a - (a - b) -> b
b * square(a) ~> b * a * a
b * c / d ~> b * (c / d)
b * c / d ~> b / d * c
a / b / b * c ~> a / b * (c / b)
a * b / (a + b) ~> 0.5 * min(a, b) * (max(a, b) / (0.5 * a + 0.5 * b)) where a > 0 and b
    > 0
c * a * b / (a + b) ~> 0.5 * c * min(a, b) * (max(a, b) / (0.5 * a + 0.5 * b)) where a >
    0 and b > 0

# Trigonometric functions far out, where the sum of the places is rounded; steps
sin(0.5 * (a + b + a)) ~> sin(a) * cos(0.5 * b) + cos(a) * sin(0.5 * b)
cos(0.5 * (a + b + a)) ~> cos(a) * cos(0.5 * b) - sin(a) * sin(0.5 * b)
sin(0.5 * (a - b + a)) ~> sin(a) * cos(0.5 * b) - cos(a) * sin(0.5 * b)
cos(0.5 * (a - b + a)) ~> cos(a) * cos(0.5 * b) + sin(a) * sin(0.5 * b)
cos(a + b) ~> cos(a) * cos(b) - sin(a) * sin(b)
cos(a - b) ~> cos(a) * cos(b) + sin(a) * sin(b)
1 + square(tan(a)) ~> 1 / square(cos(a))
acos(1 - a) -> 2 * asin(sqrt(0.5 * a))
pi / 2 - asin(a) -> acos(a)
pi / 2 - acos(a) -> asin(a)
pi / 2 - atan(a) -> atan2(1, a)
a**(1 / 3) -> cbrt(a) where a >= 0
a**(2 / 3) -> square(cbrt(a)) where a >= 0
a**(-2 / 3) -> 1 / square(cbrt(a)) where a > 0
1 / square(a) - 1 / square(b) ~> (b - a) / square(a) * (b + a) / square(b)
a**3 - b**3 -> (a - b) * (square(a) + a * b + square(b))
(a + 1) * log1p(a) - a * log(a) -> log1p(a) + a * log1p(1 / a) where a > 0
-a * a - -b * b -> (b - a) * (a + b)
exp(a) - exp(b) ~> -exp(a) * expm1(b - a) if a > b else exp(b) * expm1(a - b)
a - (a - b + c) -> b - c
a - a * b ~> a * (1 - b)
sqrt(b * square(a)) ~> sqrt(b) * abs(a) where b >= 0
sqrt(1 / square(a) - 1) ~> sqrt((1 - a) * (1 + a)) / abs(a)

# Quotients of exponentials, ratios of likelihoods
d * expm1((a + b) * c) / (expm1(a * c) * expm1(b * c)) -> d * (1 / expm1(a * c) - 1 /
    expm1(-(b * c)))
b * exp(a) / square(expm1(a)) ~> -b / expm1(a) / expm1(-a)
logsigmoid(a) - logsigmoid(b) -> log1p(sigmoid(-a) * expm1(a - b)) if abs(a - b) < 1
    else logsigmoid(a) - logsigmoid(b)
sigmoid(a)**c * sigmoid(-a)**d / (sigmoid(b)**c * sigmoid(-b)**d) -> exp(c *
    (logsigmoid(a) - logsigmoid(b)) + d * (logsigmoid(-a) - logsigmoid(-b)))
exp(a) / (b * (1 + exp(a)) * (1 + exp(a))) -> sigmoid(a) * sigmoid(-a) / b
(exp(a) + exp(-a)) / (exp(a) - exp(-a)) -> 1 / tanh(a)
b / (exp(a) + exp(-a)) -> b * exp(-abs(a)) / (1 + exp(-2 * abs(a)))
b * exp(-a) / c - b * exp(a) / c -> -2 * b * sinh(a) / c
b * sinh(a) / square(2 * cosh(a)) -> 0.25 * b / cosh(a) * tanh(a)
exp(a) + exp(-a) -> 2 * cosh(a)
b * sinh(a) / square(cosh(a)) -> b / cosh(a) * tanh(a)
log(1 / a + sqrt(1 / square(a) + 1)) -> asinh(1 / a)
log(abs(a) + hypot(a, 1)) -> asinh(abs(a))

# Hyperbolic pairs, norms, sums with a common part
log1p(a) - log1p(-a) -> 2 * atanh(a)
hypot(a, b) - abs(a) -> b / (hypot(a, b) + abs(a)) * b if a != 0 else abs(b)
hypot(a, b) - a -> b / (hypot(a, b) + a) * b if a > 0 else hypot(a, b) - a
sqrt(square(a) + square(b) + square(c)) ~> hypot(hypot(a, b), c)
sqrt(1 + b * square(a)) ~> hypot(1, sqrt(b) * a) where b >= 0
d * (a**c + b**c)**(1 / c - 1) / c * c * a**(c - 1) ~> d * (a / (a**c + b**c)**(1 /
    c))**(c - 1) where a >= 0 and b >= 0 and c > 0
(a**c + b**c)**(1 / c) ~> max(a, b) * (1 + (min(a, b) / max(a, b))**c)**(1 / c) if
    max(a, b) > 0 else 0 where a >= 0 and b >= 0 and c > 0
sigmoid(a) - 0.5 -> 0.5 * tanh(0.5 * a)
(a + b) - (a + c) -> b - c
(a - b) - (a - c) -> c - b
(a - b) - (a + c) -> -(b + c)
# two quotients that are near 1 far out: what each is off by
a / (a + b) - (a + c) / (a - d) -> -b / (a + b) - (c + d) / (a - d)
a / (a + b) - (a + c) / (a + d) -> -b / (a + b) - (c - d) / (a + d)
sin(a) * cos(b) - cos(a) * sin(b) ~> sin(a - b)
cos(a) * cos(b) + sin(a) * sin(b) ~> cos(a - b)
cos(a) * cos(b) - sin(a) * sin(b) ~> cos(a + b)
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A rule as text; ``when`` is empty if there is no condition."""

    left: str
    right: str
    when: str
    detour: bool


Patterns: TypeAlias = tuple[Expr, Expr, Expr | None, bool]
"""The two sides of a rule, its condition, and True for a detour."""


def rows(table: str = RULES) -> tuple[Row, ...]:
    """The rules of a table; an indented line continues the one before."""
    lines = table.replace("\n    ", " ").splitlines()
    return tuple(_row(line) for line in lines if line and line[0] != "#")


def _row(line: str) -> Row:
    sides, _, when = line.partition(" where ")
    arrow = " ~> " if " ~> " in sides else " -> "
    left, right = sides.split(arrow)
    return Row(left, right, when, arrow == " ~> ")


@lru_cache(maxsize=1)
def by_operator() -> dict[str, tuple[Patterns, ...]]:
    """The rules by the operator at the root of their left side, in their order."""
    table: dict[str, tuple[Patterns, ...]] = {}
    for row in rows():
        left, right = tidy(formula(row.left)), tidy(formula(row.right))
        when = formula(row.when) if row.when else None
        if not isinstance(left, Apply):
            raise ValueError(f"{row.left}: a pattern begins with a primitive")
        made = left, right, when, row.detour
        table[left.op] = (*table.get(left.op, ()), made)
    return table
