"""A function of one input and one logistic of an odd polynomial in it, as one fraction.

What is a sum of products of powers of ``x`` with ``tanh(w)`` and ``sigmoid(±2w)`` (the
gradient of gelu in the approximation by tanh is) has one exponential, ``E = exp(-2w)``:
``(c + E * Q(x)) / (1 + E)**2``. It cancels about its zeros, which float64 forgives where
float32 is wanted. Constants are doubles, since it is for float64 alone; where ``E`` has left
everything else behind the input stands still.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from gradspec.derive.build import times
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref
from gradspec.ir.tidy import fold
from gradspec.ir.walk import names, nodes

Poly: TypeAlias = dict[tuple[int, int], Fraction]
"""By the powers of ``x`` and of ``E``."""

_HIGHEST = 8
_BEYOND = 350
"""An exponent whose exponential is beyond all of float32, its square still in float64."""


class _NotOne(Exception):
    """The function is not of this kind."""


def in_one_logistic(closed: Expr, name: str) -> Expr | None:
    """``closed`` (in ``name`` alone) as such a fraction, if it tends to a number on one side
    and to 0 on the other."""
    try:
        reader = _Reader(name, _exponent(closed, name))
        terms, power = reader.of(closed)
        return _written(terms, power, reader.exponent, name)
    except (_NotOne, ValueError, OverflowError):
        return None


def _exponent(closed: Expr, name: str) -> Poly:
    """``2w``, an odd polynomial that grows."""
    for node in nodes(closed):
        match node:
            case Apply(op="tanh" | "sigmoid" as op, args=(arg,)):
                found, power = _Reader(name, {}).of(arg)
                signs = {c > 0 for c in found.values()}
                odd = all(i % 2 and not j for i, j in found)
                if power or not odd or len(signs) != 1 or max(found) < (2, 0):
                    raise _NotOne
                scale = (2 if op == "tanh" else 1) * (1 if True in signs else -1)
                return {powers: scale * c for powers, c in found.items()}
            case _:
                continue
    raise _NotOne


@dataclass(frozen=True, slots=True)
class _Reader:
    """Expressions as polynomials over powers of ``1 + E``."""

    name: str
    exponent: Poly

    def of(self, node: Expr) -> tuple[Poly, int]:
        if not names(node):
            return {(0, 0): _number(node)}, 0
        match node:
            case Ref(name=self.name):
                return {(1, 0): Fraction(1)}, 0
            case Apply(op="add", args=(a, b)):
                return _sum(self.of(a), self.of(b), 1)
            case Apply(op="sub", args=(a, b)):
                return _sum(self.of(a), self.of(b), -1)
            case Apply(op="neg", args=(a,)):
                return _sum(({}, 0), self.of(a), -1)
            case Apply(op="mul", args=(a, b)):
                return _product(self.of(a), self.of(b))
            case Apply(op="div", args=(a, b)) if not names(b):
                return _product(self.of(a), ({(0, 0): 1 / _number(b)}, 0))
            case Apply(op="square", args=(a,)):
                return self._power(a, 2)
            case Apply(op="pow", args=(a, Const(value=n))) if n in range(_HIGHEST):
                return self._power(a, int(n))
            case Apply(op="tanh" | "sigmoid" as op, args=(a,)):
                return self._logistic(op, self.of(a))
            case _:
                raise _NotOne

    def _power(self, base: Expr, exponent: int) -> tuple[Poly, int]:
        total: tuple[Poly, int] = {(0, 0): Fraction(1)}, 0
        for _ in range(exponent):
            total = _product(total, self.of(base))
        return total

    def _logistic(self, op: str, arg: tuple[Poly, int]) -> tuple[Poly, int]:
        inner, power = arg
        scale = 2 if op == "tanh" else 1
        sign = 1 if min(inner.values(), default=0) > 0 else -1
        if power or not _same({k: sign * scale * c for k, c in inner.items()}, self):
            raise _NotOne
        on, off = Fraction(1), Fraction(-1 if op == "tanh" else 0)
        if sign < 0:
            on, off = off, on
        return {(0, 0): on, (0, 1): off}, 1


def _same(poly: Poly, reader: _Reader) -> bool:
    """To the last bits of doubles."""
    known = reader.exponent
    return poly.keys() == known.keys() and all(
        abs(c - known[powers]) <= abs(c) * Fraction(1, 1 << 50)
        for powers, c in poly.items()
    )


def _number(node: Expr) -> Fraction:
    from gradspec.symbolic.truth import nearest

    if isinstance(node, Const):
        return node.value
    (value,) = nearest(node, [{}], "float64")
    return Fraction(value)


def _sum(one: tuple[Poly, int], other: tuple[Poly, int], sign: int) -> tuple[Poly, int]:
    power = max(one[1], other[1])
    left, right = _over(one, power), _over(other, power)
    keys = left.keys() | right.keys()
    total = {key: left.get(key, 0) + sign * right.get(key, 0) for key in sorted(keys)}
    return {key: Fraction(c) for key, c in total.items() if c}, power


def _over(part: tuple[Poly, int], power: int) -> Poly:
    """The polynomial over ``1 + E`` to that power."""
    while part[1] < power:
        raised, _ = _product(
            (part[0], 0), ({(0, 0): Fraction(1), (0, 1): Fraction(1)}, 0)
        )
        part = raised, part[1] + 1
    return part[0]


def _product(one: tuple[Poly, int], other: tuple[Poly, int]) -> tuple[Poly, int]:
    total: Poly = {}
    for (i, j), a in one[0].items():
        for (k, m), b in other[0].items():
            if i + k > _HIGHEST or j + m > _HIGHEST:
                raise _NotOne
            total[i + k, j + m] = total.get((i + k, j + m), Fraction(0)) + a * b
    return {key: c for key, c in total.items() if c}, one[1] + other[1]


# --- and back --------------------------------------------------------------------------


def _written(terms: Poly, power: int, exponent: Poly, name: str) -> Expr:
    grows = any(i and not j for i, j in terms)
    if power != 2 or grows or max((j for _, j in terms), default=0) != 1:
        raise _NotOne
    bound = _bound(exponent)
    x = Apply("clip", (Ref(name), Const(-bound), Const(bound)))
    grown = Apply("exp", (_in_x({i: -c for (i, _), c in exponent.items()}, x),))
    moving = _in_x({i: c for (i, j), c in terms.items() if j}, x)
    above = _added(_double(terms.get((0, 0), Fraction(0))), times(grown, moving))
    return Apply("div", (above, Apply("square", (Apply("add", (ONE, grown)),))))


def _bound(exponent: Poly) -> Fraction:
    """Where the exponent is at most `_BEYOND`: an eighth of a whole number."""
    low, high = 0, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        at = sum(c * Fraction(middle, 8) ** i for (i, _), c in exponent.items())
        low, high = (middle, high) if at <= _BEYOND else (low, middle)
    return Fraction(low, 8)


def _in_x(terms: dict[int, Fraction], x: Expr) -> Expr:
    """Even and odd powers apart, each by Horner's rule in ``x**2``."""
    even = _horner({i // 2: c for i, c in terms.items() if not i % 2}, x)
    odd = _horner({i // 2: c for i, c in terms.items() if i % 2}, x)
    return _added(even, times(x, odd))


def _horner(terms: dict[int, Fraction], x: Expr) -> Expr:
    total: Expr = ZERO
    for power in range(max(terms, default=-1), -1, -1):
        higher = fold(Apply("mul", (total, Apply("square", (x,)))))
        total = _added(_double(terms.get(power, Fraction(0))), higher)
    return total


def _double(value: Fraction) -> Expr:
    return Const(Fraction(float(value)))


def _added(one: Expr, other: Expr) -> Expr:
    return fold(Apply("add", (one, other)))
