"""Exact values, tolerances, errors and bad points."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from gradspec.measure.errors import (
    Truth,
    at_sign_changes,
    errors,
    measure,
    tolerances,
    units,
    worse,
)
from gradspec.primitives.lookup import formula
from gradspec.stabilise.accuracy_model import GOOD, Trial
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.points import measured as sampling
from gradspec.symbolic.points.formats import largest
from gradspec.symbolic.truth import FORMATS, pairs
from tests.derive.rules import completed

TINY = 2.0**-126


def _truth(*values: float, tolerance: float | None = None) -> Truth:
    """Exact values; unless said, a tolerance is a unit in the last place of float32."""
    high = np.array(values)
    each = (
        units(high, "float32") if tolerance is None else np.full(len(high), tolerance)
    )
    return Truth(high, np.zeros(len(high)), each)


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
    truth = Truth(np.array([third]), np.array([low]), np.array([2.0**-24]))
    found = errors(np.array([value]), truth, "float32")
    assert found.ulp[0] == pytest.approx(abs(value - third) / 2.0**-25)
    assert 0.3 < found.ulp[0] < 0.5
    assert found.error[0] == found.ulp[0] / 2


def test_what_is_no_number_is_bad_where_the_truth_is_one() -> None:
    truth = _truth(1.0, 1.0, TINY / 4, 0.0, math.inf, math.inf, math.nan)
    values = np.array([math.nan, -math.inf, math.nan, math.inf, 5.0, math.nan, 1.0])
    found = errors(values, truth, "float32")
    assert found.bad.tolist() == [True] * 4 + [False] * 3
    assert found.judged.tolist() == [True] * 4 + [False] * 3
    assert found.error[:4].tolist() == [math.inf] * 4
    assert not found.ulp.any()


def test_where_the_truth_is_tiny_what_is_tiny_is_right() -> None:
    truth = _truth(0.0, TINY / 4, TINY / 4, TINY, 0.0)
    found = errors(np.array([TINY, 0.0, -TINY, 0.0, 2 * TINY]), truth, "float32")
    assert found.bad.tolist() == [False] * 3 + [True] * 2
    assert found.error[:3].tolist() == [0.0] * 3


def test_an_infinity_is_right_within_four_tolerances_of_the_end_of_the_range() -> None:
    top = largest("float32")
    truth = _truth(top, top, top / 2, top, tolerance=top / 100)
    values = np.array([math.inf, -math.inf, math.inf, math.nan])
    found = errors(values, truth, "float32")
    assert found.bad.tolist() == [False, True, True, True]


def test_beyond_four_tolerances_is_bad() -> None:
    tolerance = 2.0**-20
    values = np.array([1.0, 1 + 4 * tolerance, 1 + 8 * tolerance, math.nan])
    truth = _truth(1.0, 1.0, 1.0, 1.0, tolerance=tolerance)
    columns = {"x": np.array([1.0, 2.0, 3.0, 4.0])}
    found = errors(values, truth, "float32")
    every = np.ones(4, dtype=bool)
    whole = measure(found, every, columns, values, truth)
    assert (whole.count, whole.bad, whole.share) == (4, 2, 0.5)
    assert (whole.worst, whole.ulp) == (math.inf, 64.0)
    assert whole.at is not None and whole.at.inputs == (("x", 4.0),)
    assert [s.inputs for s in whole.examples] == [(("x", 3.0),), (("x", 4.0),)]
    numbers = measure(found, every & (np.arange(4) < 3), columns, values, truth)
    assert (numbers.count, numbers.bad, numbers.worst) == (3, 1, 8.0)


def test_at_each_point_the_worse_of_two_counts() -> None:
    truth = _truth(1.0, 1.0, 1.0, 1.0, 1.0)
    first = np.array([1.0, 1.5, np.nan, 1.0, 1.0 + 2.0**-23])
    second = np.array([1.5, 1.0, 2.0, 0.0, 1.0 + 2.0**-23])
    got = worse(first, second, truth, "float32")
    np.testing.assert_array_equal(got, [1.5, 1.5, np.nan, 0.0, 1.0 + 2.0**-23])


# --- tolerances ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_tolerance_is_the_unit_and_what_a_unit_of_each_input_changes(
    dtype: str,
) -> None:
    """x*y - 1 near (2, 0.5): the result is tiny, the inputs' roundings are not."""
    unit = 2.0 ** (1 - FORMATS[dtype].bits)
    rows = [{"x": 2.0 + 4 * unit, "y": 0.5}, {"x": 0.0, "y": 0.5}]
    value = np.array([r["x"] * r["y"] - 1 for r in rows])
    form = formula("x * y - 1")
    asked = ((form,), rows, value, frozenset("xy"), dtype)
    near, far = tolerances(*asked).tolist()
    own = float(units(value[:1], dtype)[0])
    assert near == pytest.approx(own + 0.5 * 2 * unit + rows[0]["x"] * unit / 2)
    assert far == unit, "the slope of a 0 is left out"
    (held, _) = tolerances(*asked[:3], frozenset("y"), dtype).tolist()
    assert held == pytest.approx(own + rows[0]["x"] * unit / 2), "x has no rounding"


def test_a_jump_within_four_units_counts_as_a_slope() -> None:
    near, far = [{"x": 1.0 + 3 * 2.0**-23}], [{"x": 1.0 + 9 * 2.0**-23}]
    form = formula("5 if x > 1 else 3")
    some = (np.array([5.0]), frozenset("x"), "float32")
    assert tolerances((form,), near, *some)[0] == pytest.approx(0.5, rel=1e-5)
    assert tolerances((form,), far, *some)[0] == 2.0**-21


def test_nothing_is_judged_beyond_the_range_or_without_a_value() -> None:
    value = np.array([math.inf, math.nan, 1e39])
    rows = [{"x": 1e30}] * 3
    found = tolerances((formula("x"),), rows, value, frozenset("x"), "float32")
    assert np.isnan(found).all()


def test_a_derivative_is_not_judged_at_the_jump_of_a_sign() -> None:
    rows = [{"x": 0.0}, {"x": 1.0}]
    assert at_sign_changes(formula("sign(x) * x"), rows).tolist() == [True, False]
    assert at_sign_changes(formula("abs(x)"), rows).tolist() == [False, False]


def test_the_tolerance_is_that_of_the_compiler() -> None:
    """The same points, measured by the compiler's own trials and by the audit."""
    rule = completed("rule f(x) -> y:\n    y = log(1 + exp(x)) - x\n")
    form, sample = rule.forward[0].value, sampling.points(rule)
    trial = Trial(form, sample, Machine(sample.columns))
    values = np.float64(trial.values(form))
    high, low = np.array(pairs(form, sample.rows, "float32")).T
    each = tolerances((form,), list(sample.rows), high, sample.floating, "float32")
    found = errors(values, Truth(high, low, each), "float32")
    score = trial.score(form)
    clear = np.abs(score.errors - GOOD) > 0.1  # the trial's truth is rounded
    assert (found.bad == (score.errors > GOOD))[clear].all() and score.bad > 0
    largest_error = found.error.max(where=np.isfinite(found.error), initial=0.0)
    assert largest_error == pytest.approx(score.worst, rel=1e-3)
