"""Tips of norms, overflow inside of reductions, and what is reported of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gradspec.checks.check import check
from gradspec.ir.walk import closed_cotangents, closed_outputs
from gradspec.stabilise.explanation import loss_warnings
from gradspec.stabilise.stabilise import stabilise
from gradspec.symbolic.arithmetic_model import Machine
from tests.checks.written import compiled, written
from tests.stabilise.rules import stable
from tests.stabilise.test_reductions import values

ROW = "rule f(x[..., n]) -> y:\n    {}\n"
TIPS = {
    "standard deviation": "m = mean(x[j] for j)\n"
    "    y = sqrt(mean((x[j] - m)**2 for j))",
    "root mean square": "y = sqrt(sum(x[j]**2 for j) / n)",
    "a multiple": "y = sqrt(2 * sum(x[j]**2 for j))",
    "a power": "y = sum(x[j]**2 for j)**(1/2)",
    "a norm": "y = sqrt(sum(x[j]**2 for j))",
    "through a norm": "t = sqrt(sum(x[j]**2 for j))\n    y = cos(t)",
}


@pytest.mark.parametrize("at", [0.0, 3.0])
@pytest.mark.parametrize("name", TIPS)
def test_a_derived_gradient_is_0_at_a_tip(name: str, at: float) -> None:
    rule = stable(ROW.format(TIPS[name])).rule
    found = values(rule, "dx", {"x": [at, at, at], "dy": 1.0})
    assert np.isfinite(found).all()
    if at == 0 or name == "standard deviation":
        assert found == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "d", ["acosh(1 + s / (2 - u))", "sqrt(s / (2 - u))", "asinh(sqrt(s) / (1 + u))"]
)
def test_a_distance_with_a_factor_has_the_gradient_0_at_0(d: str) -> None:
    text = (
        "rule f(x[..., n]) -> y:\n    assume sum(x[j]**2 for j) < 2\n"
        "    s = sum((x[j] - 1 / 2)**2 for j)\n    u = sum(x[j]**2 for j)\n"
    )
    rule = stable(f"{text}    y = {d}\n").rule
    assert values(rule, "dx", {"x": [0.5, 0.5], "dy": 1.0}) == [0.0, 0.0]


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_a_p_norm_has_the_gradient_0_at_0(p: float) -> None:
    text = "rule f(x[..., n], p: static = 2.0) -> y:\n    assume p > 1\n"
    rule = stable(text + "    y = sum(abs(x[j])**p for j)**(1 / p)\n").rule
    found = values(rule, "dx", {"x": [0.0, 0.0], "dy": 1.0, "p": p})
    assert found == [0.0, 0.0]


WEIGHTED: Mapping[str, tuple[str, str, Mapping[str, Any], list[float]]] = {
    "weights that may be 0": (
        "f(x[n], w[n]) -> y:\n    assume w[j] >= 0\n    y = sqrt(sum(w[j] * x[j]**2 for j))",
        *("dx", {"x": [0.0, 4.0], "w": [2.0, 0.0], "dy": 1.0}, [0.0, 0.0]),
    ),
    "their own gradient, infinite where one leaves 0": (
        "f(x[n], w[n]) -> y:\n    assume w[j] >= 0\n    y = sqrt(sum(w[j] * x[j]**2 for j))",
        *("dw", {"x": [3.0, 4.0], "w": [0.0, 0.0], "dy": 1.0}, [np.inf, np.inf]),
    ),
    "weights above 0": (
        "f(x[n], w[n]) -> y:\n    assume w[j] > 0\n    y = sqrt(sum(w[j] * x[j]**2 for j))",
        *("dw", {"x": [0.0, 0.0], "w": [2.0, 1.0], "dy": 1.0}, [0.0, 0.0]),
    ),
    "a root that is too steep for a limit": (
        "f(x[n], w[n]) -> y:\n    assume w[j] >= 0\n    y = sum(w[j] * x[j]**2 for j)**0.25",
        *("dx", {"x": [0.0, 0.0], "w": [2.0, 1.0], "dy": 1.0}, [np.nan, np.nan]),
    ),
    "a power": (
        "f(x[n], w[n]) -> y:\n    assume w[j] >= 0\n"
        "    y = sum(w[j] * x[j]**2 for j)**0.75",
        *("dx", {"x": [0.0, 0.0], "w": [2.0, 1.0], "dy": 1.0}, [0.0, 0.0]),
    ),
    "weights in a root of their own": (
        "f(x[n], w[n]) -> y:\n    assume w[j] >= 0\n"
        "    y = sqrt(sum(w[j] * x[j]**2 for j)) * sqrt(sum(w[j] for j))",
        *("dw", {"x": [3.0, 3.0], "w": [0.0, 0.0], "dy": 1.0}, [np.nan, np.nan]),
    ),
    "windows": (
        "f(x[n], w[k], m: static int) -> y[m]:\n    assume w[j] >= 0\n    y[i] = sqrt(sum(w[j] * x[i + j]**2 for j))",
        *(
            "dx",
            {"x": [0.0, 0.0, 3.0], "w": [1.0, 4.0], "m": 2, "dy": [1.0, 1.0]},
            [0.0, 0.0, 2.0],
        ),
    ),
    "windows of weights above 0": (
        "f(x[n], w[k], m: static int) -> y[m]:\n    assume w[j] > 0\n    y[i] = sqrt(sum(w[j] * x[i + j]**2 for j))",
        *(
            "dx",
            {"x": [0.0, 0.0, 3.0], "w": [1.0, 4.0], "m": 2, "dy": [1.0, 1.0]},
            [0.0, 0.0, 2.0],
        ),
    ),
    "windows of squared weights": (
        "f(x[n], w[k], m: static int) -> y[m]:\n    y[i] = sqrt(sum(w[j]**2 * x[i + j]**2 for j))",
        *(
            "dw",
            {"x": [0.0, 0.0, 3.0], "w": [1.0, -2.0], "m": 2, "dy": [1.0, 1.0]},
            [0.0, -3.0],
        ),
    ),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_weighted_norm_has_a_tip_where_all_terms_are_0(name: str) -> None:
    text, gradient, given, expected = WEIGHTED[name]
    found = values(stable(f"rule {text}\n").rule, gradient, given)
    assert found == pytest.approx(expected, nan_ok=True)


def test_a_factor_that_is_0_wins_over_an_overflow_not_over_a_pole() -> None:
    rule = stable("rule f(x, y) -> z:\n    z = (x**2 + y**2)**0.25\n").rule
    machine = Machine({n: np.float32([v]) for n, v in (("x", 0), ("y", 0), ("dz", 1))})
    for name in ("dx", "dy"):
        assert np.isnan(machine.run(closed_cotangents(rule)[name])).all()


def test_exponentials_outside_of_a_sum_do_not_overflow() -> None:
    text = (
        "rule f(x[..., n], s) -> y[..., n]:\n"
        "    y[i] = exp(x[i]) / (exp(s) + exp(x[i]))\n"
    )
    given: Mapping[str, Any] = {"x": [100.0, 90.0], "s": 100.0, "dy": [1.0, 1.0]}
    found = values(stable(text).rule, "ds", given)
    assert found == [pytest.approx(-0.25 - np.exp(-10) / (1 + np.exp(-10)) ** 2)]


def test_a_direction_with_a_floor_does_not_overflow() -> None:
    text = (
        "rule f(x[..., n]) -> y[..., n]:\n"
        "    y[i] = x[i] / sqrt(max(sum(x[j]**2 for j), 1e-24))\n"
    )
    found = values(stable(text).rule, "y", {"x": [3e30, 4e30]})
    assert found == [pytest.approx(0.6), pytest.approx(0.8)]


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("x", [-800.0, 800.0])
def test_focal_losses_far_out(gamma: float, x: float) -> None:
    text = """
        rule f(x, gamma: static = 2.0) -> y:
            assume gamma >= 0
            p = 1 / (1 + exp(-x))
            y = -(1 - p)**gamma * log(p)
        """
    rule = stabilise(compiled_rule(text)).rule
    columns = {"x": np.float32([x]), "gamma": np.float32([gamma])}
    machine = Machine({**columns, "dy": np.float32([1.0])})
    gradient = machine.run(closed_cotangents(rule)["dx"])
    assert np.isfinite(machine.run(closed_outputs(rule)["y"])).all()
    assert gradient == pytest.approx(-1.0 if x < 0 else 0.0)


def compiled_rule(text: str) -> Any:
    outcome = check(written(text), 5.0)
    assert outcome.value is not None
    return outcome.value


STD = """
    rule f(x[..., n]) -> s:
        m = mean(x[j] for j)
        s = sqrt(mean((x[j] - m)**2 for j))
        dx[i] = ds * (x[i] - m) / (n * s)
    """
P_NORM = """
    rule f(x[..., n], p: static = 2.0) -> y:
        assume p > 1
        y = sum(abs(x[j])**p for j)**(1 / p)
        dx[i] = sign(x[i]) * abs(x[i])**(p - 1) * y * dy / y**p
    """


@pytest.mark.parametrize("text", [STD, P_NORM])
def test_a_declared_gradient_that_is_undefined_at_a_tip_is_reported(text: str) -> None:
    found = tuple(loss_warnings(stabilise(compiled_rule(text))))
    assert [d.code for d in found] == ["GS403"]


def test_a_difference_that_loses_its_digits_in_every_format_is_reported() -> None:
    text = """
        rule f(a) -> y:
            assume a > 0
            y = lgamma(a + 1) - a * log(a) + a
        """
    assert "GS441" in compiled(text)
