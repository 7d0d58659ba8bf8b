"""NumPy: rows are computed where an array lies that nothing needs any more."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import imported, planned

RULES = """
rule normed(x[..., n], g[n], b[n], eps: static = 1e-5) -> y[..., n]:
    c[i] = x[i] - mean(x[j] for j)
    r = 1 / sqrt(mean(c[j]**2 for j) + eps)
    z[i] = c[i] * r
    y[i] = g[i] * z[i] + b[i]

rule twice(x[..., n]) -> y[..., n]:
    c[i] = x[i] - mean(x[j] for j)
    z[i] = c[i] * max(c[j] for j)
    y[i] = z[i] * exp(c[i])
"""


@pytest.fixture(scope="module")
def text() -> str:
    return target.module(planned(RULES))


@pytest.fixture(scope="module")
def rules(text: str) -> ModuleType:
    return imported(text, "numpy_places")


def test_the_last_use_of_an_array_is_the_place_of_the_result(text: str) -> None:
    assert "z = np.multiply(c, r, out=c)" in text
    assert "y = np.multiply(z, g, out=z)\n        y += b" in text


def test_what_is_used_later_is_not_overwritten(text: str) -> None:
    assert "c * c.max(axis=-1, keepdims=True)" in text


def _normed(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    c = x - x.mean(axis=-1, keepdims=True)
    return g * (c / np.sqrt((c * c).mean(axis=-1, keepdims=True) + 1e-5)) + b


def _twice(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    c = x - x.mean(axis=-1, keepdims=True)
    return c * c.max(axis=-1, keepdims=True) * np.exp(c)


@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
@pytest.mark.parametrize("shape", ((5,), (1, 7), (3, 0, 4), (2, 3, 4), (3000, 50)))
def test_values_are_right_and_arguments_stay(
    rules: ModuleType, shape: tuple[int, ...], dtype: type
) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal(shape).astype(dtype)
    g, b = random.standard_normal((2, shape[-1])).astype(dtype)
    given = [array.copy() for array in (x, g, b)]
    near = {"rtol": 8 * np.finfo(dtype).eps, "atol": 16 * np.finfo(dtype).eps}
    value = rules.normed(x, g, b)
    assert (value.dtype, value.shape) == (dtype, shape)
    np.testing.assert_allclose(value, _normed(x, g, b), **near)
    kept, pullback = rules.normed_vjp(x, g, b)
    np.testing.assert_array_equal(kept, value)
    first, again = pullback(x), pullback(x)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(rules.twice(x), _twice(x), **near)
    for array, before in zip((x, g, b), given, strict=True):
        np.testing.assert_array_equal(array, before)


def test_a_static_of_a_wider_type_changes_no_type(rules: ModuleType) -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    one = np.ones(4, np.float32)
    value = rules.normed(x, one, one, eps=np.float64(1e-5))
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, rules.normed(x, one, one), rtol=4e-7)
