"""Indices with ranges: shipped pooling and interpolation beside that of the frameworks.

NumPy has none, and is compared with windows of a view; its gradients are torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.calling import Array, by_target, called, cotangent, value
from tests.targets.emission import module_of

SEQUENCES = Path(__file__).parents[2] / "rules" / "tensor" / "sequences.grad"
LENGTHS = ((7, 3, 2), (6, 2, 2), (5, 5, 1), (4, 1, 1))
"""Elements, elements of a window, and the stride."""

Own = Callable[[Any, int, int], Any]


def _windows(x: Array, k: int, s: int) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, k, -1)[..., ::s, :]


def _squares(x: Array, k: int, s: int) -> Array:
    view = np.lib.stride_tricks.sliding_window_view(x, (k, k), (-2, -1))
    return view[..., ::s, ::s, :, :]


def _of_torch() -> dict[str, Own]:
    from torch.nn import functional

    return {
        "average_pool": functional.avg_pool1d,
        "average_pool_2d": functional.avg_pool2d,
        "max_pool": functional.max_pool1d,
    }


def _of_tf() -> dict[str, Own]:
    import tensorflow as tf

    def pooled(kind: str, axes: str) -> Own:
        def own(x: Any, k: int, s: int) -> Any:
            rank = len(axes)
            channels_last = tf.expand_dims(x[:, 0], -1)
            pooled = tf.nn.pool(
                channels_last, [k] * rank, kind, strides=[s] * rank, padding="VALID"
            )
            return tf.expand_dims(pooled[..., 0], 1)

        return own

    return {
        "average_pool": pooled("AVG", "w"),
        "average_pool_2d": pooled("AVG", "hw"),
        "max_pool": pooled("MAX", "w"),
    }


def _of_jax() -> dict[str, Own]:
    from jax import lax

    def pooled(x: Any, k: int, s: int, rank: int, op: Any, start: float) -> Any:
        ones = (1,) * (x.ndim - rank)
        sizes, strides = (*ones, *(k,) * rank), (*ones, *(s,) * rank)
        return lax.reduce_window(x, start, op, sizes, strides, "VALID")

    return {
        "average_pool": lambda x, k, s: pooled(x, k, s, 1, lax.add, 0.0) / k,
        "average_pool_2d": lambda x, k, s: pooled(x, k, s, 2, lax.add, 0.0) / k**2,
        "max_pool": lambda x, k, s: pooled(x, k, s, 1, lax.max, -np.inf),
    }


def _of_numpy() -> dict[str, Own]:
    return {
        "average_pool": lambda x, k, s: _windows(x, k, s).mean(-1),
        "average_pool_2d": lambda x, k, s: _squares(x, k, s).mean((-1, -2)),
        "max_pool": lambda x, k, s: _windows(x, k, s).max(-1),
    }


OWN = {"numpy": _of_numpy, "torch": _of_torch, "tf": _of_tf, "jax": _of_jax}


class _Module:
    """A framework's own functions, called as rules are."""

    def __init__(self, functions: dict[str, Own], k: int, s: int) -> None:
        for name, own in functions.items():
            setattr(self, name, lambda x, own=own: own(x, k, s))


@by_target
@pytest.mark.parametrize("length", LENGTHS, ids=str)
@pytest.mark.parametrize("rule", ["average_pool", "average_pool_2d", "max_pool"])
def test_values_and_gradients_are_those_of_the_framework(
    target: str, rule: str, length: tuple[int, int, int]
) -> None:
    n, k, s = length
    x = np.random.default_rng(1).standard_normal((2, 1, *(n,) * (1 + ("2d" in rule))))
    m = (n - k) // s + 1
    sizes = {"a": m, "b": m} if "2d" in rule else {"m": m}
    statics = {"k": k, "s": s, **sizes}
    module = module_of(SEQUENCES, target)
    found = called(target, module, rule, [x], statics=statics)
    if target == "numpy":
        np.testing.assert_allclose(found[0][0], _of_numpy()[rule](x, k, s), 1e-12)
        pytest.importorskip("torch")
    theirs = "torch" if target == "numpy" else target
    wanted = called(theirs, _Module(OWN[theirs](), k, s), rule, [x])
    for ours, own in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours[0], own[0], 1e-12, 1e-12)


@by_target
def test_interpolation_between_neighbours(target: str) -> None:
    x = np.random.default_rng(2).standard_normal((3, 5))
    values, gradients = called(
        target, module_of(SEQUENCES, target), "spread_evenly", [x], statics={"m": 8}
    )
    places = np.linspace(0, 4, 8)
    wanted = np.array([np.interp(places, np.arange(5), row) for row in x])
    np.testing.assert_allclose(values[0], wanted, 1e-12, 1e-12)
    weights = np.array([np.interp(places, np.arange(5), row) for row in np.eye(5)])
    np.testing.assert_allclose(
        gradients[0], cotangent(wanted) @ weights.T, 1e-12, 1e-12
    )


NEGATIVE = {"k": (-1, 1, 2), "m": (2, 1, -2)}


@by_target
@pytest.mark.parametrize("name", NEGATIVE)
def test_a_negative_size_is_an_error(target: str, name: str) -> None:
    pool = module_of(SEQUENCES, target).average_pool
    sizes = dict(zip(("k", "s", "m"), NEGATIVE[name], strict=True))
    with pytest.raises(ValueError, match=f"{name} is the size of an axis, and -"):
        value(target, pool, [np.ones(4)], **sizes)


@by_target
def test_a_window_beyond_the_end_is_an_error(target: str) -> None:
    pool = module_of(SEQUENCES, target).average_pool
    with pytest.raises(IndexError, match="average_pool: a position is outside"):
        value(target, pool, [np.ones(6)], k=4, s=2, m=4)


@by_target
@pytest.mark.parametrize("size", [0, 1, 2, 4])
def test_no_window_of_an_axis_that_is_shorter(target: str, size: int) -> None:
    """A window has three elements, and no output is asked for."""
    module, x = module_of(SEQUENCES, target), np.ones((2, size))
    w, b = np.ones(3), np.ones(())
    for rule, inputs, statics in (
        ("conv1d", (x, w, b), {"m": 0}),
        ("average_pool", (x,), {"k": 3, "s": 2, "m": 0}),
        ("max_pool", (x,), {"k": 3, "s": 1, "m": 0}),
    ):
        (y,), gradients = called(target, module, rule, inputs, statics=statics)
        assert y.shape == (2, 0)
        for given, found in zip(inputs, gradients, strict=True):
            np.testing.assert_array_equal(found, 0 * given)
