"""Large arrays in NumPy: which functions are evaluated a block at a time, and the private
functions that do it.

The formula stands once: a function that is given large arrays calls itself with slices of
them, and what lies between arguments and results stays in the cache. A block is so large
that NumPy computes `1.0 + t` in the memory of `t` where nobody else has it (from 256 KB).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradspec.plan.array import Expr, Op, nodes
from gradspec.plan.ranked import Expand, LogSoftmax, RankedNode, Reduce, Softmax
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Helper
from gradspec.targets.lines import Lines
from gradspec.targets.passes import WORTH_BLOCKS, passes
from gradspec.targets.signature import scalars

if TYPE_CHECKING:
    from gradspec.targets.numpy_parts import Functions


def value_in_blocks(functions: Functions) -> Lines:
    """The forward function's way out."""
    block = functions.value
    values = (*(s.value for s in block.statements), *block.results)
    plan = functions.plan
    if plan.is_ranked:
        return _by_rows(functions, values)
    return _way_out(functions, plan.name, "_in_blocks", (), values, ("out=out",))


def pullback_in_blocks(functions: Functions, name: str) -> Lines:
    """The way out of a pullback that stands by itself."""
    values = functions.pulled
    return _way_out(functions, name, "_in_blocks", functions.plan.upstream, values)


def vjp_in_blocks(functions: Functions) -> Lines:
    """The way out of a function that has its pullback inside."""
    return _way_out(functions, functions.vjp, "_vjp_in_blocks")


def _way_out(
    functions: Functions,
    name: str,
    helper: str,
    more: Iterable[str] = (),
    values: Iterable[Expr] | None = None,
    keywords: Iterable[str] = (),
) -> Lines:
    plan = functions.plan
    if plan.is_ranked or functions.is_traced or not functions.floats:
        return []
    if values is not None and not _are_worth(values, scalars(plan)):
        return []
    tensors = [i.name for i in plan.tensors]
    statics = [f"{i.name}={i.name}" for i in plan.statics]
    call = ", ".join([name, *tensors, *more, *statics, *keywords])
    return [f"if _are_large({', '.join(tensors)}):", f"    return {helper}({call})"]


def _by_rows(functions: Functions, values: tuple[Expr, ...]) -> Lines:
    """Rows are computed each by itself where one input has them, the first, and nothing
    is contracted: the order of a contraction's sums is the library's.
    """
    plan = functions.plan
    first, *others = plan.tensors
    is_by_row = (
        first.shape.batch
        and not any(i.shape.batch for i in others)
        and all(o.shape.batch for o in plan.outputs)
        and all(isinstance(n, _ROWWISE) for n in nodes(*values) if _is_ranked(n))
    )
    if functions.is_traced or not is_by_row:
        return []
    axes = len(first.shape.axes)
    statics = (f"{i.name}={i.name}" for i in plan.statics)
    given = ", ".join([*(i.name for i in plan.tensors), *statics, "out=out"])
    return [
        f"if _has_many_rows({first.name}, {axes}):",
        f"    return _in_rows({plan.name}, {axes}, {given})",
    ]


_ROWWISE = (Reduce, Expand, Softmax, LogSoftmax)


def _is_ranked(node: Expr) -> bool:
    return isinstance(node, RankedNode)


def _are_worth(values: Iterable[Expr], scalars: frozenset[str]) -> bool:
    """Whether there are several passes; each function of ours has some."""
    values = tuple(values)
    ours = (
        isinstance(primitive(node.primitive).spellings.get("numpy"), Helper)
        for node in nodes(*values)
        if isinstance(node, Op)
    )
    return passes(values, scalars) >= WORTH_BLOCKS or any(ours)


ARE_LARGE = Helper(
    "_are_large",
    '''\
_BLOCK = 1 << 16
"""Elements of a block: what lies between arguments and results stays in the cache."""


def _are_large(first: npt.ArrayLike, *others: npt.ArrayLike) -> bool:
    """Whether they are arrays of one shape, of several blocks, whose elements lie in
    order.
    """
    if type(first) is not np.ndarray or first.size <= _BLOCK:
        return False
    return first.flags.c_contiguous and all(
        type(array) is np.ndarray
        and array.shape == first.shape
        and array.flags.c_contiguous
        for array in others
    )
''',
)

BLOCKS = Helper(
    "_blocks",
    '''\
def _blocks(first: np.ndarray, *others: npt.ArrayLike) -> Iterator[tuple[Any, ...]]:
    """The arrays block by block, as the first is; a number goes with each block."""
    np.empty(1 << 24, np.int8)  # glibc then keeps what the blocks give back
    arrays = [np.asarray(array) for array in (first, *others)]
    flat = [
        array if array.ndim == 0 else np.broadcast_to(array, first.shape).reshape(-1)
        for array in arrays
    ]
    for start in range(0, first.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        yield tuple(array[part] if array.ndim else array for array in flat)
''',
    ("from collections.abc import Iterator", "from typing import Any"),
)

