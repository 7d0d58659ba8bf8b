"""The measuring seam: a float32 machine, strata of points, errors in ULP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradspec.ir.expr import Expr
from gradspec.primitives.formula import formula
from gradspec.stabilise.choose import Candidate, choose
from gradspec.stabilise.measure import QUIET, Score, Stratum, Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import points
from tests.derive.rules import completed
from tests.stabilise.rules import unary


def trial(meaning: str, *assumes: str) -> Trial:
    lines = [f"assume {condition}" for condition in assumes]
    sample = points(completed(unary(meaning, *lines)))
    return Trial(formula(meaning), sample, Machine(sample.columns))


def same(form: Expr) -> Candidate:
    return Candidate(form, form)


def test_arithmetic_is_rounded_step_by_step() -> None:
    machine = Machine({"x": np.float32([1e-8, 1.0])})
    assert machine.run(formula("1 + x - 1")).tolist() == [0.0, 1.0]
    assert machine.run(formula("exp(x) - 1")).tolist()[0] == 0.0
    assert machine.run(formula("expm1(x)")).tolist()[0] == pytest.approx(1e-8)


def test_a_function_is_rounded_once() -> None:
    machine = Machine({"x": np.linspace(-3, 3, 50, dtype=np.float32)})
    for op in ("exp", "tanh", "sigmoid", "erf"):
        value = machine.run(formula(f"{op}(x)"))
        assert value.dtype == np.float32


def test_limits_of_functions_that_balls_compute() -> None:
    machine = Machine({"x": np.float32([np.inf, -np.inf, np.nan, 0.0])})
    assert machine.run(formula("sigmoid(x)")).tolist()[:2] == [1.0, 0.0]
    assert np.isnan(machine.run(formula("sigmoid(x)"))[2])


def test_an_exact_form_has_no_error() -> None:
    found = trial("2 * x").score(formula("2 * x"))
    assert (found.whole.bad, found.whole.worst) == (0, 0.0)
    assert found.is_good


def test_overflow_and_lost_digits_are_seen() -> None:
    seen = trial("log(1 + exp(x))")
    naive = seen.score_with_noise(formula("log(1 + exp(x))"))
    assert naive.whole.bad > 0 and naive.core.worst > 1e3 and naive.noisy > 0
    good = seen.score_with_noise(formula("softplus(x)"))
    assert good.is_good and good.noisy == 0


def test_the_least_bad_point_is_told() -> None:
    seen = trial("log(exp(x) - 1 + 1)")
    score = seen.score(formula("log(exp(x) - 1 + 1)"))
    assert score.whole.bad > 0
    sizes = [abs(row["x"]) for row in seen.points.rows]
    assert sizes[score.whole.at] <= sorted(sizes)[-1]


def test_assumptions_are_kept() -> None:
    sample = points(completed(unary("log(x)", "assume x > 0", "assume x < 1")))
    assert len(sample) > 100
    assert all(0 < row["x"] < 1 for row in sample.rows)


def test_both_strata_have_points() -> None:
    sample = points(completed(unary("sin(x)")))
    assert len(sample) >= 150
    assert 80 <= int(sample.core.sum()) < len(sample)
    assert {100.0, -100.0, 20.0} <= {row["x"] for row in sample.rows}


def test_a_gap_is_closed_only_by_what_is_defined_there() -> None:
    seen = trial("x * log(x)", "x >= 0")
    written, other = formula("x * log(x)"), formula("xlogy(x, x)")
    assert seen.score(written).gaps == 1
    assert seen.score(other).gaps == 0
    assert choose(seen, same(written), [same(other)]).form == other


def test_what_is_written_wins_ties() -> None:
    seen = trial("x + 1")
    written, other = formula("x + 1"), formula("1 + x")
    assert choose(seen, same(written), [same(other)]).form == written


def test_what_is_less_accurate_is_refused() -> None:
    seen = trial("softplus(x)")
    written = formula("softplus(x)")
    others = [same(formula("log1p(exp(x))")), same(formula("log(1 + exp(x))"))]
    assert choose(seen, same(written), others, others).form == written


def test_a_branch_not_taken_makes_no_noise() -> None:
    seen = trial("x if x > 0 else exp(x)")
    assert seen.score_with_noise(formula("x if x > 0 else exp(x)")).noisy == 0
    assert seen.score_with_noise(formula("x + 0 * exp(x)")).noisy > 0


def score(whole: list[float], core: list[float], gaps: int = 0) -> Score:
    """Of errors in ULP; infinite ones are bad points."""

    def stratum(errors: list[float]) -> Stratum:
        off = np.array(errors)
        bad = np.isinf(off)
        worst = float(off[~bad].max(initial=0.0))
        share = float((off > 4.0).mean())
        return Stratum(len(off), int(bad.sum()), worst, share, 0, off)

    return Score(stratum(whole), stratum(core), gaps)


BAD = [np.inf] * 8
FINE = [0.5] * 8


@pytest.mark.parametrize(
    ("new", "old", "is_worse"),
    [
        # one point of the core lost, eight bad ones mended, of these one in the core
        (([200.0, *FINE], [200.0, 0.5]), ([0.5, *BAD], [0.5, np.inf]), False),
        # the same, with none in the core
        (([200.0, *FINE], [200.0, 0.5]), ([0.5, *BAD], [0.5, 0.5]), True),
        # three lost where eight are mended
        (([200.0] * 3 + FINE, [200.0, 0.5]), ([0.5] * 3 + BAD, [0.5, np.inf]), True),
        # gaps: a quarter of what is mended, and no more
        ((FINE, [0.5], 2), (BAD, [0.5], 0), False),
        ((FINE, [0.5], 3), (BAD, [0.5], 0), True),
        ((FINE, [0.5], 1), (FINE, [0.5], 0), True),
    ],
)
def test_what_mending_may_cost(
    new: tuple[Any, ...], old: tuple[Any, ...], is_worse: bool
) -> None:
    assert score(*new).is_worse_than(score(*old), QUIET) is is_worse
