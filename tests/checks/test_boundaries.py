"""At boundaries: kinks, jumps, removable singularities, ends of the domain.

Written to be read: each rule shows one thing, and beside it what is said of it.
"""

from __future__ import annotations

from textwrap import indent

import pytest

from gradspec.diagnostics import Diagnostic
from gradspec.driver.run import compile_source
from gradspec.options import Options
from gradspec.source import Source


def rule(body: str, inputs: str = "x") -> str:
    return f"rule f({inputs}) -> y:\n{indent(body, '    ')}"


def diagnostics(inputs: str, body: str) -> tuple[Diagnostic, ...]:
    return _all(rule(body, inputs))


def _all(text: str) -> tuple[Diagnostic, ...]:
    result, _ = compile_source(Source("f.grad", text + "\n"), "f.grad", Options())
    return result.diagnostics


def _all_codes(text: str) -> list[str]:
    return [found.code for found in _all(text)]


@pytest.mark.parametrize(
    ("forward", "holes"),
    [
        ("(exp(a * x) - exp(x)) / x", 1),
        ("x / (exp(a * x) - exp(-x))", 1),
        ("sinc(x)", 0),
        ("sin(x) / x if x != 0 else 1", 0),
        ("sqrt(x**2)", 0),
        ("1 / x", 0),
    ],
)
def test_nan_where_there_is_a_limit(forward: str, holes: int) -> None:
    """In the value and in its gradient, told once; a pole has none."""
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
    assert _all_codes(rule("y = sqrt(x**2 + z**2)", "x, z")) == []
    assert _all_codes(rule("y = hypot(x, z)", "x, z")) == []
