"""NumPy's choice between two arrays, without its branch."""

from __future__ import annotations

from gradspec.primitives.row import Helper

NUMPY_WHERE = Helper(
    "_where",
    '''\
def _where(condition: np.ndarray, x: npt.ArrayLike, y: npt.ArrayLike) -> np.ndarray:
    """``np.where``, for large arrays by bits: it takes a branch for each element, which
    costs twenty products where neighbours differ.
    """
    if condition.size < 1024:
        return np.where(condition, x, y)
    dtype = np.result_type(x, y)
    if dtype not in (np.float32, np.float64):
        return np.where(condition, x, y)
    whole = np.int32 if dtype == np.float32 else np.int64
    mask = (-condition.view(np.int8)).astype(whole)
    one, other = (np.asarray(value, dtype).view(whole) for value in (x, y))
    change = one ^ other
    place = mask if change.shape in ((), mask.shape) else None
    change = np.bitwise_and(change, mask, out=place)
    return np.bitwise_xor(other, change, out=place).view(dtype)
''',
)
