"""The powers of one base as one power."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.symbolic.powers import with_powers_merged
from tests.stabilise.rules import stable

SLOPE = "-c * (b * x**(b - 1) if b != 0 else 0) / x**b / x**b"


def value(form: Expr, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    with np.errstate(all="ignore"):
        return float(Machine(columns, np.float64).run(form)[0])


@pytest.mark.parametrize(
    ("text", "powers"),
    [
        (SLOPE, 1),
        ("(b * x**(b - 1) if b != 0 else 0) / x - x**b / (x * x)", 1),
        ("(b * (x / t)**(b - 1) if b != 0 else 0) / t * exp(-(x / t)**b)", 2),
        ("a * x**(a - 1) * (1 - x)**b - b * x**a * (1 - x)**(b - 1)", 2),
        ("x**(a + b) / x**(2 * a) - x**(b - a - 1)", 2),
        ("x**n / (x - 1) * (1 - x)**b", 2),
        ("x**(1.5 - n) * x**(2 * n)", 3),
    ],
)
def test_it_is_the_same_function_with_one_power_of_each_base(
    text: str, powers: int
) -> None:
    before = formula(text)
    after = with_powers_merged(before)
    assert after is not None
    assert show(after).count("**") <= powers
    for x in (0.25, 0.75):
        given = {"x": x, "a": 2.5, "b": 3.25, "c": -1.5, "n": 0.4, "t": 1.25}
        assert value(after, **given) == pytest.approx(value(before, **given), rel=1e-12)


def test_negative_bases_have_whole_exponents() -> None:
    before = formula(SLOPE)
    after = with_powers_merged(before)
    assert after is not None
    for b in (-3.0, -2.0, 0.0, 2.0, 5.0):
        given = {"x": -1.5, "b": b, "c": 2.0}
        assert value(after, **given) == pytest.approx(value(before, **given))


def test_at_an_exponent_of_zero_it_is_what_is_left() -> None:
    after = with_powers_merged(formula(SLOPE + " + c * x**b * x"))
    assert after is not None
    assert value(after, x=0.0, b=0.0, c=3.0) == 0.0
    assert value(after, x=-2.0, b=0.0, c=3.0) == -6.0


def test_what_has_no_such_powers_stays() -> None:
    assert with_powers_merged(formula("x**2 / (x + x**3)")) is None


@pytest.mark.parametrize("above", ["1", "c", "c * (1 + x)"])
def test_a_slope_is_right_where_its_powers_leave_the_range(above: str) -> None:
    text = f"rule f(c, x, b) -> y:\n    assume x > 0\n    y = {above} / x**b\n"
    form = closed.cotangents(stable(text).rule)["dx"]
    for x, b in ((1e-5, 40.0), (1e5, -40.0), (1e3, 200.0), (1e-3, -200.0)):
        slope = (
            -b * x ** (-b - 1) if abs(b) < 50 else (-np.inf if b * np.log(x) < 0 else 0)
        )
        got = value(form, x=x, b=b, c=1e-6, dy=1.0)
        assert not np.isnan(got)
        if slope == 0:
            assert got == 0
