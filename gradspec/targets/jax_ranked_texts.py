"""JAX: the private functions of rules over named axes."""

from __future__ import annotations

from gradspec.primitives.row import Helper

SHAPES = Helper(
    "_check_shapes",
    '''\
def _check_shapes(rule: str, **inputs: tuple[object, ...]) -> None:
    """Refuse shapes other than declared: an array, then its axes (``...`` for any)."""
    sizes: dict[object, int] = {}
    for name, (array, *axes) in inputs.items():
        shape = tuple(array.shape)
        named = axes[1:] if axes[:1] == [...] else axes
        fits = len(shape) == len(named) or len(shape) > len(named) < len(axes)
        own = shape[len(shape) - len(named) :] if fits else ()
        for axis, size in zip(named, own):
            wanted = axis if isinstance(axis, int) else sizes.setdefault(axis, size)
            fits = fits and size == wanted
        if not fits:
            pattern = ", ".join("..." if axis is ... else str(axis) for axis in axes)
            seen = [axis for axis in dict.fromkeys(named) if axis in sizes]
            known = ", ".join(f"{axis} = {sizes[axis]}" for axis in seen)
            raise ValueError(
                f"{rule}: {name} must have the shape [{pattern}]"
                f"{f' with {known}' if known else ''}, not {shape}"
            )
''',
)

SPREAD = Helper(
    "_spread",
    '''\
def _spread(x: jax.Array, axis: int, size: int) -> jax.Array:
    """``x`` with an axis of size 1 repeated."""
    shape = [1] * (-axis - x.ndim) + list(x.shape)
    shape[axis] = size
    return jnp.broadcast_to(x, shape)
''',
)

PERMUTED = Helper(
    "_permuted",
    '''\
def _permuted(x: jax.Array, order: tuple[int, ...]) -> jax.Array:
    """``x`` with its last axes in another order."""
    return jnp.permute_dims(x, (*range(x.ndim - len(order)), *order))
''',
)

WINDOW = Helper(
    "_window",
    '''\
def _window(x: jax.Array, axis: int, start: int, size: int) -> jax.Array:
    """``size`` positions of an axis from ``start`` on; one outside is an error."""
    if start < 0 or start + size > x.shape[axis]:
        raise ValueError(f"positions {start} to {start + size - 1} of {x.shape[axis]}")
    return jax.lax.slice_in_dim(x, start, start + size, axis=axis)
''',
)

PADDED_WINDOW = Helper(
    "_padded_window",
    '''\
def _padded_window(x: jax.Array, axis: int, start: int, size: int) -> jax.Array:
    """``size`` positions of an axis from ``start`` on, 0 where there is none."""
    around = [(0, 0, 0)] * x.ndim
    around[axis] = (-start, start + size - x.shape[axis], 0)
    return jax.lax.pad(x, jnp.zeros((), x.dtype), around)
''',
)

WINDOWS = Helper(
    "_windows",
    '''\
def _windows(
    x: jax.Array, axis: int, start: int, rows: int, columns: int, backward: bool = False
) -> jax.Array:
    """Two axes in place of one: at [i, j] is what was at start + i + j, or at
    start + i - j; one outside is an error.
    """
    first = start - (columns - 1) * backward
    x = _window(x, axis, first, max(rows + columns - 1, 0))
    step = -jnp.arange(columns) if backward else jnp.arange(columns)
    return jnp.take(x, start - first + jnp.arange(rows)[:, None] + step, axis=axis)
''',
)

PADDED_WINDOWS = Helper(
    "_padded_windows",
    '''\
def _padded_windows(
    x: jax.Array, axis: int, start: int, rows: int, columns: int, backward: bool = False
) -> jax.Array:
    """The same, with 0 where there is nothing."""
    first = start - (columns - 1) * backward
    x = _padded_window(x, axis, first, max(rows + columns - 1, 0))
    return _windows(x, axis, start - first, rows, columns, backward)
''',
)

PRODUCT_OF_OTHERS = Helper(
    "_product_of_others",
    '''\
def _product_of_others(x: jax.Array, axis: int) -> jax.Array:
    """For each element the product of all others: of those before and those behind."""
    x = jnp.moveaxis(x, axis, -1)
    one, back = jnp.ones_like(x[..., :1]), jnp.flip(x[..., 1:], -1)
    before = jnp.cumprod(jnp.concatenate([one, x[..., :-1]], -1), -1)
    behind = jnp.cumprod(jnp.concatenate([one, back], -1), -1)
    return jnp.moveaxis(before * jnp.flip(behind, -1), -1, axis)
''',
)

