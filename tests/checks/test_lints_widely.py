"""The lints with several inputs and outputs, locals, statics, and named axes."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked, codes, status

FOUND = {
    ("GS408", "one of three inputs, in a rule with two outputs"): """
        rule f(x, z, unused) -> (y, w):
            y = x * z
            w = x + z
        """,
    ("GS408", "a static"): """
        rule f(x, k: static = 2) -> y:
            y = x**2
        """,
    ("GS408", "a vector"): """
        rule f(x[n], b[n], unused[m]) -> y[n]:
            y[i] = x[i] + b[i]
        """,
    ("GS418", "a gradient by another name"): """
        rule f(x) -> y:
            y = x**2
            x_grad = 2 * x * dy
        """,
    ("GS418", "a local of a vector"): """
        rule f(x[n]) -> y[n]:
            t[i] = exp(x[i])
            y[i] = x[i]
        """,
    ("GS407", "the one of two inputs that goes through a step"): """
        rule f(x, z) -> y:
            y = x * (1 if z > 0 else 0)
        """,
    ("GS407", "a vector through a step"): """
        rule f(x[n]) -> y[n]:
            y[i] = sign(x[i])
        """,
    ("GS448", "a mean that is taken off"): """
        rule f(x[n]) -> y[]:
            y = sum(x[i] - mean(x[j] for j) for i)
        """,
    ("GS448", "through a local"): """
        rule f(x, z) -> (y, w):
            u = exp(x)
            y = log(u) - x + z
            w = z
        """,
    ("GS405", "of one of two outputs"): """
        rule f(x) -> (y, w):
            y = 1 if x > 0 else 0
            w = x * x
            surrogate y = 3
        """,
    ("GS405", "of a vector"): """
        rule f(x[n]) -> y[n]:
            y[i] = 1 if x[i] > 0 else 0
            surrogate y[i] = 2
        """,
    ("GS406", "of a vector"): """
        rule f(x[n]) -> y[n]:
            y[i] = x[i]**2
            override dx[i] = 2 * x[i] * dy[i] because "test"
        """,
    ("GS446", "of one of two inputs"): """
        rule f(x, z) -> y:
            y = x * z
            override dx = sign(z) because "test"
        """,
    ("GS446", "of a vector"): """
        rule f(x[n]) -> y[n]:
            y[i] = x[i]**2
            override dx[i] = sign(x[i]) because "test"
        """,
    ("GS445", "an exponential linear unit in terms of its output"): """
        rule f(x, alpha: static = 1.0) -> y:
            y = x if x > 0 else alpha * (exp(x) - 1)
            dx = dy if y > 0 else dy * (y + alpha)
        """,
    ("GS411", "one of two outputs"): """
        rule f(x, z) -> (y, w):
            y = x * z
            w = sqrt(x - z)
        """,
    ("GS411", "a vector"): """
        rule f(p[n]) -> h[]:
            h = -sum(p[i] * log(p[i]) for i)
        """,
    ("GS440", "a vector"): """
        rule f(x[n]) -> y[n]:
            y[i] = log(-1 - x[i]**2)
        """,
    ("GS410", "between an input and a static"): """
        rule f(x, a: static = 1.0) -> y:
            assume x > a, x < a
            y = x
        """,
    ("GS410", "a vector"): """
        rule f(x[n]) -> y[n]:
            assume x[i] > 1, x[i] < 0
            y[i] = x[i]
        """,
    ("GS409", "of the second output"): """
        rule f(x) -> (y, w):
            y = x
            w = x * x
            example x = 3: w = 8
        """,
    ("GS447", "of the second input"): """
        rule f(x, z) -> y:
            y = x * abs(z)
            example x = 2, z = 0: y = 0, dz = 0
        """,
}


@pytest.mark.parametrize(("code", "what"), sorted(FOUND))
def test_a_lint_finds(code: str, what: str) -> None:
    assert codes(FOUND[code, what]) == (code,)


SILENT = {
    "a leaky ReLU in terms of its input": """
        rule f(x, slope: static = 0.01) -> y:
            y = x if x > 0 else slope * x
            dx = dy if x > 0 else slope * dy
        """,
    "a square root of a static": """
        rule f(x, b: static = 4.0) -> y:
            y = x * sqrt(b)
            dx = dy * sqrt(b)
        """,
    "a gradient that is stopped": """
        rule f(x, z) -> y:
            y = x * z
            override dx = 0 because "a constant of the loss"
        """,
    "an example beside a kink": """
        rule f(x) -> y:
            y = abs(x)
            example x = 0.5: y = 0.5, dx = 1
        """,
    "a value at a kink": """
        rule f(x) -> y:
            y = abs(x)
            example x = 0: y = 0
        """,
    "a gradient at a kink that is declared": """
        rule f(x) -> y:
            y = max(x, 0)
            dx = dy if x >= 0 else 0
            example x = 0: y = 0, dx = 1
        """,
    "a tie of what is smooth": """
        rule f(x, z) -> y:
            y = max(x, z) + log(1 + exp(-abs(x - z)))
            example x = 1, z = 1: dx = 0.5
        """,
}


@pytest.mark.parametrize("what", sorted(SILENT))
def test_a_lint_leaves_in_peace(what: str) -> None:
    assert codes(SILENT[what]) == ()


def test_a_factor_of_unknown_sign_is_no_positive_multiple_of_an_exponential() -> None:
    """``alpha * exp(x) - alpha`` has the sign of x only where alpha is positive."""
    text = """
        rule f(x, alpha: static = 1.0) -> y:
            {}
            y = x if x > 0 else alpha * (exp(x) - 1)
            dx = dy if y > 0 else dy * (y + alpha)
        """
    assert status(text.format("")) is Status.AGREES
    assert status(text.format("assume alpha > 0")) is Status.PROVED


def test_the_condition_that_is_needed_is_named() -> None:
    outcome = checked("""
        rule f(p, t: nograd) -> y:
            assume p > 0
            y = -(t * log(p) + (1 - t) * log(1 - p))
        """)
    (found,) = outcome.diagnostics
    assert found.code == "GS411"
    assert "`assume 1 - p > 0`" in found.help


def test_a_gradient_that_is_not_linear_in_the_upstream_is_refuted() -> None:
    outcome = checked("""
        rule f(x, z) -> (y, w):
            y = x * z
            w = x + z
            dx = dy * z + dw * abs(dw)
        """)
    (found,) = outcome.diagnostics
    assert found.code == "GS401"
    assert any("abs(dw)" in note for note in found.notes)
