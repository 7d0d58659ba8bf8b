"""NumPy: private functions for sums along rows.

A sum along short rows takes NumPy three times as long as `einsum`, which has less to do for
each row, and the largest number of each as long as an exponential of all:

| of 655 rows of 100, in float32 | ns for each element |
| --- | --- |
| ``x.max(axis=-1, keepdims=True)`` | 0.57 |
| ``x.max()`` and ``x.min()`` | 0.13 |
| ``x.sum(axis=-1, keepdims=True)`` | 0.36 |
| ``np.einsum("...i->...", x)`` | 0.13 |
| ``(x * y).sum(axis=-1, keepdims=True)`` | 0.50 |
| ``np.einsum("...i,...i->...", x, y)`` | 0.19 |
| ``np.exp(x)`` | 0.46 |

Up to 128 elements both add in one run; more are added pairwise by `sum` alone.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper

ARE_SHORT_ROWS = Helper(
    "_are_short_rows",
    '''\
def _are_short_rows(first: npt.ArrayLike, *others: npt.ArrayLike) -> bool:
    """Whether they are arrays of one shape with many short rows, along which `np.einsum`
    adds faster, and as exactly.
    """
    if type(first) is not np.ndarray or first.size <= 4096 or first.dtype.kind != "f":
        return False
    return first.shape[-1] <= 128 and all(
        type(array) is np.ndarray and array.shape == first.shape for array in others
    )
''',
)

ROW_SUM = Helper(
    "_row_sum",
    '''\
def _row_sum(value: np.ndarray) -> np.ndarray:
    """The sum along the last axis, which is kept."""
    if _are_short_rows(value):
        return np.einsum("...i->...", value)[..., None]
    return value.sum(axis=-1, keepdims=True)
''',
)

ROW_MEAN = Helper(
    "_row_mean",
    '''\
def _row_mean(value: np.ndarray) -> np.ndarray:
    """The mean along the last axis, which is kept."""
    if _are_short_rows(value):
        return _row_sum(value) / value.shape[-1]
    return value.mean(axis=-1, keepdims=True)
''',
)

ROW_SUM_PRODUCT = Helper(
    "_row_sum_product",
    '''\
def _row_sum_product(one: npt.ArrayLike, other: npt.ArrayLike) -> np.ndarray:
    """The sum of products along the last axis, which is kept."""
    if _are_short_rows(one, other):
        return np.einsum("...i,...i->...", one, other)[..., None]
    return _row_sum(one * other)
''',
)

ROW_MEAN_PRODUCT = Helper(
    "_row_mean_product",
    '''\
def _row_mean_product(one: npt.ArrayLike, other: npt.ArrayLike) -> np.ndarray:
    """The mean of products along the last axis, which is kept."""
    if _are_short_rows(one, other):
        return _row_sum_product(one, other) / one.shape[-1]
    return _row_mean(one * other)
''',
)

IS_MODERATE = Helper(
    "_is_moderate",
    '''\
def _is_moderate(value: np.ndarray) -> bool:
    """Whether there is much to do, and no exponential can overflow or vanish: then
    nothing need be taken off before.
    """
    return value.size > 4096 and -64.0 < value.min() and value.max() < 64.0
''',
)

LOGSUMEXP = Helper(
    "_logsumexp",
    '''\
@np.errstate(divide="ignore", over="ignore")
def _logsumexp(value: np.ndarray, axis: Any, keepdims: bool = False) -> np.ndarray:
    """log(sum(exp(value))), shifted by the greatest value where a sum overflows, or is so
    small that its exponentials lose digits.
    """
    if axis == -1 and value.size > 4096:
        total = _row_sum(np.exp(value))
        if 1e-28 < total.min() and total.max() < np.inf:
            result = np.log(total)
            return result if keepdims else result.squeeze(axis=axis)
    top = value.max(axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), 0.0, top).astype(value.dtype)
    total = np.exp(value - top).sum(axis=axis, keepdims=True)
    result = np.log(total) + top
    return result if keepdims else result.squeeze(axis=axis)
''',
    ("from typing import Any",),
)

SOFTMAX = Helper(
    "_softmax",
    '''\
def _softmax(value: np.ndarray, axis: int, out: np.ndarray | None = None) -> np.ndarray:
    """Exponentials as shares of their sum, shifted so that none overflows."""
    if axis == -1 and _is_moderate(value):
        exp = np.exp(value)
        total = _row_sum(exp)
    else:
        exp = np.exp(value - value.max(axis=axis, keepdims=True, initial=-np.inf))
        total = exp.sum(axis=axis, keepdims=True)
    return np.divide(exp, total, exp if out is None else out)
''',
)

SUMS = (
    ARE_SHORT_ROWS,
    ROW_SUM,
    ROW_MEAN,
    ROW_SUM_PRODUCT,
    ROW_MEAN_PRODUCT,
    IS_MODERATE,
)
