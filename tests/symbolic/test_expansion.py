"""First terms about an end of one input, the other inputs being anything."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.symbolic.expansion import leading
from gradspec.symbolic.first_terms import Leading
from gradspec.symbolic.truth import nearest


def found(text: str, name: str) -> Leading:
    terms = leading(formula(text), name, 8, 3)
    assert terms is not None
    return terms


def value(text: str, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    return float(Machine(columns, np.float64).run(formula(text))[0])


@pytest.mark.parametrize(
    ("text", "name", "power"),
    [
        ("(x * cos(x) - sin(x)) / x**2 * sinh(z)", "x", 1),
        ("(x - sqrt(z * z + x * x)) / (x + sqrt(z * z + x * x)) + 1", "x", 1),
        ("log(x + (1 - x) * exp(-2 / z)) + 2 / z", "x", 1),
        ("tanh(z + x) - tanh(z)", "x", 1),
        ("sigmoid(z + x) - sigmoid(z)", "x", 1),
        ("x / expm1(z * x) - 1 / z", "x", 1),
        ("atan(z + x) - atan(z)", "x", 1),
        ("asin(x) - x + tan(x) * z - sin(x) * z", "x", 3),
        ("acos(z / 4 + x) - acos(z / 4) + asinh(x) - log1p(x)", "x", 1),
        ("(1 + x / z)**z - 1", "x", 1),
        ("cosh(z * x) - cos(x) + rsqrt(1 + x) - 1", "x", 1),
        ("atanh(x) * acosh(2 + z + x) + softplus(x) - softplus(0)", "x", 1),
        ("logsigmoid(z + x) - logsigmoid(z)", "x", 1),
        ("(z + x)**2.5 - sqrt(z) * z * z", "x", 1),
        ("square(z + x) - z * z", "x", 1),
        ("erf(z + x) - erf(z)", "x", 1),
        ("erfc(x) - 1 + 2 / sqrt(pi) * x", "x", 3),
        ("ndtr(z * x) - 0.5", "x", 1),
        ("erf(z * x) / x - 2 / sqrt(pi) * z * exp(-(z * x)**2)", "x", 2),
    ],
)
def test_the_first_terms_are_the_function(text: str, name: str, power: int) -> None:
    """At a small number, against the truth by balls."""
    terms = found(text, name)
    assert terms.power == power
    x, z = 1 / 8192, 0.75
    series = value(show(terms.first), z=z) * x**terms.power
    series *= 1 + sum(value(show(t), z=z) * x**k for k, t in terms.shares)
    (true,) = nearest(formula(text), [{"x": x, "z": z}], "float64")
    assert series == pytest.approx(true, rel=1e-9)


def test_the_exponential_of_a_logarithm_is_gone() -> None:
    """What cancels is known to be 0: the coefficients are fractions of one ring."""
    terms = found("log(x + (1 - x) * exp(-2 / z)) + 2 / z", "x")
    assert show(terms.first) == "exp(2 / z) - 1"


def test_a_polynomial_is_whole() -> None:
    assert found("x + x * x", "x").is_whole
    assert not found("exp(x) - 1", "x").is_whole


@pytest.mark.parametrize("text", ["abs(x) - x", "exp(1 / x)", "sqrt(x)", "floor(x)"])
def test_there_is_none(text: str) -> None:
    assert leading(formula(text), "x", 8, 3) is None
