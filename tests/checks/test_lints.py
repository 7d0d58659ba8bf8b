"""What is reported of a rule besides its cotangents, and what is not."""

from __future__ import annotations

from gradspec.ir.rule import Status
from tests.checks.written import checked


def test_one_bad_cotangent_does_not_hide_the_next() -> None:
    outcome = checked("""
        rule f(x, z) -> y:
            y = x * z
            dx = dy * x
            dz = dy * z
        """)
    assert [d.code for d in outcome.diagnostics] == ["GS401", "GS401"]
    assert "it is the derivative by z, not by x" in outcome.diagnostics[0].notes


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
