"""Taylor models and short polynomials: what they enclose, and what they refuse."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from flint import arb, ctx, fmpq

from gradspec.primitives.lookup import formula
from gradspec.symbolic.enclose import enclose
from gradspec.symbolic.series import PRECISION, Model, NoSeries, model, rational_start

SILU = "sigmoid(x) + x * sigmoid(x) * sigmoid(-x)"
GELU = "ndtr(x) + x * exp(-square(x) / 2) / sqrt(2 * pi)"

REMOVABLE = [
    "expm1(x) / x",
    "exp(x) / x - expm1(x) / x / x",
    "(1 - cos(x)) / square(x)",
    "(x - sin(x)) / x**3",
    "x / tanh(x)",
    "1 / expm1(x) - 1 / x",
    "atan(x) / x",
    "erf(x) / x",
]
ANALYTIC = [
    SILU,
    GELU,
    "tanh(softplus(x))",
    "log(2 + x) * sqrt(3 + x)",
    "(2 + x)**1.5",
    "asinh(x) + atanh(x / 2)",
    "x - tanh(x)",
    "max(x, -2) * abs(3 + x)",
    "cosh(x) / (1 + square(x))",
]


def value(found: Model, u: Fraction) -> object:
    """The model at a distance from its point: a ball."""
    step = fmpq(u.numerator, u.denominator)
    total = found.rest
    for a in reversed(found.coefficients):
        total = total * step + a
    return total


@pytest.mark.parametrize("text", REMOVABLE + ANALYTIC)
def test_the_function_lies_in_its_model(text: str) -> None:
    expr, random = formula(text), Random(1)
    found = model(expr, "x", Fraction(0), Fraction(1, 4), 24)
    with ctx.workprec(PRECISION):
        for _ in range(40):
            u = Fraction(random.randint(-(2**20), 2**20), 2**22)
            if u:
                assert enclose(expr, {"x": u}, PRECISION).overlaps(value(found, u))
        assert abs(found.rest) * found.width ** (found.order + 1) < arb(2) ** -20


@pytest.mark.parametrize(
    "text",
    ["1 / x", "expm1(x) / square(x)", "log(x)", "abs(x)", "sign(x) * x", "sqrt(x)"],
)
def test_where_there_is_no_series_there_is_no_model(text: str) -> None:
    with pytest.raises(NoSeries):
        model(formula(text), "x", Fraction(0), Fraction(1, 4), 12)


def test_a_branch_taken_beside_the_point_is_the_function() -> None:
    expr = formula("7 if x == 1 else log(x) / (x - 1)")
    assert rational_start(expr, "x", Fraction(1), Fraction(1, 8), 6) == (
        1,
        Fraction(-1, 2),
    )


def test_a_branch_that_changes_in_the_window_is_refused() -> None:
    with pytest.raises(NoSeries):
        model(formula("x if x > 0.1 else sin(x)"), "x", Fraction(0), Fraction(1, 4), 6)


def test_exact_zeros_stay_exact() -> None:
    found = model(formula("x - tanh(x)"), "x", Fraction(0), Fraction(1, 4), 12)
    assert found.valuation == 3
    assert found.coefficients[3] == fmpq(1, 3)


@pytest.mark.parametrize("text", ["1 / cos(x)", "x / sin(pi * x)", "1 / (2 - exp(x))"])
def test_an_inverse_is_bounded_where_its_own_series_about_the_range_has_no_bound(
    text: str,
) -> None:
    """The range of what is below reaches from the value at the point to nearly 0."""
    expr, random = formula(text), Random(3)
    found = model(expr, "x", Fraction(0), Fraction(1, 2), 40)
    with ctx.workprec(PRECISION):
        assert abs(found.rest) * arb(2) ** -41 < arb(2) ** -8
        for _ in range(40):
            u = Fraction(random.randint(-(2**20), 2**20), 2**21)
            if u:
                assert enclose(expr, {"x": u}, PRECISION).overlaps(value(found, u))


def test_what_is_0_in_the_window_has_no_inverse() -> None:
    for text in ("1 / cos(x)", "1 / (x - 1/4)", "1 / (pi * x - 1)", "1 / (x * x)"):
        with pytest.raises(NoSeries):
            model(formula(text), "x", Fraction(0), Fraction(2), 24)


def test_an_inverse_keeps_what_is_rational() -> None:
    """About 0 even powers of ``1 / (1 + pi * x**3)`` are beyond doubt no part of it."""
    found = model(formula("1 / (1 + pi * x**3)"), "x", Fraction(0), Fraction(1, 8), 9)
    kinds = [isinstance(a, fmpq) for a in found.coefficients]
    assert kinds == [n % 3 != 0 or n == 0 for n in range(10)]
    assert found.coefficients[:3] == (1, 0, 0)
