"""Many moderate numbers go shorter ways, block by block: right to the last places, and beside
numbers that are not moderate as they are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import imported, planned

RULES = """
rule silu(x) -> y:
    y = x / (1 + exp(-x))

rule mish(x) -> y:
    y = x * tanh(log(1 + exp(x)))

rule soft(x) -> y:
    y = log(1 + exp(x))
    dx = dy * sigmoid(x)

rule both(a, b) -> y:
    y = log(exp(a) + exp(b))
    da = dy * sigmoid(a - b)
    db = dy * sigmoid(b - a)

rule bounded(x) -> y:
    y = min(max(x, -100000), 100000)
    dx = min(max(dy, -100000), 100000)
"""
ZEROS = (-1.2784645427610738, -1.1924312145154317)
Values = Callable[..., Any]


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(target.module(planned(RULES)), "numpy_moderate")


def _numbers(count: int = 200_000) -> np.ndarray:
    """Of all magnitudes below 60, and next to the zeros of slopes."""
    random = np.random.default_rng(0)
    spread = 60.0 * 2.0 ** -random.uniform(0.0, 20.0, count)
    near = [z + 1e-5 * random.standard_normal(count // 8) for z in ZEROS]
    both = np.concatenate([spread, -spread, *near])
    return random.permutation(both).astype(np.float32)


def _ulps(found: np.ndarray, expected: np.ndarray) -> float:
    unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    return float((np.abs(found.astype(np.float64) - expected) / unit).max())


def _evaluated(rules: ModuleType, name: str, *inputs: np.ndarray) -> tuple[Any, ...]:
    y, pullback = getattr(rules, f"{name}_vjp")(*inputs)
    return y, *pullback(np.ones_like(y))


@pytest.mark.parametrize(
    ("name", "most"), [("silu", (3.0, 4.2)), ("mish", (4.0, 1.1)), ("soft", (4.0, 3.5))]
)
def test_many_numbers_have_their_digits(
    rules: ModuleType, name: str, most: tuple[float, float]
) -> None:
    x = _numbers()
    found = _evaluated(rules, name, x)
    expected = _evaluated(rules, name, x.astype(np.float64))
    for one, other, bound in zip(found, expected, most, strict=True):
        assert one.dtype == np.float32
        assert _ulps(one, other) <= bound


def test_two_shares_have_all_digits_of_the_difference(rules: ModuleType) -> None:
    a, b = _numbers(), _numbers()[::-1].copy()
    found = _evaluated(rules, "both", a, b)
    expected = _evaluated(rules, "both", a.astype(np.float64), b.astype(np.float64))
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert _ulps(one, other) <= 3.0


@pytest.mark.parametrize("name", ["silu", "mish", "soft"])
@pytest.mark.parametrize("far", [-np.inf, -103.0, -88.5, 89.0, 3e38, np.inf, np.nan])
def test_one_number_beyond_sends_its_block_the_other_way(
    rules: ModuleType, name: str, far: float
) -> None:
    x = _numbers(20_000)
    x[777] = far
    alone = _evaluated(rules, name, np.full(1, far, np.float32))
    plain = _evaluated(rules, name, np.where(np.arange(x.size) == 777, 0.0, x))
    for found, single, rest in zip(
        _evaluated(rules, name, x), alone, plain, strict=True
    ):
        np.testing.assert_allclose(found[777], single[0], rtol=1e-6)
        np.testing.assert_allclose(
            np.delete(found, 777), np.delete(rest, 777), rtol=1e-6, atol=1e-37
        )


def test_what_lies_within_its_bounds_is_not_given_back_itself(
    rules: ModuleType,
) -> None:
    x = _numbers(20_000)
    y, pullback = rules.bounded_vjp(x)
    (dx,) = pullback(x)
    for found in (y, dx):
        np.testing.assert_array_equal(found, x)
        assert not np.shares_memory(found, x)


def test_results_have_places_given_beforehand(rules: ModuleType) -> None:
    a, b = _numbers(), _numbers()[::-1].copy()
    place = np.empty_like(a)
    assert rules.silu(a, out=place) is place
    np.testing.assert_array_equal(place, rules.silu(a))
    assert rules.both(a, b, out=place) is place
    np.testing.assert_array_equal(place, rules.both(a, b))