JOINED = Helper(
    "_joined",
    '''\
def _joined(parts: Iterator[Any], shape: tuple[int, ...], out: Any = None) -> Any:
    """The results of the blocks put together: along axes of ``shape``."""
    wholes: tuple[Any, ...] = ()
    start = 0
    for part in parts:
        results = part if isinstance(part, tuple) else (part,)
        if not wholes:
            kinds = [None if r is None else (shape + r.shape[1:], r.dtype) for r in results]
            wholes = _places(out, kinds)
        for whole, result in zip(wholes, results, strict=True):
            if result is not None:
                rows = whole.reshape(-1, *result.shape[1:])
                rows[start : start + len(result)] = result
                count = len(result)
        start += count
    return wholes if isinstance(part, tuple) else wholes[0]
''',
    ("from collections.abc import Iterator", "from typing import Any"),
)

IN_BLOCKS = Helper(
    "_in_blocks",
    '''\
def _in_blocks(
    function: Callable[..., Any], *arrays: Any, out: Any = None, **statics: Any
) -> Any:
    """``function`` of large arrays, a block at a time."""
    parts = (function(*block, **statics) for block in _blocks(*arrays))
    if _are_free(out, arrays):
        return _joined(parts, arrays[0].shape, out)
    return _into(out, _joined(parts, arrays[0].shape))
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

HAS_MANY_ROWS = Helper(
    "_has_many_rows",
    '''\
def _has_many_rows(x: npt.ArrayLike, axes: int) -> bool:
    """Whether it is an array of many blocks of rows, whose elements lie in order. A
    row has the last ``axes``.
    """
    if not _are_large(x) or x.size <= 4 * _BLOCK or x.ndim <= axes:
        return False
    return math.prod(x.shape[: x.ndim - axes]) > 1
''',
    ("import math",),
)

IN_ROWS = Helper(
    "_in_rows",
    '''\
def _in_rows(
    function: Callable[..., Any],
    axes: int,
    x: np.ndarray,
    *others: npt.ArrayLike,
    out: Any = None,
    **statics: Any,
) -> Any:
    """``function`` of ``x``, which has large batch axes, some rows at a time."""
    shape, row = x.shape[: x.ndim - axes], x.shape[x.ndim - axes :]
    rows = x.reshape(-1, *row)
    step = max(1, _BLOCK * len(rows) // x.size)
    np.empty(1 << 24, np.int8)  # glibc then keeps what the blocks give back
    parts = (
        function(rows[start : start + step], *others, **statics)
        for start in range(0, len(rows), step)
    )
    if _are_free(out, (x, *map(np.asarray, others))):
        return _joined(parts, shape, out)
    return _into(out, _joined(parts, shape))
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

ARE_FREE = Helper(
    "_are_free",
    '''\
def _are_free(out: Any, arrays: tuple[np.ndarray, ...]) -> bool:
    """Whether a block of ``out`` can be filled before the next one of the arrays is
    read: where they share memory, it is block by block the same.
    """
    places = out if isinstance(out, tuple) else (out,)
    return out is None or all(
        type(place) is np.ndarray
        and place.flags.c_contiguous
        and (
            not np.may_share_memory(place, array)
            or (place.ctypes.data, place.nbytes) == (array.ctypes.data, array.nbytes)
        )
        for place in places
        for array in arrays
    )
''',
    ("from typing import Any",),
)

PLACES = Helper(
    "_places",
    '''\
def _places(out: Any, kinds: list[Any]) -> tuple[Any, ...]:
    """Arrays for results of these shapes and types: those of ``out``, or new ones; None
    for None.
    """
    if out is None:
        return tuple(None if kind is None else np.empty(*kind) for kind in kinds)
    places = out if isinstance(out, tuple) else (out,)
    if len(places) != len(kinds):
        raise ValueError(f"out must be {len(kinds)} arrays, not {len(places)}")
    for place, (shape, dtype) in zip(places, kinds, strict=True):
        if type(place) is not np.ndarray or place.dtype != dtype:
            found = getattr(place, "dtype", type(place).__name__)
            raise TypeError(f"out must be an array of {dtype}, not {found}")
        if place.shape != shape:
            raise ValueError(f"out must have the shape {shape}, not {place.shape}")
    return places
''',
    ("from typing import Any",),
)

INTO = Helper(
    "_into",
    '''\
def _into(out: Any, results: Any) -> Any:
    """``out``, an array for each of the results, filled with them."""
    values = results if isinstance(results, tuple) else (results,)
    places = _places(out, [(value.shape, value.dtype) for value in values])
    for place, value in zip(places, values, strict=True):
        np.copyto(place, value)
    return out
''',
    ("from typing import Any",),
)

VJP_IN_BLOCKS = Helper(
    "_vjp_in_blocks",
    '''\
def _vjp_in_blocks(vjp: Callable[..., Any], *arrays: Any, **statics: Any) -> Any:
    """``vjp`` of large arrays, a block at a time; the pullback computes what lies
    between once more, and keeps nothing but the arguments.
    """
    count, shape = len(arrays), arrays[0].shape

    def pullback(*upstream: npt.ArrayLike) -> tuple[Any, ...]:
        parts = (
            vjp(*block[:count], **statics)[1](*block[count:])
            for block in _blocks(*arrays, *upstream)
        )
        return _joined(parts, shape)

    outputs = (vjp(*block, **statics)[0] for block in _blocks(*arrays))
    return _joined(outputs, shape), pullback
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

HELPERS = (
    ARE_LARGE,
    BLOCKS,
    IN_BLOCKS,
    VJP_IN_BLOCKS,
    HAS_MANY_ROWS,
    IN_ROWS,
    JOINED,
    ARE_FREE,
    INTO,
    PLACES,
)
"""In the order in which a module has them."""
