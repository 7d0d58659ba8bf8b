"""Accuracy that no form keeps is reported where the loss begins; what is mended is not."""

from __future__ import annotations

import pytest

from gradspec.diagnostics import Diagnostic
from gradspec.stabilise.explanation import loss_warnings
from gradspec.stabilise.stabilise import stabilise
from tests.checks.written import checked, compiled

MENDED = {
    "1 - y**2 of a tanh": """
        rule f(x) -> y:
            y = tanh(x)
            dx = dy * (1 - y**2)
        """,
    "1 - y of a sigmoid": """
        rule f(x) -> y:
            y = 1 / (1 + exp(-x))
            dx = dy * y * (1 - y)
        """,
    "1 - y**2 of a tanh of a polynomial, and a kept local": """
        rule f(x, z) -> (y, w):
            u = x**3 + z
            y = tanh(u)
            w = x * z
            dx = dy * (1 - y**2) * 3 * x**2 + dw * z
        """,
    "a root of a sum of squares": """
        rule f(x, z) -> y:
            assume x > 0
            y = sqrt(x**2 + z**2)
        """,
    "a quotient with a root of squares": """
        rule f(x) -> y:
            y = x / sqrt(1 + x**2)
        """,
    "exponentials over their sum": """
        rule f(x, z) -> y:
            y = exp(x) / (exp(x) + exp(z))
        """,
    "a branch that is not taken": """
        rule f(x) -> y:
            y = sqrt(x) * log(x) if x > 0 else 0
        """,
    "guards that hold": """
        rule f(p) -> y:
            assume 0 <= p, p <= 1
            y = -log(p + 1e-15) - log(1 - p + 1e-15)
        """,
    "the logarithm of a sum": """
        rule f(x) -> y:
            y = log(1 + exp(x))
        """,
}


@pytest.mark.parametrize("name", sorted(MENDED))
def test_nothing_is_said_where_the_evaluation_is_mended(name: str) -> None:
    assert compiled(MENDED[name]) == ()


def _told(text: str) -> tuple[Diagnostic, ...]:
    outcome = checked(text)
    assert outcome.value is not None
    assert not outcome.diagnostics
    return tuple(loss_warnings(stabilise(outcome.value)))


def _guilty(found: Diagnostic) -> str:
    return found.labels[0].source.slice(found.labels[0].span)


def test_the_first_input_at_which_a_gradient_dies_is_told() -> None:
    (found,) = _told("""
        rule f(x, z) -> (y, w):
            y = max(0, tanh(x))
            w = z * z
            dx = dy * (1 - y**2) if x > 0 else 0
            dz = 2 * dw * z
        """)
    assert found.code == "GS441"
    assert found.labels[0].message.startswith("gives ")
    assert _guilty(found) == "dy * (1 - y**2) if x > 0 else 0"
    assert "1 - max(0, tanh(x))**2" in found.notes[0]
    assert "1 / cosh(x)**2" in found.help


def test_an_override_is_measured_as_it_stands() -> None:
    (found,) = _told("""
        rule f(x) -> y:
            y = tanh(x)
            override dx = 2 * dy * (1 - y**2) because "twice the slope"
        """)
    assert found.code == "GS441"
    assert "at x = -6.58" in found.labels[0].message


def test_a_square_that_overflows_is_shown_at_the_large_input() -> None:
    (found,) = _told("""
        rule f(x, alpha: static = 1.0) -> y:
            assume alpha > 0
            exact y = x / sqrt(1 + alpha * x**2)
        """)
    assert found.code == "GS442"
    assert (
        "gives 0 at x = 1e+20, alpha = 1, where 1 is right" in found.labels[0].message
    )
    assert "hypot" in found.help


def test_an_exponential_is_told_of_where_its_digits_are_gone() -> None:
    (found,) = _told("""
        rule f(a, b) -> y:
            assume a > 0, b > 0
            y = exp(lgamma(a + b) - lgamma(a) - lgamma(b))
        """)
    assert found.code == "GS443"
    assert "at a = " in found.labels[0].message


def test_a_guard_that_is_rounded_away_is_told_where_it_was_to_guard() -> None:
    (found,) = _told("""
        rule f(p) -> y:
            assume 0 <= p, p <= 1
            q = clip(p, 1e-15, 1 - 1e-15)
            y = -log(1 - q)
        """)
    assert found.code == "GS444"
    assert found.labels[0].message.startswith("gives inf at p = 1, where 34.5388")


def test_a_value_that_merely_fades_is_none_of_it() -> None:
    assert _told("rule f(x) -> y:\n    y = 1 / (1 + x**2)") == ()


@pytest.mark.parametrize(
    ("value", "cure"),
    [
        ("log(exp(a) + exp(b) + exp(c))", "logaddexp(logaddexp(a, b), c)"),
        ("log(i0(a)) + b + c", "i0e(k)"),
        ("log(ndtr(a)) + b + c", "log_ndtr(x)"),
        ("(abs(a)**3 + abs(b)**3)**(1 / 3) + c", "(a / m)**p"),
    ],
)
def test_the_cure_fits_the_operation(value: str, cure: str) -> None:
    found = _told(f"""
        rule f(a, b, c) -> y:
            exact y = {value}
        """)
    assert any(d.code == "GS442" and cure in d.help for d in found), found
