"""Kinds of cancellation and overflow, each over siblings: values and gradients as
emitted, against mpmath."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

from gradspec.driver.cache import import_module
from gradspec.plan.planning import plan_module
from gradspec.source import Source
from gradspec.stabilise.stabilise import stabilise
from gradspec.targets.emitting import emit
from tests.calling import FRAMEWORKS, called
from tests.targets.ranked_numpy import believed, lowered

Point = tuple[float, ...]

CASES: dict[str, tuple[str, str, tuple[Point, ...]]] = {
    # inverse functions beside the end of their domain
    "acosh_tail": ("a: a >= 0", "acosh(1 + a)", ((1e-20,), (1e-10,), (0.5,), (1e20,))),
    "acosh_prod": (
        "a, b: a >= 0, b > 0",
        "acosh(1 + 2 * a / b)",
        ((1e-20, 2.0), (3e-7, 0.1), (4.0, 0.3)),
    ),
    "asin_tail": ("a: a >= 0, a <= 2", "pi / 2 - asin(1 - a)", ((1e-20,), (1e-5,))),
    "acos_tail": ("a: a >= 0, a <= 2", "acos(1 - a)", ((1e-20,), (1e-5,), (1.2,))),
    "atanh_tail": ("a: a > 0, a < 2", "atanh(1 - a)", ((1e-30,), (1e-9,), (0.7,))),
    "acosh_exp": ("a: a >= 0", "acosh(exp(a))", ((1e-20,), (1e-3,), (900.0,))),
    # differences of tails
    "ndtr_gap": (
        "a, b: a > b",
        "log(ndtr(a) - ndtr(b))",
        ((8.0, 7.5), (20.0, 19.0), (-19.0, -20.0), (0.01, -0.02), (2.0, -9.0)),
    ),
    "erf_gap": ("a, b: a > b", "log(erf(a) - erf(b))", ((8.0, 7.5), (0.1, 0.09))),
    "ndtr_difference": ("a, b", "ndtr(a) - ndtr(b)", ((8.0, 7.5), (1e-9, -1e-9))),
    "sigmoid_gap": (
        "a, b: a > b",
        "log(sigmoid(a) - sigmoid(b))",
        ((1000.0, 999.0), (-999.0, -1000.0), (1e-9, -1e-9), (6.25, -6.25)),
    ),
    "student": (
        "a, b: b > 0",
        "lgamma((b + 1) / 2) - lgamma(b / 2) - log(b * pi) / 2 - (b + 1) / 2 * log(1 +"
        " a**2 / b)",
        ((1.5, 1.0), (1.5, 1e4)),
    ),
    "rising": (
        "a, b: a > 0, b > 0",
        "lgamma(a + b) - lgamma(a)",
        ((1e9, 0.3), (2.0, 5.0)),
    ),
    "beta": (
        "a, b: a > 0, b > 0",
        "lgamma(a) + lgamma(b) - lgamma(a + b)",
        ((1e9, 0.3), (0.2, 1e9), (3.0, 4.5)),
    ),
    # three and more exponentials
    "lse": (
        "a, b, c",
        "log(exp(a) + exp(b) + exp(c))",
        ((1000.0, 999.0, 998.0), (-1000.0, -999.0, -998.0), (0.1, 0.2, -0.3)),
    ),
    "lse_of_five": (
        "a, b, c, d, e",
        "log(exp(a) + exp(b) + exp(c) + exp(d) + exp(e))",
        ((1000.0, 999.0, 998.0, 5.0, -1000.0),),
    ),
    "softmax": (
        "a, b, c",
        "exp(b) / (exp(a) + exp(b) + exp(c))",
        ((1000.0, 999.0, 998.0), (-1000.0, -999.0, -998.0), (3.0, 40.0, -2.0)),
    ),
    "mixture": (
        "a, b, c",
        "log(0.2 * exp(a) + 0.3 * exp(b) + 0.5 * exp(c))",
        ((1000.0, 999.0, 998.0), (-1000.0, -999.0, -998.0)),
    ),
    "softmin": (
        "a, b, c, g: static = 0.5: g > 0",
        "-g * log(exp(-a / g) + exp(-b / g) + exp(-c / g))",
        ((1000.0, 999.0, 998.0), (-1000.0, -999.0, -998.0)),
    ),
    "bessel": ("a", "log(i0(a))", ((1000.0,), (-3.0,))),
    "bessel_ratio": ("a", "i1(a) / i0(a)", ((1000.0,), (0.5,))),
    "von_mises": (
        "a, b, c: c > 0",
        "c * cos(a - b) - log(2 * pi * i0(c))",
        ((0.3, 0.2999, 1000.0), (0.3, 2.0, 1.5)),
    ),
    # powers that leave the range
    "p_norm": (
        "a, b, p: static = 3: p >= 1",
        "(abs(a)**p + abs(b)**p)**(1 / p)",
        ((1e200, -3e200), (1e-200, 2e-200), (3.0, 4.0)),
    ),
    "far_quadratic": (
        "a, b, c: b * b >= 4 * a * c, a != 0",
        "(-b + sqrt(b * b - 4 * a * c)) / (2 * a)",
        ((1e200, 3e200, 1e200), (1e-180, -3e-180, 2e-180), (1.0, 1e8, 1.0)),
    ),
    "far_root": (
        "a, b, c: a * a > b * c",
        "sqrt(a * a - b * c)",
        ((1e200, 3e199, 2e199), (1e-200, -3e-210, 2e-190), (2.0, 1.5, -5.0)),
    ),
    "far_complex_root": (
        "a, b",
        "0.5 * sqrt(2 * (sqrt(a * a + b * b) + a))",
        ((-1e10, 1e-150), (1e308, 1e308), (-3.0, 4.0)),
    ),
    "far_circle": (
        "a, b, c: abs(a) < 1.5, abs(b) < 1.5, abs(c) < 3",
        "acos(sin(a) * sin(b) + cos(a) * cos(b) * cos(c))",
        ((1e-200, 3e-200, 2e-200), (0.3, 0.3000001, 1e-7), (0.4, -1.2, 2.5)),
    ),
    "far_harmonic": (
        "a, b: a > 0, b > 0",
        "a * b / (a + b)",
        ((1e300, 1e-300), (1e-300, 1e300), (1e308, 5e307)),
    ),
    "far_quotient": (
        "a: a > 0",
        "a * a * exp(a) / ((exp(a) - 1) * (exp(a) - 1))",
        ((1e-300,), (1e-30,), (2.0,)),
    ),
}
"""Inputs and assumptions, the formula, and points."""

SAME = ("lse", "ndtr_gap", "acosh_prod", "beta", "far_quadratic")
"""Those that are compared on the other targets."""


def _rule(name: str) -> str:
    given, formula, _ = CASES[name]
    inputs, _, assumed = given.rpartition(": ") if ": " in given else (given, "", "")
    assume = f"    assume {assumed}\n" if assumed else ""
    return f"rule {name}({inputs}) -> y:\n{assume}    y = {formula}\n"


@cache
def _module(target: str) -> ModuleType:
    names = SAME if target != "numpy" else tuple(CASES)
    rules = lowered("\n".join(map(_rule, names)))
    made = emit(
        plan_module(
            Source("rules.grad", ""), tuple(map(stabilise, map(believed, rules)))
        ),
        target,
    )
    assert made.value is not None, made.diagnostics
    return import_module(made.value)


def _meaning(name: str) -> Any:
    """The formula over the numbers of mpmath."""
    scope = {n: getattr(mpmath, n) for n in dir(mpmath)}
    scope |= {
        "abs": abs,
        "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
        "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
        "lgamma": mpmath.loggamma,
        "i0": lambda x: mpmath.besseli(0, x),
        "i1": lambda x: mpmath.besseli(1, x),
    }
    text = CASES[name][1]
    for static, number in (("g", "0.5"), ("p", "3")):
        scope[static] = mpmath.mpf(number)
    return lambda *point: eval(text, scope | dict(zip("abcde", point, strict=False)))


def _compared(target: str, name: str) -> None:
    meaning = _meaning(name)
    for point in CASES[name][2]:
        inputs = [np.array([v]) for v in point]
        ones = [np.ones(1)]
        with np.errstate(all="ignore"):
            (value,), slopes = called(target, _module(target), name, inputs, ones)
        with mpmath.workdps(700 if "gap" in name or "far" in name else 100):
            exact = tuple(map(mpmath.mpf, point))
            wanted = [meaning(*exact)]
            for place in range(len(point)):
                order = tuple(int(k == place) for k in range(len(point)))
                step = abs(exact[place]) * mpmath.mpf(10) ** -40
                wanted.append(mpmath.diff(meaning, exact, order, h=step))
            true = [float(v) for v in wanted]
        for found, right in zip((value, *slopes), true, strict=True):
            assert found is not None
            assert found[0] == pytest.approx(right, rel=1e-9, abs=1e-300), (point, true)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    _compared("numpy", name)


@pytest.mark.parametrize("target", FRAMEWORKS)
def test_the_other_targets(target: str) -> None:
    for name in SAME:
        _compared(target, name)


OPEN = {
    "half_normal": (
        "a, m, s, lo: static = 0.0, hi: static = inf",
        "s > 0, a > lo, a < hi",
        "-((a - m) / s)**2 / 2 - log(s) - log(ndtr((hi - m) / s) - ndtr((lo - m) / s))",
        ((1.0, 0.0, 1.0), (1.0, -20.0, 1.0)),
    ),
    "cut_exponential": (
        "a, b, lo: static = 1.0, hi: static = inf",
        "b > 0, a >= lo, hi > a",
        "log(b) - b * a - log(exp(-b * lo) - exp(-b * hi))",
        ((2.0, 1.5), (30.0, 40.0)),
    ),
    "mass": (
        "m, s, lo: static = -inf, hi: static = inf",
        "s > 0, hi > lo",
        "ndtr((hi - m) / s) - ndtr((lo - m) / s)",
        ((0.1, 2.0), (-3.0, 0.5)),
    ),
    "bell_end": ("s, hi: static = inf", "s > 0", "exp(-s * hi**2)", ((1.0,),)),
}
"""Inputs, assumptions, the formula, and points: bounds that are open."""


@pytest.mark.parametrize("name", OPEN)
def test_an_infinite_static_gives_the_limit(name: str) -> None:
    given, assumed, formula, places = OPEN[name]
    text = f"rule f({given}) -> y:\n    assume {assumed}\n    y = {formula}\n"
    checked = tuple(map(stabilise, map(believed, lowered(text))))
    made = emit(plan_module(Source("rules.grad", ""), checked), "numpy").value
    assert made is not None and 'hi: float = float("inf")' in made.text
    for point in places:
        inputs = [np.array([v]) for v in point]
        with np.errstate(all="ignore"):
            open_, close = (
                called("numpy", import_module(made), "f", inputs, [np.ones(1)], None, s)
                for s in ({}, {"hi": 1e5} | ({"lo": -1e5} if "-inf" in given else {}))
            )
        for one, two in zip(
            (*open_[0], *open_[1]), (*close[0], *close[1]), strict=True
        ):
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-300)
