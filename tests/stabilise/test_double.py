"""Float64 is measured beside float32: a form must be worse in neither."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.primitives.formula import formula
from gradspec.stabilise.choose import Candidate, choose
from gradspec.stabilise.measure import Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import DOUBLE, SINGLE, Grid, points
from tests.derive.rules import completed
from tests.stabilise.rules import stable, texts, unary

OFF = "x * (1 + 1 / 1099511627776)"
"""x in float32; 2**13 ULP away from it in float64."""


def trial(form: str, grid: Grid) -> Trial:
    sample = points(completed(unary(form)), grid)
    return Trial(formula(form), sample, Machine(sample.columns, grid.work))


def same(form: str) -> Candidate:
    return Candidate(formula(form), formula(form))


def chosen(written: str, other: str) -> str:
    single, double = trial("x + 0", SINGLE), trial("x + 0", DOUBLE)
    choice = choose(single, same(written), [same(other)], (), double)
    return "other" if choice.form == formula(other) else "written"


def test_what_is_worse_in_float64_alone_is_refused() -> None:
    single = trial("x + 0", SINGLE)
    written, other = same("sqrt(square(x)) * sign(x)"), same(OFF)
    assert choose(single, written, [other]).form == other.form
    assert chosen("sqrt(square(x)) * sign(x) + 0 * x", "x * 1") == "other"
    assert chosen("x * 3 / 3", OFF) == "written"


def test_what_float64_alone_gains_is_taken_and_told() -> None:
    result = stable(
        "rule f(p) -> x:\n    assume 0 < p, p < 1\n    x = log(p / (1 - p))"
    )
    assert texts(result.rule)["x"] == "logit(p)"
    assert chosen(OFF, "x") == "other"


@pytest.mark.parametrize(
    ("form", "at"), [("sqrt(x * x + 1)", 1e200), ("log(1 + exp(x))", 745.0)]
)
def test_float64_points_reach_its_ends(form: str, at: float) -> None:
    seen = trial(form, DOUBLE)
    machine = Machine(seen.points.columns, np.float64)
    value = machine.run(formula(form))
    rows = [row["x"] for row in seen.points.rows]
    assert at in rows
    assert not np.isfinite(value[rows.index(at)])
    assert seen.score(formula(form)).whole.bad > 0
    assert texts(stable(unary(form)).rule)["y"] in {"hypot(x, 1)", "softplus(x)"}


def test_truth_is_rounded_to_float64() -> None:
    seen = trial("exp(x)", DOUBLE)
    score = seen.score(formula("exp(x)"))
    assert score.whole.bad == 0
    assert score.whole.worst <= 1.0


def test_inputs_meet_nearly_equal() -> None:
    sample = points(completed("rule f(a, b) -> y:\n    y = a - b\n"))
    a, b = sample.columns["a"], sample.columns["b"]
    near = (a != b) & (np.abs(a - b) <= 1e-4 * np.abs(a))
    assert int(near.sum()) >= 3
    assert int((a == -b).sum()) + int((a == b).sum()) >= 1


def test_a_limit_at_infinity_keeps_the_digits_of_float64() -> None:
    machine = Machine({"x": np.array([np.inf])}, np.float64)
    assert float(machine.run(formula("atan(x)"))[0]) == np.arctan(np.inf)
    assert float(machine.run(formula("erf(x)"))[0]) == 1.0
