"""Operations on named axes, against loops over elements."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gradspec.runtime.torch import _axes  # noqa: E402

pytestmark = pytest.mark.torch
MADE = torch.Generator().manual_seed(0)
X, A, B = (
    torch.randn(2, *shape, generator=MADE, dtype=torch.float64)
    for shape in ((5, 3), (4, 3), (3,))
)
N, INDEX = X.numpy(), torch.tensor([4, 0, 4])
SCATTERED = np.stack([N[:, 1], *(0 * N[:, 0],) * 3, N[:, 0] + N[:, 2]], 1)

CASES = {
    "spread": (lambda: _axes.spread(B, -3, 4), np.stack([B.numpy()] * 4)),
    "largest of none": (lambda: _axes.largest(X[:, :0], -2), np.full((2, 3), -np.inf)),
    "padded_window": (lambda: _axes.padded_window(X, -2, 6, 2), 0 * N[:, :2]),
    "product_of_others": (lambda: _axes.product_of_others(X[:, :0], -2), N[:, :0]),
    "take": (lambda: _axes.take(X, INDEX, -2), N[:, INDEX]),
    "take_nearest": (lambda: _axes.take_nearest(X, INDEX + 3, -2), N[:, [4, 3, 4]]),
    "scatter_add": (lambda: _axes.scatter_add(INDEX, X[:, :3], 5, 1, 1), SCATTERED),
    "sum_by_position": (
        lambda: _axes.sum_by_position(INDEX, X[:, :3], 5, 1, 1),
        SCATTERED.sum(0),
    ),
    "contraction": (
        lambda: _axes.contraction("...ij,...k->...kji", A, B),
        np.einsum("bij,bk->bkji", A, B),
    ),
    "contraction over the batch": (
        lambda: _axes.contraction("...ij,...j->i", A, B),
        np.einsum("bij,bj->i", A, B),
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


def test_own_is_no_view() -> None:
    y = _axes.own(torch.sin(torch.zeros(3, requires_grad=True)))
    y += 1
    assert not y._is_view()
