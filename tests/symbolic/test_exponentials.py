"""Fractions of polynomials in x and an exponential."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from gradspec.primitives.formula import formula
from gradspec.symbolic.enclose import enclose
from gradspec.symbolic.exponentials import NoFraction, Terms, factored, shifted
from gradspec.symbolic.isolated import zeros

SILU = "sigmoid(x) + x * sigmoid(x) * sigmoid(-x)"
FORMS = [
    SILU,
    "tanh(softplus(x)) + 4 * x * sigmoid(2 * softplus(x)) * sigmoid(-2 * softplus(x))"
    " * sigmoid(x)",
    "tanh(x) + 4 * x * sigmoid(2 * x) * sigmoid(-2 * x)",
    "x - tanh(x)",
    "sigmoid(1.702 * x) * (1 + 1.702 * x * sigmoid(-1.702 * x))",
    "x / expm1(x) - cosh(x / 2)**2",
    "exp(-3 * x) / (2 + exp(0.5 * x))",
]


def at(terms: Terms, x: arb, e: arb) -> arb:
    return sum((number(c) * x**i * e**j for (i, j), c in terms), arb(0))


def number(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


@pytest.mark.parametrize("text", FORMS)
def test_the_factors_multiply_to_the_function(text: str) -> None:
    found = factored(formula(text), "x")
    with ctx.workprec(200):
        for place in ("-3.7", "-0.3", "0.45", "2.9"):
            x = number(Fraction(place))
            e = (x * number(found.unit)).exp()
            product = number(found.number) * e**found.shift
            for terms, power in found.factors:
                product *= at(terms, x, e) ** power
            true = enclose(formula(text), {"x": Fraction(place)}, 200)
            assert abs(product - true) < arb(2) ** -150
            assert product.overlaps(true)


@pytest.mark.parametrize("text", ["sin(x)", "exp(x * x)", "sqrt(exp(x) + 1)", "abs(x)"])
def test_what_is_of_another_kind(text: str) -> None:
    with pytest.raises(NoFraction):
        factored(formula(text), "x")


def test_about_a_zero_the_terms_have_one_sign() -> None:
    """``1 + x + exp(x)`` is ``u + c * expm1(u)`` with a positive ``c``."""
    (zero,) = zeros(formula(SILU), "x")
    terms: Terms = (((0, 0), Fraction(1)), ((0, 1), Fraction(1)), ((1, 0), Fraction(1)))
    ((_, grown),), moved = shifted(terms, zero.centre, Fraction(1))
    assert moved == (((1, 0), Fraction(1)),)
    assert float(grown) == pytest.approx(-1 - float(zero.near), rel=1e-15)
