"""A logistic function, a softplus and the logistic function of the opposite share one
exponential; a square is a product, whatever says that the power is 2.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import imported, planned

RULES = """
def sigma(u) = 1 / (1 + exp(-u))

rule focal(x, t: nograd, focus: static = 2.0) -> y:
    assume focus >= 0, -1 <= t, t <= 1
    p = sigma(t * x)
    y = -(1 - p)**focus * log(p)
    dx = dy * t * (1 - p)**focus * (focus * p * log(p) + p - 1)
"""


@pytest.fixture(scope="module")
def text() -> str:
    return target.module(planned(RULES))


@pytest.fixture(scope="module")
def rules(text: str) -> ModuleType:
    return imported(text, "numpy_known")


def test_the_gradient_has_one_exponential(text: str) -> None:
    pullback = text[text.index("def _focal_pullback") :]
    pullback = pullback[: pullback.index("\ndef focal_vjp")]
    assert pullback.count("np.exp(") == 1
    assert "_sigmoid(" not in pullback and "_logistic_known(" in pullback


@pytest.mark.parametrize("count", [7, 5000])
@pytest.mark.parametrize("far", [3.0, 80.0, 200.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_the_exponential_leaves_of_1_has_all_digits(
    rules: ModuleType, count: int, far: float, dtype: type
) -> None:
    """Also beyond 88.5, where the exponential that is at hand is bounded."""
    x = np.linspace(-far, far, count).astype(dtype)
    t = np.exp(np.minimum(x, dtype(88.5)))
    true = 1.0 / (1.0 + np.exp(x.astype(np.longdouble)))
    tiny = np.finfo(dtype).tiny
    found = rules._logistic_known(x, t)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, true.astype(dtype), rtol=3 * np.finfo(dtype).eps, atol=tiny
    )


@pytest.mark.parametrize("count", [7, 5000])
@pytest.mark.parametrize("focus", [2.0, 2, 1.5, 0.0])
def test_a_power_is_a_power(rules: ModuleType, count: int, focus: float) -> None:
    x = np.linspace(-4.0, 9.0, count, dtype=np.float32)
    wide = x.astype(np.float64)
    share = 1.0 / (1.0 + np.exp(wide))
    y, pullback = rules.focal_vjp(x, np.ones_like(x), focus=focus)
    np.testing.assert_allclose(y, share**focus * np.log1p(np.exp(-wide)), rtol=2e-6)
    slope = -focus * (1 - share) * np.log1p(np.exp(-wide)) - share
    dx, _ = pullback(np.ones_like(x))
    np.testing.assert_allclose(dx, share**focus * slope, rtol=3e-6)


def test_a_square_is_rounded_once(rules: ModuleType) -> None:
    x = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    np.testing.assert_array_equal(rules._power(x, 2.0), x * x)
    np.testing.assert_array_equal(rules._power(x, 3.0), x**3.0)
