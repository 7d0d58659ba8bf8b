"""What is said of rules that call foreign functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.driver.run import compile_source
from gradspec.options import Options
from gradspec.report.summary import describe
from gradspec.source import Source

HEAD = """\
extern def j1(x) = "scipy.special.j1"
extern def j0(x) = "scipy.special.j0" with derivative -j1(x)
extern def d(x, y) = "numpy.hypot" with derivative x / d(x, y), y / d(x, y)
def ring(t) = j0(t**2)

"""
GIVEN = ", given j0'(x) = -j1(x)"
PROVED = {
    "rule f(x) -> y:\n    y = x * j0(x)\n    dx = dy * (j0(x) - x * j1(x))": f"dx proved{GIVEN}",
    "rule f(x, a) -> y:\n    y = a * j0(x)\n    da = dy * j0(x)": "da proved",
    "rule f(x) -> y:\n    y = ring(x)\n    dx = -2 * x * dy * j1(x**2)": f"dx proved{GIVEN}",
    "rule f(x[n]) -> y:\n    y = sum(j0(x[i]) for i)\n    dx[i] = -dy * j1(x[i])": (
        f"dx proved at every size{GIVEN}"
    ),
    "rule f(x) -> y:\n    y = d(x, 2)\n    dx = dy * x / d(x, 2)": (
        "dx proved, given ∂d/∂x(x, y) = x / d(x, y), ∂d/∂y(x, y) = y / d(x, y)"
    ),
    "rule f(x: nograd, a) -> y:\n    y = a * j1(x)\n    da = dy * j1(x)": "da proved",
    "rule f(x, a) -> y:\n    y = a * j1(x)\n    da = dy * j1(x)\n"
    '    override dx = 0 because "no"': "da proved",
    "rule g(x) -> y:\n    y = j0(x)\n\nrule f(x) -> y:\n    y = g(x)**2\n"
    "    dx = -2 * dy * j0(x) * j1(x)": f"dx proved{GIVEN}",
}
WRONG = {
    "rule f(x) -> y:\n    y = j0(x)\n    dx = dy * j1(x)": "GS401",
    "rule f(x) -> y:\n    y = j0(2 * x)\n    dx = -dy * j1(2 * x)": "GS401",
    "rule f(x) -> y:\n    y = j0(x)\n    dx = -dy * j0(x)": "GS401",
    "rule f(x[n]) -> y:\n    y = sum(j0(x[i]) for i)\n    dx[i] = dy * j1(x[i])": "GS401",
    "rule f(x) -> y:\n    y = j1(x)": "GS266",
    "rule f(x) -> y:\n    y = j1(x)\n    dx = dy": "GS266",
    "rule f(x[n]) -> y:\n    y = sum(j1(x[i]) for i)": "GS266",
    "rule f(x) -> y:\n    y = j1(x, x)": "GS203",
}


def _compiled(text: str):  # type: ignore[no-untyped-def]
    return compile_source(
        Source("page.grad", HEAD + text + "\n"), "page.grad", Options()
    )[0]


@pytest.mark.parametrize("text", PROVED)
def test_proofs_say_what_they_take_as_given(text: str) -> None:
    made = _compiled(text)
    assert [d for d in made.diagnostics if d.is_error] == []
    told = [describe(v) for rule in made.rules for v in rule.verdicts]
    assert PROVED[text] in told


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_or_cannot_be_known_is_refused(text: str) -> None:
    (found,) = [d for d in _compiled(text).diagnostics if d.is_error]
    assert found.code == WRONG[text]
    assert found.labels[0].source.path == "page.grad"


def test_a_refutation_says_whose_numbers_it_has() -> None:
    (found,) = _compiled(
        "rule f(x) -> y:\n    y = j0(x)\n    dx = dy * j1(x)"
    ).diagnostics
    assert any("stand-in for `j1`" in note for note in found.notes)
    assert "write `dx = -dy * j1(x)`" in found.help


def test_second_derivatives_are_proved_with_what_is_given() -> None:
    rules = Path(__file__).parent / "bessel.grad"
    source = Source("page.grad", rules.read_text("utf-8"))
    made, _ = compile_source(source, "page.grad", Options(order=2))
    assert [d for d in made.diagnostics if d.is_error] == []
    assert {v.status.value for rule in made.rules for v in rule.second} == {"proved"}


def test_nothing_is_computed_of_it_by_the_compiler() -> None:
    """Not of a constant either: the numbers would be those of a stand-in."""
    from gradspec import compile_text

    text = compile_text(
        HEAD + "rule f(x) -> y:\n    y = x * j0(2) + (j0(x) - j0(0)) / x", "numpy"
    )
    assert "_j0(np.asarray(2.0, x.dtype))" in text
    assert "_j0(np.asarray(0.0, x.dtype))" in text
