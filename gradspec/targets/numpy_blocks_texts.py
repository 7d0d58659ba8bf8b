"""NumPy: the private functions that evaluate large arrays a block at a time."""

from __future__ import annotations

from gradspec.primitives.row import Helper

ARE_LARGE = Helper(
    "_are_large",
    '''\
_BLOCK = 1 << 18
"""Most elements of a block: what lies between arguments and results stays in the cache,
and threads seldom wait for the interpreter's lock."""


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
def _blocks(
    first: np.ndarray, *others: npt.ArrayLike
) -> Callable[[slice], tuple[Any, ...]]:
    """What gives a block of the arrays, as the first is; a number goes with each."""
    arrays = [_unmasked(array) for array in (first, *others)]
    flat = [
        array if array.ndim == 0 else np.broadcast_to(array, first.shape).reshape(-1)
        for array in arrays
    ]
    return lambda at: tuple(array[at] if array.ndim else array for array in flat)
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

PARTS = Helper(
    "_parts",
    '''\
def _parts(rows: int, size: int) -> list[slice]:
    """Rows, of ``size`` elements all together, a block at a time; the first are few, for
    no thread works beside them, and none are fewer: few elements go other ways.
    """
    # of fewer elements more blocks, so that every thread has some
    block = _BLOCK if size >= 32 * _BLOCK else _BLOCK // 2
    step = max(1, block * rows // size)
    first = max(1, step // 8)
    last = max(rows - first, first) if rows > first else 0
    starts = [0, *range(first, last + 1, step)]
    return [slice(*ends) for ends in zip(starts, [*starts[1:], rows], strict=True)]
''',
)

JOINED = Helper(
    "_joined",
    '''\
np.empty(1 << 24, np.int8)  # glibc then keeps what operations give back


def _joined(
    part: Callable[..., Any],
    parts: list[slice],
    shape: tuple[int, ...],
    out: Any = None,
    summed: tuple[int, ...] = (),
) -> Any:
    """The results of the parts put together along axes of ``shape``; those whose number
    is in ``summed`` are added up, in order. A single result may be put where it belongs
    by the part itself, which is told the place.
    """
    first = part(parts[0])
    results = first if isinstance(first, tuple) else (first,)
    kinds = [None if r is None else (shape + r.shape[1:], r.dtype) for r in results]
    sums: dict[int, dict[int, np.ndarray]] = {number: {} for number in summed}
    for number in summed:
        kinds[number] = None
    wholes = _places(out, kinds)
    rows = [
        whole if whole is None else whole.reshape(-1, *result.shape[1:])
        for whole, result in zip(wholes, results, strict=True)
    ]

    def put(at: slice, made: Any) -> None:
        for number, result in enumerate(made if isinstance(made, tuple) else (made,)):
            if number in sums:
                sums[number][at.start] = result
            elif result is not None:
                rows[number][at] = result

    def work(at: slice) -> None:
        if isinstance(first, tuple):
            put(at, part(at))
        elif (made := part(at, place := rows[0][at])) is not place:
            place[...] = made

    put(parts[0], first)
    _on_all_cores(work, parts[1:])
    totals = {n: sum(made[start] for start in sorted(made)) for n, made in sums.items()}
    wholes = tuple(totals.get(number, whole) for number, whole in enumerate(wholes))
    return wholes if isinstance(first, tuple) else wholes[0]
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

ON_ALL_CORES = Helper(
    "_on_all_cores",
    '''\
_RUN = 4
"""Blocks that a thread takes in a row: no two wait for one page of fresh memory."""


def _runs(parts: list[slice], threads: int) -> list[list[slice]]:
    """The parts in runs; the last are shorter, so that all threads end together."""
    runs, start = [], 0
    while start < len(parts):
        count = min(_RUN, max(1, (len(parts) - start) // (2 * threads)))
        runs.append(parts[start : start + count])
        start += count
    return runs


def _on_all_cores(work: Callable[[slice], None], parts: list[slice]) -> None:
    """``work`` for each part: NumPy computes without the interpreter's lock. The threads
    end with the call; they are as many as OMP_NUM_THREADS says, or one for each core
    that the process may use, up to eight.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "")
    allowed = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    cores = min(len(allowed(0)), 8)
    threads = int(asked) if asked.isdigit() else cores
    threads = max(1, min(-(-len(parts) // _RUN), threads))
    runs = _runs(parts, threads)
    numbers, errors = itertools.count(), {**np.geterr(), "call": np.geterrcall()}

    def run() -> None:
        with np.errstate(**errors):
            while (number := next(numbers)) < len(runs):
                for part in runs[number]:
                    work(part)

    if threads < 2:
        return run()
    helpers = []
    with ThreadPoolExecutor(threads) as pool:
        with suppress(RuntimeError):  # where no thread can be started
            for _ in range(threads - 1):
                helpers.append(pool.submit(run))
        run()
    for helper in helpers:
        helper.result()
''',
    (
        "import itertools",
        "import os",
        "from collections.abc import Callable",
        "from concurrent.futures import ThreadPoolExecutor",
        "from contextlib import suppress",
    ),
)

BARE = Helper(
    "_bare",
    '''\
def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` without its `np.errstate`, which is on where this is called: in NumPy 1
    one that is entered twice never ends.
    """
    return getattr(function, "__wrapped__", function)
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

IN_BLOCKS = Helper(
    "_in_blocks",
    '''\
def _in_blocks(
    function: Callable[..., Any], *arrays: Any, out: Any = None, **statics: Any
) -> Any:
    """``function`` of large arrays, a block at a time."""
    block, shape, size = _blocks(*arrays), arrays[0].shape, arrays[0].size
    function = _bare(function)

    def part(at: slice, place: Any = None) -> Any:
        return function(*block(at), **statics, out=place)

    place = out if _are_free(out, arrays) else None
    whole = _joined(part, _parts(size, size), shape, place)
    return whole if place is out else _into(out, whole)
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
    if not _are_large(x) or 2 * x.size <= 3 * _BLOCK or x.ndim <= axes:
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
    rows, function = x.reshape(-1, *row), _bare(function)
    place = out if _are_free(out, (x, *map(np.asarray, others))) else None

    def part(at: slice, place: Any = None) -> Any:
        return function(rows[at], *others, **statics, out=place)

    whole = _joined(part, _parts(len(rows), x.size), shape, place)
    return whole if place is out else _into(out, whole)
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

BY_ROWS = Helper(
    "_by_rows",
    '''\
def _by_rows(
    function: Callable[..., Any],
    axes: int,
    x: np.ndarray,
    *others: np.ndarray,
    summed: tuple[int, ...] = (),
) -> Any:
    """``function`` of arrays that have rows, of which ``x`` may have many: some rows at a
    time. Results whose number is in ``summed`` are sums over all rows.
    """
    if not _has_many_rows(x, axes):
        return function(x, *others)
    shape = x.shape[: x.ndim - axes]
    arrays = [array.reshape(-1, *array.shape[len(shape) :]) for array in (x, *others)]
    parts = _parts(len(arrays[0]), x.size)
    if summed and len(arrays[0]) < 16 * len(parts):
        return function(x, *others)  # the parts of the sums would take much memory

    def part(at: slice, _: Any = None) -> Any:
        return function(*(array[at] for array in arrays))

    return _joined(part, parts, shape, None, summed)
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
    if results is out:
        return out
    values = results if isinstance(results, tuple) else (results,)
    places = _places(out, [(value.shape, value.dtype) for value in values])
    for place, value in zip(places, values, strict=True):
        if value is not place:
            np.copyto(place, value)
    return out
''',
    ("from typing import Any",),
)

PULLED_IN_BLOCKS = Helper(
    "_pulled_in_blocks",
    '''\
def _pulled_in_blocks(pullback: Callable[..., Any], *arrays: Any, **statics: Any) -> Any:
    """``pullback`` of large arrays and upstream gradients, a block at a time."""
    block, shape, size = _blocks(*arrays), arrays[0].shape, arrays[0].size
    pullback = _bare(pullback)
    return _joined(
        lambda at, _=None: pullback(*block(at), **statics), _parts(size, size), shape
    )
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

VJP_IN_BLOCKS = Helper(
    "_vjp_in_blocks",
    '''\
def _vjp_in_blocks(vjp: Callable[..., Any], *arrays: Any, **statics: Any) -> Any:
    """``vjp`` of large arrays, a block at a time; the pullback computes what lies
    between once more, and keeps nothing but the arguments.
    """
    tensors, shape, size = len(arrays), arrays[0].shape, arrays[0].size

    def pullback(*upstream: npt.ArrayLike) -> tuple[Any, ...]:
        block = _blocks(*arrays, *upstream)

        def part(at: slice, _: Any = None) -> tuple[Any, ...]:
            given = block(at)
            return vjp(*given[:tensors], **statics)[1](*given[tensors:])

        return _joined(part, _parts(size, size), shape)

    block, bare = _blocks(*arrays), _bare(vjp)
    outputs = _joined(
        lambda at, _=None: bare(*block(at), **statics)[0], _parts(size, size), shape
    )
    return outputs, pullback
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

HELPERS = (
    ARE_LARGE,
    BLOCKS,
    PARTS,
    BARE,
    IN_BLOCKS,
    PULLED_IN_BLOCKS,
    VJP_IN_BLOCKS,
    HAS_MANY_ROWS,
    IN_ROWS,
    BY_ROWS,
    JOINED,
    ON_ALL_CORES,
    ARE_FREE,
    INTO,
    PLACES,
)
"""In the order in which a module has them."""
