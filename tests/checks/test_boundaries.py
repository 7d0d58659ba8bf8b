"""At boundaries: kinks, jumps, removable singularities, ends of the domain.

Written to be read: each rule shows one thing, and beside it what is said of it.
"""

from __future__ import annotations

from textwrap import indent

import pytest

from gradspec.driver.run import compile_source
from gradspec.ir.rule import Status
from gradspec.options import Options
from gradspec.source import Source
from tests.checks.written import checked, codes, status

RELU = "y = max(x, 0)\ndx = dy if x > 0 else (0 if x < 0 else {})"
RELATIVE = "y = expm1(x) / x if x != 0 else 1"
ITS_SLOPE = "dx = dy * (x * exp(x) - expm1(x)) / x**2 if x != 0 else"


def rule(body: str, inputs: str = "x") -> str:
    return f"rule f({inputs}) -> y:\n{indent(body, '    ')}"


def label(text: str) -> str:
    (found,) = checked(text).diagnostics
    return found.labels[0].message


# --- kinks: the upstream gradient times a number between the slopes --------------------


@pytest.mark.parametrize("value", ["0", "dy", "dy / 2", "0.3 * dy", "dy * (1 - 0.9)"])
def test_a_choice_at_a_kink(value: str) -> None:
    assert codes(rule(RELU.format(value))) == ()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("1.5 * dy", "gives 1.5 at x = 0, dy = 1; the slopes there are 0 and 1"),
        ("-dy", "gives -1 at x = 0, dy = 1; the slopes there are 0 and 1"),
        ("1", "not linear at x = 0: 1 for dy = 1, 1 for dy = 2, 1 for dy = -1"),
        ("0.5", "not linear at x = 0: 0.5 for dy = 1, 0.5 for dy = 2, 0.5 for dy = -1"),
        ("dy**2", "not linear at x = 0: 1 for dy = 1, 4 for dy = 2, 1 for dy = -1"),
        ("abs(dy)", "not linear at x = 0: 1 for dy = 1, 2 for dy = 2, 1 for dy = -1"),
    ],
)
def test_no_choice_at_a_kink(value: str, told: str) -> None:
    text = rule(RELU.format(value))
    assert codes(text) == ("GS402",)
    assert status(text) is Status.REFUTED
    assert label(text) == told


def test_a_kink_on_a_threshold_that_no_float_has() -> None:
    """Whether ``x > 0.7`` holds at 0.7 is decided by fractions, not by balls."""
    kink = "y = max(x, 0.7)\ndx = dy if x > 0.7 else (0 if x < 0.7 else {})"
    assert codes(rule(kink.format("dy / 3"))) == ()
    assert codes(rule(kink.format("1.01 * dy"))) == ("GS402",)


def test_a_kink_at_a_root_that_no_float_has() -> None:
    kink = "y = abs(x**3 - 2)\ndx = dy * 3 * x**2 * sign(x**3 - 2)"
    assert codes(rule(kink)) == ()


def test_a_kink_that_a_static_makes() -> None:
    """The slopes of elu agree at 0 for alpha = 1 only."""
    elu = "y = x if x > 0 else alpha * expm1(x)\n"
    slope = "dx = dy if x > 0 else (dy * alpha * exp(x) if x < 0 else {})"
    inputs = "x, alpha: static = 1.0"
    assert codes(rule(elu + slope.format("dy"), inputs)) == ()
    assert codes(rule(elu + slope.format("dy * alpha**2"), inputs)) == ("GS402",)


def test_several_outputs_are_judged_one_by_one() -> None:
    text = """
        rule f(x) -> (y, z):
            y = max(x, 0)
            z = 3 * x
            dx = 3 * dz + (dy if x > 0 else (0 if x < 0 else {}))
        """
    assert codes(text.format("dy / 2")) == ()
    assert codes(text.format("dz / 2")) == ("GS431",)


MEDIAN = "y = max(min(a, b), min(max(a, b), c))"


