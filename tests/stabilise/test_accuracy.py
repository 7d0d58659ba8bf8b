"""The measure: tolerances by balls, and what counts as a bad point."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradspec.primitives.lookup import formula
from gradspec.stabilise.accuracy_model import GOOD, Trial
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.points.measured import as_points
from gradspec.symbolic.truth import Condition, units
from tests.derive.rules import completed
from tests.stabilise.rules import unary

ULP = 2.0**-23  # of float32 in [1, 2)


def tolerance(form: str, **at: float) -> float:
    found = Condition(formula(form), (at,), frozenset(at), "float32")
    return found.tolerance(0)


@pytest.mark.parametrize(
    ("form", "x", "expected"),
    [
        ("x", 1.5, 2 * ULP),  # one for the result, one for the input
        ("3 * x", 1.0, 2 * ULP + 3 * ULP),
        ("exp(x)", 10.0, units(math.exp(10), "float32") + math.exp(10) * 8 * ULP),
        ("x - 1", 1.5, ULP / 2 + ULP),
        ("1 if x > 0 else 0", 1.0, ULP),
        ("x", 0.0, units(0.0, "float32")),
    ],
)
def test_a_tolerance_is_an_ulp_and_what_the_inputs_ulps_change(
    form: str, x: float, expected: float
) -> None:
    assert tolerance(form, x=x) == pytest.approx(expected, rel=1e-4)


def test_all_floating_inputs_count_and_no_upstream_gradient_does() -> None:
    form, point = formula("dy * x * z"), {"x": 1.0, "z": 1.0, "dy": 1.0}
    every = Condition(form, (point,), frozenset(["x", "z"]), "float32").tolerance(0)
    assert every == pytest.approx(3 * ULP, rel=1e-4)


def test_a_jump_beside_the_point_counts_as_a_slope() -> None:
    edge = float(np.float32(0.1))
    assert tolerance("1 if x > 0.1 else 0", x=edge) >= 1 / GOOD


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_units_stop_at_the_least_normal_and_at_the_largest_number(dtype: str) -> None:
    limits = np.finfo(dtype)
    found = units(np.array([0.0, limits.max, np.inf, np.nan]), dtype)
    assert np.isfinite(found).all() and (found > 0).all()
    assert found[0] == np.spacing(limits.tiny)


def score(meaning: str, candidate: str, *numbers: float) -> tuple[int, int]:
    """Bad points and gaps."""
    rule = completed(unary(meaning))
    rows = [{"x": float(np.float32(x))} for x in numbers]
    points = as_points(rule, rows, np.float32)
    trial = Trial(formula(meaning), points, Machine(points.columns))
    found = trial.score(formula(candidate))
    return found.bad, found.gaps


@pytest.mark.parametrize(
    ("meaning", "candidate", "x", "bad"),
    [
        ("x - 1", "x - 1", 1.5, 0),
        ("sigmoid(-x)", "1 - sigmoid(x)", 30.0, 1),  # 0 for 9e-14
        ("softplus(x)", "log(1 + exp(x))", 100.0, 1),  # an infinity for 100
        ("exp(x)", "exp(x)", 200.0, 0),  # beyond the range: not judged
        ("exp(x)", "inf * x", 88.722839, 0),  # beside the largest number
        ("exp(-x)", "0 * x", 95.0, 0),  # subnormal: it may be flushed
        ("exp(-x)", "0 * x", 80.0, 1),
        ("x**2 * exp(-x**2)", "x**2 * exp(-x**2)", 1e20, 1),  # NaN for 0
        ("sin(x)", "sin(x * 1.0000002)", 1e6, 0),  # the inputs' own rounding
        ("sin(x)", "sin(x * 1.0001)", 1e6, 1),
    ],
)
def test_bad_points(meaning: str, candidate: str, x: float, bad: int) -> None:
    assert score(meaning, candidate, x) == (bad, 0)


def test_where_the_function_is_not_defined_only_gaps_count() -> None:
    assert score("x * log(x)", "x * log(x)", 0.0) == (0, 1)
    assert score("x * log(x)", "xlogy(x, x)", 0.0) == (0, 0)


def test_beside_a_zero_of_a_gradient_a_short_form_is_good() -> None:
    """silu's gradient at its zero, -1.278: no digit of the result is right, and none
    would be if the input were rounded once more."""
    form = "sigmoid(x) + x * sigmoid(x) * sigmoid(-x)"
    zero = -1.2784645
    around = [float(np.float32(zero)) + k * ULP for k in range(-40, 41)]
    assert score(form, form, *around) == (0, 0)
