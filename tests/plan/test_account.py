"""What rules cost, as `compile --report` tells it, against counts by hand."""

from __future__ import annotations

import pytest

from gradspec.plan.account import Account, Work
from gradspec.targets import TARGETS, accounts
from tests.targets.emission import planned

SWISH = "rule leak(x, k: static = 1.5) -> y:\n    y = x + sigmoid(k * x)\n"
SQUARE = "rule square(x) -> y:\n    y = x**2\n"
EXPONENTIAL = "rule grow(x) -> y:\n    y = exp(x)\n"
SAVED = (
    "rule gate(x) -> y:\n    u = exp(-x)\n    y = x * u\n"
    "    dx = dy * u * (1 - x)\n    save u\n"
)


def costs(text: str, target: str) -> Account:
    (found,) = accounts(planned(text), target)
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_a_square_by_hand(target):
    # y = x * x: one call, reads x twice and writes y.
    # dx = 2 * dy * x: two calls; 2 * dy reads one and writes one, … * x two and one.
    assert costs(SQUARE, target) == Account(
        "square", ("x",), (), Work(1, 0, 3, 2), Work(2, 0, 5, 3)
    )


@pytest.mark.parametrize("target", ["torch", "tf"])
def test_what_is_taken_from_the_output_needs_no_input(target):
    # dx = dy * y
    assert costs(EXPONENTIAL, target) == Account(
        "grow", ("y",), (), Work(1, 1, 2, 2), Work(1, 0, 3, 3)
    )


def test_jax_computes_the_output_again():
    # y = exp(x) once more, then dy * y: two kernels that read x, (y, dy)
    found = costs(EXPONENTIAL, "jax")
    assert found.kept == ("x",)
    assert found.backward == Work(2, 1, 5, 3)


def test_sqrt_is_taken_from_its_output_though_it_is_cheap():
    found = costs("rule root(x) -> y:\n    assume x > 0\n    y = sqrt(x)\n", "torch")
    assert found.kept == ("y",)
    assert found.backward == Work(2, 0, 5, 3)  # 0.5 * dy, … / y


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_cost_nothing(target):
    # k * x, sigmoid, x + …: three calls, one of them transcendental.
    found = costs(SWISH, target)
    assert found.forward == Work(3, 1, 2 + 2 + 3, 2)
    assert found.beyond == ()
    assert "x" in found.kept


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_author_saves_is_kept_on_every_target(target):
    found = costs(SAVED, target)
    assert found.beyond == (("u", 4),)
    # dy * u, 1 - x, … * …
    assert found.backward.transcendental == 0


@pytest.mark.parametrize("target", ["torch", "tf"])
def test_rows_keep_statistics(target):
    text = (
        "rule centred(x[..., n]) -> y[..., n]:\n"
        "    m = mean(x[j]**2 for j)\n    y[i] = x[i] / sqrt(m + 1)\n"
    )
    found = costs(text, target)
    assert found.kept in (("x",), ("y",), ("x", "y"))
    assert found.beyond == (("m", 4),)


def test_what_is_computed_in_float64_keeps_eight_bytes():
    text = (
        "rule gate(x) -> y:\n    u = exp(-x)\n    y = x * u\n    save u\n"
        "    dx = dy * u * (1 - x)\n"
    )
    plan = planned(text)
    assert [size for _, size in accounts(plan, "torch")[0].beyond or ()] == [
        8 if plan.rules[0].is_wide_backward else 4
    ]
