"""Examples: values, sums over broadcast elements, kinks, and the digits written."""

from __future__ import annotations

import pytest

from tests.checks.written import codes

SQUARE = "rule f(x) -> y:\n    y = x * x\n"
PRODUCT = "rule f(x, z) -> y:\n    y = x * z\n"


@pytest.mark.parametrize(
    "line",
    [
        "x = 3: y = 9, dx = 6",
        "x = 3, dy = 0.5: dx = 3",
        "x = 1.5: y = 2.25",
        "x = 1.1: y = 1.2",
        "x = [1, 2, 3]: y = [1, 4, 9], dx = [2, 4, 6]",
        "x = [[1, 2], [3, 4]]: y = [[1, 4], [9, 16]]",
        "x = inf: y = inf",
        "x = -1e-3: y = 1e-6",
    ],
)
def test_true_examples_pass(line: str) -> None:
    assert codes(f"{SQUARE}    example {line}") == ()


@pytest.mark.parametrize(
    "line",
    [
        "x = 3: y = 10",
        "x = 3: y = 9, dx = 5",
        "x = 1.1: y = 1.22",
        "x = 1.1: y = 1.2101",
        "x = [1, 2]: y = [1, 5]",
        "x = [1, 2]: y = 1",
        "x = inf: y = 3",
        "x = 3: y = inf",
    ],
)
def test_false_examples_are_errors(line: str) -> None:
    assert codes(f"{SQUARE}    example {line}") == ("GS409",)


def test_gradients_are_summed_to_the_input_s_shape() -> None:
    true = "x = [1, 2, 3], z = 2: y = [2, 4, 6], dx = [2, 2, 2], dz = 6"
    assert codes(f"{PRODUCT}    example {true}") == ()
    rows = "x = [[1], [2]], z = [10, 20, 30]: dx = [[60], [60]], dz = [3, 3, 3]"
    assert codes(f"{PRODUCT}    example {rows}") == ()
    false = "x = [1, 2, 3], z = 2: dz = 1"
    assert "GS409" in codes(f"{PRODUCT}    example {false}")


def test_the_rule_s_own_value_at_a_kink_counts() -> None:
    rule = "rule f(x) -> y:\n    y = max(x, 0)\n    dx = dy if x >= 0 else 0\n"
    assert codes(f"{rule}    example x = 0: y = 0, dx = 1") == ()
    assert codes(f"{rule}    example x = 0: y = 0, dx = 0") == ("GS409",)


def test_overrides_and_surrogates_give_the_gradient_of_an_example() -> None:
    reversal = 'rule f(x) -> y:\n    y = x\n    override dx = -dy because "r"\n'
    assert codes(f"{reversal}    example x = 2: y = 2, dx = -1") == ()
    step = "rule f(x) -> y:\n    y = sign(x)\n    surrogate y = sigmoid(x)\n"
    assert codes(f"{step}    example x = 3: y = 1, dx = 0.04517666") == ()
    assert codes(f"{step}    example x = 3: y = 1, dx = 0.0451766551") == ("GS413",)


def test_large_values_are_exact() -> None:
    rule = "rule f(x) -> y:\n    y = log(1 + exp(x))\n"
    assert codes(f"{rule}    example x = 100: y = 100, dx = 1") == ()
    assert codes(f"{rule}    example x = -100: y = 3.720075976e-44") == ()


def test_an_undefined_value_contradicts_a_number() -> None:
    rule = "rule f(x) -> y:\n    assume x > 0\n    y = log(x)\n"
    assert codes(f"{rule}    example x = -1: y = 0") == ("GS412", "GS409")