def test_where_several_inputs_meet_all_slopes_beside_count() -> None:
    """Along a alone the median of (a, 0, 0) is 0, and 1 is a slope beside it."""
    slope = "da = dy * {} if b == a and a == c else"
    rest = "(dy if b < a and a < c or c < a and a < b else ({}))"
    ties = "dy / 2 if (a == b or a == c) and not (b == c) else 0"
    text = f"{MEDIAN}\n{slope} {rest.format(ties)}"
    assert codes(rule(MEDIAN, "a, b, c")) == ()
    assert codes(rule(text.format("1"), "a, b, c")) == ()
    assert codes(rule(text.format("1.5"), "a, b, c")) == ("GS431",)


# --- removable singularities ------------------------------------------------------------


@pytest.mark.parametrize(
    ("quotient", "limit"),
    [
        ("sin(x) / x", "1"),
        ("tanh(x) / x", "1"),
        ("log1p(x**2) / x**2", "1"),
        ("(1 - cos(x)) / x**2", "0.5"),
        ("(cosh(x) - 1) / x**2", "1 / 2"),
        ("i0(x) * sin(x) / x", "1"),
    ],
)
def test_the_limit_and_nothing_else_fills_a_hole(quotient: str, limit: str) -> None:
    """All even: the derivative of a constant is right for their gradients too."""
    assert codes(rule(f"y = {quotient} if x != 0 else {limit}")) == ()
    assert codes(rule(f"y = {quotient} if x != 0 else 0.999999")) == ("GS430",)


def test_a_patch_that_is_not_the_limit_shows_both_values() -> None:
    text = rule("y = sin(x) / x if x != 0 else 0")
    assert label(text) == "gives 0 at x = 0; the limit is 1"


def test_a_patch_at_the_end_of_the_domain() -> None:
    entropy = "assume x >= 0\ny = -x * log(x) if x > 0 else {}"
    assert codes(rule(entropy.format("0"))) == ()
    assert codes(rule(entropy.format("1"))) == ("GS430",)


def test_the_gradient_at_a_filled_hole_is_the_limit_of_the_derivative() -> None:
    assert codes(rule(f"{RELATIVE}\n{ITS_SLOPE} dy / 2")) == ()
    assert codes(rule(f"{RELATIVE}\n{ITS_SLOPE} 0")) == ("GS431",)
    assert codes(rule(f"{RELATIVE}\n{ITS_SLOPE} 0.5")) == ("GS402",)


def test_a_derived_gradient_that_a_patch_makes_wrong_is_told() -> None:
    """The branch ``else t`` has no x: piece by piece its slope is 0. Where the function
    is one of a single expression its slope is known, and nothing is wrong."""
    relative = rule("y = expm1(x * t) / x if x != 0 else t", "x, t")
    assert codes(relative) == ("GS434",)
    assert label(relative) == "dx is 0 at x = 0, t = 2; the slope there is 2"
    assert codes(rule(RELATIVE)) == ()


def test_kinks_that_cancel() -> None:
    """clip has slope 1 at 0, relu 0; the difference is 0 all around."""
    assert codes(rule("y = clip(x, 0, 1) - relu(x)")) == ("GS434",)
    assert codes(rule("y = clip(x, 0, 1) - relu(x)\ndx = -dy if x > 1 else 0")) == ()


def test_a_pole_that_is_patched_has_no_limit_to_miss() -> None:
    assert codes(rule("y = a / x if x != 0 else 0", "x, a")) == ()


# --- jumps -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forward",
    [
        "x**2 / 2 if abs(x) <= 1 else abs(x) - 1",
        "x if x > 0 else exp(x)",
        "x if x < 6 else 5",
        "2 * x if x < 0.3 else x + 0.4",
        "x if x != 0 else 1",
    ],
)
def test_branches_that_do_not_meet(forward: str) -> None:
    assert codes(rule(f"y = {forward}")) == ("GS432",)


