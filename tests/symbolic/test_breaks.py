"""Surfaces, their roots, exact values at a point and limits beside it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.ir.expr import Const, show
from gradspec.primitives.lookup import formula
from gradspec.symbolic.borders.limits import Trend, approach
from gradspec.symbolic.borders.roots import exactly, isolate, solve
from gradspec.symbolic.borders.surfaces import Origin, Surface, surfaces
from gradspec.symbolic.enclose import enclose, program

BASE = {"x": Fraction(1), "y": Fraction(0), "c": Fraction(7, 10)}


def found(text: str) -> list[str]:
    return [f"{show(s.left)} = {show(s.right)}" for s in surfaces(formula(text))]


# --- surfaces ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exp(x) + x**3", []),
        ("x / 2", []),
        ("1 / (x - 1)", ["x - 1 = 0"]),
        ("log(x) / x", ["x = 0"]),
        ("sqrt(1 - x)", ["1 - x = 0"]),
        ("x**-2", ["x = 0"]),
        ("x**0.5", ["x = 0"]),
        ("tan(x)", ["cos(x) = 0"]),
        ("clip(x, 0, c)", ["x = 0", "x = c"]),
        ("max(x, y)", ["x = y"]),
        ("x if abs(x) > 3 else 0", ["abs(x) = 3"]),
        ("asin(x)", ["-1 = x", "x = 1"]),
        ("floor(x / 2)", ["x / 2 = floor(x / 2)"]),
    ],
)
def test_where_a_formula_may_break(text: str, expected: list[str]) -> None:
    assert list(dict.fromkeys(found(text))) == expected


def test_what_a_surface_stems_from() -> None:
    (choice,) = surfaces(formula("1 if x > 0 else 0"))
    (kink,) = surfaces(formula("abs(x)"))
    (step,) = surfaces(formula("sign(x)"))
    (edge,) = surfaces(formula("log(x)"))
    origins = [s.origin for s in (choice, kink, step, edge)]
    assert origins == [Origin.CHOICE, Origin.KINK, Origin.STEP, Origin.EDGE]


# --- roots -------------------------------------------------------------------------------


def roots(left: str, right: str = "0") -> list[str]:
    surface = Surface(formula(left), formula(right), Origin.EDGE)
    return [root.text for root in solve(surface, "x", BASE)]


def test_a_root_is_told_as_one_writes_it() -> None:
    assert roots("x", "c") == ["c"]
    assert roots("c * x - 2", "y") == ["(y + 2) / c"]
    assert roots("abs(x)", "3") == ["3", "-3"]
    assert roots("exp(x) - 1") == ["0"]
    assert roots("1 + abs(x)") == []


def test_the_same_on_both_sides_is_no_border() -> None:
    assert roots("x * y") == []


def search(left: str) -> list[str]:
    surface = Surface(formula(left), Const(Fraction(0)), Origin.EDGE)
    return [root.text for root in isolate(surface, "x", BASE)]


def test_roots_are_isolated_by_balls() -> None:
    assert search("x**2 - 2") == ["1.41421…", "-1.41421…"]
    assert search("cos(x)") == ["1.5708…", "-1.5708…", "4.71239…"]
    assert search("x**3 - x") == ["0", "1", "-1"]
    assert search("1 + exp(-x)") == []
    assert search("x**2 + 1") == []


def test_an_isolated_root_is_very_near_to_the_root() -> None:
    surface = Surface(formula("x**2 - 2"), Const(Fraction(0)), Origin.EDGE)
    root = isolate(surface, "x", BASE)[0]
    assert not root.exact
    assert abs(root.value**2 - 2) < Fraction(1, 2**380)


# --- exact values ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x if x > 0.7 else 2 * x", "7/5"),
        ("clip(x, 0, 0.7)", "7/10"),
        ("sign(x - 0.7)", "0"),
        ("sign(sin(x - c))", "0"),
        ("floor(x + 0.3)", "1"),
        ("exp(x - 0.7) / 3", "1/3"),
        ("heaviside(x - c, 0.5)", "1/2"),
    ],
)
def test_rational_values_stay_rational(text: str, value: str) -> None:
    point = {**BASE, "x": Fraction(7, 10)}
    assert exactly(formula(text), point) == Fraction(value)


@given(st.fractions(-4, 4, max_denominator=50))
@settings(deadline=None, max_examples=40)
def test_exact_values_are_those_of_balls(x: Fraction) -> None:
    expr = formula("abs(x) * max(x, 0.7) - exp(x) / (1 + x**2)")
    exact = exactly(expr, {"x": x})
    assert enclose(expr, {"x": x}).overlaps(
        enclose(Const(exact), {}) if isinstance(exact, Fraction) else exact
    )


# --- limits ------------------------------------------------------------------------------


def sides(text: str) -> list[str]:
    compiled = program(formula(text))
    told = []
    for side in (-1, 1):
        limits = approach(compiled, {"x": Fraction(0)}, "x", side, ())
        assert limits is not None
        (limit,) = limits
        finite = limit.trend is Trend.FINITE
        told.append(f"{float(limit.value.mid()):.3g}" if finite else limit.trend.value)
    return told


@pytest.mark.parametrize(
    ("text", "below", "above"),
    [
        ("abs(x) / x", "-1", "1"),
        ("sin(x) / x", "1", "1"),
        ("(1 - cos(x)) / x**2", "0.5", "0.5"),
        ("(exp(x) - 1 - x - x**2 / 2) / x**3", "0.167", "0.167"),
        ("1 / x", "infinite", "infinite"),
        ("log(x)", "undefined", "infinite"),
        ("log(-log(x))", "undefined", "infinite"),
        ("1 / (1 + exp(1 / x))", "1", "0"),
        ("sin(1 / x)", "undefined", "undefined"),
        ("floor(x)", "-1", "0"),
    ],
)
def test_one_sided_limits(text: str, below: str, above: str) -> None:
    told = [value if len(value) > 5 else f"{float(value):.3g}" for value in sides(text)]
    tiny = ["0" if "e-" in value else value for value in told]
    assert tiny == [below, above]


def test_slow_limits_say_how_far_they_are() -> None:
    compiled = program(formula("1 / log(x)"))
    (limit,) = approach(compiled, {"x": Fraction(0)}, "x", 1, ()) or ()
    assert limit.is_finite
    assert limit.slack > 0
    assert abs(float(limit.value.mid())) <= limit.slack


def test_a_side_that_is_not_assumed_has_no_limit() -> None:
    compiled, above = program(formula("x")), (formula("x > 0"),)
    assert approach(compiled, {"x": Fraction(0)}, "x", -1, above) is None
    assert approach(compiled, {"x": Fraction(0)}, "x", 1, above) is not None
