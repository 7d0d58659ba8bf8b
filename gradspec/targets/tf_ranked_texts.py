"""TensorFlow: the private functions of rules over named axes.

Sizes and positions are int64 throughout, as TensorFlow mixes no integer types.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper

SHAPES = Helper(
    "_check_shapes",
    '''\
def _check_shapes(rule: str, **inputs: tuple[object, ...]) -> None:
    """Refuse shapes other than declared: a tensor, then its axes (``...`` for any).

    What is not known yet while tracing is checked when the graph runs.
    """
    sizes: dict[object, object] = {}
    for name, (tensor, *axes) in inputs.items():
        named = axes[1:] if axes[:1] == [...] else axes
        pattern = ", ".join("..." if axis is ... else str(axis) for axis in axes)
        message = f"{rule}: {name} must have the shape [{pattern}]"
        rank = tensor.shape.rank
        if rank is not None and not (rank == len(named) or rank > len(named) < len(axes)):
            raise ValueError(f"{message}, not {tuple(tensor.shape)}")
        if rank is None and len(named) == len(axes):
            tf.debugging.assert_rank(tensor, len(named), message)
        for position, axis in enumerate(named, -len(named)):
            size = _size(tensor, position)
            wanted = axis if isinstance(axis, int) else sizes.setdefault(axis, size)
            if size is wanted:
                continue
            if not (isinstance(size, int) and isinstance(wanted, int)):
                size, wanted = tf.cast(size, tf.int64), tf.cast(wanted, tf.int64)
                tf.debugging.assert_equal(size, wanted, f"{message}: {axis} differs")
            elif size != wanted:
                known = "" if isinstance(axis, int) else f" with {axis} = {wanted}"
                raise ValueError(f"{message}{known}, not {tuple(tensor.shape)}")
''',
)

SIZE = Helper(
    "_size",
    '''\
def _size(x: tf.Tensor, axis: int) -> int | tf.Tensor:
    """The size of an axis: a number where it is known. Of a tensor that is watched by one
    accumulator within another, a graph cannot take the shape.
    """
    known = tf.compat.dimension_value(x.shape[axis])
    return tf.shape(tf.stop_gradient(x), tf.int64)[axis] if known is None else known
''',
)

SPREAD = Helper(
    "_spread",
    '''\
def _spread(x: tf.Tensor, axis: int, size: int | tf.Tensor) -> tf.Tensor:
    """``x`` with an axis of size 1 repeated."""
    shape = tf.shape(x, tf.int64)
    shape = tf.concat([shape[:axis], [size], shape[axis:][1:]], 0)
    return tf.broadcast_to(x, shape)
''',
)

SOFTMAX = Helper(
    "_softmax_along",
    '''\
def _softmax_along(x: tf.Tensor, axis: int) -> tf.Tensor:
    """`tf.nn.softmax`, which must know the rank for any axis but the last."""
    exp = tf.exp(x - tf.reduce_max(x, axis, keepdims=True))
    return exp / tf.reduce_sum(exp, axis, keepdims=True)
''',
)

SHARES = Helper(
    "_shares",
    '''\
def _shares(x: tf.Tensor, total: tf.Tensor, axis: int) -> tf.Tensor:
    """exp(x - total), ``total`` being the logarithm of the sum of exp(x). In graphs of the
    exponentials that `tf.reduce_logsumexp` makes: XLA has them once for both.
    """
    if tf.executing_eagerly():
        return tf.exp(x - tf.expand_dims(total, axis))
    top = tf.reduce_max(x, axis, keepdims=True)
    top = tf.stop_gradient(tf.where(tf.math.is_finite(top), top, tf.zeros_like(top)))
    exp = tf.exp(x - top)
    return exp * tf.expand_dims(1.0 / tf.reduce_sum(exp, axis), axis)
''',
)

STACKED = Helper(
    "_stacked",
    '''\
def _stacked(*parts: tf.Tensor) -> tf.Tensor:
    """The parts, which broadcast, side by side along a new last axis."""
    shape = tf.shape(parts[0])
    for part in parts[1:]:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(part))
    return tf.stack([tf.broadcast_to(part, shape) for part in parts], -1)
''',
)

WINDOW = Helper(
    "_window",
    '''\
def _window(
    x: tf.Tensor, axis: int, start: int | tf.Tensor, size: int | tf.Tensor
) -> tf.Tensor:
    """``size`` positions of an axis from ``start`` on; one outside is an error."""
    shape = tf.shape(x, tf.int64)
    begin = tf.concat([0 * shape[:axis], [start], 0 * shape[axis:][1:]], 0)
    return tf.slice(x, begin, tf.concat([shape[:axis], [size], shape[axis:][1:]], 0))
''',
)

PADDED_WINDOW = Helper(
    "_padded_window",
    '''\
def _padded_window(
    x: tf.Tensor, axis: int, start: int | tf.Tensor, size: int | tf.Tensor
) -> tf.Tensor:
    """``size`` positions of an axis from ``start`` on, 0 where there is none."""
    shape = tf.shape(x, tf.int64)
    start = tf.cast(start, tf.int64)
    around = [tf.maximum(-start, 0), tf.maximum(start + size - shape[axis], 0)]
    before = tf.zeros([tf.size(shape) + axis, 2], tf.int64)
    paddings = tf.concat([before, [around], tf.zeros([-axis - 1, 2], tf.int64)], 0)
    return _window(tf.pad(x, paddings), axis, tf.maximum(start, 0), size)
''',
)

WINDOWS = Helper(
    "_windows",
    '''\
def _windows(
    x: tf.Tensor,
    axis: int,
    start: int | tf.Tensor,
    rows: int | tf.Tensor,
    columns: int | tf.Tensor,
    backward: bool = False,
) -> tf.Tensor:
    """Two axes in place of one: at [i, j] is what was at start + i + j, or at
    start + i - j.
    """
    step = -tf.range(columns, dtype=tf.int64) if backward else tf.range(
        columns, dtype=tf.int64
    )
    positions = start + tf.expand_dims(tf.range(rows, dtype=tf.int64), -1) + step
    return tf.gather(x, positions, axis=axis)
''',
)

PADDED_WINDOWS = Helper(
    "_padded_windows",
    '''\
def _padded_windows(
    x: tf.Tensor,
    axis: int,
    start: int | tf.Tensor,
    rows: int | tf.Tensor,
    columns: int | tf.Tensor,
    backward: bool = False,
) -> tf.Tensor:
    """The same, with 0 where there is nothing."""
    first = start - columns + 1 if backward else start
    x = _padded_window(x, axis, first, rows + columns - 1)
    return _windows(x, axis, start - first, rows, columns, backward)
''',
)

PRODUCT_OF_OTHERS = Helper(
    "_product_of_others",
    '''\
def _product_of_others(x: tf.Tensor, axis: int) -> tf.Tensor:
    """For each element the product of all others. (Running products would do with less,
    but TensorFlow's derivative of them divides by the elements, which may be 0.)
    """
    size = tf.shape(x)[axis]
    own = tf.eye(size, dtype=tf.bool)
    own = tf.reshape(own, tf.concat([[size, size], tf.ones([-axis - 1], tf.int32)], 0))
    others = tf.where(own, tf.ones([], x.dtype), tf.expand_dims(x, axis - 1))
    return tf.reduce_prod(others, axis)
''',
)

TAKE_CLIPPED = Helper(
    "_take_clipped",
    '''\
def _take_clipped(x: tf.Tensor, index: tf.Tensor, axis: int) -> tf.Tensor:
    """``x`` at positions of an axis; the nearest one for one that is outside."""
    last = tf.shape(x, tf.int64)[axis] - 1
    return tf.gather(x, tf.clip_by_value(index, 0, last), axis=axis)
''',
)

GATHER = Helper(
    "_gather",
    '''\
def _gather(x: tf.Tensor, index: tf.Tensor, axis: int) -> tf.Tensor:
    """``x`` at positions of an axis; all other axes broadcast."""
    x, index = _axis_last(x, axis), _axis_last(index, axis)
    rows = tf.broadcast_dynamic_shape(tf.shape(x, tf.int64)[:-1], tf.shape(index, tf.int64)[:-1])
    size, count = tf.shape(x, tf.int64)[-1:], tf.shape(index, tf.int64)[-1:]
    x = tf.broadcast_to(x, tf.concat([rows, size], 0))
    shape, row = tf.concat([rows, count], 0), tf.reduce_prod(rows, keepdims=True)
    x = tf.reshape(x, tf.concat([row, size], 0))
    index = tf.reshape(tf.broadcast_to(index, shape), tf.concat([row, count], 0))
    taken = tf.reshape(tf.gather(x, index, axis=1, batch_dims=1), shape)
    return _axis_last(taken, axis, back=True)
''',
)

AXIS_LAST = Helper(
    "_axis_last",
    '''\
def _axis_last(x: tf.Tensor, axis: int, back: bool = False) -> tf.Tensor:
    """``x`` with an axis moved to the end, or from there to its place."""
    if axis == -1:
        return x
    axes = tf.range(tf.rank(x))
    if back:
        order = tf.concat([axes[:axis], axes[-1:], axes[axis:-1]], 0)
    else:
        order = tf.concat([axes[:axis], axes[axis + 1 :], axes[axis : axis + 1]], 0)
    return tf.transpose(x, order)
''',
)

SCATTER_ADD = Helper(
    "_scatter_add",
    '''\
def _scatter_add(
    index: tf.Tensor,
    value: tf.Tensor,
    size: int | tf.Tensor,
    count: int,
    others: int,
) -> tf.Tensor:
    """Sums of ``value`` by position, for each of the batch axes: ``count`` axes of
    positions become one of ``size``, before ``others`` axes more.
    """
    index = tf.reshape(index, tf.concat([tf.shape(index, tf.int64), [1] * others], 0))
    shape = tf.broadcast_dynamic_shape(tf.shape(index, tf.int64), tf.shape(value, tf.int64))
    rank = tf.size(shape)
    batch, after = shape[: rank - count - others], shape[rank - others :]
    index = tf.broadcast_to(index, tf.concat([shape[: rank - others], [1] * others], 0))
    rows = tf.reduce_prod(batch)
    row = tf.reshape(tf.range(rows), tf.concat([batch, [1] * (count + others)], 0))
    places = tf.where((index >= 0) & (index < size), index + row * size, -1)
    places = tf.reshape(places, [-1])
    flat = tf.concat([[tf.size(places, tf.int64)], after], 0)
    value = tf.reshape(tf.broadcast_to(value, shape), flat)
    found = tf.math.unsorted_segment_sum(value, places, rows * size)
    return tf.reshape(found, tf.concat([batch, [size], after], 0))
''',
)

SUM_BY_POSITION = Helper(
    "_sum_by_position",
    '''\
def _sum_by_position(
    index: tf.Tensor,
    value: tf.Tensor,
    size: int | tf.Tensor,
    count: int,
    others: int,
) -> tf.Tensor:
    """Sums of ``value`` by position, over all batch axes and ``count`` axes more; there
    are ``others`` axes behind them.
    """
    given = tf.concat([tf.shape(index, tf.int64), [1] * others], 0)
    shape = tf.broadcast_dynamic_shape(given, tf.shape(value, tf.int64))
    rank = tf.size(shape)
    index = tf.reshape(tf.broadcast_to(index, shape[: rank - others]), [-1])
    flat = tf.concat([[tf.size(index, tf.int64)], shape[rank - others :]], 0)
    value = tf.reshape(tf.broadcast_to(value, shape), flat)
    return tf.math.unsorted_segment_sum(value, index, size)
''',
)

SUM_OF_OUTER = Helper(
    "_sum_of_outer",
    '''\
def _sum_of_outer(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Outer products along the last axes, summed over all other axes, which broadcast."""
    m, n = tf.shape(a, tf.int64)[-1:], tf.shape(b, tf.int64)[-1:]
    rows = tf.broadcast_dynamic_shape(tf.shape(a, tf.int64)[:-1], tf.shape(b, tf.int64)[:-1])
    count = tf.reduce_prod(rows)
    a = tf.reshape(tf.broadcast_to(a, tf.concat([rows, m], 0)), [count, m[0]])
    b = tf.reshape(tf.broadcast_to(b, tf.concat([rows, n], 0)), [count, n[0]])
    return tf.matmul(a, b, transpose_a=True)
''',
)

SUM_OVER_BATCH = Helper(
    "_sum_over_batch",
    '''\
def _sum_over_batch(x: tf.Tensor, rank: int) -> tf.Tensor:
    """The sum over all but the last ``rank`` axes."""
    known = x.shape.rank is not None
    return tf.reduce_sum(
        x, [*range(x.shape.rank - rank)] if known else tf.range(tf.rank(x) - rank)
    )
''',
)

HELPERS = (
    SHAPES,
    SIZE,
    SPREAD,
    SOFTMAX,
    STACKED,
    WINDOW,
    PADDED_WINDOW,
    WINDOWS,
    PADDED_WINDOWS,
    PRODUCT_OF_OTHERS,
    TAKE_CLIPPED,
    GATHER,
    AXIS_LAST,
    SCATTER_ADD,
    SUM_BY_POSITION,
    SUM_OF_OUTER,
    SUM_OVER_BATCH,
    SHARES,
)
"""In the order in which a module has them."""
