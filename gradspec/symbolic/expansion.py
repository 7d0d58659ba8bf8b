"""The first terms of a function of several inputs about an end of one of them.

``(c - r) / (c + r) + 1`` with ``r = sqrt(n**2 - 1 + c**2)`` is ``2 * c / sqrt(n**2 - 1) -
…`` for small ``c``: what the terms of a sum have in common is gone, whatever the other
input is. The coefficients are fractions in the other inputs and in functions of them
(`gather.py`), so that a term that is 0 is known to be.

Like every proposal the result is to be measured before it is used: which branch a root
takes, and where the terms that are left out count, is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold
from gradspec.ir.walk import names, substitute, transform
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.first_terms import Leading, NoExpansion, Series
from gradspec.symbolic.gather import Gather
from gradspec.symbolic.ring import Frac, TooLarge, Undefined

_NEVER = 10_000
"""The order of what is 0."""

_HIGHEST = 12


def leading(expr: Expr, name: str, order: int, count: int) -> Leading | None:
    """The first terms of ``expr`` about ``name = 0``; None if they are not found."""
    try:
        work = _Expansion(name, order)
        return _told(work, work.of(expr), count)
    except (NoExpansion, TooLarge, Undefined, RecursionError):
        return None


def _told(work: _Expansion, found: Series, count: int) -> Leading | None:
    if len(found.terms) < 2:
        return None
    first, *rest = found.terms
    shares = tuple(
        (k, work.back(work.ring.div(term, first)))
        for k, term in enumerate(rest, 1)
        if not term.is_zero
    )
    last = shares[-1][0] if shares else 0
    is_whole = len(shares) <= count and last + 3 < len(found.terms)
    return Leading(found.start, work.back(first), shares[:count], is_whole)


class _Expansion:
    def __init__(self, name: str, order: int) -> None:
        self._name, self._order = name, order
        self._gather = Gather()
        self.ring = self._gather.ring
        self._zero, self._one = self.ring.const(0), self.ring.const(1)
        self._known: dict[Expr, Series] = {}

    def back(self, value: Frac) -> Expr:
        return self._gather.back(value)

    def of(self, node: Expr) -> Series:
        if node not in self._known:
            if self._name in names(node):
                self._known[node] = self._convert(node)
            else:
                alike = transform(node, self._alike)
                self._known[node] = self._constant(self._gather.of(alike))
        return self._known[node]

    def _alike(self, node: Expr) -> Expr:
        """A function of a constant, written as those that we make."""
        match node:
            case Apply(op=op, args=(arg,)) if op in _FUNCTIONS or op in _INTEGRATED:
                return Apply(op, (self.back(self._gather.of(arg)),))
            case _:
                return node

    def _convert(self, node: Expr) -> Series:
        match node:
            case Ref():
                return self._shifted(self._constant(self._one), 1)
            case Apply(op="pow", args=(base, exponent)):
                return self._power(self.of(base), exponent)
            case Select(condition=condition, then=then, other=other):
                return self.of(_generic(condition, then, other))
            case Apply(op=op, args=args) if op in _ARITHMETIC:
                return _ARITHMETIC[op](self, *map(self.of, args))
            case Apply(op=op, args=(arg,)) if op in _FUNCTIONS:
                return _FUNCTIONS[op](self, self.of(arg))
            case Apply(op=op, args=(arg,)) if op in _INTEGRATED:
                return self.integrated(op, arg)
            case Apply(op=op, args=args) if primitive(op).meaning is not None:
                row = primitive(op)
                values = dict(zip(row.params, args, strict=True))
                return self.of(substitute(formula(str(row.meaning)), values))
            case _:
                raise NoExpansion

    # --- arithmetic ------------------------------------------------------------------

    def _constant(self, value: Frac) -> Series:
        if value.is_zero:
            return Series(_NEVER, ())
        return Series(0, (value, *[self._zero] * (self._order - 1)))

    def _normal(self, start: int, terms: list[Frac]) -> Series:
        zeros = next((n for n, t in enumerate(terms) if not t.is_zero), len(terms))
        return Series(start + zeros, tuple(terms[zeros:]))

    def _at(self, a: Series, power: int) -> Frac:
        return a.terms[power - a.start] if a.start <= power < a.end else self._zero

    def _shifted(self, a: Series, by: int) -> Series:
        return Series(a.start + by, a.terms)

    def neg(self, a: Series) -> Series:
        return Series(a.start, tuple(map(self.ring.neg, a.terms)))

    def add(self, a: Series, b: Series) -> Series:
        start, end = min(a.start, b.start), min(a.end, b.end)
        powers = range(start, end)
        return self._normal(
            start, [self.ring.add(self._at(a, n), self._at(b, n)) for n in powers]
        )

    def sub(self, a: Series, b: Series) -> Series:
        return self.add(a, self.neg(b))

    def mul(self, a: Series, b: Series) -> Series:
        count = min(len(a.terms), len(b.terms))
        found = [self._sum(a.terms, b.terms, n) for n in range(count)]
        return self._normal(min(a.start + b.start, _NEVER), found)

    def _sum(self, a: Any, b: Any, n: int, first: int = 0) -> Frac:
        """Of ``a[k] * b[n - k]`` from the first ``k``."""
        total = self._zero
        for k in range(first, n + 1):
            if not (a[k].is_zero or b[n - k].is_zero):
                total = self.ring.add(total, self.ring.mul(a[k], b[n - k]))
        return total

    def div(self, a: Series, b: Series) -> Series:
        if not b.terms:
            raise NoExpansion
        count = min(len(a.terms), len(b.terms))
        found: list[Frac] = []
        for n in range(count):
            rest = self._zero
            for k in range(n):
                product = self.ring.mul(found[k], b.terms[n - k])
                rest = self.ring.add(rest, product)
            above = self.ring.sub(a.terms[n], rest)
            found.append(self.ring.div(above, b.terms[0]))
        return self._normal(min(a.start, _NEVER) - b.start, found)

    def square(self, a: Series) -> Series:
        return self.mul(a, a)

    def _power(self, base: Series, exponent: Expr) -> Series:
        match exponent:
            case Const(value=n) if n.denominator == 1 and abs(n) <= _HIGHEST:
                return self._whole(base, int(n))
            case Const(value=n) if n.denominator == 2 and abs(n) <= _HIGHEST:
                return self._whole(self.sqrt(base), int(2 * n))
            case _:
                return self.exp(self.mul(self.of(exponent), self.log(base)))

    def _whole(self, base: Series, n: int) -> Series:
        if n < 0:
            return self.div(self._constant(self._one), self._whole(base, -n))
        found = self._constant(self._one)
        for _ in range(n):
            found = self.mul(found, base)
        return found

    # --- functions -------------------------------------------------------------------

    def value(self, a: Series) -> Frac:
        """At the end itself; there is none at a pole."""
        if a.start < 0 or (a.start == 0 and not a.terms):
            raise NoExpansion
        return self._at(a, 0)

    def known(self, op: str, at: Frac) -> Frac:
        """A function of a constant."""
        if at.is_zero and op in _AT_ZERO:
            return self.ring.const(_AT_ZERO[op])
        return self._gather.of(fold(Apply(op, (self.back(at),))))

    def slope(self, a: Series) -> Series:
        """The derivative."""
        found = [
            self.ring.mul(self.ring.const(a.start + k), term)
            for k, term in enumerate(a.terms)
        ]
        return self._normal(a.start - 1, found)

    def whole(self, first: Frac, slope: Series) -> Series:
        """What has a value and a derivative."""
        if slope.start < 0:
            raise NoExpansion
        rest = [
            self.ring.div(self._at(slope, n), self.ring.const(n + 1))
            for n in range(min(slope.end, self._order))
        ]
        return self._normal(0, [first, *rest])

    def solved(
        self, starts: tuple[Frac, ...], a: Series, step: Callable[..., Any]
    ) -> list[Series]:
        """The functions ``y`` of ``a`` with ``y' = step(y) * a'``, term by term."""
        slope = self.slope(a)
        end = min(max(a.end, 1), self._order)
        found = [[start] for start in starts]
        for n in range(end - 1):
            rates = step([tuple(y) for y in found], n)
            for y, rate in zip(found, rates, strict=True):
                total = self._zero
                for k in range(n + 1):
                    part = self.ring.mul(rate[k], self._at(slope, n - k))
                    total = self.ring.add(total, part)
                y.append(self.ring.div(total, self.ring.const(n + 1)))
        return [self._normal(0, y) for y in found]

    def exp(self, a: Series) -> Series:
        first = self.known("exp", self.value(a))
        (found,) = self.solved((first,), a, lambda ys, n: ys)
        return found

    def log(self, a: Series) -> Series:
        """``v * log(x)`` beside it, where it begins with ``x**v``; x is positive then."""
        if not a.terms:
            raise NoExpansion
        regular = self._shifted(a, -a.start)
        rate = self.div(self.slope(regular), regular)
        found = self.whole(self._log_of(regular.terms[0]), rate)
        if a.start == 0:
            return found
        log = self._gather.of(Apply("log", (Ref(self._name),)))
        times = self.ring.mul(self.ring.const(a.start), log)
        return self.add(found, self._constant(times))

    def _log_of(self, value: Frac) -> Frac:
        """The logarithm of a product of exponentials is the sum of what they are of."""
        exponents = self._gather.exponents(value)
        if exponents is not None:
            return exponents
        return self._gather.of(fold(Apply("log", (self.back(value),))))

    def sqrt(self, a: Series) -> Series:
        """Of an even power of x: x is positive then."""
        if a.start % 2 or not a.terms:
            raise NoExpansion
        first = self._root(a.terms[0])
        twice = self.ring.mul(self.ring.const(2), first)
        found = [first]
        for n in range(1, len(a.terms)):
            padded = [*found, self._zero]
            inner = self._zero
            for k in range(1, n):
                product = self.ring.mul(padded[k], padded[n - k])
                inner = self.ring.add(inner, product)
            above = self.ring.sub(a.terms[n], inner)
            found.append(self.ring.div(above, twice))
        return self._normal(a.start // 2, found)

    def _root(self, value: Frac) -> Frac:
        """That of a constant; of a square number a number."""
        form = self.back(value)
        match form:
            case Const(value=number) if number > 0:
                above, below = (isqrt(n) for n in number.as_integer_ratio())
                if Fraction(above, below) ** 2 == number:
                    return self.ring.const(Fraction(above, below))
            case _:
                pass
        return self._gather.of(Apply("sqrt", (form,)))

    def waves(self, a: Series, ops: tuple[str, str], sign: int) -> tuple[Series, ...]:
        """Sine and cosine (of the circle, ``sign`` -1, or of the hyperbola): the slope of
        one is the other."""
        at = self.value(a)
        cosine, sine = self.known(ops[1], at), self.known(ops[0], at)
        self._gather.relate_squares(sine, cosine, sign)
        times = self.ring.const(sign)

        def step(ys: Any, n: int) -> Any:
            return [ys[1], [self.ring.mul(times, term) for term in ys[0]]]

        return tuple(self.solved((sine, cosine), a, step))

    def logistic(self, op: str, a: Series) -> Series:
        """Whose slope is a polynomial in itself (the row of `_SLOPES`)."""
        c0, c1, c2 = (self.ring.const(c) for c in _SLOPES[op])

        def step(ys: Any, n: int) -> Any:
            (y,) = ys
            rates = []
            for k in range(n + 1):
                square = self.ring.mul(c2, self._sum(y, y, k))
                rate = self.ring.add(self.ring.mul(c1, y[k]), square)
                rates.append(self.ring.add(rate, c0) if k == 0 else rate)
            return [rates]

        (found,) = self.solved((self.known(op, self.value(a)),), a, step)
        return found

    def integrated(self, op: str, arg: Expr) -> Series:
        """By its derivative, which stands in the table."""
        row, a = primitive(op), self.of(arg)
        rate = substitute(formula(str(row.partials[0])), {row.params[0]: arg})
        slope = self.mul(self.of(rate), self.slope(a))
        return self.whole(self.known(op, self.value(a)), slope)

    def plus_one(self, a: Series, sign: int = 1) -> Series:
        one = self._constant(self._one)
        return self.add(a, one) if sign > 0 else self.sub(a, one)

    def over(self, a: Series) -> Series:
        return self.div(self._constant(self._one), a)


def _generic(condition: Expr, then: Expr, other: Expr) -> Expr:
    """The branch that is not for one point alone."""
    match condition:
        case Apply(op="ne"):
            return then
        case Apply(op="eq"):
            return other
        case _:
            raise NoExpansion


_E = _Expansion
_AT_ZERO = {
    **dict.fromkeys(("exp", "cos", "cosh"), Fraction(1)),
    **dict.fromkeys(("sin", "tan", "sinh", "tanh", "atan"), Fraction(0)),
    **dict.fromkeys(("asin", "asinh", "atanh", "log1p", "erf"), Fraction(0)),
    "erfc": Fraction(1),
    **dict.fromkeys(("sigmoid", "ndtr"), Fraction(1, 2)),
}
_ARITHMETIC: dict[str, Callable[..., Series]] = {
    "add": _E.add,
    "sub": _E.sub,
    "mul": _E.mul,
    "div": _E.div,
    "neg": _E.neg,
    "square": _E.square,
}
_SLOPES = {"tan": (1, 0, 1), "tanh": (1, 0, -1), "sigmoid": (0, 1, -1)}
"""The slope as a polynomial in the value."""

_INTEGRATED = frozenset(
    [
        *("log1p", "atan", "asin", "acos", "asinh", "acosh", "atanh"),
        *("softplus", "logsigmoid", "erf", "erfc", "ndtr"),
    ]
)
"""Whose derivative, in the table, does not ask for their value."""

_CIRCLE, _HYPERBOLA = (("sin", "cos"), -1), (("sinh", "cosh"), 1)


def _of_wave(kind: tuple[tuple[str, str], int], place: int) -> Callable[..., Series]:
    return lambda work, a: work.waves(a, *kind)[place]


def _logistic(op: str) -> Callable[..., Series]:
    return lambda work, a: work.logistic(op, a)


_FUNCTIONS: dict[str, Callable[..., Series]] = {
    "exp": _E.exp,
    "log": _E.log,
    "sqrt": _E.sqrt,
    "rsqrt": lambda work, a: work.over(work.sqrt(a)),
    "expm1": lambda work, a: work.plus_one(work.exp(a), -1),
    "sin": _of_wave(_CIRCLE, 0),
    "cos": _of_wave(_CIRCLE, 1),
    "sinh": _of_wave(_HYPERBOLA, 0),
    "cosh": _of_wave(_HYPERBOLA, 1),
    **{op: _logistic(op) for op in _SLOPES},
}
