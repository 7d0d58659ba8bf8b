"""Sampled points: inside the assumptions, exact in float32, simple first, the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gradspec.symbolic.enclose import enclose
from gradspec.symbolic.points import simple
from gradspec.symbolic.points.simple import sample, survey
from tests.checks.written import written

RULES = {
    "free": "rule f(x) -> y:\n    y = exp(x)",
    "unit": "rule f(p) -> y:\n    assume 0 < p, p < 1\n    y = log(p)",
    "ball": "rule f(x) -> y:\n    assume abs(x) < 1\n    y = asin(x)",
    "order": "rule f(a, x, b) -> y:\n    assume a <= x, x < b\n    y = x - a + b",
    "sum": (
        "rule f(p, q) -> y:\n    assume p > 0, q > 0, p + q < 1\n"
        "    y = log(1 - p - q) + p * q"
    ),
    "kinds": (
        "rule f(x, t: int, on: bool, k: static int = 2, s: static = 0.1) -> (y, w):\n"
        "    y = x * t * k if on else s\n    w = x + t"
    ),
    "curved": "rule f(x, y) -> z:\n    assume x * x + y * y < 1\n    z = x + y",
}


@pytest.mark.parametrize("name", sorted(RULES))
def test_points_are_inside_exact_and_distinct(name: str) -> None:
    rule = written(RULES[name])
    points = sample(rule, 24)
    assert len(points) >= 16
    assert len({tuple(p.items()) for p in points}) == len(points)
    for point in points:
        for assume in rule.assumes:
            assert enclose(assume.condition, point) is True
        for variable in (*rule.tensor_inputs, *rule.outputs):
            key = variable.name if variable.name in point else f"d{variable.name}"
            value = point[key]
            assert Fraction(float(np.float32(float(value)))) == value


def test_every_name_has_a_value_of_its_kind() -> None:
    for point in sample(written(RULES["kinds"]), 24):
        assert set(point) == {"x", "t", "on", "k", "s", "dy", "dw"}
        assert point["t"].denominator == point["k"].denominator == 1
        assert point["on"] in (0, 1)
        assert point["dy"] != 0
        assert point["dw"] not in (0, point["dy"])


def test_the_first_points_are_simple_and_have_the_defaults() -> None:
    points = sample(written(RULES["kinds"]), 24)
    assert points[0]["s"] == Fraction(1, 10)
    assert {p["s"] for p in points} > {Fraction(1, 10)}
    first = [p["x"] for p in sample(written(RULES["free"]), 24)[:8]]
    assert {Fraction(n) for n in (0, 1, -1, 2, 3)} <= set(first)


def test_thresholds_are_met_and_passed_on_both_sides() -> None:
    rule = written("rule f(x) -> y:\n    y = x if 2 * x + 1 > 8 else 0")
    values = [p["x"] for p in sample(rule, 24)]
    at = Fraction(7, 2)
    assert at in values
    assert any(0 < v - at < Fraction(1, 8) for v in values)
    assert any(0 < at - v < Fraction(1, 8) for v in values)


def test_close_thresholds_have_a_point_between_them() -> None:
    rule = written("rule f(x) -> y:\n    y = 1 if 0 < x and x < 1e-6 else x")
    assert any(0 < p["x"] < Fraction(1, 10**6) for p in sample(rule, 24))


def test_ties_are_met() -> None:
    rule = written("rule f(x, z) -> y:\n    y = max(x, z)")
    assert any(p["x"] == p["z"] for p in sample(rule, 32))


def test_points_without_a_value_are_kept_apart() -> None:
    found = survey(written("rule f(x) -> y:\n    y = log(x)"), 24)
    assert all(p["x"] > 0 for p in found.points)
    assert all(p["x"] <= 0 for p in found.undefined)
    assert found.points
    assert found.undefined


def test_what_cannot_be_satisfied_gives_no_points() -> None:
    rule = written("rule f(x) -> y:\n    assume x > 1, x < 0\n    y = x")
    found = survey(rule, 24)
    assert not found.points
    assert not found.undefined


def test_the_seed_decides() -> None:
    rule = written(RULES["free"])
    simple._survey.cache_clear()
    first = sample(rule, 32, seed=1)
    simple._survey.cache_clear()
    assert sample(rule, 32, seed=1) == first
    assert sample(rule, 32, seed=2) != first


def test_the_values_that_a_conditional_tells_apart_are_among_the_points() -> None:
    rule = written(
        "rule f(x, mode: static int = 0, s: static = 0.5) -> y:\n"
        "    y = x if mode == 0 else (x * x if mode > 4 else s * x if s < 2 else x)"
    )
    points = sample(rule, 24)
    assert {p["mode"] for p in points} >= {0, 4, 5}
    assert any(p["s"] < 2 for p in points) and any(p["s"] >= 2 for p in points)


def test_a_slope_keeps_to_the_side_of_its_default() -> None:
    """A comparison of tensors says nothing of a static in it."""
    text = "rule f(x, s: static = 0.1) -> y:\n    y = x if s * x > 0 else s * x"
    assert all(0 < p["s"] < 1 for p in sample(written(text), 24))
