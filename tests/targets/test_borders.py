"""Gradients at borders: what a mask selects, zero bases, tips, and overflows beside 0."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.calling import by_target, called
from tests.targets.emission import module_of

# The extreme element is that of `choice` among the values of the function.
CHOSEN = {
    "max(log(1 + x[j]**2) for j)": lambda x: np.log1p(x * x),
    "min(sqrt(x[j]**2 + 1) - 1 for j)": lambda x: -abs(x),
    "1 - 2 * max(exp(x[j]) - 1 for j)": lambda x: x,
    "max(1.1 * x[j] * x[j] + 1 for j)": abs,
    "min((exp(2 * x[j]) - 1) / (exp(2 * x[j]) + 1) for j)": lambda x: -x,
    "max(log(1 + exp(x[j])) for j if x[j] > -9)": lambda x: x,
    "log(1 + max(exp(x[j]) - 1 for j))": lambda x: x,
}
MASKS = "\n\n".join(
    f"rule r{k}(x[..., n]) -> z:\n    z = {text}" for k, text in enumerate(CHOSEN)
)


@by_target
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_maximum_has_its_gradient_where_it_is_reached(
    target: str, dtype: type
) -> None:
    x = np.random.default_rng(3).normal(size=(60, 5)).astype(dtype)
    x[::7, 1:3] = x[::7, :1]
    for number, (text, choice) in enumerate(CHOSEN.items()):
        _, (dx,) = called(target, module_of(MASKS, target), f"r{number}", [x])
        value = choice(x.astype(np.float64))
        assert dx is not None
        reached = value == value.max(axis=-1, keepdims=True)
        np.testing.assert_array_equal(dx != 0, reached, err_msg=text)


# What is compared with an extremum rounds as it does under it, also where a part of a
# product is constant, and where a choice is decided in a part of a sum.
ATTAINED = """
rule alone(x[..., n], w[n]) -> y:
    y = max(w[i] * 0.7 * min(x[0], x[1]) for i)

rule beside(x[..., n], w[n]) -> y:
    y = sum(max(w[i] * 0.3 * max(x[j], x[0]**2) for i) for j)

rule decided(x[..., n], w[n]) -> y:
    y = sum(min(w[p] / softplus(x[j - 1] if j > 0 else x[p]) for p) for j)

rule decided_next(x[..., n], w[n]) -> y:
    y = sum(max(w[p] * tanh(x[j + 1] if j + 1 < n else x[p]) / 3 for p) for j)
