"""Taylor polynomials about removable singularities and zeros where every candidate
cancels.

``expm1(x) / x`` has no value at 0, ``x - sin(x)`` loses all its digits there. About 0,
and about constants that the expression compares or subtracts, a function of one input
becomes a polynomial within a window; outside it is unchanged. The polynomial agrees
with the function there to 2**-56: `symbolic.series` bounds the remainder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from gradspec.derive.chain import times
from gradspec.ir.expr import ONE, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import (
    children,
    memo,
    names,
    nodes,
    size,
    substitute,
    with_children,
)
from gradspec.primitives.table_operators import LONGEST, name_of
from gradspec.stabilise.accuracy_model import GOOD, Trial
from gradspec.stabilise.choice import Candidate
from gradspec.stabilise.names import degree
from gradspec.stabilise.rewriting import replace_in

_WINDOWS = tuple(Fraction(n, 64) for n in (128, 96, 64, 48, 32, 24, 16, 8, 4, 1))
_ORDER, _BITS = 40, 56
_LARGEST, _CENTRES = 110, 3  # nodes of a function, and places looked at
_PRODUCTS, _POWER = 3, 4  # products, and powers of what is outside
_CANCEL = ("add", "sub", "div")
_RATIONAL = frozenset(["add", "sub", "mul", "div", "neg", "square"])
_PRODUCT = "product "
"""A name that no input can have."""


def with_series(trials: tuple[Trial, ...], start: Candidate) -> Iterator[Expr]:
    """A candidate with a polynomial about each place near which it has bad points."""
    points, meaning = trials[0].points, tidy(trials[0].meaning)
    if size(meaning) > _LARGEST:
        return
    for part in _parts(meaning, points.floating, points.upstream):
        pairs = zip(trials, start.scores, strict=True)
        bad = [
            trial.values(part.of)[(score.errors > GOOD) | trial.undefined]
            for trial, score in pairs
        ]
        found = list(_about_places(part, bad, start.form))
        yield from found
        if found:
            return


@dataclass(frozen=True, slots=True)
class _Part:
    """A function ``factor`` of one ``name``, which stands for ``of``: the meaning is
    its product with powers of the factors ``outside``.
    """

    factor: Expr
    name: str
    of: Expr
    outside: tuple[tuple[Expr, int], ...]


def _parts(
    meaning: Expr, floating: frozenset[str], upstream: frozenset[str]
) -> Iterator[_Part]:
    """The meaning as a function of one input, or of one product of inputs, times a
    factor independent of it.
    """
    inputs = (names(meaning) & floating) - upstream
    for name in sorted(inputs):
        yield from _split(meaning, name, Ref(name), upstream)
    for node in _products(meaning, inputs) if len(inputs) > 1 else ():
        form = replace_in(meaning, node, Ref(_PRODUCT))
        solved = [substitute(form, {n: value}) for n, value in _solutions(node)]
        found = [
            p for f in (form, *solved) for p in _split(f, _PRODUCT, node, upstream)
        ]
        yield from sorted(found, key=_least_power, reverse=True)[:1]


def _least_power(part: _Part) -> int:
    """The least power outside; negative where a possible 0 is a divisor."""
    return min((power for _, power in part.outside), default=0)


def _split(
    expr: Expr, name: str, of: Expr, upstream: frozenset[str]
) -> Iterator[_Part]:
    atoms: dict[Expr, str] = {}

    @cache
    def name_product(node: Expr) -> Expr:
        if name in names(node) or (names(node) & upstream and children(node)):
            return with_children(
                node, tuple(name_product(part) for part in children(node))
            )
        if not names(node):
            return node
        return Ref(atoms.setdefault(node, f"{_PRODUCT}{len(atoms)}"))

    if name not in names(expr):
        return
    factor = name_product(expr)
    if atoms and not _may_cancel(factor):
        return
    outside = []
    for atom, known in atoms.items():
        power = degree(factor, Ref(known))
        if power is None or abs(power) > _POWER:
            return
        factor = tidy(substitute(factor, {known: ONE}))
        outside.append((atom, power))
    if names(factor) == {name} and (not outside or _may_cancel(factor)):
        yield _Part(factor, name, of, tuple(outside))


def _may_cancel(factor: Expr) -> bool:
    return any(isinstance(n, Apply) and n.op in _CANCEL for n in nodes(factor))


def _products(expr: Expr, inputs: frozenset[str]) -> Iterator[Expr]:
    """Products and quotients of several inputs that are arguments of functions."""
    found: dict[Expr, None] = {}
    for node in nodes(expr):
        if not isinstance(node, Apply) or node.op in _RATIONAL:
            continue
        for part in node.args:
            is_product = isinstance(part, Apply) and part.op in ("mul", "div")
            if is_product and len(names(part) & inputs) > 1:
                found[part] = None
    yield from islice(found, _PRODUCTS)


def _solutions(node: Expr) -> Iterator[tuple[str, Expr]]:
    """An input of a product, expressed by the product and the other factor."""
    whole = Ref(_PRODUCT)
    match node:
        case Apply(op="mul", args=(a, b)):
            for one, other in ((a, b), (b, a)):
                match one:
                    case Ref(name=name):
                        yield name, Apply("div", (whole, other))
                    case Apply(op="neg", args=(Ref(name=name),)):
                        yield name, Apply("neg", (Apply("div", (whole, other)),))
                    case Apply(op="mul", args=(Const() as number, Ref(name=name))):
                        below = Apply("mul", (number, other))
                        yield name, Apply("div", (whole, below))
        case Apply(op="div", args=(Ref(name=name), b)):
            yield name, Apply("mul", (whole, b))


def _about_places(part: _Part, bad: list[Any], form: Expr) -> Iterator[Expr]:
    centres = _centres(part.factor) if part.of == Ref(part.name) else (Fraction(0),)
    for centre in islice(centres, _CENTRES):
        for window in _WINDOWS:
            with np.errstate(over="ignore"):  # a centre beyond the format is far away
                is_near = any(
                    (np.abs(x - float(centre)) < float(window)).any() for x in bad
                )
            found = is_near and polynomial_about(part.factor, part.name, centre, window)
            if found:
                inside, series = (substitute(e, {part.name: part.of}) for e in found)
                for factor, power in reversed(part.outside):
                    for _ in range(power):
                        series = times(factor, series)
                    for _ in range(-power):
                        series = Apply("div", (series, factor))
                yield Select(inside, series, form)


def _centres(expr: Expr) -> Iterator[Fraction]:
    """0, and the constants in comparisons and differences."""
    found = {Fraction(0): None}
    for node in nodes(expr):
        match node:
            case Apply(
                op="sub" | "add" | "lt" | "le" | "gt" | "ge" | "eq" | "ne", args=args
            ):
                for arg in args:
                    if isinstance(arg, Const):
                        found |= {arg.value: None, -arg.value: None}
            case _:
                continue
    yield from found


@memo(256)
def polynomial_about(
    factor: Expr, name: str, centre: Fraction, window: Fraction
) -> tuple[Expr, Expr] | None:
    """The condition of the window, and the polynomial with the fewest terms in it."""
    from gradspec.symbolic.series import NoSeries, model

    try:
        found = model(factor, name, centre, window, _ORDER)
    except (NoSeries, NotImplementedError, KeyError):
        return None
    try:
        terms = _shortest(found, window)
    except OverflowError:  # numbers that no format has
        return None
    if terms is None:
        return None
    return _polynomial(name, centre, window, *terms)


def _shortest(found: Any, window: Fraction) -> tuple[int, list[Fraction]] | None:
    """The number of leading zero coefficients, and the fewest coefficients that give
    2**-56 relative to the first nonzero one; None if there are not enough.
    """
    numbers = [_fraction(number) for number in found.coefficients]
    rest = float(abs(found.rest).upper()) * float(window) ** (_ORDER + 1)
    first = next((n for n, a in enumerate(numbers) if a), None)
    if first is None:
        return None
    scale = float(abs(numbers[first]) * window**first) * 2.0**-_BITS
    while numbers:
        last = float(abs(numbers[-1]) * window ** (len(numbers) - 1))
        if rest + last > scale:
            break
        rest += last
        numbers.pop()
    return (first, numbers) if rest <= scale and len(numbers) > first else None


def _fraction(number: Any) -> Fraction:
    """A rational coefficient exactly, any other as the nearest double."""
    numerator = getattr(number, "p", None)
    if numerator is not None:
        return Fraction(int(numerator), int(number.q))
    return Fraction(float(number.mid()))


def _polynomial(
    name: str, centre: Fraction, window: Fraction, first: int, numbers: list[Fraction]
) -> tuple[Expr, Expr] | None:
    """``u**first * (c0 + c1 * t + …)``, ``t`` being ``u`` or, for an even function, its
    square. Beyond the window ``u`` is clamped, so that no power of it overflows.
    """
    x: Expr = Ref(name)
    distance = Apply("sub", (x, Const(centre))) if centre else x
    u = Apply("clip", (distance, Const(-window), Const(window)))
    terms = numbers[first:]
    is_even = not any(terms[1::2])
    terms = terms[::2] if is_even else terms
    if len(terms) > LONGEST:
        return None
    t = Apply("mul", (u, u)) if is_even else u
    value: Expr = Const(terms[0])
    if len(terms) > 1:
        value = Apply(name_of(len(terms)), (t, *map(Const, terms)))
    for _ in range(first):
        value = Apply("mul", (u, value))
    return Apply("lt", (Apply("abs", (distance,)), Const(window))), tidy(value)
