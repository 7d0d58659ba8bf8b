"""Operations on named axes against loops in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

from gradspec.runtime.jax import _axes  # noqa: E402

pytestmark = pytest.mark.jax
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 5, 3)).astype(np.float32)
T = np.array([4, 0, 4])


def _padded(x, places):
    """``x`` at the places of its middle axis, 0 where there is none."""
    inside = (places >= 0) & (places < x.shape[1])
    return np.where(inside[..., None], x[:, np.where(inside, places, 0)], 0)


def _others(x):
    found = np.empty_like(x)
    for k in range(x.shape[1]):
        found[:, k] = np.delete(x, k, 1).prod(1)
    return found


def _scattered(index, value, size):
    found = np.zeros((*value.shape[:1], size, *value.shape[2:]), value.dtype)
    for k, place in enumerate(index):
        if 0 <= place < size:
            found[:, place] += value[:, k]
    return found


ROWS, COLUMNS = np.arange(3)[:, None], np.arange(2)
CASES = {
    "spread": (lambda: _axes.spread(X[:, :1], -2, 4), X[:, :1].repeat(4, 1)),
    "stacked": (
        lambda: _axes.stack_last(X, 1.0),
        np.stack([X, np.ones_like(X)], -1),
    ),
    "window": (lambda: _axes.window(X, -2, 1, 3), X[:, 1:4]),
    "padded_window": (
        lambda: _axes.padded_window(X, -2, -2, 9),
        _padded(X, np.arange(-2, 7)),
    ),
    "windows": (lambda: _axes.windows(X, -2, 1, 3, 2), X[:, 1 + ROWS + COLUMNS]),
    "windows back": (
        lambda: _axes.windows(X, -2, 1, 3, 2, backward=True),
        X[:, 1 + ROWS - COLUMNS],
    ),
    "padded_windows": (
        lambda: _axes.padded_windows(X, -2, 3, 3, 2),
        _padded(X, 3 + ROWS + COLUMNS),
    ),
    "padded_windows back": (
        lambda: _axes.padded_windows(X, -2, 0, 3, 2, backward=True),
        _padded(X, ROWS - COLUMNS),
    ),
    "product_of_others": (lambda: _axes.product_of_others(X, -2), _others(X)),
    "take": (lambda: _axes.take(X, T, -2), X[:, T]),
    "take outside, traced": (
        lambda: jax.jit(_axes.take, static_argnums=2)(X, np.array([-1, 5]), -2),
        np.full((2, 2, 3), np.nan),
    ),
    "gather": (
        lambda: _axes.gather(X, T[:, None], -2),
        np.take_along_axis(X, T[None, :, None], 1),
    ),
    "scatter_add": (
        lambda: _axes.scatter_add(T, X[:, :3], 5, 1, 1),
        _scattered(T, X[:, :3], 5),
    ),
    "scatter_add outside": (
        lambda: _axes.scatter_add(np.array([1, -1, 9]), X[:, :3], 5, 1, 1),
        _scattered(np.array([1, -1, 9]), X[:, :3], 5),
    ),
    "scatter_add_all": (
        lambda: _axes.scatter_add_all(T, X[:, :3], 5, 1, 1),
        _scattered(T, X[:, :3], 5).sum(0),
    ),
    "batch_sum": (lambda: _axes.batch_sum(X, 1), X.sum((0, 1))),
    "cumsum_back": (
        lambda: _axes.cumsum_back(X, -2),
        X[:, ::-1].cumsum(1)[:, ::-1],
    ),
    "empty windows": (
        lambda: _axes.windows(X, -2, 0, 0, 2),
        X[:, np.empty((0, 2), int)],
    ),
    "empty axis": (lambda: _axes.product_of_others(X[:, :0], -2), X[:, :0]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("compiled", [False, True])
def test_against_numpy(name: str, compiled: bool) -> None:
    made, wanted = CASES[name]
    found = jax.jit(made)() if compiled else made()
    assert found.shape == wanted.shape
    assert np.allclose(found, wanted, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("start", [-1, 4])
def test_a_window_beyond_its_axis_is_an_error(start: int) -> None:
    with pytest.raises(ValueError, match="of an axis of size 5"):
        _axes.window(X, -2, start, 2)
