"""PyTorch: the private functions of rules over named axes."""

from __future__ import annotations

from gradspec.primitives.row import Helper

SHAPES = Helper(
    "_check_shapes",
    '''\
def _check_shapes(rule: str, **inputs: tuple[object, ...]) -> None:
    """Refuse shapes other than declared: a tensor, then its axes (``...`` for any)."""
    sizes: dict[object, int] = {}
    for name, (tensor, *axes) in inputs.items():
        shape = tuple(tensor.shape)
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
def _spread(x: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """``x`` with an axis of size 1 repeated, as a view."""
    shape = [1] * (-axis - x.ndim) + list(x.shape)
    shape[axis] = size
    return x.expand(shape)
''',
)

LARGEST = Helper(
    "_largest",
    '''\
def _largest(
    x: torch.Tensor, axis: int | tuple[int, ...], keepdim: bool = False
) -> torch.Tensor:
    """The largest element along an axis, -inf where there is none.

    The size is looked at first: an exported graph would keep an operation that fails.
    """
    size = x.numel()
    if type(size) is not int:  # a compiler's symbol, which may stand for any
        size = math.prod(known for known in x.shape if type(known) is int)
    if size == 0:
        return torch.sum(x, axis, keepdim) - math.inf
    return torch.amax(x, axis, keepdim)
''',
    ("import math",),
)

POSITIONS = Helper(
    "_positions",
    '''\
def _positions(size: int, like: torch.Tensor) -> torch.Tensor:
    """0, 1, ... along an axis, on the device of ``like``, or on all that a DTensor has."""
    if hasattr(like, "placements"):
        return like.new_ones(size, dtype=torch.int64).cumsum(0) - 1
    return torch.arange(size, device=like.device)
''',
)

STACKED = Helper(
    "_stacked",
    '''\
def _stacked(*parts: torch.Tensor) -> torch.Tensor:
    """The parts side by side along a new last axis."""
    shape = torch.broadcast_shapes(*(part.shape for part in parts))
    return torch.stack([part.expand(shape) for part in parts], -1)
''',
)

PERMUTED = Helper(
    "_permuted",
    '''\
def _permuted(x: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """``x`` with its last axes in another order."""
    return x.permute(*range(x.dim() - len(order)), *order)
''',
)

WINDOW = Helper(
    "_padded_window",
    '''\
def _padded_window(x: torch.Tensor, axis: int, start: int, size: int) -> torch.Tensor:
    """``size`` positions of an axis from ``start`` on, 0 where there is none."""
    behind = max(start + size - x.shape[axis], 0)
    around = [0, 0] * (-axis - 1) + [max(-start, 0), behind]
    return torch.nn.functional.pad(x, around).narrow(axis, max(start, 0), size)
''',
)

WINDOWS = Helper(
    "_windows",
    '''\
def _windows(
    x: torch.Tensor,
    axis: int,
    start: int,
    rows: int,
    columns: int,
    backward: bool = False,
) -> torch.Tensor:
    """Two axes in place of one, as a view: at [i, j] is what was at start + i + j, or at
    start + i - j.
    """
    first = start - (columns - 1) * backward
    x = torch.narrow(x, axis, first, rows + columns - 1)
    views = x.unfold(axis, columns, 1).movedim(-1, axis)
    return views.flip(axis) if backward else views
''',
)

PADDED_WINDOWS = Helper(
    "_padded_windows",
    '''\
def _padded_windows(
    x: torch.Tensor,
    axis: int,
    start: int,
    rows: int,
    columns: int,
    backward: bool = False,
) -> torch.Tensor:
    """The same, with 0 where there is nothing."""
    first = start - (columns - 1) * backward
    x = _padded_window(x, axis, first, rows + columns - 1)
    return _windows(x, axis, start - first, rows, columns, backward)
''',
)

PRODUCT_OF_OTHERS = Helper(
    "_product_of_others",
    '''\
def _product_of_others(x: torch.Tensor, axis: int) -> torch.Tensor:
    """For each element the product of all others: of those before and those behind."""
    size = x.shape[axis]
    one = torch.ones_like(torch.narrow(x, axis, 0, min(size, 1)))
    rest = max(size - 1, 0)
    before = torch.cumprod(torch.narrow(x, axis, 0, rest), axis)
    back = torch.flip(torch.narrow(x, axis, size - rest, rest), (axis,))
    behind = torch.flip(torch.cumprod(back, axis), (axis,))
    return torch.cat((one, before), axis) * torch.cat((behind, one), axis)
''',
)

TAKE = Helper(
    "_take",
    '''\
def _take(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
    """``x`` at positions of an axis; the axes of ``index`` stand in its place."""
    taken = x.index_select(axis, index.reshape(-1).long())
    before, after = x.shape[: x.dim() + axis], x.shape[x.dim() + axis + 1 :]
    # no view, which would forbid in-place operations on the result
    return torch.ops.aten._unsafe_view(taken, (*before, *index.shape, *after))
''',
)

TAKE_CLIPPED = Helper(
    "_take_clipped",
    '''\
def _take_clipped(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
    """The same, with the nearest position for one that is outside."""
    return _take(x, index.clamp(0, x.shape[axis] - 1), axis)
''',
)

GATHER = Helper(
    "_gather",
    '''\
def _gather(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
    """``x`` at positions of an axis; all other axes broadcast."""
    given, wanted = list(x.shape), list(index.shape)
    size, count = given[axis], wanted[axis]
    given[axis] = wanted[axis] = 1
    shape = list(torch.broadcast_shapes(given, wanted))
    shape[axis] = size
    x = x.expand(shape)
    shape[axis] = count
    return torch.gather(x, axis, index.long().expand(shape))
''',
)

