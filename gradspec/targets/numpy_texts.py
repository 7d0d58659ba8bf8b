"""NumPy: its dialect, and the private functions that a module may need."""

from __future__ import annotations

from gradspec.primitives.row import Helper, Template
from gradspec.primitives.table_slopes import NUMPY_SLOPES
from gradspec.primitives.texts_choice import NUMPY_WHERE
from gradspec.targets import (
    numpy_blocks_texts,
    numpy_direct,
    numpy_few,
    numpy_fused,
    numpy_ranked_texts,
)
from gradspec.targets.numpy_ranked import ranked
from gradspec.targets.python import Dialect

RESERVED = frozenset(
    [
        "np",
        "npt",
        "math",
        "special",
        "operator",
        "Callable",
        "Sequence",
        "dtype",
        "pullback",
        "forward",
        "backward",
        "partial",
        "print",
        "out",
        "os",
        "itertools",
        "suppress",
        "ThreadPoolExecutor",
    ]
) | {"primals", "tangents", "Any"}

_CLIPS: dict[tuple[str, tuple[bool, ...]], Template] = {
    ("clip", (False, True, True)): Template("{x}.clip({y}, {z})")
}
"""The method takes as long as two functions for one element; `np.clip` twice that."""

DIALECT = Dialect(
    target="numpy",
    where="_where({c}, {x}, {y})",
    is_nan="np.isnan({x})",
    to_float="{x}.astype({like}.dtype)",
    lift="{like}.dtype.type({x})",
    lifts=lambda name, scalars: (name == "where" and all(scalars),) * len(scalars),
    variants=lambda name, scalars: _CLIPS.get((name, scalars)),
    fused=numpy_fused.fused,
    ranked=ranked,
)

UNTYPED = Dialect(
    target="numpy",
    where=DIALECT.where,
    is_nan=DIALECT.is_nan,
    to_float="{x}.astype(np.float64)",
    lift="np.float64({x})",
)
"""Where a rule has no floating tensor."""

UNMASKED = Helper(
    "_unmasked",
    '''\
def _unmasked(value: npt.ArrayLike) -> np.ndarray:
    """``value`` as an array; one that masks anything would lose that in silence."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError(
            "a masked array would lose its mask; fill it first, as in x.filled(0.0)"
        )
    return np.asarray(value)
''',
)

FLOATING = Helper(
    "_floating",
    '''\
_Array = np.ndarray
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_DIRECT = {_SINGLE, _DOUBLE}
"""Types that are computed in as they are; a look at which is which takes least."""


def _floating(rule: str, **values: npt.ArrayLike) -> tuple[Any, ...]:
    """The type of the results, and the values as arrays of the type to compute in.

    Python numbers take the type of the arrays beside them. float16 is computed in
    float32 and rounded once, at the end.
    """
    given = tuple(values.values())
    dtype = getattr(given[0], "dtype", None)
    for value in given:
        if type(value) is not np.ndarray or value.dtype is not dtype:
            break
    else:
        if dtype in _DIRECT:
            return dtype, *given
    weak = (float, int)
    arrays = [float(v) if type(v) in weak else _unmasked(v) for v in given]
    for name, array in zip(values, arrays, strict=True):
        if type(array) is not float and array.dtype.kind != "f":
            raise TypeError(
                f"{rule}: {name} must be a floating array, not {array.dtype}; "
                f"convert it first, as in {name}.astype(np.float64)"
            )
    dtype = np.result_type(*arrays)
    work = np.promote_types(dtype, np.float32)
    return dtype, *(np.asarray(array, work) for array in arrays)
''',
    ("from typing import Any",),
)

IN_DOUBLE = Helper(
    "_in_double",
    '''\
def _in_double(rule: str, **values: npt.ArrayLike) -> tuple[Any, ...]:
    """The type of the results, and the values in float64: rounded once, at the end."""
    dtype, *arrays = _floating(rule, **values)
    return dtype, *(np.asarray(array, np.float64) for array in arrays)
''',
    ("from typing import Any",),
)

