"""One logistic at two places that are near each other, in logarithms."""

from __future__ import annotations

import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Select
from gradspec.primitives.formula import formula
from gradspec.stabilise.two_logistics import at_two_logistics
from tests.stabilise.rules import completed, is_right, stable

RATIO = """rule ratio(p, q, t, s) -> y:
    assume 0 < p, 0 < q
    y = (sigmoid(s)**p * (1 - sigmoid(s))**q) / (sigmoid(t)**p * (1 - sigmoid(t))**q)
"""


@pytest.mark.parametrize(
    "text",
    [
        "logsigmoid(s) - logsigmoid(t)",
        "p * log(sigmoid(s)) - xlogy(p, sigmoid(t))",
        "p * softplus(s) - softplus(t) * p",
        "p * logsigmoid(s) + (q * logsigmoid(-s) - p * logsigmoid(t)) "
        "- q * logsigmoid(-t)",
        "3 * logsigmoid(s) - 3 * logsigmoid(t)",
    ],
)
def test_what_cancels_is_done_by_algebra(text: str) -> None:
    meaning = formula(text)
    *_, form = at_two_logistics(meaning, meaning)
    for s, t in ((1e-20, -3e-21), (30 + 1e-13, 30.0), (2.0, -1.0)):
        assert is_right(form, meaning, s=s, t=t, p=0.7, q=0.25)
    assert not is_right(meaning, meaning, s=1e-20, t=-3e-21, p=0.7, q=0.25)


@pytest.mark.parametrize(
    "text",
    [
        "logsigmoid(s) + logsigmoid(t)",
        "p * logsigmoid(s) - q * logsigmoid(t)",
        "logsigmoid(s) - t",
        "logsigmoid(s) * logsigmoid(t)",
    ],
)
def test_nothing_is_made_of_other_sums(text: str) -> None:
    assert not [*at_two_logistics(formula(text), formula(text))]


def test_a_branch_stands_for_all_where_the_search_made_the_cases() -> None:
    difference = "logsigmoid(s) - logsigmoid(t)"
    form = formula(f"{difference} if p < 9 else p")
    slope = formula("logsigmoid(s) * t + (p * s**(p - 1) if p != 0 else 0)")
    for meaning in (formula(difference), slope):
        assert len([*at_two_logistics(form, meaning)]) == 2
    for meaning in (form, formula("s * t + (s if p != 0 else 0)")):
        (whole,) = at_two_logistics(form, meaning)
        assert isinstance(whole, Select), "the author's case stays"


def test_gradients_of_a_likelihood_ratio() -> None:
    meaning = closed.cotangents(completed(RATIO))
    done = closed.cotangents(stable(RATIO).rule)
    given = {"p": 7.7, "q": 4e-30, "t": 4e-30, "s": -1e-32, "dy": 1.0}
    for name in ("dp", "dq"):
        assert not is_right(meaning[name], meaning[name], **given)
        assert is_right(done[name], meaning[name], **given)
