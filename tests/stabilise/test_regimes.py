"""Where no form alone is right: regimes by measurement, and products in a safe order."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.library import complete_rules
from benchmarks.published import measured
from gradspec.ir.expr import Ref, Select
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.choose import Candidate
from gradspec.stabilise.measure import Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import extremes, points
from gradspec.stabilise.products import reordered
from gradspec.stabilise.regimes import Form, by_regimes, losses, short
from tests.derive.rules import completed
from tests.stabilise.rules import stable

MORE = Path(__file__).parents[2] / "benchmarks" / "published_more.grad"
RULES = {found.name: found for found in complete_rules(MORE)}

QUADRATIC = """\
rule f(a, b, c) -> y:
    assume b * b >= 4 * (a * c), a != 0
    y = (-b + sqrt(b * b - 4 * (a * c))) / (2 * a)
"""


def _trial(text: str, form: str) -> Trial:
    sample = points(completed(text))
    return Trial(formula(form), sample, Machine(sample.columns))


def _forms(trial: Trial, *texts: str) -> list[Form]:
    exprs = [formula(text) for text in texts]
    lost = [losses(trial.suspicion(expr)) for expr in exprs]
    made = [Candidate(expr, expr) for expr in exprs]
    return [Form(one, bits, 1.0) for one, bits in zip(made, lost, strict=True)]


def test_a_split_at_the_sign_that_tells_forms_apart() -> None:
    trial = _trial("rule f(x) -> y:\n    y = x\n", "log(1 + exp(x))")
    forms = _forms(trial, "log1p(exp(x))", "x + log1p(exp(-x))")
    found = [*by_regimes(forms, (trial,))]
    assert len(found) == 1
    assert isinstance(found[0], Select)
    score = trial.score(found[0])
    assert score.whole.bad == 0 < trial.score(forms[0].candidate.closed).whole.bad


def test_no_split_where_one_form_is_right() -> None:
    trial = _trial("rule f(x) -> y:\n    y = x\n", "log1p(exp(-abs(x)))")
    forms = _forms(trial, "log1p(exp(-abs(x)))", "log(1 + exp(-abs(x)))")
    assert [*by_regimes(forms, (trial,))] == []


def test_luck_is_no_reason_for_a_split() -> None:
    """Errors without a pattern: what a threshold gains on one half of the points it does
    not on the other."""
    trial = _trial("rule f(x) -> y:\n    y = x\n", "x")
    random = np.random.default_rng(1)
    lost = [8.0 * (random.random(len(trial.points)) < 0.5) for _ in range(8)]
    made = Candidate(Ref("x"), Ref("x"))
    assert [*by_regimes([Form(made, bits, 1.0) for bits in lost], (trial,))] == []


def test_what_none_mends_does_not_count_at_last() -> None:
    """Two forms, each right on one side of 0, both wrong far out."""
    trial = _trial("rule f(x) -> y:\n    y = x\n", "x")
    x = trial.points.columns["x"]
    made = Candidate(Ref("x"), Ref("x")), Candidate(formula("x + 0 * x"), Ref("x"))
    beyond = np.abs(x) > 10
    lost = [np.where(beyond | wrong, 20.0, 0.0) for wrong in (x < 0, x > 0)]
    forms = [Form(one, bits, 1.0) for one, bits in zip(made, lost, strict=True)]
    assert [*by_regimes(forms, (trial,))] == []
    (found,) = by_regimes(forms, (trial,), is_last=True)
    assert isinstance(found, Select)


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30))
def test_thresholds_lie_between(low: float, high: float) -> None:
    found = short(min(low, high), max(low, high))
    assert found is None or min(low, high) < found <= max(low, high) or found == 0


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [(-1.0, 2.0, 0), (0.5, 2.0, 1), (3.1, 3.9, Fraction(7, 2)), (1e4, 1e8, 1000000)],
)
def test_thresholds_are_short(low: float, high: float, number: Fraction) -> None:
    found = short(low, high)
    assert found is not None and len(f"{float(found):g}") <= len(f"{float(number):g}")


def test_products_stay_inside_the_range() -> None:
    text = "rule f(x, z) -> y:\n    assume z != 0\n    y = x / (z * z)\n"
    far = extremes(completed(text))
    meaning = formula("x * x / (z * z)")
    trial = Trial(meaning, far, Machine(far.columns))
    best = next(iter(reordered(meaning, (trial,))))
    bad = [trial.score(form).whole.bad for form in (meaning, best)]
    assert bad[1] < bad[0] / 2


def test_exponentials_that_overflow_are_halved() -> None:
    expr = formula("exp(x) * z")
    x, z = np.float32([90.0, 100.0]), np.float32([1e-5, 1e-20])
    columns = {"x": x, "z": z}
    text = "rule f(x, z) -> y:\n    y = exp(x) * z\n"
    far = extremes(completed(text))
    trial = Trial(expr, far, Machine(far.columns))
    halved = [e for e in reordered(expr, (trial,)) if "exp(0.5" in show(e)]
    assert np.isfinite(Machine(columns).run(halved[0])).all()


def test_the_gradient_of_a_root_has_the_forms_of_its_regimes() -> None:
    found = {f.name: f for f in measured(completed(QUADRATIC), 100)}
    assert not any(f.is_worse or f.chosen.core.bad for f in found.values())
    assert all(found[name].chosen.core.worst <= 4 for name in ("da", "dc"))


@pytest.mark.parametrize("name", ["commute_and_associate", "langevin"])
def test_no_bad_points_are_left(name: str) -> None:
    for finding in measured(RULES[name], 150):
        assert finding.written.whole.bad > 0 == finding.chosen.whole.bad
        assert finding.chosen.core.worst <= 8


def test_zero_is_on_the_side_that_is_right_there() -> None:
    once = stable(QUADRATIC)
    (y,) = (let.value for let in once.rule.forward if let.name == "y")
    at = {"a": 1.0, "b": 0.0, "c": 0.0}
    columns = {name: np.float32([value]) for name, value in at.items()}
    assert Machine(columns).run(y)[0] == 0


def test_extremes_are_the_same_every_time() -> None:
    rule = completed(QUADRATIC)
    extremes.cache_clear()
    first = extremes(rule).rows
    extremes.cache_clear()
    assert first == extremes(rule).rows
    assert len(first) >= 20
