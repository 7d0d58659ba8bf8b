"""Where the caret stands, what the cure says, and that no claim makes diagnosing long."""

from __future__ import annotations

import pytest

from gradspec.diagnostics import Diagnostic
from tests.checks.written import checked


def _finding(text: str) -> Diagnostic:
    found = [d for d in checked(text, budget=1.0).diagnostics if d.is_error]
    assert len(found) == 1
    return found[0]


def _guilty(found: Diagnostic) -> str:
    label = found.labels[-1]
    assert label.message == "probably here"
    return label.source.slice(label.span)


def test_of_two_equal_parts_the_guilty_one_has_the_caret() -> None:
    found = _finding("""
        rule f(mu, s, x: nograd) -> y:
            assume s > 0
            y = log(s) + (x - mu)**2 / (2 * s**2)
            ds = dy * (1 / s - (x - mu)**2 / s**2)
        """)
    label = found.labels[-1]
    assert label.source.text[: label.span.end].endswith("/ s**2")
    assert "write `ds = dy * (1 / s - (x - mu)**2 / s**3)`" in found.help


def test_a_fault_in_a_local_is_mended_there() -> None:
    found = _finding("""
        rule f(x) -> y:
            y = x * sin(x)
            slope = dy * (sin(x) + x * sin(x))
            dx = 2 * slope / 2
        """)
    assert _guilty(found) == "sin(x)"
    assert "write `slope = dy * (sin(x) + x * cos(x))`" in found.help


def test_the_cure_is_in_the_author_s_names() -> None:
    found = _finding("""
        rule f(x, t: nograd) -> y:
            d = x - t
            y = exp(d) * d
            dx = dy * erf(d) * t
        """)
    assert "write `dx = dy * (y + exp(d))`" in found.help


@pytest.mark.parametrize(
    ("wrong", "told", "line"),
    [
        ("dy * x / sqrt(x**2 + a)", "`a` should be squared", "sqrt(x**2 + a**2)"),
        ("dy * x / sqrt(x**2 - a**2)", "the sign of `a**2`", "sqrt(x**2 + a**2)"),
        ("dy * x * sqrt(x**2 + a**2)", "divide by", "x / sqrt(x**2 + a**2)"),
        ("dy / sqrt(x**2 + a**2)", "the factor `x` is missing", "a**2) * x"),
        ("dy * x / (x**2 + a**2)", "should be `sqrt(", "x / sqrt(x**2 + a**2)"),
        ("dy * y / sqrt(x**2 + a**2)", "`y` should be `x`", "dy * x / sqrt("),
    ],
)
def test_the_line_is_the_author_s_with_one_part_mended(
    wrong: str, told: str, line: str
) -> None:
    found = _finding(f"""
        rule f(x, a: static = 0.5) -> y:
            assume a > 0
            y = sqrt(x**2 + a**2)
            dx = {wrong}
        """)
    assert any(told in note for note in found.notes)
    assert line in found.help


def test_a_right_branch_is_left_as_it_is() -> None:
    found = _finding("""
        rule f(x, a: static = 0.5) -> y:
            y = x if x > 0 else a * (exp(x) - 1)
            dx = dy if x > 0 else dy * exp(x)
        """)
    assert _guilty(found) == "dy * exp(x)"
    assert "dy if x > 0 else dy * exp(x) * a" in found.help


LONG = {
    "nested exponentials": """
        rule f(x) -> y:
            y = exp(exp(exp(exp(x))))
            dx = dy * exp(exp(exp(exp(x)))) * exp(exp(x)) * exp(x)
        """,
    "a huge power": """
        rule f(x) -> y:
            y = x**1000000
            dx = dy * 999999 * x**999999
        """,
    "a difference of 1e-30": """
        rule f(x) -> y:
            y = x * x
            dx = dy * 2.000000000000000000000000000001 * x
        """,
    "sharing without end": """
        rule f(x) -> y:
            a = x + x * x
            b = a + a * a
            c = b + b * b
            d = c + c * c
            e = d + d * d
            y = e + e * e
            dx = dy * e
        """,
    "a tower of conditionals": """
        rule f(x) -> y:
            a = x if x > 0 else 2 * x
            b = a if x > 1 else 3 * a
            c = b if x > 2 else 4 * b
            y = c if x > 3 else 5 * c
            dx = dy if x > 3 else 6 * dy
        """,
}


@pytest.mark.parametrize("name", sorted(LONG))
def test_long_wrong_claims_are_refuted(name: str) -> None:
    outcome = checked(LONG[name], budget=1.0)
    assert any(d.code in ("GS401", "GS416") for d in outcome.diagnostics)
