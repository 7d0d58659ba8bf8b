"""Large arrays in NumPy: which functions are evaluated a block at a time, and the private
functions that do it.

The formula stands once: a function that is given large arrays calls itself with slices of
them, and what lies between arguments and results stays in the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec.primitives.row import Helper
from gradspec.targets.lines import Lines
from gradspec.targets.passes import WORTH_BLOCKS, passes
from gradspec.targets.signature import scalars

if TYPE_CHECKING:
    from gradspec.targets.numpy_rule import Functions


def value_in_blocks(functions: Functions) -> Lines:
    """The forward function's way out."""
    block = functions.value
    values = (*(s.value for s in block.statements), *block.results)
    if passes(values, scalars(functions.plan)) < WORTH_BLOCKS:
        return []
    return _way_out(functions, functions.plan.name, "_in_blocks")


def vjp_in_blocks(functions: Functions) -> Lines:
    """The pullback's way out."""
    return _way_out(functions, functions.vjp, "_vjp_in_blocks")


def _way_out(functions: Functions, name: str, helper: str) -> Lines:
    plan = functions.plan
    if plan.is_ranked or functions.is_traced or not functions.floats:
        return []
    arrays = ", ".join(i.name for i in plan.tensors)
    statics = [f"{i.name}={i.name}" for i in plan.statics]
    call = ", ".join([name, arrays, *statics])
    return [f"if _are_large({arrays}):", f"    return {helper}({call})"]


ARE_LARGE = Helper(
    "_are_large",
    '''\
_LARGE = 1 << 16
"""Elements from which arrays are evaluated in blocks: more than a cache holds."""


def _are_large(*arrays: npt.ArrayLike) -> bool:
    """Whether they are large arrays of one shape whose elements lie in order."""
    first = arrays[0]
    if type(first) is not np.ndarray or first.size < _LARGE:
        return False
    return all(
        type(array) is np.ndarray
        and array.shape == first.shape
        and array.flags.c_contiguous
        for array in arrays
    )
''',
)

BLOCKS = Helper(
    "_blocks",
    '''\
_BLOCK = 1 << 15
"""Elements of a block: what lies between arguments and results stays in the cache."""


def _blocks(*arrays: np.ndarray | None) -> Iterator[tuple[Any, ...]]:
    """The arrays block by block; None is no array."""
    np.empty(1 << 24, np.int8)  # glibc then keeps what the blocks give back
    flat = [None if array is None else array.reshape(-1) for array in arrays]
    size = next(array.size for array in flat if array is not None)
    for start in range(0, size, _BLOCK):
        part = slice(start, start + _BLOCK)
        yield tuple(None if array is None else array[part] for array in flat)
''',
    ("from collections.abc import Iterator", "from typing import Any"),
)

JOINED = Helper(
    "_joined",
    '''\
def _joined(parts: Iterator[Any], shape: tuple[int, ...]) -> Any:
    """The results of the blocks put together."""
    wholes: list[Any] = []
    start = 0
    for part in parts:
        results = part if isinstance(part, tuple) else (part,)
        if not wholes:
            wholes = [None if r is None else np.empty(shape, r.dtype) for r in results]
        for whole, result in zip(wholes, results, strict=True):
            if result is not None:
                whole.reshape(-1)[start : start + result.size] = result
        start += _BLOCK
    return tuple(wholes) if isinstance(part, tuple) else wholes[0]
''',
    ("from collections.abc import Iterator", "from typing import Any"),
)

IN_BLOCKS = Helper(
    "_in_blocks",
    '''\
def _in_blocks(function: Callable[..., Any], *arrays: Any, **statics: Any) -> Any:
    """``function`` of large arrays, a block at a time."""
    parts = (function(*block, **statics) for block in _blocks(*arrays))
    return _joined(parts, arrays[0].shape)
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
    count, shape = len(arrays), arrays[0].shape

    def pullback(*upstream: npt.ArrayLike) -> tuple[Any, ...]:
        given = (np.broadcast_to(np.asarray(d), shape) for d in upstream)
        parts = (
            vjp(*block[:count], **statics)[1](*block[count:])
            for block in _blocks(*arrays, *given)
        )
        return _joined(parts, shape)

    outputs = (vjp(*block, **statics)[0] for block in _blocks(*arrays))
    return _joined(outputs, shape), pullback
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

HELPERS = (ARE_LARGE, BLOCKS, JOINED, IN_BLOCKS, VJP_IN_BLOCKS)
"""In the order in which a module has them."""
