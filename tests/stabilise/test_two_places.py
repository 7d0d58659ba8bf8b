"""One power at two places that are near each other."""

from __future__ import annotations

import pytest

from gradspec.ir import closed
from gradspec.primitives.formula import formula
from gradspec.stabilise.two_places import at_two_places
from tests.stabilise.rules import completed, is_right, stable

ROOTS = """rule f(x, n) -> y:
    assume x >= 0
    y = (x + 1)**(1 / n) - x**(1 / n)
"""


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("(x + 1)**a - x**a", {"x": 5e23, "a": 0.7}),
        ("(x + 1)**a - x**a", {"x": 5e23, "a": -0.3}),
        ("x**a - (x - 1)**a", {"x": 3e9, "a": 2.5}),
        ("3 + 2 * (x + h)**a - x**a * 2", {"x": 1e3, "h": 1e-20, "a": 100.0}),
        ("xlog1py((x + 1)**a, x) - xlogy(x**a, x)", {"x": 1e12, "a": 1.5}),
        ("((x + 1)**a * log(x + 1) - x**a * log(x)) / a", {"x": 1e18, "a": -1e-9}),
    ],
)
def test_what_cancels_is_done_by_algebra(text: str, near: dict[str, float]) -> None:
    meaning = formula(text)
    (form,) = at_two_places(meaning)
    assert is_right(form, meaning, **near)
    far = near | {"x": 1.25, "h": 3.0}
    assert is_right(form, meaning, **{name: far[name] for name in near})


@pytest.mark.parametrize("text", ["(x + 1)**a - x**b", "(x + y)**a * x**a", "x**3 - 1"])
def test_nothing_is_made_of_other_sums(text: str) -> None:
    assert not [*at_two_places(formula(text))]


def test_gradients_of_a_difference_of_roots() -> None:
    """Float64 has x + 1 for x beyond 1e16."""
    meaning = closed.cotangents(completed(ROOTS))
    done = closed.cotangents(stable(ROOTS).rule)
    for point in ({"x": 5e23, "n": 1.295}, {"x": 1e20, "n": -3.0}):
        for name in ("dx", "dn"):
            given = {**point, "dy": 1.0}
            assert not is_right(meaning[name], meaning[name], **given)
            assert is_right(done[name], meaning[name], **given)


def test_and_its_value() -> None:
    meaning = closed.outputs(completed(ROOTS))["y"]
    done = closed.outputs(stable(ROOTS).rule)["y"]
    given = {"x": 5e23, "n": 1.295}
    assert not is_right(meaning, meaning, **given)
    assert is_right(done, meaning, **given)