STACKED = Helper(
    "_stacked",
    '''\
def _stacked(*parts: jax.typing.ArrayLike) -> jax.Array:
    """The parts side by side along a new last axis."""
    return jnp.stack(jnp.broadcast_arrays(*parts), -1)
''',
)

TAKE = Helper(
    "_take",
    '''\
def _take(x: jax.Array, index: jax.Array, axis: int) -> jax.Array:
    """``x`` at positions of an axis; NaN for one that is outside, because a compiled
    function cannot raise an error.
    """
    index = jnp.where(index < 0, x.shape[axis], index)
    return jnp.take(x, index, axis=axis, mode="fill")
''',
)

GATHER = Helper(
    "_gather",
    '''\
def _gather(x: jax.Array, index: jax.Array, axis: int) -> jax.Array:
    """``x`` at positions of an axis, NaN for one outside; all other axes broadcast."""
    given, wanted = list(x.shape), list(index.shape)
    size, count = given[axis], wanted[axis]
    given[axis] = wanted[axis] = 1
    shape = list(jnp.broadcast_shapes(given, wanted))
    x = jnp.broadcast_to(x, (*shape[:axis], size, *shape[axis:][1:]))
    index = jnp.broadcast_to(index, (*shape[:axis], count, *shape[axis:][1:]))
    index = jnp.where(index < 0, size, index)
    return jnp.take_along_axis(x, index, axis, mode="fill")
''',
)

SCATTER_ADD = Helper(
    "_scatter_add",
    '''\
def _scatter_add(
    index: jax.Array, value: jax.Array, size: int, count: int, others: int
) -> jax.Array:
    """Sums of ``value`` by position, for each of the batch axes: ``count`` axes of
    positions become one of ``size``, before ``others`` axes more.
    """
    index = index.reshape((*index.shape, *[1] * others))
    shape = jnp.broadcast_shapes(index.shape, value.shape)
    first, last = len(shape) - count - others, len(shape) - others
    batch, after = shape[:first], shape[last:]
    flat = (math.prod(batch), math.prod(shape[first:last]))
    index = jnp.broadcast_to(index, (*shape[:last], *[1] * others)).reshape(flat)
    value = jnp.broadcast_to(value, shape).reshape((*flat, *after))
    rows = jnp.arange(flat[0])[:, None]
    empty = jnp.zeros((flat[0], size, *after), value.dtype)
    index = jnp.where(index < 0, size, index)
    found = empty.at[rows, index].add(value, mode="drop")
    return found.reshape((*batch, size, *after))
''',
    ("import math",),
)

SUM_BY_POSITION = Helper(
    "_sum_by_position",
    '''\
def _sum_by_position(
    index: jax.Array, value: jax.Array, size: int, count: int, others: int
) -> jax.Array:
    """Sums of ``value`` by position, over all batch axes and ``count`` axes more; there
    are ``others`` axes behind them.
    """
    shape = jnp.broadcast_shapes((*index.shape, *[1] * others), value.shape)
    before, after = shape[: len(shape) - others], shape[len(shape) - others :]
    value = jnp.broadcast_to(value, shape).reshape((math.prod(before), *after))
    index = jnp.broadcast_to(index, before).reshape(-1)
    index = jnp.where(index < 0, size, index)
    return jnp.zeros((size, *after), value.dtype).at[index].add(value, mode="drop")
''',
    ("import math",),
)

SUM_OVER_BATCH = Helper(
    "_sum_over_batch",
    '''\
def _sum_over_batch(x: jax.Array, rank: int) -> jax.Array:
    """The sum over all but the last ``rank`` axes."""
    return jnp.sum(x, tuple(range(x.ndim - rank)))
''',
)

SHARES = Helper(
    "_shares",
    '''\
def _shares(x: jax.Array, axis: int) -> jax.Array:
    """Softmax, of the exponentials that `jax.nn.logsumexp` makes: once for both."""
    top = jnp.max(x, axis, initial=-jnp.inf)
    top = jax.lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0.0))
    exp = jnp.exp(x - jnp.expand_dims(top, axis))
    return exp * jnp.expand_dims(1.0 / jnp.sum(exp, axis), axis)
''',
)

HELPERS = (
    SHAPES,
    SPREAD,
    PERMUTED,
    WINDOW,
    PADDED_WINDOW,
    WINDOWS,
    PADDED_WINDOWS,
    PRODUCT_OF_OTHERS,
    STACKED,
    TAKE,
    GATHER,
    SCATTER_ADD,
    SUM_BY_POSITION,
    SUM_OVER_BATCH,
    SHARES,
)
"""In the order in which a module has them."""
