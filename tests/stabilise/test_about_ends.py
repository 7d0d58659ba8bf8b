"""First terms where float64 has lost all digits, too."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.ir.rule import CheckedRule, Rule
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.about_ends import about_ends, undivided
from gradspec.stabilise.dense import columns, pointed
from gradspec.stabilise.measure import Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import points
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import completed, stable, unary


def in_double(form: Expr, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    return float(Machine(columns, np.float64).run(form)[0])


@cache
def done(text: str) -> CheckedRule:
    return stable(text)


def close(name: str, text: str, **given: float) -> bool:
    """Whether a gradient, computed in float64, is right to float32 at a point."""
    rule = completed(text)
    point = {**given, "dy": 1.0}
    (true,) = nearest(closed.cotangents(rule)[name], [point], "float64")
    assert name in done(text).wide
    found = in_double(closed.cotangents(done(text).rule)[name], **point)
    return found == pytest.approx(true, rel=2.0**-22)


FRESNEL = """rule f(n, c) -> y:
    assume n > 1, 0 < c, c < 1
    y = ((c - sqrt(n * n - 1 + c * c)) / (c + sqrt(n * n - 1 + c * c)))**2
"""
BESSEL = """rule f(x, z) -> y:
    assume x != 0
    y = sinh(z) * (sin(x) / x)
"""


QUOTIENT = """rule f(x, z) -> y:
    y = (exp(x) - exp(z)) / (x - z)
"""


@pytest.mark.parametrize(
    ("x", "z"),
    [(0.0003, 0.00030001), (1.0, 1.00001), (-7e-9, 1e-30), (2.0, 2.01), (-3.0, 0.5)],
)
def test_a_divided_difference_is_right_where_its_points_are_near(
    x: float, z: float
) -> None:
    """float64 loses twice the digits that two numbers have in common; where the truth
    itself overflows and the form is NaN, nothing is asked of the first terms."""
    for name in ("dx", "dz"):
        assert close(name, QUOTIENT, x=x, z=z)


def test_roots_are_gathered_without_multiplying_their_powers_out() -> None:
    """``(c + r)**3`` below the line stays what it is; nothing cancels where c is small."""
    assert close("dn", FRESNEL, n=1.3, c=5e-24)


@pytest.mark.parametrize("x", [2e-19, -1e-13, 1e-3, 0.02, 0.5, 30.0])
def test_a_gradient_of_two_inputs_is_right_about_zero(x: float) -> None:
    """Of the first, which stands in a quotient that cancels, beside the other."""
    assert close("dx", BESSEL, x=x, z=0.5)


def test_the_end_is_told_by_the_points_that_are_lost() -> None:
    """Near 0 in one input, or near the other: the distance is small there."""
    rule = completed("rule f(x, z) -> y:\n    y = (x - z) * (x + z)\n")
    sample = points(rule)
    trial = Trial(formula("x**3 - z**3"), sample, Machine(sample.columns))
    x, z = (np.float64(sample.columns[n]) for n in ("x", "z"))
    near = (np.abs(x - z) < np.abs(z) / 128) & (z != 0)
    assert near.any()
    pairs = list(about_ends(formula("x**3 - z**3"), near, (trial,)))
    assert any("x - z" in show(form) or "z - x" in show(form) for _, form in pairs)
    assert not list(about_ends(formula("x**3 - z**3"), near & False, (trial,)))


def test_a_conditional_gives_way_to_either_branch() -> None:
    forms = {show(form) for form in undivided(formula("2 * (x if x > 0 else x + 1)"))}
    assert forms == {"2 * x", "2 * (x + 1)"}


def test_some_points_have_simple_numbers_exactly() -> None:
    """Beside any other: the logarithm of 1 is 0."""
    rule = completed("rule f(a, c) -> y:\n    assume a > 0\n    y = log(a) * exp(c)\n")
    drawn, core = pointed(rule)
    assert len(core) == len(drawn["a"]) > len(columns(rule)[1])
    assert (drawn["a"] > 0).all()
    assert ((drawn["a"] == 1) & (drawn["c"] > 800)).any()


def test_a_series_is_no_form_outside_of_its_window() -> None:
    """Between the window's end and the next point of the sample it would be wrong."""
    series = "polynomial2(clip(x, -1, 1), 1, 2)"
    form = formula(f"{series} if abs(clip(x, -1, 1)) < 1 else sin(x)")
    assert [show(one) for one in undivided(form)] == ["sin(x)"]
    is_right_beside_its_series(done(COTANGENT).rule)


def test_what_is_found_for_float64_is_compared_at_many_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were a series taken for the function everywhere, that would be seen."""
    monkeypatch.setattr("gradspec.stabilise.about_ends._has_series", lambda _: False)
    is_right_beside_its_series(stable(COTANGENT).rule)


COTANGENT = unary("(1 - x / tan(x)) / (x * x)")


def is_right_beside_its_series(rule: Rule) -> None:
    gradient = closed.cotangents(rule)["dx"]
    places = np.linspace(0.05, 0.9, 200)
    rows = [{"x": x, "dy": 1.0} for x in places.tolist()]
    true = nearest(closed.cotangents(completed(COTANGENT))["dx"], rows, "float64")
    given = {"x": places, "dy": np.ones(200)}
    found = Machine(given, np.float64).run(gradient)
    np.testing.assert_allclose(found, true, rtol=2.0**-24)
