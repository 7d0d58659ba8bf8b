"""Powers of a sum with 1, through what they are more than 1."""

from __future__ import annotations

import pytest

from gradspec.ir import closed
from gradspec.primitives.formula import formula
from gradspec.stabilise.compounded import compounded
from tests.stabilise.rules import completed, is_right, stable

INTEREST = """rule interest(i, n) -> y:
    y = 100 * (((1 + i / n)**n - 1) / (i / n))
"""


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("(1 + v)**a - 1", {"v": 1e-20, "a": 0.7}),
        ("((1 + v)**a - (1 + v)**(a - 1)) / v", {"v": 1e-20, "a": 0.7}),
        ("xlogy((1 + v)**a, 1 + v) - log(1 + v)", {"v": 1e-9, "a": 1e-9}),
        ("(a * (1 + v)**(a - 1) if a != 0 else 0) - a", {"v": 1e-20, "a": 3.5}),
    ],
)
def test_what_is_added_to_1_cancels_by_algebra(
    text: str, given: dict[str, float]
) -> None:
    meaning = formula(text)
    forms = [*compounded(meaning, meaning)]
    assert any(is_right(form, meaning, **given) for form in forms)
    assert not is_right(meaning, meaning, **given)


def test_without_a_logarithm_it_is_what_was_there() -> None:
    meaning = formula("(1 - x)**a - 1")
    forms = [*compounded(meaning, meaning)]
    assert forms
    assert all(is_right(form, meaning, x=4.0, a=3.0) for form in forms)


def test_the_smaller_exponent_is_taken() -> None:
    meaning = formula("((1 + v)**n - 1) / v - n * (1 + v)**(n - 1)")
    *_, form = compounded(meaning, meaning)
    for n in (1e-15, 1 + 1e-12):
        assert is_right(form, meaning, v=0.75, n=n)


@pytest.mark.parametrize(
    "text",
    [
        "x**a - 1",
        "(1 + x)**a - (1 + y)**a",
        "(1 + x)**a - (1 + x)**b",
        "1 + x",
        "(1 + x)**a - 1 if b != 0 else 0",
    ],
)
def test_nothing_is_made_of_others(text: str) -> None:
    assert not [*compounded(formula(text), formula(text))]


def test_gradients_of_compound_interest() -> None:
    meaning = closed.cotangents(completed(INTEREST))
    done = closed.cotangents(stable(INTEREST).rule)
    for name, point in {
        "dn": {"i": 3e-9, "n": 8.0},
        "di": {"i": 0.081742, "n": 4.7648e35},
    }.items():
        given = {**point, "dy": 1.0}
        assert not is_right(meaning[name], meaning[name], **given)
        assert is_right(done[name], meaning[name], **given)
