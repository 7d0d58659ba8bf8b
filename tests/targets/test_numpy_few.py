"""Few elements: arrays that need no conversion are looked at once."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import imported, planned

RULES = """
rule pair(x, y) -> (z, w):
    z = x * y + sin(x)
    w = y**2
    dx = dz * (y + cos(x))
    dy = dz * x + dw * 2 * y

rule spike(v, k: static = 25.0) -> s:
    assume k > 0
    s = 1 if v > 0 else 0
    surrogate s = v / (1 + k * abs(v))

rule same(x) -> y:
    y = x

rule logistic(x) -> y:
    y = 1 / (1 + exp(-x))

rule bounded(x) -> y:
    y = min(x, 0.75) * max(x, -0.25)
"""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(target.module(planned(RULES)), "numpy_few")


def _randn(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _all(rules: ModuleType, *inputs: Any) -> list[np.ndarray]:
    outputs, pullback = rules.pair_vjp(*inputs)
    return [*outputs, *pullback(*(2 * np.ones_like(y) for y in outputs))]


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("shape", ((), (1,), (3, 4), (0,)))
def test_nothing_is_converted_and_the_bits_are_the_same(
    rules: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    dtype: Any,
) -> None:
    x = np.asarray(_randn(*shape, dtype=dtype))
    y = np.asarray(_randn(*shape, dtype=dtype, seed=1))
    with monkeypatch.context() as patch:
        patch.setattr(rules, "_few2", lambda a, b: None)
        patch.setattr(rules, "_few4_asked2", lambda a, b, c, d: None)
        expected = _all(rules, x, y)
    asked: list[str] = []
    floating = rules._floating
    monkeypatch.setattr(
        rules, "_floating", lambda *a, **k: asked.append(a[0]) or floating(*a, **k)
    )
    found = _all(rules, x, y)
    # results of rank 0 are no arrays in NumPy, and what is empty begins with nothing
    assert bool(asked) == (shape in ((), (0,)))
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("x", "y"),
    (
        (_randn(3, 1), _randn(4)),
        (_randn(3), _randn(3, dtype=np.float64)),
        (_randn(3, dtype=np.float16), _randn(3, dtype=np.float16)),
        ([0.5, 1.0], 2.0),
        (np.ma.masked_array([0.5, 1.0]), np.array([1.0, 2.0])),
    ),
    ids=("broadcast", "types", "half", "numbers", "masked"),
)
def test_what_is_not_alike_is_converted(rules: ModuleType, x: Any, y: Any) -> None:
    values = [np.asarray(v, np.float64) for v in (x, y)]
    dtype = np.result_type(*(np.asarray(v) for v in (x, y)))
    expected = _all(rules, *values)
    for one, other, like in zip(
        _all(rules, x, y), expected, (None, None, x, y), strict=True
    ):
        assert type(one) is not np.ma.MaskedArray
        assert one.dtype == (dtype if like is None else np.asarray(like).dtype)
        np.testing.assert_allclose(one, other, 2e-3)


def test_upstream_gradients_keep_their_rules(rules: ModuleType) -> None:
    x, y = _randn(3), _randn(3, seed=1)
    _, pullback = rules.pair_vjp(x, y)
    ones = np.ones(3, np.float32)
    for one, other in zip(pullback(1.0, 1.0), pullback(ones, ones), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match=r"dimensions|broadcast"):
        pullback(np.ones((2, 3), np.float32), ones)


def test_what_is_returned_is_never_the_argument(rules: ModuleType) -> None:
    x, dy = _randn(3), _randn(3, seed=1)
    y, pullback = rules.same_vjp(x)
    (dx,) = pullback(dy)
    assert not np.shares_memory(x, y) and not np.shares_memory(dx, dy)


def test_a_static_of_another_type_changes_no_type(rules: ModuleType) -> None:
    s, pullback = rules.spike_vjp(_randn(3), k=np.float64(2.0))
    assert s.dtype == pullback(np.ones(3, np.float32))[0].dtype == np.float32


@pytest.mark.parametrize("count", (1, 5000))
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_steps_and_bounds(rules: ModuleType, dtype: Any, count: int) -> None:
    ends = [-np.inf, -1.0, -0.0, 0.0, 1e-45, 0.5, 1.0, 3.0, np.inf, np.nan]
    x = np.repeat(np.array(ends, dtype), count)
    with np.errstate(all="raise", under="ignore"):
        s = rules.spike(x)
        y = rules.bounded(x)
    expected = np.where(np.isnan(x), x, (x > 0).astype(dtype))
    np.testing.assert_array_equal(s, expected)
    assert not np.signbit(s[~np.isnan(s)]).any()
    bounds = np.minimum(x, dtype(0.75)) * np.maximum(x, dtype(-0.25))
    np.testing.assert_array_equal(y, bounds)


def test_the_steps_of_many_stand_where_they_are_asked_for(rules: ModuleType) -> None:
    x = _randn(5000)
    expected = (x > 0).astype(np.float32)
    out = np.full_like(x, 7.0)
    assert rules.spike(x, out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert rules.spike(x, out=x) is x
    np.testing.assert_array_equal(x, expected)
    with pytest.raises(TypeError):
        rules.spike(x, out=np.empty(5000))


def test_a_slope_far_out_gives_no_warning(rules: ModuleType) -> None:
    v = np.array([1e30, -1e30, 1e18], np.float32)
    with np.errstate(all="raise", under="ignore"):
        (dv,) = rules.spike_vjp(v)[1](np.ones(3, np.float32))
    assert (dv == 0).all() or (dv < 1e-36).all()


def test_numbers_and_bounds_give_few_the_bits_of_many(rules: ModuleType) -> None:
    x = _randn(2000)
    x[:4] = np.nan, np.inf, -np.inf, -0.0
    for few, many in (
        (rules.bounded(x[:50]), rules.bounded(x)[:50]),
        (rules.logistic(x[:50]), rules.logistic(x)[:50]),
        (rules.spike(x[:50]), rules.spike(x)[:50]),
    ):
        assert few.dtype == np.float32
        np.testing.assert_array_equal(few, many)
        np.testing.assert_array_equal(np.signbit(few), np.signbit(many))


def test_twice_is_a_sum(rules: ModuleType) -> None:
    x, y = _randn(5), _randn(5, seed=1)
    _, pullback = rules.pair_vjp(x, y)
    _, dy = pullback(np.zeros(5, np.float32), x)
    np.testing.assert_array_equal(dy, 2 * x * y)


def test_a_block_is_looked_at_once_and_more_is_not(rules: ModuleType) -> None:
    block = np.zeros(rules._BLOCK, np.float32)
    assert rules._few(block) is rules._few2(block, block) is block.dtype
    more = np.zeros(rules._BLOCK + 1, np.float32)
    assert rules._few(more) is rules._few2(more, more) is None
