"""Correct rounding, held against mpmath-free exact arithmetic and NumPy's formats."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.primitives.lookup import formula
from gradspec.symbolic.enclose import Program, program
from gradspec.symbolic.truth import FORMATS, nearest, nearest_of, round_exact

X = formula("x")


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_is_that_of_the_hardware(value: float) -> None:
    point = [{"x": Fraction(value)}]
    with np.errstate(over="ignore"):
        single, half = float(np.float32(value)), float(np.float16(value))
    assert nearest(X, point, "float64") == [value]
    assert nearest(X, point, "float32") == [single]
    assert nearest(X, point, "float16") == [half]


@pytest.mark.parametrize(
    ("text", "x", "dtype", "expected"),
    [
        ("log(1 + exp(x))", 100, "float32", 100.0),
        ("exp(x)", -100, "float32", 3.783505853677006e-44),
        ("exp(x)", -104, "float32", 0.0),
        ("exp(x)", 89, "float32", math.inf),
        ("exp(x)", 89, "float64", 4.4896128191743455e38),
        ("exp(x)", -745, "float64", 5e-324),
        ("x / 3", 1, "float64", 1 / 3),
        ("log(x)", -1, "float32", math.nan),
        ("1 / x", 0, "float32", math.nan),
        ("exp(log(x)) - x", 3, "float32", 0.0),
        ("sin(x)", 10**22, "float64", -0.8522008497671888),
        ("x + 1", math.inf, "float32", math.inf),
        ("x + 1", math.nan, "float32", math.nan),
    ],
)
def test_known_values(text: str, x: object, dtype: str, expected: float) -> None:
    (value,) = nearest(formula(text), [{"x": x}], dtype)
    assert value == expected or (math.isnan(value) and math.isnan(expected))


def test_a_tie_goes_to_even() -> None:
    middle = Fraction(1) + Fraction(1, 2**24)
    assert nearest(formula("exp(log(x))"), [{"x": middle}], "float32") == [1.0]
    above = middle + Fraction(1, 2**60)
    assert nearest(formula("exp(log(x))"), [{"x": above}], "float32") == [1 + 2**-23]


def test_cancellation_is_seen_through() -> None:
    tiny = Fraction(1, 2**200)
    (value,) = nearest(formula("(1 + x) - 1"), [{"x": tiny}], "float64")
    assert value == 2.0**-200


class _Counting:
    """A program that remembers the precisions at which it ran."""

    def __init__(self, text: str) -> None:
        self._program = program(formula(text))
        self.precisions: list[int] = []

    def run(self, point: Any, precision: int) -> Any:
        self.precisions.append(precision)
        return self._program.run(point, precision)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_easy_value_is_decided_at_the_first_precision(dtype: str) -> None:
    compiled = _Counting("exp(x) + sin(x)")
    nearest_of(cast(Program, compiled), {"x": 0.3}, FORMATS[dtype])
    assert len(compiled.precisions) == 1


MIDDLES = st.sampled_from([form.bits + 1 for form in FORMATS.values()]).flatmap(
    lambda bits: st.integers(2 ** (bits - 1), 2**bits).map(lambda n: n | 1)
)


@given(
    st.one_of(st.integers(-(2**60), 2**60), MIDDLES),
    st.integers(-12, 12),
    st.integers(-1200, 1000),
    st.sampled_from(sorted(FORMATS)),
)
def test_a_ball_is_rounded_once(
    top: int, below: int, exponent: int, dtype: str
) -> None:
    """By way of a double where that is the same: not near the middle between two numbers
    of the format, to which ``below`` adds what no double holds."""
    form = FORMATS[dtype]
    exact = (Fraction(top) + Fraction(below, 2**70)) * Fraction(2) ** exponent
    found = round_exact(_ball(exact), form)
    unit = Fraction(2) ** max(_top(exact) - form.bits, form.least)
    kept = round(exact / unit) * unit  # of a fraction, half to even
    assert math.copysign(1, found) == (-1 if exact < 0 else 1)
    if abs(kept) >= Fraction(2) ** form.top:
        assert math.isinf(found)
    else:
        assert Fraction(found) == kept


def _ball(exact: Fraction) -> arb:
    with ctx.workprec(512):
        return arb(fmpq(exact.numerator, exact.denominator))


def _top(exact: Fraction) -> int:
    """The exponent of the power of two above a number."""
    bits = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    return bits + (abs(exact) >= Fraction(2) ** bits)