SCATTER_ADD = Helper(
    "_scatter_add",
    '''\
def _scatter_add(
    index: torch.Tensor, value: torch.Tensor, size: int, count: int, others: int
) -> torch.Tensor:
    """Sums of ``value`` by position, for each of the batch axes: ``count`` axes of
    positions become one of ``size``, before ``others`` axes more.
    """
    index = index.reshape((*index.shape, *[1] * others))
    shape = torch.broadcast_shapes(index.shape, value.shape)
    first, last = len(shape) - count - others, len(shape) - others
    batch, after = shape[:first], shape[last:]
    flat = (*batch, shape[first:last].numel(), *after)
    empty = value.new_zeros((*batch, size, *after))
    index = index.expand(shape).reshape(flat).long()
    return empty.scatter_add(-1 - others, index, value.expand(shape).reshape(flat))
''',
)

SUM_BY_POSITION = Helper(
    "_sum_by_position",
    '''\
def _sum_by_position(
    index: torch.Tensor, value: torch.Tensor, size: int, count: int, others: int
) -> torch.Tensor:
    """Sums of ``value`` by position, over all batch axes and ``count`` axes more; there
    are ``others`` axes behind them.
    """
    shape = torch.broadcast_shapes((*index.shape, *[1] * others), value.shape)
    before, after = shape[: len(shape) - others], shape[len(shape) - others :]
    value = value.expand(shape).reshape((before.numel(), *after))
    empty = value.new_zeros((size, *after))
    return empty.index_add(0, index.expand(before).reshape(-1).long(), value)
''',
)

OWN = Helper(
    "_own",
    '''\
def _own(y: torch.Tensor) -> torch.Tensor:
    """``y`` as no view, which would forbid in-place operations on it. Nothing is copied."""
    return torch.ops.aten._unsafe_view(y, y.shape)
''',
)

CONTRACTION = Helper(
    "_contraction",
    '''\
def _contraction(words: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What `torch.einsum` says, as a product of matrices, which any `vmap` can batch."""
    inputs, output = words.split("->")
    left, right = (word.removeprefix("...") for word in inputs.split(","))
    out = output.removeprefix("...")
    batch = torch.broadcast_shapes(
        a.shape[: a.dim() - len(left)], b.shape[: b.dim() - len(right)]
    )
    if out == output:  # the batch is one more axis to sum over
        flat = (math.prod(batch), *a.shape[a.dim() - len(left) :])
        a = a.expand(*batch, *flat[1:]).reshape(flat)
        flat = (math.prod(batch), *b.shape[b.dim() - len(right) :])
        b = b.expand(*batch, *flat[1:]).reshape(flat)
        left, right, batch = f"Z{left}", f"Z{right}", batch[:0]
    sizes = dict(zip(left + right, (*_sizes(a, left), *_sizes(b, right))))
    common = [c for c in left if c in right and c in out]
    summed = [c for c in left if c in right and c not in out]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    product = _matrix(a, left, common, rows, summed) @ _matrix(
        b, right, common, summed, columns
    )
    found = [*common, *rows, *columns]
    product = product.reshape((*batch, *(sizes[c] for c in found)))
    order = (len(batch) + found.index(c) for c in out)
    return product.permute((*range(len(batch)), *order))


def _sizes(x: torch.Tensor, letters: str) -> list[int]:
    return list(x.shape[x.dim() - len(letters) :])


def _matrix(
    x: torch.Tensor, letters: str, common: list[str], rows: list[str], columns: list[str]
) -> torch.Tensor:
    """The last axes, named by letters, as matrices behind common axes."""
    batch, sizes = x.dim() - len(letters), dict(zip(letters, _sizes(x, letters)))
    order = (batch + letters.index(c) for c in (*common, *rows, *columns))
    shape = [*x.shape[:batch], *(sizes[c] for c in common)]
    for group in rows, columns:
        shape.append(math.prod(sizes[c] for c in group))
    return x.permute((*range(batch), *order)).reshape(shape)
''',
    ("import math",),
)

SUM_OF_OUTER = Helper(
    "_sum_of_outer",
    '''\
def _sum_of_outer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Outer products along the last axes, summed over all other axes, which broadcast."""
    shape = torch.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    count = math.prod(shape)
    a = a.expand((*shape, a.shape[-1])).reshape(count, a.shape[-1])
    return a.mT @ b.expand((*shape, b.shape[-1])).reshape(count, b.shape[-1])
''',
    ("import math",),
)

SUM_OVER_BATCH = Helper(
    "_sum_over_batch",
    '''\
def _sum_over_batch(x: torch.Tensor, rank: int) -> torch.Tensor:
    """The sum over all but the last ``rank`` axes."""
    batch = x.dim() - rank
    return x.sum(tuple(range(batch))) if batch else x
''',
)

HELPERS = (
    SHAPES,
    SPREAD,
    LARGEST,
    POSITIONS,
    STACKED,
    PERMUTED,
    WINDOW,
    WINDOWS,
    PADDED_WINDOWS,
    PRODUCT_OF_OTHERS,
    TAKE,
    TAKE_CLIPPED,
    OWN,
    GATHER,
    SCATTER_ADD,
    SUM_BY_POSITION,
    CONTRACTION,
    SUM_OF_OUTER,
    SUM_OVER_BATCH,
)
"""In the order in which a module has them."""
