"""Curved and narrow domains: what agrees has to agree at many different points of them."""

from __future__ import annotations

import pytest

from gradspec.symbolic.domain import Constraints, generic, restrained
from tests.checks.written import checked, written

WRONG = {
    "a circle": (
        "rule f(a, b) -> z:\n    assume a**2 + b**2 == 1\n    z = a**3 * b\n"
        "    da = 3 * dz * a * b\n    db = dz * a**3"
    ),
    "a narrow window": (
        "rule f(x) -> y:\n    assume abs(x - 1) < 1e-9\n    y = x**3\n"
        "    dx = dy * 3 * x**2 * (1 + (x - 1))"
    ),
    "a narrow window and a free input": (
        "rule f(x, t) -> y:\n    assume abs(x - 1) < 1e-9\n    y = x**3 * t\n"
        "    dx = dy * 3 * x**2 * t * (1 + (x - 1))"
    ),
    "a sum that no binary number meets": (
        "rule f(p, q) -> z:\n    assume p + q == 0.7\n    z = p**2 * q\n"
        "    dp = dz * p * q\n    dq = dz * p**2"
    ),
    "an ellipse, one quarter": (
        "rule f(a, b) -> z:\n    assume a**2 + 3 * b**2 == 2, a > 0, b > 0\n"
        "    z = a * b**2\n    db = dz * 2 * a * b**2"
    ),
    "a product": (
        "rule f(a, b) -> z:\n    assume a * b == 1\n    z = a**2 * b\n"
        "    da = dz * 2 * b"
    ),
    "a large product": (
        "rule f(a, b) -> z:\n    assume a * b > 1e6\n    z = log(a * b) * a\n"
        "    da = dz * (log(a * b) + 1.0000001)"
    ),
    "one just above another": (
        "rule f(a, b) -> z:\n    assume a < b < a + 1e-8\n    z = a * b**2\n"
        "    db = dz * 2 * a * b * (1 + (b - a))"
    ),
    "a window about a product": (
        "rule f(a, b) -> z:\n    assume abs(a * b - 1) < 1e-9\n    z = a * b**2\n"
        "    db = dz * 2"
    ),
    "a window by two ends": (
        "rule f(x) -> y:\n    assume 1 < x\n    assume x < 1 + 1e-12\n    y = x**2\n"
        "    dx = dy * 2 * x * (1 + (x - 1)**2)"
    ),
    "a window far from 0": (
        "rule f(x) -> y:\n    assume abs(x - 1e6) < 1e-6\n    y = x**2\n"
        "    dx = dy * 2 * x * (1 + (x - 1e6))"
    ),
    "a window by a square": (
        "rule f(x, t) -> y:\n    assume (x - t)**2 - 1e-20 < 0\n    y = x**2 * t\n"
        "    dx = dy * 2 * x * t * (1 + (x - t))"
    ),
    "far narrower than fifty digits": (
        "rule f(x) -> y:\n    assume abs(x - 1) < 1e-90\n    y = x**3\n"
        "    dx = dy * 3 * x**2 * (1 + (x - 1))"
    ),
    "a transcendental equation": (
        "rule f(a, b) -> z:\n    assume exp(a) == b\n    z = a * b**2\n"
        "    da = dz * b\n    db = dz * 2 * a * b"
    ),
    "two equations": (
        "rule f(a, b, c) -> z:\n    assume a + b + c == 1, a**2 + b**2 + c**2 == 1\n"
        "    z = a * b * c\n    da = dz * b**2"
    ),
    "shares of a whole": (
        "rule f(p[n]) -> y[]:\n    assume sum(p[i] for i) == 1, p[i] > 0\n"
        "    y = sum(p[i]**3 for i)\n    dp[i] = dy * 3 * p[i]**2 * (1 - p[i] * 1e-9)"
    ),
    "unit rows": (
        "rule f(u[a, n]) -> y[]:\n    assume sum(u[i, j]**2 for j) == 1\n"
        "    y = sum(u[i, j]**3 for i, j)\n    du[i, j] = dy * 3 * u[i, j]"
    ),
    "few whole numbers": (
        "rule f(x, k: int) -> y:\n    assume 1 <= k, k <= 3\n    y = x**k\n"
        "    dx = dy * k * x**(k - 1) * (1 if k < 3 else 1 + 1e-9)"
    ),
}
RIGHT = {
    "a circle": (
        "rule f(a, b) -> z:\n    assume a**2 + b**2 == 1\n    z = a**3 * b\n"
        "    da = 3 * dz * a**2 * b\n    db = dz * a**3"
    ),
    "by means of the equation": (
        "rule f(a, b) -> z:\n    assume a**2 + b**2 == 1\n    z = a**3 * b\n"
        "    da = 3 * dz * (1 - b**2) * b\n    db = dz * a * (1 - b**2)"
    ),
    "by means of a transcendental one": (
        "rule f(a, b) -> z:\n    assume exp(a) == b\n    z = exp(2 * a) + b\n"
        "    da = dz * 2 * b**2"
    ),
    "a sum": (
        "rule f(p, q) -> z:\n    assume p + q == 0.7\n    z = p**2 * q\n"
        "    dp = dz * 2 * p * (0.7 - p)"
    ),
    "a pinned input": (
        "rule f(x, y) -> z:\n    assume x == 2\n    z = x**2 * y\n    dx = dz * 4 * y"
    ),
    "all inputs pinned": (
        "rule f(a, b) -> z:\n    assume a == 2, a == b\n    z = a**2 * b\n"
        "    da = dz * 4 * b"
    ),
    "a window": (
        "rule f(x) -> y:\n    assume abs(x - 1e6) < 1e-6\n    y = x**2\n"
        "    dx = dy * 2 * x"
    ),
    "few whole numbers": (
        "rule f(x, k: int) -> y:\n    assume 1 <= k, k <= 3, x > 0\n"
        "    y = x * gamma(k)\n"
        "    dx = dy * (1 if k < 3 else 2)"
    ),
    "shares of a whole": (
        "rule f(p[n]) -> y[]:\n    assume sum(p[i] for i) == 1, p[i] > 0\n"
        "    y = sum(p[i]**3 for i)\n"
        "    dp[i] = dy * 3 * p[i]**2 * sum(p[j] for j)"
    ),
}
UNSATISFIABLE = {
    "two lines": (
        "rule f(a, b) -> z:\n    assume a == b, a == b + 1\n    z = a * b\n"
        "    da = dz * b"
    ),
    "a circle of negative size": (
        "rule f(a, b) -> z:\n    assume a**2 + b**2 == -1\n    z = a * b"
    ),
    "a circle and a far line": (
        "rule f(a, b) -> z:\n    assume a**2 + b**2 == 1, a + b == 2\n    z = a * b\n"
        "    da = dz * b * a"
    ),
    "shares": (
        "rule f(p[n]) -> y[]:\n    assume sum(p[i] for i) == 1, p[i] > 1\n"
        "    y = sum(p[i]**3 for i)\n    dp[i] = dy * 3 * p[i]**2"
    ),
}
FEW = {
    "isolated points": (
        "rule f(a, b) -> z:\n    assume a**2 == 2, b == a\n    z = a**3 * b\n"
        "    da = 6 * dz * b"
    ),
    "two values": (
        "rule f(x) -> y:\n    assume abs(x) == 2\n    y = x**4\n    dx = dy * 16 * x"
    ),
}


def _errors(text: str) -> tuple[str, ...]:
    found = checked(text).diagnostics
    return tuple(d.code for d in found if d.severity.value == "error")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_gradient_is_refuted(name: str) -> None:
    assert _errors(WRONG[name]) in (("GS401",), ("GS416",), ("GS431",))


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_one_is_not(name: str) -> None:
    assert _errors(RIGHT[name]) == ()


@pytest.mark.parametrize("name", UNSATISFIABLE)
def test_equations_that_contradict_each_other(name: str) -> None:
    assert _errors(UNSATISFIABLE[name]) == ("GS410",)


@pytest.mark.parametrize("name", FEW)
def test_agreement_at_too_few_points_is_none(name: str) -> None:
    assert _errors(FEW[name]) == ("GS415",)


@pytest.mark.parametrize(
    "name", ["a circle", "a narrow window", "one just above another"]
)
def test_generic_points_are_many_inside_and_the_same(name: str) -> None:
    rule = written(WRONG[name])
    inside: Constraints = restrained(rule, tuple(a.condition for a in rule.assumes))
    points = list(generic(rule, 40))
    assert len(points) == 40
    assert all(inside.holds(point) for point in points)
    assert points == list(generic(rule, 40))
