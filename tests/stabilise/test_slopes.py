"""Gradients through parts of one variable, and what that lets series mend."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Apply
from gradspec.ir.rule import CheckedRule, Rule
from gradspec.ir.text import show
from gradspec.ir.walk import nodes
from gradspec.primitives.formula import formula
from gradspec.stabilise.inner import INNER, of_one
from gradspec.stabilise.model import Machine
from gradspec.stabilise.slopes import by_parts
from gradspec.stabilise.stabilise import stabilise
from tests.stabilise.rules import completed

CSINH = "rule f(x, z) -> y:\n    assume z != 0\n    y = cosh(x) * (sin(z) / z)\n"
LANCZOS = (
    "rule f(x, tau) -> y:\n    assume 0 < x, x < 1, 1 <= tau, tau <= 5\n"
    "    y = sin(x * pi * tau) / (x * pi * tau) * (sin(x * pi) / (x * pi))\n"
)


def values(rule: Rule, name: str, **given: float) -> float:
    columns = {n: np.array([v], dtype=np.float64) for n, v in given.items()}
    return float(Machine(columns, np.float64).run(closed.cotangents(rule)[name])[0])


def test_a_part_of_one_variable_has_one_slope() -> None:
    rule = completed(CSINH)
    found = by_parts(rule, rule.forward)
    assert show(found["z"]) == "dy * cosh(x) * (cos(z) / z - sin(z) / z / z)"
    assert set(found) == {"x", "z"}


@pytest.mark.parametrize("text", [CSINH, LANCZOS])
def test_it_is_the_same_derivative(text: str) -> None:
    rule = completed(text)
    found = by_parts(rule, rule.forward)
    whole = closed.cotangents(rule)
    names = [i.name for i in rule.inputs]
    columns = {n: np.array([0.3, 0.7, 0.9]) * (1 + k) for k, n in enumerate(names)}
    machine = Machine({**columns, "dy": np.ones(3)}, np.float64)
    assert set(found) == set(names)
    for name, form in found.items():
        np.testing.assert_allclose(
            machine.run(form), machine.run(whole[f"d{name}"]), rtol=1e-9
        )


def test_what_has_no_quotient_has_no_parts() -> None:
    rule = completed("rule f(x, z) -> y:\n    y = x * sin(z) / x\n")
    assert by_parts(rule, rule.forward) == {}


def test_a_removable_point_beside_another_input_is_mended() -> None:
    done = stabilise(CheckedRule(completed(CSINH), ())).rule
    got = values(done, "dz", x=1.0, z=1e-20, dy=1.0)
    assert got == pytest.approx(-np.cosh(1.0) * 1e-20 / 3, rel=1e-12)


def test_two_removable_parts_of_a_sum_are_mended() -> None:
    done = stabilise(CheckedRule(completed(LANCZOS), ())).rule
    got = values(done, "dx", x=1e-12, tau=2.0, dy=1.0)
    assert got == pytest.approx(-5 * np.pi**2 / 3 * 1e-12, rel=1e-6)


def test_a_product_of_three_is_one_inner_expression() -> None:
    found = of_one(formula("sin(a * b * c) / (a * b * c)"))
    assert found is not None
    assert show(found[1]) == "a * b * c"


def test_a_multiple_of_pi_is_an_inner_expression() -> None:
    """About 0 all coefficients are rational in it, and poles cancel exactly."""
    found = of_one(formula("cos(x * pi) / (x * pi)"))
    assert found is not None
    assert (
        found[0] == formula("cos(u) / u") or show(found[0]) == f"cos({INNER}) / {INNER}"
    )


def test_a_function_of_slow_convergence_has_a_series_about_0() -> None:
    text = "rule f(x) -> y:\n    assume x != 0\n    y = (x - atan(x)) / (x * x)\n"
    done = stabilise(CheckedRule(completed(text), ())).rule
    assert values(done, "dx", x=1e-9, dy=1.0) == pytest.approx(1 / 3, rel=1e-12)


def test_a_bound_that_changes_finite_values_is_none() -> None:
    """(n - 1) / min(n, 1e18) is not 1 beyond."""
    text = "rule f(n, d) -> y:\n    assume n > 1\n    y = (n - 1) * (n - 1) * d / n\n"
    done = stabilise(CheckedRule(completed(text), ())).rule
    assert values(done, "dd", n=1e30, d=2.0, dy=1.0) == pytest.approx(1e30)


def test_a_product_gives_way_to_what_has_vanished() -> None:
    text = (
        "rule f(j, l, k) -> y:\n    assume abs(k) < 3\n"
        "    y = j * (exp(l) - exp(-l)) * cos(k / 2)\n"
    )
    done = stabilise(CheckedRule(completed(text), ())).rule
    form = closed.cotangents(done)["dk"]
    assert any(isinstance(n, Apply) and n.op == "vanishing" for n in nodes(form))
    assert values(done, "dk", j=0.0, l=1e4, k=1.0, dy=1.0) == 0


@pytest.mark.parametrize(
    ("text", "point", "wanted"),
    [
        ("y = acos(w / sqrt(x * x + w * w))", {"x": 1e-3, "w": 1e9}, 1e-9),
        ("y = tanh(w + x) - tanh(w)", {"x": 3.0, "w": -30.0}, None),
    ],
)
def test_named_identities_of_two_inputs(
    text: str, point: dict[str, float], wanted: float | None
) -> None:
    rule = completed(f"rule f(x, w) -> y:\n    assume x != 0\n    {text}\n")
    done = stabilise(CheckedRule(rule, ())).rule
    name = "dx" if wanted is not None else "dw"
    got = values(done, name, **point, dy=1.0)
    if wanted is None:
        wanted = 4 * (np.exp(-54.0) - np.exp(-60.0))
    assert got == pytest.approx(wanted, rel=1e-6)


def test_a_series_stays_though_its_product_overflows_in_another_order() -> None:
    text = "rule f(x, z) -> y:\n    y = sinh(z) * (sin(x) / x)\n"
    form = closed.cotangents(stabilise(CheckedRule(completed(text), ())).rule)["dx"]
    machine = Machine({"x": np.float32([1e-9]), "z": np.float32([1]), "dy": np.ones(1)})
    (value,) = machine.run(form)
    assert abs(value / (-1e-9 / 3 * np.sinh(1.0)) - 1) < 1e-6
