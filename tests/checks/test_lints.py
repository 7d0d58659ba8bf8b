"""What is reported of a rule besides its cotangents, and what is not."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked, codes, status

SENSIBLE = {
    "softplus": """
        rule f(x) -> y:
            y = log(1 + exp(x))
        """,
    "relu": """
        rule f(x) -> y:
            y = max(x, 0)
        """,
    "square root": """
        rule f(x) -> y:
            assume x >= 0
            y = sqrt(x)
        """,
    "logarithm": """
        rule f(x) -> y:
            assume x > 0
            y = log(x)
        """,
    "reciprocal": """
        rule f(x) -> y:
            y = 1 / x
        """,
    "guarded root": """
        rule f(x) -> y:
            y = sqrt(x) if x > 0 else 0
        """,
    "doubly exponential": """
        rule f(x) -> y:
            y = exp(-exp(-x))
        """,
    "clipped gradient": """
        rule f(x, c: static = 10) -> y:
            y = x
            override dx = clip(dy, -c, c) because "bounded"
        """,
    "reversal": """
        rule f(x, scale: static = 1.0) -> y:
            y = x
            override dx = -scale * dy because "adversarial"
        """,
    "spike": """
        rule f(v, k: static = 25.0) -> s:
            s = 1 if v > 0 else 0
            surrogate s = v / (1 + k * abs(v))
        """,
    "mask": """
        rule f(x, keep: bool, n: int) -> y:
            y = x * n if keep else 0
        """,
    "domain between inputs": """
        rule f(x, a: nograd, b: nograd) -> y:
            assume a <= x, x <= b, a < b
            y = sqrt((x - a) * (b - x))
        """,
    "label comparison": """
        rule f(p, t: nograd) -> y:
            assume 0 < p, p < 1
            y = -log(p) if t == 1 else -log(1 - p)
            dp = -dy / p if t == 1 else dy / (1 - p)
        """,
}


@pytest.mark.parametrize("name", sorted(SENSIBLE))
def test_a_sensible_rule_is_left_in_peace(name: str) -> None:
    assert codes(SENSIBLE[name]) == ()


def test_a_pole_of_the_declared_form_is_a_warning_and_a_wrong_limit_an_error() -> None:
    forward = "rule f(x) -> y:\n    y = sinc(x)\n"
    slope = "(cos(pi * x) - y) / x"
    assert codes(f"{forward}    dx = dy * {slope}") == ("GS403",)
    assert codes(f"{forward}    dx = dy * {slope} if x != 0 else 0") == ()
    assert codes(f"{forward}    dx = dy * {slope} if x != 0 else dy") == ("GS431",)


def test_kinks_take_any_value_between_the_slopes() -> None:
    rule = """
        rule f(x) -> y:
            y = abs(x)
            dx = dy if x > 0 else (-dy if x < 0 else {} * dy)
        """
    assert [codes(rule.format(v)) for v in ("-1", "0", "0.3", "1")] == [()] * 4
    assert codes(rule.format("1.000001")) == ("GS402",)


def test_a_gradient_that_is_right_only_for_small_upstream_is_refuted() -> None:
    rule = """
        rule f(x) -> y:
            y = x * x
            dx = 2 * x * clip(dy, -1000, 1000)
        """
    assert status(rule) is Status.REFUTED


def test_one_bad_cotangent_does_not_hide_the_next() -> None:
    outcome = checked("""
        rule f(x, z) -> y:
            y = x * z
            dx = dy * x
            dz = dy * z
        """)
    assert [d.code for d in outcome.diagnostics] == ["GS401", "GS401"]
    assert "it is the derivative by z, not by x" in outcome.diagnostics[0].notes


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("2 * y * (1 - y) * dy", "it is 2 times the derivative everywhere"),
        ("-y * (1 - y) * dy", "its sign is wrong everywhere"),
        ("y * (1 - y)", "the upstream gradient dy is missing: multiply by dy"),
        ("y * (1 + y) * dy", "the sign of `y` is wrong"),
        ("y * (1 - y**2) * dy", "the exponent of `y**2` should be 1"),
        ("y * (1.001 - y) * dy", "the constant `1.001` should be 1"),
        ("dy * y * (1 - y) * x", "`x` is one factor too many"),
    ],
)
def test_the_diagnosis_names_the_mistake(wrong: str, told: str) -> None:
    outcome = checked(f"rule f(x) -> y:\n    y = sigmoid(x)\n    dx = {wrong}")
    (finding,) = outcome.diagnostics
    assert finding.code == "GS401"
    assert told in finding.notes
    assert "`dx = " in finding.help


def test_the_contribution_of_an_output_that_is_left_out() -> None:
    outcome = checked("""
        rule f(x) -> (y, w):
            y = sin(x)
            w = x * x
            dx = dy * cos(x)
        """)
    assert "the contribution of w is missing" in outcome.diagnostics[0].notes


def test_a_constant_of_many_digits_agrees_to_its_digits() -> None:
    outcome = checked("""
        rule f(x) -> y:
            y = pi * x
            dx = 3.141592653589793238462643383279502884 * dy
        """)
    assert outcome.value is not None
    (verdict,) = outcome.value.verdicts
    assert verdict.status is Status.AGREES
    assert 34 <= verdict.digits <= 37


def test_verdicts_say_how() -> None:
    outcome = checked("""
        rule f(x, p: nograd) -> y:
            assume x > 0
            y = log(x * x) + p
            dx = 2 * dy / x
        """)
    assert outcome.value is not None
    dx, p = outcome.value.verdicts
    assert (dx.status, p.status) == (Status.PROVED, Status.NONE)
    assert dx.method
    assert dx.points > 8


def test_a_proof_that_needs_the_assumptions_says_so() -> None:
    outcome = checked("""
        rule f(x, a: static = 0.1) -> y:
            assume 0 < a, a < 1
            y = max(x, a * x)
            dx = dy if x > 0 else a * dy
        """)
    assert outcome.value is not None
    assert outcome.value.verdicts[0].on_domain


def test_a_ranked_rule_is_passed_on() -> None:
    outcome = checked("""
        rule total(x[n]) -> y[]:
            y[] = sum(x[i] for i)
        """)
    assert outcome.value is not None
    assert outcome.diagnostics == ()


def test_the_callee_s_own_gradient_is_the_true_one() -> None:
    text = """
        rule ste(x) -> y:
            y = round(x)
            override dx = dy because "straight through"

        rule f(x) -> y:
            y = 3 * ste(x)
            dx = {}
        """
    assert status(text.format("3 * dy")) is Status.PROVED
    assert status(text.format("0")) is Status.REFUTED