INTEGER = Helper(
    "_integer",
    '''\
def _integer(rule: str, name: str, value: npt.ArrayLike) -> np.ndarray:
    """``value`` as an integer array, of a type that holds what is made of positions."""
    array = _unmasked(value)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{rule}: {name} must be an integer array, not {array.dtype}; "
            f"convert it first, as in {name}.astype(np.int64)"
        )
    return array.astype(np.int64) if array.itemsize < 4 else array
''',
)

BOOLEAN = Helper(
    "_boolean",
    '''\
def _boolean(rule: str, name: str, value: npt.ArrayLike) -> np.ndarray:
    """``value`` as a boolean array."""
    array = _unmasked(value)
    if array.dtype != np.bool_:
        raise TypeError(
            f"{rule}: {name} must be a boolean array, not {array.dtype}; "
            f"convert it first, as in {name}.astype(bool)"
        )
    return array
''',
)

RANK0 = Helper(
    "_check_rank0",
    '''\
def _check_rank0(rule: str, **arrays: np.ndarray) -> None:
    """Refuse arrays that have axes."""
    for name, array in arrays.items():
        if array.ndim != 0:
            raise ValueError(
                f"{rule}: {name} must have rank 0, that is the shape (), "
                f"not {array.shape}"
            )
''',
)

SHAPED = Helper(
    "_shaped",
    '''\
def _shaped(value: npt.ArrayLike, like: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """``value`` in the type of ``like``, and in the shape of all together."""
    value = value if type(value) is np.ndarray else _unmasked(value)
    value = value.astype(like.dtype, casting="same_kind", copy=False)
    shape = like.shape
    for other in others:
        if other.shape != shape:
            shape = np.broadcast_shapes(shape, other.shape)
    return value if value.shape == shape else np.broadcast_to(value, shape)
''',
)

ROUNDED = Helper(
    "_rounded",
    '''\
def _rounded(dtype: np.dtype, *values: np.ndarray) -> tuple[np.ndarray, ...]:
    """The values in the type of the results."""
    return tuple(value.astype(dtype, copy=False) for value in values)
''',
)

TANGENT = Helper(
    "_tangent",
    '''\
def _tangent(value: npt.ArrayLike | None, like: np.ndarray) -> np.ndarray:
    """A tangent in the type and the shape of its input; None is zero."""
    return np.zeros_like(like) if value is None else _shaped(value, like)
''',
)

GRADIENT = Helper(
    "_gradient",
    '''\
def _gradient(
    like: np.ndarray, term: npt.ArrayLike, *others: npt.ArrayLike
) -> np.ndarray:
    """The terms, each reduced to the shape of ``like``, added up in its type."""
    total = _reduced(term, like.shape)
    for other in others:
        total = total + _reduced(other, like.shape)
    return total.astype(like.dtype, copy=False)
''',
)

REDUCED = Helper(
    "_reduced",
    '''\
def _reduced(value: npt.ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """``value`` summed over the axes along which ``shape`` was broadcast."""
    if type(value) is np.ndarray and value.shape == shape:
        return value
    value = np.asarray(value)
    ndim = max(value.ndim, len(shape))
    value = value.reshape((1,) * (ndim - value.ndim) + value.shape)
    aligned = (1,) * (ndim - len(shape)) + shape
    sizes = enumerate(zip(value.shape, aligned, strict=True))
    axes = tuple(axis for axis, (n, m) in sizes if m == 1 and n != 1)
    total = value.sum(axis=axes, keepdims=True)
    return np.array(np.broadcast_to(total, aligned)).reshape(shape)[()]
''',
)

HELPERS = (
    NUMPY_WHERE,
    *numpy_blocks_texts.HELPERS,
    numpy_direct.DIRECT,
    *numpy_few.HELPERS,
    *numpy_fused.HELPERS,
    UNMASKED,
    FLOATING,
    IN_DOUBLE,
    INTEGER,
    BOOLEAN,
    RANK0,
    SHAPED,
    ROUNDED,
    TANGENT,
    GRADIENT,
    REDUCED,
    *numpy_ranked_texts.HELPERS,
    *NUMPY_SLOPES.values(),
)
"""In the order in which a module has them."""
