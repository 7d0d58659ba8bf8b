"""Well-known gradients read as one would write them."""

from __future__ import annotations

import pytest

from gradspec.ir.expr import show
from tests.derive.rules import derived, gradient


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("x", "dy"),
        ("-x", "-dy"),
        ("3", "0"),
        ("2 * x", "2 * dy"),
        ("x + x", "2 * dy"),
        ("x**2", "2 * dy * x"),
        ("x**3", "3 * dy * square(x)"),
        ("x**2 + 3 * x + 2", "dy * (2 * x + 3)"),
        ("1 / x", "-dy / square(x)"),
        ("2 / x", "-2 * dy / square(x)"),
        ("sqrt(x)", "0.5 * dy / sqrt(x)"),
        ("x**0.5", "0.5 * dy / sqrt(x)"),
        ("exp(x)", "dy * exp(x)"),
        ("log(x)", "dy / x"),
        ("-log(x)", "-dy / x"),
        ("sin(x)", "dy * cos(x)"),
        ("cos(x)", "-dy * sin(x)"),
        ("sin(x) * cos(x)", "dy * (square(cos(x)) - square(sin(x)))"),
        ("exp(-x**2)", "-2 * dy * exp(-square(x)) * x"),
        ("softplus(x)", "dy * sigmoid(x)"),
        ("x * sigmoid(x)", "dy * (sigmoid(x) + x * sigmoid(x) * sigmoid(-x))"),
        ("relu(x)**2", "2 * dy * relu(x) if x > 0 else 0"),
        ("abs(x)", "dy * sign(x)"),
        ("sqrt(1 + x * x)", "dy * x / sqrt(1 + x * x)"),
        ("log(cosh(x))", "dy * sinh(x) / cosh(x)"),
        ("-x * log(x)", "dy * (-log(x) - 1)"),
        ("2 * x if x > 0 else x", "2 * dy if x > 0 else dy"),
        ("sqrt(x) if x > 0 else 0", "0.5 * dy / sqrt(x) if x > 0 else 0"),
        ("max(x, 0)", "dy if x > 0 else 0.5 * dy if x == 0 else 0"),
        ("floor(x) * x", "dy * floor(x)"),
        ("sign(x)", "0"),
    ],
)
def test_of_one_input(forward: str, expected: str) -> None:
    assert show(gradient(forward)["x"]) == expected


@pytest.mark.parametrize(
    ("forward", "dx", "dz"),
    [
        ("x * z + sin(x)", "dy * (z + cos(x))", "dy * x"),
        ("x / z", "dy / z", "-dy * x / z / z"),
        ("logaddexp(x, z)", "dy * sigmoid(x - z)", "dy * sigmoid(z - x)"),
        ("sqrt(x * x + z * z)", "dy * x / sqrt(x * x + z * z)",
         "dy * z / sqrt(x * x + z * z)"),
        ("x**z", "dy * z * x**(z - 1) if z != 0 else 0", "dy * xlogy(x**z, x)"),
        ("x**exp(z)", "dy * exp(z) * x**(exp(z) - 1)",
         "dy * xlogy(x**exp(z), x) * exp(z)"),
        ("max(x, z)", "dy if x > z else 0.5 * dy if x == z else 0",
         "dy if z > x else 0.5 * dy if x == z else 0"),
    ],
)  # fmt: skip
def test_of_two_inputs(forward: str, dx: str, dz: str) -> None:
    found = gradient(forward, "x", "z")
    assert (show(found["x"]), show(found["z"])) == (dx, dz)


def test_several_outputs_sum() -> None:
    assert derived(
        """
        rule complex_op(x, y) -> (z, w):
            z = x * y + sin(x)
            w = y**2
        """
    ) == {"dx": "dz * (y + cos(x))", "dy": "dz * x + 2 * dw * y"}


def test_only_floats_get_a_gradient() -> None:
    found = derived(
        """
        rule f(x, t: nograd, n: int, m: bool, k: static = 2) -> y:
            y = (x * t + n) * k if m else x
        """
    )
    assert found == {"dx": "dy * k * t if m else dy"}
