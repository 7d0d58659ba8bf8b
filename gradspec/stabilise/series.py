"""Taylor polynomials about removable singularities and zeros where every form cancels.

``expm1(x) / x`` has no value at 0, ``x - sin(x)`` loses all its digits there. About 0, and
about constants that the expression compares or subtracts, a function of one input becomes
a polynomial within a window; outside it stays as it is. The polynomial is the function
there to 2**-56: `symbolic.taylor` bounds what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from gradspec.derive.build import times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, size
from gradspec.primitives.table_polynomials import LONGEST, name_of
from gradspec.stabilise.accuracy_model import GOOD, Quantity
from gradspec.stabilise.choice import Candidate

_WINDOWS = tuple(Fraction(n, 64) for n in (128, 96, 64, 48, 32, 24, 16, 8, 4, 1))
_ORDER, _BITS = 40, 56
_LARGEST, _CENTRES = 110, 3  # nodes of a function, and places looked at


def with_series(quantity: Quantity, start: Candidate) -> Iterator[Expr]:
    """A form with a polynomial about each place near which it has bad points."""
    points = quantity.trials[0].points
    meaning = tidy(quantity.trials[0].meaning)
    used = sorted(points.upstream & names(meaning))
    if len(used) > 1 or size(meaning) > _LARGEST:
        return
    if used and not is_linear(meaning, frozenset(used)):
        return
    factor = coefficient(meaning, used[0], frozenset(used)) if used else meaning
    inputs = sorted(names(factor))
    if len(inputs) != 1 or inputs[0] not in points.floating:
        return
    bad = [
        trial.points.columns[inputs[0]][(score.errors > GOOD) | trial.undefined]
        for trial, score in zip(quantity.trials, start.scores, strict=True)
    ]
    for centre in islice(_centres(factor), _CENTRES):
        for window in _WINDOWS:
            is_near = any(
                (np.abs(x - float(centre)) < float(window)).any() for x in bad
            )
            found = is_near and polynomial_about(factor, inputs[0], centre, window)
            if found:
                inside, series = found
                whole = times(Ref(used[0]), series) if used else series
                yield Select(inside, whole, start.form)


def _centres(expr: Expr) -> Iterator[Fraction]:
    """0, and the constants with which something is compared or of which it is a
    difference."""
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


@lru_cache(maxsize=256)
def polynomial_about(
    factor: Expr, name: str, centre: Fraction, window: Fraction
) -> tuple[Expr, Expr] | None:
    """The condition of the window, and the polynomial of the fewest terms in it."""
    from gradspec.symbolic.jets import NoSeries
    from gradspec.symbolic.taylor import model

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
    return _expressed(name, centre, window, *terms)


def _shortest(found: Any, window: Fraction) -> tuple[int, list[Fraction]] | None:
    """How many coefficients are 0 at the beginning, and as few as are needed of them all
    for 2**-56 of the first that is not; None if there are not enough."""
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
    """A rational coefficient exactly, another one as the double nearest to it."""
    numerator = getattr(number, "p", None)
    if numerator is not None:
        return Fraction(int(numerator), int(number.q))
    return Fraction(float(number.mid()))


def _expressed(
    name: str, centre: Fraction, window: Fraction, first: int, numbers: list[Fraction]
) -> tuple[Expr, Expr] | None:
    """``u**first * (c0 + c1 * t + …)``, ``t`` being ``u`` or, of an even function, its
    square. Beyond the window ``u`` stays near, so that no power of it overflows."""
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
