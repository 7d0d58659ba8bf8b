"""The normal distribution in NumPy, of float32: in float64, by quotients that are short."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import numpy_module

RULES = """
rule ndtr_of(x) -> y:
    y = ndtr(x)

rule erfc_of(x) -> y:
    y = erfc(x)

rule log_ndtr_of(x) -> y:
    y = log_ndtr(x)

rule gelu_of(x) -> y:
    y = x * (1 + erf(x / sqrt(2))) / 2
    dx = dy * (ndtr(x) + x * exp(-x**2 / 2) / sqrt(2 * pi))
"""
ZERO = np.float32(-0.75179152)
SMALLEST = float(np.finfo(np.float32).smallest_normal)


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return numpy_module(RULES)


def _points() -> Any:
    r = np.random.default_rng(0)
    parts = [
        r.normal(size=40_000) * 4.0,
        np.geomspace(1e-30, 1e3, 4_000),
        -np.geomspace(1e-30, 1e3, 4_000),
        ZERO + np.arange(-2_000, 2_000) * 6e-8,
    ]
    return np.concatenate(parts).astype(np.float32)


def _off(got: Any, exact: Any) -> Any:
    """Units in the last place, where the result is a normal number."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    is_normal = np.isfinite(rounded) & (np.abs(rounded) > SMALLEST)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(rounded))
    ulp = np.spacing(np.abs(rounded[is_normal])).astype(np.float64)
    return np.abs(got[is_normal].astype(np.float64) - exact[is_normal]) / ulp


@pytest.mark.parametrize("name", ["ndtr_of", "erfc_of", "log_ndtr_of"])
def test_float32_is_rounded_once_but_for_eight_bits_more(
    rules: ModuleType, name: str
) -> None:
    """Its own float64 is another evaluation, with fits of its own."""
    x, rule = _points(), getattr(rules, name)
    off = _off(rule(x), rule(x.astype(np.float64)))
    assert off.max() < 0.65
    assert len(off) > 30_000


def test_the_slope_of_gelu_has_all_its_digits_about_its_zero(rules: ModuleType) -> None:
    x = _points()
    got = rules.gelu_of_vjp(x)[1](np.ones_like(x))[0]
    wide = x.astype(np.float64)
    exact = rules.gelu_of_vjp(wide)[1](np.ones_like(wide))[0]
    assert _off(got, exact).max() < 0.7


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ndtr_of", (0.0, 1.0, 0.5)),
        ("erfc_of", (2.0, 0.0, 1.0)),
        ("log_ndtr_of", (-np.inf, 0.0, np.log(0.5))),
        ("gelu_of", (0.0, np.inf, 0.0)),
    ],
)
def test_infinities_and_single_numbers(
    rules: ModuleType, name: str, wanted: tuple[float, ...]
) -> None:
    rule = getattr(rules, name)
    at = np.array([-np.inf, np.inf, 0.0], np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(rule(at), np.array(wanted, np.float32))
    assert np.isnan(rule(np.float32(np.nan)))
    one = rule(np.float32(0.5))
    assert one.dtype == np.float32
    np.testing.assert_array_equal(one, rule(np.full(3, 0.5, np.float32))[0])
    assert rule(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert rule(np.float16(0.5)).dtype == np.float16
