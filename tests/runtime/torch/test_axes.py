"""Operations on named axes against loops in NumPy; `test_torch_ranked_nodes.py` has the
derivatives and batches of those that a rule's text calls.
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gradspec.runtime.torch import _axes  # noqa: E402

pytestmark = pytest.mark.torch
MADE = torch.Generator().manual_seed(0)
X = torch.randn(2, 5, 3, generator=MADE, dtype=torch.float64)
A, B = (torch.randn(2, *s, generator=MADE, dtype=torch.float64) for s in ((4, 3), (3,)))
N = X.numpy()
T = np.array([4, 0, 4])
I = torch.from_numpy(T)  # noqa: E741
ROWS, COLUMNS = np.arange(3)[:, None], np.arange(2)


def _padded(places):
    """``X`` at the places of its middle axis, 0 where there is none."""
    inside = (places >= 0) & (places < 5)
    return np.where(inside[..., None], N[:, np.where(inside, places, 0)], 0)


def _scattered(value):
    found = np.zeros((2, 5, 3))
    for k, place in enumerate(T):
        found[:, place] += value[:, k]
    return found


CASES = {
    "spread": (lambda: _axes.spread(X[:, :1], -2, 4), N[:, :1].repeat(4, 1)),
    "spread, a new axis": (lambda: _axes.spread(B, -3, 4), np.stack([B.numpy()] * 4)),
    "largest": (lambda: _axes.largest(X, -2), N.max(1)),
    "largest of none": (lambda: _axes.largest(X[:, :0], -2), np.full((2, 3), -np.inf)),
    "positions": (lambda: _axes.positions(3, X), np.arange(3)),
    "stacked": (
        lambda: _axes.stacked(X, torch.tensor(1.0)),
        np.stack([N, np.ones_like(N)], -1),
    ),
    "permuted": (lambda: _axes.permuted(X, (-1, -2)), N.swapaxes(1, 2)),
    "padded_window": (
        lambda: _axes.padded_window(X, -2, -2, 9),
        _padded(np.arange(-2, 7)),
    ),
    "padded_window beyond": (
        lambda: _axes.padded_window(X, -2, 6, 2),
        _padded(np.array([6, 7])),
    ),
    "windows": (lambda: _axes.windows(X, -2, 1, 3, 2), N[:, 1 + ROWS + COLUMNS]),
    "windows back": (
        lambda: _axes.windows(X, -2, 1, 3, 2, backward=True),
        N[:, 1 + ROWS - COLUMNS],
    ),
    "padded_windows": (
        lambda: _axes.padded_windows(X, -2, 3, 3, 2),
        _padded(3 + ROWS + COLUMNS),
    ),
    "padded_windows back": (
        lambda: _axes.padded_windows(X, -2, 0, 3, 2, backward=True),
        _padded(ROWS - COLUMNS),
    ),
    "product_of_others": (
        lambda: _axes.product_of_others(X, -2),
        np.stack([np.delete(N, k, 1).prod(1) for k in range(5)], 1),
    ),
    "product_of_others of none": (
        lambda: _axes.product_of_others(X[:, :0], -2),
        N[:, :0],
    ),
    "take": (lambda: _axes.take(X, I, -2), N[:, T]),
    "take_clipped": (lambda: _axes.take_clipped(X, I + 3, -2), N[:, [4, 3, 4]]),
    "gather": (lambda: _axes.gather(X, I[:, None], -2), N[:, T]),
    "scatter_add": (
        lambda: _axes.scatter_add(I, X[:, :3], 5, 1, 1),
        _scattered(N[:, :3]),
    ),
    "sum_by_position": (
        lambda: _axes.sum_by_position(I, X[:, :3], 5, 1, 1),
        _scattered(N[:, :3]).sum(0),
    ),
    "contraction": (
        lambda: _axes.contraction("...ij,...j->...i", A, B),
        np.einsum("bij,bj->bi", A, B),
    ),
    "contraction over the batch": (
        lambda: _axes.contraction("...ij,...j->i", A, B),
        np.einsum("bij,bj->i", A, B),
    ),
    "contraction, turned": (
        lambda: _axes.contraction("...ij,...k->...kji", A, B),
        np.einsum("bij,bk->bkji", A, B),
    ),
    "sum_of_outer": (
        lambda: _axes.sum_of_outer(A, B[:, None]),
        np.einsum("bij,bk->jk", A, B),
    ),
    "sum_over_batch": (lambda: _axes.sum_over_batch(X, 1), N.sum((0, 1))),
    "sum_over_batch of none": (lambda: _axes.sum_over_batch(X, 3), N),
}


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name: str) -> None:
    made, wanted = CASES[name]
    found = made()
    assert tuple(found.shape) == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


def test_a_window_beyond_its_axis_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        _axes.windows(X, -2, 4, 3, 2)


def test_own_is_no_view() -> None:
    x = torch.zeros(3, requires_grad=True)
    y = _axes.own(torch.sin(x))
    assert not y._is_view()
    y += 1