"""


@by_target
@pytest.mark.parametrize("name", re.findall(r"rule (\w+)", ATTAINED))
def test_an_extremum_is_attained_by_what_is_compared_with_it(
    target: str, name: str
) -> None:
    random = np.random.default_rng(5)
    x, w = random.uniform(0.2, 1.4, (40, 5)), random.uniform(0.2, 1.4, 5)
    step = 1e-6 * random.normal(size=x.shape)
    module = module_of(ATTAINED, target)
    values = []
    for moved in (x - step, x, x + step):
        (y,), _ = called(target, module, name, [moved, w])
        _, (dx, _) = called(target, module, name, [moved, w], [np.ones_like(y)])
        values.append((y.reshape(40, -1).sum(-1), dx))
    (below, _), (_, dx), (above, _) = values
    assert dx is not None
    slope = (dx * step).sum(-1)
    np.testing.assert_allclose(slope, (above - below) / 2, rtol=1e-5, atol=1e-12)


NAN, INF = np.nan, np.inf

# A rule, its statics, its inputs, and the right gradients: where a slope is infinite it
# is that of IEEE 754, at the tip of a norm it is 0.
TIPS: list[tuple[str, dict[str, float], list[object], list[object]]] = [
    ("x[..., n]) -> y[..., n]:\n    y[i] = sqrt(x[i])", {}, [[0, 4]], [[INF, 0.25]]),
    (
        "x[..., n], p: static = 0.5) -> y[..., n]:\n    assume x[i] >= 0\n    y[i] = x[i]**p",
        {"p": 2.0},
        [[0, 3]],
        [[0, 6]],
    ),
    (
        "x[..., n], p: static = 0.5) -> y:\n    assume x[i] >= 0, p > 0\n"
        "    y = sum(1 - x[i]**p for i)",
        {"p": 1.5},
        [[0, 4]],
        [[0, -3]],
    ),
    ("x[..., n]) -> y[..., n]:\n    y[i] = asin(x[i])", {}, [[1, 0]], [[INF, 1]]),
    ("x[..., n]) -> y[..., n]:\n    y[i] = cbrt(x[i])", {}, [[0, 1]], [[INF, 1 / 3]]),
    ("x[..., n]) -> y:\n    y = sqrt(sum(x[j] for j))", {}, [[1, -1]], [[INF, INF]]),
    ("x[..., n]) -> y:\n    y = sqrt(sum(x[j]**2 for j))", {}, [[0, 0]], [[0, 0]]),
    ("x[..., n]) -> y:\n    y = sum(x[j]**2 for j)**0.25", {}, [[0, 0]], [[NAN, NAN]]),
    ("x[..., n]) -> y:\n    y = sum(x[j]**2 for j)**1.5", {}, [[0, 0]], [[0, 0]]),
    (
        "x[..., n], w[n]) -> y:\n    y = sqrt(sum((w[j] * x[j])**2 for j))",
        {},
        [[0, 0], [1, 2]],
        [[0, 0], [0, 0]],
    ),
    ("x, z) -> y:\n    y = sqrt(x**2 + z**2)", {}, [0, 0], [0, 0]),
    ("x, z, u) -> y:\n    y = sqrt(x**2 + z**2 + u**2)", {}, [0, 0, 0], [0, 0, 0]),
    ("x, z) -> y:\n    y = exp(-sqrt(x**2 + z**2) / 3)", {}, [0, 0], [0, 0]),
    ("x, z) -> y:\n    y = sqrt(hypot(x, z))", {}, [0, 0], [NAN, NAN]),
    ("x) -> y:\n    y = abs(x)**0.5", {}, [0], [NAN]),
    *(
        (f"x) -> y:\n    assume x >= 0\n    y = {text}", {}, [0], [slope])
        for text, slope in (
            ("cos(sqrt(x))", -0.5),
            ("3 * cosh(sqrt(x))", 1.5),
            ("sqrt(x) * tanh(sqrt(x))", 1),
            ("sqrt(x) * atan(sqrt(x)) + x", 2),
            ("sqrt(x) * sin(sqrt(x))", 1),
        )
    ),
    (
        "x, z) -> y:\n    y = 2 * asin(sqrt(sin(x / 2)**2 + sin(z / 2)**2))",
        {},
        [0, 0],
        [0, 0],
    ),
    (
        "x, a) -> y:\n    r = exp(x)\n    y = min(r, 1) + a * min(r, 2)",
        {},
        [999, 1],
        [0, 2],
    ),
    (
        "x[..., n]) -> y[..., n]:\n    r[i] = exp(x[i])\n"
        "    y[i] = min(r[i], 1) + 3 * min(r[i], 2)",
        {},
        [[999, 0]],
        [[0, 3.5]],
    ),
    (
        "s, ell) -> y:\n    assume s >= 0, ell > 0\n    r = sqrt(s) / ell\n"
        "    y = (1 + r) * exp(-r)",
        {},
        [0, 0.5],
        [-2, 0],
    ),
    (
        "x[n, d], z[m, d]) -> k[n, m]:\n"
        "    k[i, j] = sqrt(sum((x[i, l] - z[j, l])**2 for l))",
        {},
        [[[1, 2]], [[1, 2], [-2, -2]]],
        [[[0.6, 0.8]], [[0, 0], [-0.6, -0.8]]],
    ),
]
TIP_RULES = "\n\n".join(f"rule r{k}({case[0]}" for k, case in enumerate(TIPS))


@by_target
def test_a_tip_is_0_and_an_infinite_slope_stays(target: str) -> None:
    module = module_of(TIP_RULES, target)
    for number, (text, statics, inputs, right) in enumerate(TIPS):
        given = [np.asarray(x, np.float64) for x in inputs]
        outputs, _ = called(target, module, f"r{number}", given, statics=statics)
        ones = [np.ones_like(output) for output in outputs]
        _, found = called(target, module, f"r{number}", given, ones, statics=statics)
        for gradient, value in zip(found, right, strict=True):
            assert gradient is not None
            np.testing.assert_allclose(gradient, value, rtol=1e-12, err_msg=text)
