"""What is dear in float32 has a short form in float64, and nothing else has."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.rule import CheckedRule
from gradspec.ir.text import show
from gradspec.ir.walk import names, substitute
from gradspec.plan.planning import plan_rule
from gradspec.primitives.formula import formula
from gradspec.stabilise.agree import agree
from gradspec.stabilise.choose import cost
from gradspec.stabilise.measure import Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names, with_forms
from gradspec.stabilise.points import points
from tests.stabilise.rules import completed, stable, unary

SILU = "x / (1 + exp(-x))"
MISH = "x * tanh(log(1 + exp(x)))"
SWISH = "rule swish(x, beta: static = 1.0) -> y:\n    y = x / (1 + exp(-beta * x))\n"
MARGIN = "rule f(x, t: nograd) -> y:\n    y = log(1 + exp(-t * x))\n    dx = -t * dy * sigmoid(-t * x)\n"
SUM = "rule f(a, b) -> y:\n    y = log(exp(a) + exp(b))\n"


@pytest.mark.parametrize(
    ("text", "name", "slope"),
    [
        (unary(SILU), "dx", "silu_slope(clip(x, -10000, 10000))"),
        (unary(MISH), "dx", "mish_slope(x)"),
        (SWISH, "dx", "silu_slope(beta * clip(x, -1e18, 1e18))"),
    ],
)
def test_a_slope_is_known_by_its_name(text: str, name: str, slope: str) -> None:
    doubles = dict(stable(text).doubles)
    assert show(doubles[name]) == f"dy * {slope}"


@pytest.mark.parametrize("text", [MARGIN, SWISH])
def test_it_has_the_limits_of_the_other(text: str) -> None:
    checked = stable(text)
    doubles = dict(checked.doubles)
    assert "dx" in doubles
    for name, form in checked.doubles:
        usual = Names(checked.rule).close(_entry(checked, name))
        inputs = [i.name for i in checked.rule.tensor_inputs]
        for variable in inputs:
            ends = {n: np.array([2.0, -2.0] * 2) for n in names(usual)}
            ends[variable] = np.array([np.inf, np.inf, -np.inf, -np.inf])
            machine = Machine(ends, np.float64)
            value, expected = machine.run(form), machine.run(usual)
            known = ~np.isnan(expected)
            assert known.any()
            np.testing.assert_allclose(value[known], expected[known], rtol=1e-14)


@pytest.mark.parametrize("text", [unary(SILU), unary(MISH), SWISH, SUM])
def test_it_is_cheaper_and_right_to_the_last_place(text: str) -> None:
    checked = stable(text)
    assert checked.doubles
    for name, form in checked.doubles:
        trial = _trial(checked, name)
        every = np.ones(len(trial.points), dtype=bool)
        score = trial.score_in_double(form, every)
        assert score.whole.bad == 0
        assert score.whole.worst <= 1
        assert cost(form) <= cost(Names(checked.rule).close(_entry(checked, name)))


def _trial(checked: CheckedRule, name: str) -> Trial:
    sample = points(checked.rule)
    machine = Machine(sample.columns, np.float32)
    return Trial(Names(checked.rule).close(_entry(checked, name)), sample, machine)


def _entry(checked: CheckedRule, name: str):  # type: ignore[no-untyped-def]
    rule = checked.rule
    values = {let.name: let.value for let in rule.forward}
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        values[f"d{variable.name}"] = getattr(entry, "value", None)
    return values[name]


@pytest.mark.parametrize(
    "text",
    [
        unary("x**2 + 1"),
        unary("max(x, 0)"),
        unary("x * exp(x)").replace("y = x", "exact y = x"),
    ],
)
def test_what_is_cheap_or_kept_as_written_has_none(text: str) -> None:
    assert "y" not in dict(stable(text).doubles)


def test_an_override_has_none() -> None:
    text = f"{unary(SILU)}    override dx = dy * exp(-x) because 'a choice'\n"
    assert "dx" not in dict(stable(text.replace("'", '"')).doubles)


def test_the_plan_says_which_results_are_to_be_taken() -> None:
    plan = plan_rule(stable(unary(SILU)))
    assert plan.wide == ()
    assert plan.double is not None
    assert plan.double.wide == ("dx",)
    assert plan.double.saved == ()


def test_other_forms_stand_in_their_places() -> None:
    checked = stable(SUM)
    forms = dict(checked.doubles)
    changed = with_forms(checked.rule, forms)
    assert {"da", "db"} <= set(forms)
    assert [entry.value for entry in changed.backward] == [forms["da"], forms["db"]]  # type: ignore[union-attr]


COIN = """rule h(x) -> y:
    p = 1 / (1 + exp(-x))
    y = -(p * log(p) + (1 - p) * log(1 - p))
"""


def test_what_is_wrong_between_the_points_of_the_sample_is_not_taken() -> None:
    """From 37 on `1 - sigmoid(x)` is 0 in float64, and the entropy no small number yet."""
    checked = stable(COIN)
    usual = Names(checked.rule).close(_entry(checked, "y"))
    x = np.float32([20.5, 45.25, 60.5, 81.75])
    true = np.exp(-np.float64(x)) * (1 + np.float64(x))
    for form in (usual, dict(checked.doubles).get("y", usual)):
        got = Machine({"x": x}, np.float32).in_double().run(form)
        np.testing.assert_allclose(got, true, rtol=1e-6)
    thin = formula("-(xlogy(p, p) + xlog1py(1 - p, -p))")
    short = substitute(thin, {"p": formula("sigmoid(x)")})
    assert not agree(checked.rule, short, usual)
    assert agree(checked.rule, usual, usual)


def test_labels_that_are_1_exactly_count() -> None:
    """``sigmoid(x) - z`` in float64 has half of float32's digits at 1 and 25, none at 40."""
    text = "rule f(x, z) -> y:\n    y = log(1 + exp(x)) - x * z\n"
    done = stable(text)
    form = dict(done.doubles).get("dx", closed.cotangents(done.rule)["dx"])
    for x in (3.0, 25.0, 40.0, 80.0):
        columns = {"x": np.array([x]), "z": np.array([1.0]), "dy": np.array([1.0])}
        found = float(Machine(columns, np.float64).run(form)[0])
        assert found == pytest.approx(-1 / (1 + np.exp(x)), rel=1e-12)


def test_functions_that_balls_alone_know_are_compared_too() -> None:
    """``x + inverse_mills(x)`` cancels far on the left, beyond the sample."""
    rule = completed("rule f(x) -> y:\n    y = log_ndtr(x)\n")
    short = formula("x + inverse_mills(x)")
    scaled = "erfcx_slope(-sqrt(0.5) * x) / erfcx(-sqrt(0.5) * x)"
    usual = formula(f"-sqrt(0.5) * {scaled} if x < 0 else x + inverse_mills(x)")
    assert not agree(rule, short, usual)
    assert agree(rule, usual, usual)
