"""Numbers that their author rounded are as exact as they are written, and no more."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked, codes, status

GELU = """
rule gelu(x) -> y:
    y = {forward}
    dx = dy * ({backward})
"""
EXACT = "x * ndtr(x)"
SLOPE = "ndtr(x) + x * exp(-x * x / 2) * {density}"

ROUNDED = {
    "float64 digits of 1/sqrt(2 pi)": "0.3989422804014327",
    "twelve digits": "0.398942280401",
    "ten digits": "0.3989422804",
    "a product of two": "0.5 * 0.7978845608028654",
    "truncated": "0.39894228040143",
}
WRONG = {
    "a digit in the middle": "0.3989422804041327",
    "the last digits": "0.39894228040156",
    "sqrt(pi) for sqrt(2 pi)": "0.5641895835477563",
    "short, and not equal": "0.398942",
    "a factor that is no rounding": "1.0000000000001 / sqrt(2 * pi)",
}


@pytest.mark.parametrize("name", ROUNDED)
def test_a_rounded_constant_agrees(name: str) -> None:
    text = GELU.format(forward=EXACT, backward=SLOPE.format(density=ROUNDED[name]))
    outcome = checked(text)
    assert not outcome.diagnostics
    assert outcome.value is not None
    (verdict,) = outcome.value.verdicts
    assert verdict.status is Status.AGREES
    assert verdict.points >= 8 and verdict.digits >= 9


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_constant_is_refuted(name: str) -> None:
    text = GELU.format(forward=EXACT, backward=SLOPE.format(density=WRONG[name]))
    assert codes(text) == ("GS401",)


def test_a_rounded_constant_in_the_forward_pass() -> None:
    forward = "0.5 * x * (1 + erf(x * 0.7071067811865476))"
    text = GELU.format(forward=forward, backward=SLOPE.format(density="rsqrt(2 * pi)"))
    assert status(text) is Status.AGREES


def test_megatrons_gelu() -> None:
    """0.1070322243 is 3 * 0.044715 * 0.79788456, to the digits written."""
    text = """
    rule fast_gelu(x) -> y:
        t = tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        y = x * 0.5 * (1 + t)
        ff = 0.5 * x * ((1 - t * t) * (0.79788456 + {}  * x * x)) + 0.5 * (1 + t)
        dx = ff * dy
    """
    assert status(text.format("0.1070322243")) is Status.AGREES
    assert status(text.format("3 * 0.044715 * 0.79788456")) is Status.PROVED
    assert codes(text.format("0.1070322343")) == ("GS401",)
    assert codes(text.format("0.10703")) == ("GS401",)


@pytest.mark.parametrize("last", ["3.141592653589794", "3.141592653589792"])
def test_pi_with_a_wrong_sixteenth_digit(last: str) -> None:
    text = "rule f(x) -> y:\n    y = pi * x\n    dx = {} * dy\n"
    assert codes(text.format(last)) == ("GS416",)
    assert status(text.format("3.141592653589793")) is Status.AGREES


SELU = """
    rule selu(x) -> y:
        y = 1.0507009873554804934193349852946 * x
        dx = {} * dy
    """


@pytest.mark.parametrize(
    "last", ["1.0507009873554804934193349852947", "1.050700987355480493419334985294"]
)
def test_a_long_constant_beside_the_forwards_own(last: str) -> None:
    """32 digits with another last one are a misprint; with fewer digits, a rounding."""
    is_shorter = len(last) < len("1.0507009873554804934193349852946")
    expected = Status.AGREES if is_shorter else Status.REFUTED
    assert status(SELU.format(last)) is expected


def test_a_misprint_in_one_of_two_places() -> None:
    text = """
    rule f(x, z) -> y:
        y = 0.3989422804 * x + 0.3989422804 * z
        dx = 0.3989422804 * dy
        dz = 0.3989422805 * dy
    """
    assert status(text, "x") is Status.PROVED
    assert status(text, "z") is Status.REFUTED


SLOPES = """
    rule f(x) -> y:
        y = {} * x
        dx = {} * dy
    """


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        ("0.39894228041", "0.3989422804", Status.AGREES),
        ("0.39894228049", "0.3989422805", Status.AGREES),
        (
            "0.39894228041",
            "0.39894228040",
            Status.AGREES,
        ),  # a 0 at the end says nothing
        ("0.39894228047", "0.3989422804", Status.REFUTED),
        ("0.39894228041", "0.39894228042", Status.REFUTED),
        (
            "0.3989422801",
            "0.398942280",
            Status.REFUTED,
        ),  # nine digits are meant exactly
    ],
)
def test_a_last_digit_that_becomes_0_leaves_a_rounding(
    forward: str, backward: str, expected: Status
) -> None:
    assert status(SLOPES.format(forward, backward)) is expected
