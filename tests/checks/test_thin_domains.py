"""Curved and narrow domains: what agrees has to agree at many different points of them."""

from __future__ import annotations

import pytest

from gradspec.symbolic.points.domain import Constraints, constraints_of, generic
from tests.checks.written import written

WRONG = {
    "a circle": "rule f(a, b) -> z:\n    assume a**2 + b**2 == 1\n    z = a**3 * b\n    da = 3 * dz * a * b\n    db = dz * a**3",
    "a narrow window": "rule f(x) -> y:\n    assume abs(x - 1) < 1e-9\n    y = x**3\n    dx = dy * 3 * x**2 * (1 + (x - 1))",
    "one just above another": "rule f(a, b) -> z:\n    assume a < b < a + 1e-8\n    z = a * b**2\n    db = dz * 2 * a * b * (1 + (b - a))",
}


@pytest.mark.parametrize("name", WRONG)
def test_generic_points_are_many_inside_and_the_same(name: str) -> None:
    rule = written(WRONG[name])
    inside: Constraints = constraints_of(rule, tuple(a.condition for a in rule.assumes))
    points = list(generic(rule, 40))
    assert len(points) == 40
    assert all(inside.holds(point) for point in points)
    assert points == list(generic(rule, 40))
