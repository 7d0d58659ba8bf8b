"""Many short rows are summed by `np.einsum`, and exponentials that fit are not shifted: the
results are as exact as those of few rows.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import imported, planned

RULES = """
rule softmax(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)

rule lse(x[..., n]) -> y:
    y = log(sum(exp(x[j]) for j))

rule layer_norm(x[..., n]) -> y[..., n]:
    c[i] = x[i] - mean(x[j] for j)
    y[i] = c[i] / sqrt(mean(c[j]**2 for j) + 0.00001)
"""
NAMES = ("softmax", "lse", "layer_norm")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(target.module(planned(RULES)), "numpy_sums")


def _rows(count: int, size: int, scale: float = 1.0) -> np.ndarray:
    random = np.random.default_rng(size)
    return (scale * random.standard_normal((count, size))).astype(np.float32)


def _both(rules: ModuleType, name: str, x: np.ndarray) -> tuple[Any, Any]:
    y, pullback = getattr(rules, f"{name}_vjp")(x)
    upstream = np.sin(np.arange(y.size)).reshape(y.shape).astype(y.dtype)
    return y, pullback(upstream)[0]


@pytest.mark.parametrize("scale", (1.0, 100.0))
@pytest.mark.parametrize("size", (1, 3, 100, 128, 129, 500))
@pytest.mark.parametrize("name", NAMES)
def test_many_rows_are_as_exact_as_few(
    rules: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    size: int,
    scale: float,
) -> None:
    x = _rows(6000 // size + 1, size, scale)
    many = _both(rules, name, x)
    truth = _both(rules, name, x.astype(np.float64))
    monkeypatch.setattr(rules, "_is_moderate", lambda value: False)
    monkeypatch.setattr(rules, "_are_short_rows", lambda *values: False)
    few = _both(rules, name, x)
    for found, usual, right in zip(many, few, truth, strict=True):
        assert found.dtype == np.float32
        bound = 1.5 * np.abs(usual - right).max() + 2e-7 * np.abs(right).max()
        assert np.abs(found - right).max() <= bound


def test_masks_and_large_numbers_are_shifted(rules: ModuleType) -> None:
    x = _rows(100, 100)
    x[:, ::3] = -np.inf
    x[1] += 1000.0
    y = rules.softmax(x)
    assert np.isfinite(y).all()
    assert (y[:, ::3] == 0.0).all()
    np.testing.assert_allclose(y.sum(axis=-1), 1.0, rtol=1e-6)
    total = rules.lse(x)
    np.testing.assert_allclose(total, rules.lse(x.astype(np.float64)), rtol=1e-6)
    assert total[1] > 1000.0
    assert rules.lse(np.full((100, 100), -np.inf, np.float32))[0] == -np.inf


def test_nothing_is_shifted_that_fits(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    is_moderate = rules._is_moderate

    def heard(value: np.ndarray) -> bool:
        asked.append(is_moderate(value))
        return asked[-1]

    monkeypatch.setattr(rules, "_is_moderate", heard)
    rules.softmax(_rows(100, 100))
    rules.softmax(_rows(100, 100, 100.0))
    rules.softmax(_rows(10, 100))
    assert asked == [True, False, False]


@pytest.mark.parametrize("shift", (0.0, -60.0, -75.0, -120.0, 60.0, 80.0, 95.0, 1e4))
def test_sums_of_exponentials_of_any_size(rules: ModuleType, shift: float) -> None:
    x = _rows(100, 100) + np.float32(shift)
    x[:, ::3] = -np.inf
    with np.errstate(all="raise", under="ignore"):
        total = rules.lse(x)
    assert total.dtype == np.float32
    few = np.concatenate([rules.lse(x[k : k + 10]) for k in range(0, 100, 10)])
    exact = rules.lse(x.astype(np.float64))
    unit = np.spacing(np.abs(few).max())
    assert np.abs(total - exact).max() <= 2 * unit
    assert np.abs(few - exact).max() <= 2 * unit
