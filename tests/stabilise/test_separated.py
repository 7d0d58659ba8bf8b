"""Gradients that are sums of functions of one variable each."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.exponential import about_limits
from gradspec.stabilise.model import Machine
from gradspec.stabilise.separated import separated
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable

INPUTS, UPSTREAM = frozenset(["a", "b", "e"]), frozenset(["dy"])
H = "(1 / expm1({0}) - {0} * exp({0}) / expm1({0})**2)"
SUM = f"dy * (1 + {H.format('(a * e)')} + {H.format('(b * e)')})"
FRACTION = (
    "dy * ((exp((a + b) * e) - 1) / ((exp(a * e) - 1) * (exp(b * e) - 1))"
    " + e * (a + b) * exp((a + b) * e) / ((exp(a * e) - 1) * (exp(b * e) - 1))"
    " - e * (exp((a + b) * e) - 1) * b * exp(b * e)"
    " / ((exp(a * e) - 1) * (exp(b * e) - 1)**2)"
    " - e * (exp((a + b) * e) - 1) * a * exp(a * e)"
    " / ((exp(a * e) - 1)**2 * (exp(b * e) - 1)))"
)
POINTS = [
    {"a": a, "b": b, "e": e, "dy": 1.0}
    for a, b in ((2.0, 3.0), (1e-9, 2.0), (1e-5, -3e-5), (-7.0, 1e-3), (0.25, -0.75))
    for e in (1e-6, -0.5, 3.0, -100.0, 709.0)
]


def value(form: Expr, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    with np.errstate(all="ignore"):
        return float(Machine(columns, np.float64).run(form)[0])


@pytest.mark.parametrize("text", [SUM, FRACTION])
def test_the_parts_of_a_fraction_are_found(text: str) -> None:
    meaning = formula(text)
    (form,) = separated(meaning, INPUTS, UPSTREAM)
    truths = nearest(formula(SUM), POINTS, "float64")
    for point, true in zip(POINTS, truths, strict=True):
        assert value(form, **point) == pytest.approx(true, rel=1e-13, abs=0.0)


@pytest.mark.parametrize(
    "text",
    [
        "dy * exp(a * e) / (1 + exp(b * e))",  # a product
        "dy * (exp(a * e) + exp(b * e) + exp((a + b) * e))",
        "dy * (1 / expm1(a) + 1 / expm1(b))",  # a pole at 0
        "dy * (sin(a * e) + sin(b * e))",  # parts that have no better form
    ],
)
def test_what_is_no_such_sum_stays(text: str) -> None:
    assert not list(separated(formula(text), INPUTS, UPSTREAM))


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("tanh(x)", -1, 1),
        ("x / (1 + x) / (1 + exp(x))", 1, 0),
        ("(exp(x) - 1 - x * exp(x)) / (exp(x) - 1)**2", -1, 0),
    ],
)
def test_limits_stand_apart(text: str, left: int, right: int) -> None:
    found = about_limits(formula(text), "x")
    assert found is not None
    ends, rest = found
    assert ends == (left, right)
    for x in (-50.0, -2.0, 2.0, 50.0):
        truth = formula(f"{text} - ({left})" if x < 0 else f"{text} - {right}")
        (true,) = nearest(truth, [{"x": x}], "float64")
        assert value(rest, x=x) == pytest.approx(true, rel=1e-13, abs=0.0)


def test_what_grows_has_no_limits() -> None:
    assert about_limits(formula("x * tanh(x)"), "x") is None
    assert about_limits(formula("x / (1 + exp(x))"), "x") is None


def test_a_gradient_is_right_for_small_and_for_large_products() -> None:
    """Hamming's 3.4.2."""
    text = (
        "rule f(a, b, e) -> y:\n    assume e != 0\n"
        "    y = e * (exp((a + b) * e) - 1) / ((exp(a * e) - 1) * (exp(b * e) - 1))\n"
    )
    done = stable(text)
    form = closed.cotangents(done.rule)["de"]
    truths = nearest(formula(SUM), POINTS, "float32")
    for point, true in zip(POINTS, truths, strict=True):
        assert value(form, **point) == pytest.approx(true, rel=1e-7), show(form)
