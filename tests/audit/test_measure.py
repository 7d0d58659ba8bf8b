"""Exact values, errors and bad points."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from gradspec.audit.measure import Truth, errors, measure, worse
from gradspec.primitives.formula import formula
from gradspec.symbolic.pairs import pairs

TINY = 2.0**-126


def _truth(*values: float) -> Truth:
    return Truth(np.array(values), np.zeros(len(values)))


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("exp(x)", mpmath.exp),
        ("log(1 + exp(x))", lambda x: mpmath.log1p(mpmath.exp(x))),
        ("x - tanh(x)", lambda x: x - mpmath.tanh(x)),
        ("erfc(x)", mpmath.erfc),
    ],
)
def test_pairs_hold_the_value_to_more_digits_than_a_double(
    text: str, reference
) -> None:  # type: ignore[no-untyped-def]
    points = [1e-9, 0.3, 1.0, 7.7, -2.5, 25.0]
    with mpmath.workdps(120):
        for x, (high, low) in zip(
            points,
            pairs(formula(text), [{"x": p} for p in points], "float64"),
            strict=True,
        ):
            exact = reference(mpmath.mpf(x))
            assert abs(high + mpmath.mpf(low) - exact) <= abs(exact) * 2.0**-64
            assert high == float(exact)


def test_pairs_are_nan_where_there_is_no_value() -> None:
    found = pairs(formula("log(x)"), [{"x": -1.0}, {"x": 0.0}, {"x": 1.0}], "float32")
    assert [math.isnan(high) for high, _ in found] == [True, True, False]


def test_errors_are_counted_from_the_exact_value() -> None:
    third = 1 / 3
    low = float(mpmath.mpf(1) / 3 - third)
    value = float(np.float32(third))
    found = errors(
        np.array([value]), Truth(np.array([third]), np.array([low])), "float32"
    )
    assert found.ulp[0] == pytest.approx(abs(value - third) / 2.0**-25)
    assert 0.3 < found.ulp[0] < 0.5


def test_what_is_bad_lost_or_not_measured() -> None:
    truth = _truth(1.0, 1.0, 1.0, 1.0, TINY / 4, TINY / 4, math.inf, math.inf, 0.0)
    values = np.array([math.nan, math.inf, 0.0, 1.0, 0.0, math.nan, 5.0, math.nan, 7.0])
    found = errors(values, truth, "float32")
    assert found.bad.tolist() == [True] * 3 + [False] * 6
    assert found.lost.tolist() == [False] * 5 + [True, False, True, False]
    assert found.measured.tolist() == [True] * 4 + [False] * 5


def test_shares_count_bad_points_and_the_largest_error_does_not() -> None:
    ulp = 2.0**-23
    values = np.array([1.0, 1 + 2 * ulp, 1 + 8 * ulp, math.nan])
    truth = _truth(1.0, 1.0, 1.0, 1.0)
    columns = {"x": np.array([1.0, 2.0, 3.0, 4.0])}
    found = errors(values, truth, "float32")
    whole = measure(found, np.ones(4, dtype=bool), columns, values, truth)
    assert (whole.count, whole.bad, whole.worst) == (4, 1, 8.0)
    assert (whole.over1, whole.over4) == (0.75, 0.5)
    assert whole.at is not None and whole.at.inputs == (("x", 3.0),)
    assert [spot.inputs for spot in whole.examples] == [(("x", 4.0),)]


def test_at_each_point_the_worse_of_two_counts() -> None:
    exact = np.array([1.0, 1.0, 1.0, 1.0, 1.0])
    truth = Truth(exact, np.zeros(5))
    first = np.array([1.0, 1.5, np.nan, 1.0, 1.0 + 2.0**-23])
    second = np.array([1.5, 1.0, 2.0, 0.0, 1.0 + 2.0**-23])
    got = worse(first, second, truth, "float32")
    np.testing.assert_array_equal(got, [1.5, 1.5, np.nan, 0.0, 1.0 + 2.0**-23])
