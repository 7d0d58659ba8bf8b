"""Gradients at places where the frameworks' own are wrong, on the emitted modules.

The numbers are those of the literature and of mpmath to 50 digits, rounded.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from types import ModuleType

import numpy as np
import pytest

from gradspec.api import GradspecWarning, load
from tests.calling import PACKAGES, by_target, called

RULES = {
    "sigmoid(x)": "y = 1 / (1 + exp(-x))",
    "tanh(x)": "y = tanh(x)",
    "asinh(x)": "y = asinh(x)",
    "acosh(x)": "assume x > 1\n    y = acosh(x)",
    "atan2(y, x)": "t = atan2(y, x)",
    "sinc(x)": "y = sinc(x)",
    "xlogy(x, y)": "z = xlogy(x, y)",
    "xlog1py(x, y)": "z = xlog1py(x, y)",
    "i1(x)": "y = i1(x)",
    "gelu(x)": "y = x * (1 + erf(x / sqrt(2))) / 2",
    "log_ndtr(x)": "y = log(0.5 * erfc(-x / sqrt(2)))",
    "exp2(x)": "y = 2**x",
    "digamma(x)": "y = digamma(x)",
    "logaddexp(x, y)": "z = log(exp(x) + exp(y))",
}
Point = tuple[float, ...]
PLACES: tuple[tuple[str, str, Point, int, float], ...] = (
    ("sigmoid(x)", "float32", (17.0,), 0, 4.1399375473943306e-8),
    ("sigmoid(x)", "float64", (40.0,), 0, 4.248354255291589e-18),
    ("tanh(x)", "float32", (9.01,), 0, 5.971359464e-8),
    ("tanh(x)", "float64", (20.0,), 0, 1.6993417021166356e-17),
    ("asinh(x)", "float32", (1e22,), 0, 1e-22),
    ("acosh(x)", "float32", (1e22,), 0, 1e-22),
    ("atan2(y, x)", "float32", (1e-25, 1e-25), 0, 5.0e24),
    ("atan2(y, x)", "float32", (1e25, 1e25), 0, 5.0e-26),
    ("sinc(x)", "float32", (1e-3,), 0, -3.28986489e-3),
    ("xlogy(x, y)", "float32", (0.0, 2.0), 0, math.log(2)),
    ("xlog1py(x, y)", "float32", (0.0, 1.0), 0, math.log(2)),
    ("i1(x)", "float32", (0.0,), 0, 0.5),
    ("gelu(x)", "float32", (-6.0,), 0, -3.5469034e-8),
    ("log_ndtr(x)", "float32", (-10000.0,), 0, 10000.0001),
    ("exp2(x)", "float64", (1024 - 2.0**-40,), 0, 1.2460704717e308),
    ("digamma(x)", "float64", (-16.5,), 0, 9.810778),
)


@cache
def _module(rule: str, target: str) -> ModuleType:
    name, _, inputs = rule.partition("(")
    output = RULES[rule].split(" = ")[0].split()[-1]
    text = f"rule {name}_({inputs} -> {output}:\n    {RULES[rule]}\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GradspecWarning)  # a wide domain (GS411)
        return load(text, target)


@by_target
@pytest.mark.parametrize(("rule", "dtype", "point", "place", "value"), PLACES)
def test_gradient(
    rule: str, dtype: str, point: Point, place: int, value: float, target: str
) -> None:
    if target == "jax" and point == (1e-25, 1e-25):
        pytest.skip(
            "XLA makes one division by a product of x / r / r, which underflows"
        )
    pytest.importorskip(PACKAGES[target])
    name, one = rule.partition("(")[0] + "_", np.ones(1, dtype)
    with np.errstate(all="ignore"):
        given = [one * np.array(v, dtype) for v in point]
        _, found = called(target, _module(rule, target), name, given, [one])
    slope = found[place]
    assert slope is not None and slope[0] == pytest.approx(value, rel=2e-5)


@pytest.mark.torch
def test_second_derivative_of_logaddexp_vanishes() -> None:
    """log(exp(x) + exp(y)) at (-800, 0), in float64: exp(-800) is 0."""
    import torch

    module = _module("logaddexp(x, y)", "torch")
    x = torch.tensor(-800.0, dtype=torch.float64, requires_grad=True)
    y = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
    z = module.logaddexp_(x, y)
    (first,) = torch.autograd.grad(z, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert first.item() == second.item() == 0.0
