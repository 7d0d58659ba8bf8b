"""Float64 is taken where nothing in float32 will do, and only there."""

from __future__ import annotations

import pytest

from gradspec.driver.run import compile_source
from gradspec.options import Options
from gradspec.source import Source
from tests.stabilise.rules import stable, unary

LOST = "rule f(x, t) -> y:\n    y = t * x - sin(t) * sin(x)\n"
"""A series is one in a single input: float64 is all there is."""


def test_cancellation_that_no_form_mends() -> None:
    assert "y" in stable(LOST).wide


@pytest.mark.parametrize("form", ["exp(x) - 2 + exp(-x)", "x - sin(x)"])
def test_where_a_series_does_float64_is_not_needed(form: str) -> None:
    assert stable(unary(form)).wide == ()


@pytest.mark.parametrize(
    "form",
    [
        "x / (1 + exp(-x))",
        "x * tanh(log(1 + exp(x)))",
        "0.5 * x * (1 + erf(x / sqrt(2)))",
        "log(1 + exp(x))",
        "exp(x) - 1",
        "sqrt(1 + x**2)",
        "max(x, 0)",
    ],
)
def test_what_is_good_in_float32_stays_there(form: str) -> None:
    assert "y" not in stable(unary(form)).wide


def test_default_values_of_statics_decide() -> None:
    """``beta * x`` is rounded where beta is not 1: no reason to be slow where it is."""
    rule = "rule f(x, beta: static = 1.0) -> y:\n    y = exp(-beta * x) - x\n"
    assert stable(rule).wide == ()


def test_an_output_that_was_rounded_is_not_used_again() -> None:
    found = stable(LOST)
    assert "dx" in found.wide
    assert "y" in found.rule.recomputes


@pytest.mark.parametrize("target", ["numpy", "torch", "tf", "jax"])
def test_each_target_says_so(target: str) -> None:
    result, _ = compile_source(Source("a.grad", LOST), "a.grad", Options((target,)))
    (module,) = result.modules
    assert "float64" in module.text
    assert "computed in float64, at twice the bytes" in " ".join(module.text.split())
