"""The branch that is not taken is harmless, and only what is at risk is guarded."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir.expr import Ref
from gradspec.ir.walk import closed_cotangents, closed_outputs
from gradspec.symbolic.arithmetic_model import Machine
from tests.derive.rules import of
from tests.stabilise.rules import stable, texts, unary

XS = np.array([-2.0, -1.0, -1e-6, 0.0, 1e-6, 0.5, 1.0, 4.0, 100.0], dtype=np.float32)


@pytest.mark.parametrize(
    ("form", "guarded"),
    [
        ("sqrt(x) if x > 0 else 0", "sqrt(x if x > 0 else 1) if x > 0 else 0"),
        ("0 if x <= 0 else sqrt(x)", "0 if x <= 0 else sqrt(1 if x <= 0 else x)"),
        ("1 / x if x != 0 else 0", "1 / (x if x != 0 else 1) if x != 0 else 0"),
        ("log(x) if x > 3 else 0", "log(x if x > 3 else 1) if x > 3 else 0"),
        ("asin(x) if abs(x) < 1 else x",
         "asin(x if abs(x) < 1 else 0.5) if abs(x) < 1 else x"),
        ("x if x > 0 else expm1(x)", "x if x > 0 else expm1(0 if x > 0 else x)"),
        ("sqrt(x) * sin(x) if x > 0 else 0",
         "sqrt(x if x > 0 else 1) * sin(x) if x > 0 else 0"),
    ],
)  # fmt: skip
def test_guarded(form: str, guarded: str) -> None:
    assert texts(stable(unary(form)).rule)["y"] == guarded


@pytest.mark.parametrize(
    "form",
    [
        "2 * x if x > 0 else x",
        "x * x / 2 if abs(x) < 1 else abs(x) - 0.5",
        "sin(x) if x > 0 else x",
        "atan(x) if x > 0 else tanh(x)",
        "x if x > 0 else 0.01 * x",
        "sqrt(1 + x * x) if x > 0 else 1",
    ],
)
def test_nothing_at_risk(form: str) -> None:
    assert " if " in form
    assert texts(stable(unary(form)).rule)["y"].count(" if ") == 1


def test_a_threshold_that_is_a_variable() -> None:
    text = "rule f(x, t) -> y:\n    y = sqrt(x - t) if x > t else 0\n"
    found = texts(stable(text).rule)
    assert found["y"] == "sqrt(x - t if x > t else 1) if x > t else 0"


def test_nested() -> None:
    text = unary("(log(sqrt(x) - 1) if x < 10 else 3) if x > 4 else 0")
    found = texts(stable(text).rule)
    assert "sqrt(x if x > 4 else 1) - 1" in found["y"]


def test_an_override_is_guarded() -> None:
    text = """
        rule f(x) -> y:
            y = max(x, 0)
            override dx = dy * log(x) if x > 0 else 0 because "odd, but finite"
        """
    found = texts(stable(text).rule)
    assert found["dx"] == "dy * log(x if x > 0 else 1) if x > 0 else 0"


@pytest.mark.parametrize(
    "form",
    [
        "sqrt(x) if x > 0 else 0",
        "x if x > 0 else exp(x) - 1",
        "x * log(x) if x > 0 else 0",
        "x**1.5 if x > 0 else 0",
        "1 / x if x > 1 else x",
        "atanh(x) if abs(x) < 0.9 else x",
    ],
)
def test_no_warning_and_a_finite_second_derivative(form: str) -> None:
    """All that is computed on the way is finite, in both branches, down to the second
    derivative as a framework would take it (reverse accumulation of what is emitted).
    """
    rule = stable(unary(form)).rule
    machine = Machine({"x": XS, "dy": np.ones_like(XS)})
    first = closed_cotangents(rule)["dx"]
    for expr in (closed_outputs(rule)["y"], first, of(first, "x")["x"]):
        with np.errstate(all="raise", under="ignore"):
            assert np.isfinite(machine.run(expr)).all()
    assert Ref("x") != first
