"""Functions of a product of inputs that is small, with powers of an input before them."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.primitives.formula import formula
from gradspec.stabilise.collected import collected
from gradspec.stabilise.model import Machine
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable

UPSTREAM = frozenset(["dy"])
FORWARD = "exp(-x) * (cosh(e * x) + sinh(e * x) / e)"
SLOPE = "dy * exp(-x) * (x * cosh(e * x) / e - sinh(e * x) / e**2 + x * sinh(e * x))"
POINTS = [
    {"x": x, "e": e, "dy": -1.5}
    for x in (1e-30, -0.3, 2.0, -60.0, 300.0)
    for e in (1e-25, -1e-5, 0.04, 1.5)
]


def value(form: Expr, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    with np.errstate(all="ignore"):
        return float(Machine(columns, np.float64).run(form)[0])


@pytest.mark.parametrize(
    "text",
    [
        FORWARD,
        SLOPE,
        "dy * (exp(e * x) - 1 - e * x) / (e * e * x)",
        "dy * x * (2 - 2 * cosh(3 * e * x) + 9 * (e * x)**2) / e**3",
        "exp(x) * (exp(e * x) - exp(-e * x)) / x",
    ],
)
def test_nothing_is_lost_where_the_product_is_small(text: str) -> None:
    meaning = formula(text)
    forms = list(collected(meaning, UPSTREAM))
    assert forms
    truths = nearest(meaning, POINTS, "float64")
    for form in forms:
        for point, true in zip(POINTS, truths, strict=True):
            assert value(form, **point) == pytest.approx(true, rel=1e-11, abs=1e-290)


@pytest.mark.parametrize(
    "text",
    [
        "dy * exp(-x) / (1 + exp(e * x))",  # a denominator that is no product
        "dy * x * exp(e * x)",  # one term alone
        "dy * (exp(x) - 1) / x",  # of one input
        "dy * (exp(e * x) - 1) / (e * e * x * x)",  # with a pole
    ],
)
def test_what_is_no_such_sum_stays(text: str) -> None:
    assert not list(collected(formula(text), UPSTREAM))


def test_a_gradient_has_its_digits_about_0() -> None:
    """Hamming's 6.1."""
    text = (
        "rule f(x, e) -> y:\n    y = ((1 + 1 / e) * exp(-(1 - e) * x)"
        " - (1 / e - 1) * exp(-(1 + e) * x)) / 2\n"
    )
    form = closed.cotangents(stable(text).rule)["de"]
    truths = nearest(formula(SLOPE), POINTS, "float64")
    for point, true in zip(POINTS, truths, strict=True):
        assert value(form, **point) == pytest.approx(true, rel=1e-9, abs=1e-290)