def test_a_jump_shows_the_values_on_both_sides() -> None:
    text = rule("y = x**2 if x < 3 else x")
    assert label(text) == "gives 3 at x = 3; 9 on the left, 3 on the right"


@pytest.mark.parametrize(
    "forward",
    [
        "x * floor(x)",
        "x * sign(x - 1)",
        "x % 2",
        "x if abs(x) > 1 else 0",
        "x * (1 if x > 1 else 0)",
        "x + (1 if x > 1 else (-1 if x < -1 else 0))",
        "(x + 1) * x / abs(x)",
    ],
)
def test_a_jump_on_purpose(forward: str) -> None:
    """A step, a conditional between numbers, and what is cut off to 0."""
    assert codes(rule(f"y = {forward}")) == ()


def test_a_surrogate_says_that_a_jump_is_meant() -> None:
    assert codes(rule("y = x if x > 1 else 0.5\nsurrogate y = x")) == ()


def test_a_seam_that_is_too_small_to_see_is_none() -> None:
    """softplus as torch has it, and the published constants of sRGB."""
    softplus = "y = log1p(exp(x)) if x < {} else x"
    assert codes(rule(softplus.format("20"))) == ()
    assert codes(rule(softplus.format("2"))) == ("GS432",)
    srgb = "y = x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055)**2.4"
    assert codes(rule(f"assume x >= 0\n{srgb}")) == ()


def test_a_jump_only_for_another_static_is_not_the_authors() -> None:
    seam = "y = log1p(exp(x)) if x < limit else x"
    assert codes(rule(seam, "x, limit: static = 20.0")) == ()
    assert codes(rule(seam, "x, limit: static = 1.0")) == ("GS432",)


# --- the program that is emitted -----------------------------------------------------------


def _all_codes(text: str) -> list[str]:
    result, _ = compile_source(Source("f.grad", text + "\n"), "f.grad", Options())
    return [d.code for d in result.diagnostics]


@pytest.mark.parametrize(
    ("forward", "holes"),
    [
        ("(exp(a * x) - exp(x)) / x", 2),
        ("x / (exp(a * x) - exp(-x))", 2),
        ("sinc(x)", 0),
        ("sin(x) / x if x != 0 else 1", 0),
        ("sqrt(x**2)", 0),
        ("1 / x", 0),
    ],
)
def test_nan_where_there_is_a_limit(forward: str, holes: int) -> None:
    """In the value and in its gradient; a pole has none."""
    inputs = "x, a" if "a * x" in forward else "x"
    found = _all_codes(rule(f"y = {forward}", inputs))
    assert found.count("GS433") == holes
    assert holes or not found


@pytest.mark.parametrize(
    "forward",
    [
        "sin(x) / x",
        "x / (exp(x) - 1)",
        "log1p(x) / x",
        "(1 - cos(x)) / x**2",
        "sin(a * x) / x",
    ],
)
def test_a_hole_of_one_input_is_filled_by_a_series(forward: str) -> None:
    domain = "assume x > -1\n" if "log1p" in forward else ""
    inputs = "x, a" if "a * x" in forward else "x"
    assert _all_codes(rule(f"{domain}y = {forward}", inputs)) == []


def test_a_limit_along_each_axis_is_no_limit() -> None:
    """Along x = z the quotient is 1/2, along the axes 0."""
    none = rule("y = x * z / (x**2 + z**2)", "x, z")
    one = rule("y = x**2 * z / (x**2 + z**2)", "x, z")
    assert "GS433" not in _all_codes(none)
    assert "GS433" in _all_codes(one)


def test_what_the_compiler_fills_is_not_told() -> None:
    assert _all_codes(rule("assume x >= 0\ny = x * log(x)")) == []


def test_the_norm_at_the_origin() -> None:
    by_hand = rule("y = sqrt(x**2 + z**2)", "x, z")
    assert _all_codes(by_hand) == ["GS433", "GS433"]
    assert _all_codes(rule("y = hypot(x, z)", "x, z")) == []
