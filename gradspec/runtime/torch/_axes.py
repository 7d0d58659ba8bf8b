"""Operations on named axes, which are the last axes of a tensor.

Functions that legacy `vmap` (`is_grads_batched`) does not support (`torch.einsum`,
`broadcast_to`) are replaced by others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def spread(x: Tensor, axis: int, size: int) -> Tensor:
    """``x`` with an axis of size 1 repeated, as a view."""
    shape = [1] * (-axis - x.ndim) + list(x.shape)
    shape[axis] = size
    return x.expand(shape)


def largest(x: Tensor, axis: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """The largest element along an axis, -inf for an empty axis.

    The size is tested first: an exported graph would keep an operation that fails.
    """
    size = x.numel()
    if type(size) is not int:  # a compiler's symbol, which may stand for any
        size = math.prod(known for known in x.shape if type(known) is int)
    if size == 0:
        return torch.sum(x, axis, keepdim) - math.inf
    return torch.amax(x, axis, keepdim)


def norm(x: Tensor, axis: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """The root of the sum of squares, scaled by the largest element, so that no square
    overflows or is lost. Its gradient at 0 is 0.
    """
    top = largest(torch.abs(x.detach()), axis, True)
    scale = torch.where((top > 0.0) & (top < math.inf), top, 1.0)
    length = scale * torch.linalg.vector_norm(x / scale, dim=axis, keepdim=True)
    return length if keepdim else length.squeeze(axis)


def positions(size: int, like: Tensor) -> Tensor:
    """0, 1, ... along an axis, on the device of ``like``, or on all devices of a
    DTensor.
    """
    if hasattr(like, "placements"):
        return like.new_ones(size, dtype=torch.int64).cumsum(0) - 1
    return torch.arange(size, device=like.device)


def stack_last(*parts: Tensor) -> Tensor:
    """The parts stacked along a new last axis."""
    shape = torch.broadcast_shapes(*(part.shape for part in parts))
    return torch.stack([part.expand(shape) for part in parts], -1)


def permute_last(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """``x`` with its last axes in another order."""
    return x.permute(*range(x.dim() - len(order)), *order)


def padded_window(x: Tensor, axis: int, start: int, size: int) -> Tensor:
    """``size`` positions of an axis from ``start`` on, 0 outside the axis."""
    behind = max(start + size - x.shape[axis], 0)
    around = [0, 0] * (-axis - 1) + [max(-start, 0), behind]
    return torch.nn.functional.pad(x, around).narrow(axis, max(start, 0), size)


def windows(
    x: Tensor,
    axis: int,
    start: int,
    rows: int,
    columns: int,
    backward: bool = False,
) -> Tensor:
    """Two axes in place of one, as a view: element [i, j] is the one at start + i + j,
    or at start + i - j.
    """
    if rows == 0:  # the axis may be shorter than a window
        return spread(torch.narrow(x, axis, 0, 0).unsqueeze(axis), axis, columns)
    first = start - (columns - 1) * backward
    x = torch.narrow(x, axis, first, rows + columns - 1)
    views = x.unfold(axis, columns, 1).movedim(-1, axis)
    return views.flip(axis) if backward else views


def padded_windows(
    x: Tensor,
    axis: int,
    start: int,
    rows: int,
    columns: int,
    backward: bool = False,
) -> Tensor:
    """`windows`, with 0 outside the axis."""
    first = start - (columns - 1) * backward
    x = padded_window(x, axis, first, rows + columns - 1)
    return windows(x, axis, start - first, rows, columns, backward)


def product_of_others(x: Tensor, axis: int) -> Tensor:
    """For each element the product of all others: of those before and after it."""
    size = x.shape[axis]
    one = torch.ones_like(torch.narrow(x, axis, 0, min(size, 1)))
    rest = max(size - 1, 0)
    before = torch.cumprod(torch.narrow(x, axis, 0, rest), axis)
    back = torch.flip(torch.narrow(x, axis, size - rest, rest), (axis,))
    behind = torch.flip(torch.cumprod(back, axis), (axis,))
    return torch.cat((one, before), axis) * torch.cat((behind, one), axis)


def take(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """Elements of ``x`` along an axis, which the axes of ``index`` replace."""
    taken = x.index_select(axis, index.reshape(-1).long())
    before, after = x.shape[: x.dim() + axis], x.shape[x.dim() + axis + 1 :]
    # no view, which would forbid in-place operations on the result
    return torch.ops.aten._unsafe_view(taken, (*before, *index.shape, *after))


def take_nearest(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """`take`, where a position outside, which is not used, is clipped to the nearest."""
    return take(x, index.clamp(0, x.shape[axis] - 1), axis)


def gather(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """Elements of ``x`` at positions of an axis; all other axes broadcast."""
    given, wanted = list(x.shape), list(index.shape)
    size, count = given[axis], wanted[axis]
    given[axis] = wanted[axis] = 1
    shape = list(torch.broadcast_shapes(given, wanted))
    shape[axis] = size
    x = x.expand(shape)
    shape[axis] = count
    return torch.gather(x, axis, index.long().expand(shape))


def gather_nearest(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """`gather`, where a position outside, which is not used, is clipped to the nearest."""
    return gather(x, index.clamp(0, x.shape[axis] - 1), axis)


def _or_last(index: Tensor, size: int) -> Tensor:
    """``index`` with ``size``, one row more, for positions outside of 0 … ``size`` - 1."""
    return torch.where((index >= 0) & (index < size), index, size).long()


def scatter_add(
    index: Tensor, value: Tensor, size: int, count: int, others: int
) -> Tensor:
    """Sums of ``value`` by position, none for one outside, for each batch index:
    ``count`` axes of positions become one of ``size``, before the last ``others`` axes.
    """
    index = _or_last(index, size).reshape((*index.shape, *[1] * others))
    shape = torch.broadcast_shapes(index.shape, value.shape)
    first, last = len(shape) - count - others, len(shape) - others
    batch, after = shape[:first], shape[last:]
    flat = (*batch, shape[first:last].numel(), *after)
    empty = value.new_zeros((*batch, size + 1, *after))
    index, value = index.expand(shape).reshape(flat), value.expand(shape).reshape(flat)
    found = empty.scatter_add(-1 - others, index, value)
    return own(found.narrow(-1 - others, 0, size).contiguous())


def sum_by_position(
    index: Tensor, value: Tensor, size: int, count: int, others: int
) -> Tensor:
    """Sums of ``value`` by position, none for one outside, over all batch axes and
    ``count`` further axes, before the last ``others`` axes.
    """
    shape = torch.broadcast_shapes((*index.shape, *[1] * others), value.shape)
    before, after = shape[: len(shape) - others], shape[len(shape) - others :]
    value = value.expand(shape).reshape((before.numel(), *after))
    empty = value.new_zeros((size + 1, *after))
    index = _or_last(index, size).expand(before).reshape(-1)
    return own(empty.index_add(0, index, value).narrow(0, 0, size))


def own(y: Tensor) -> Tensor:
    """``y`` as a tensor that is no view, which would forbid in-place operations. No
    copy.
    """
    return torch.ops.aten._unsafe_view(y, y.shape)


def contraction(words: str, a: Tensor, b: Tensor) -> Tensor:
    """`torch.einsum` as a product of matrices, which any `vmap` can batch."""
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
    sizes = dict(zip(left + right, (*_sizes(a, left), *_sizes(b, right)), strict=True))
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


def _sizes(x: Tensor, letters: str) -> list[int]:
    return list(x.shape[x.dim() - len(letters) :])


def _matrix(
    x: Tensor, letters: str, common: list[str], rows: list[str], columns: list[str]
) -> Tensor:
    """The last axes, named by letters, as matrices behind common axes."""
    batch, sizes = (
        x.dim() - len(letters),
        dict(zip(letters, _sizes(x, letters), strict=True)),
    )
    order = (batch + letters.index(c) for c in (*common, *rows, *columns))
    shape = [*x.shape[:batch], *(sizes[c] for c in common)]
    for group in rows, columns:
        shape.append(math.prod(sizes[c] for c in group))
    return x.permute((*range(batch), *order)).reshape(shape)


def sum_of_outer(a: Tensor, b: Tensor) -> Tensor:
    """Outer products along the last axes, summed over all others, which broadcast."""
    shape = torch.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    count = math.prod(shape)
    a = a.expand((*shape, a.shape[-1])).reshape(count, a.shape[-1])
    return a.mT @ b.expand((*shape, b.shape[-1])).reshape(count, b.shape[-1])


def sum_over_batch(x: Tensor, rank: int) -> Tensor:
    """The sum over all but the last ``rank`` axes."""
    batch = x.dim() - rank
    return x.sum(tuple(range(batch))) if batch else x


def linear_scan(
    factor: Tensor, term: Tensor, axis: int, reverse: bool = False
) -> Tensor:
    """``h[t] = factor[t] * h[t - 1] + term[t]`` along an axis, from 0, in steps that
    double; with ``reverse`` of ``h[t + 1]``, from the other end.
    """
    shape = torch.broadcast_shapes(factor.shape, term.shape)
    run, step, size = term.expand(shape), 1, shape[axis]
    if size < 2:
        return run.clone()  # no view of an input, which would need views of tangents
    while step < size:
        rest, start = size - step, 0 if reverse else step
        here = factor.narrow(axis, start, rest)
        before = run.narrow(axis, step - start, rest)
        moved = torch.addcmul(run.narrow(axis, start, rest), here, before)
        first = run.narrow(axis, rest if reverse else 0, step)
        run = torch.cat((moved, first) if reverse else (first, moved), axis)
        product = here * factor.narrow(axis, step - start, rest)
        first = factor.narrow(axis, rest if reverse else 0, step)
        factor = torch.cat((product, first) if reverse else (first, product), axis)
        step *= 2
    return run


def scan(
    steps: Sequence[Callable[..., Tensor]],
    starts: Sequence[Tensor],
    slices: Sequence[Tensor],
    before: Sequence[tuple[int, int]],
    axes: Sequence[int],
    places: Sequence[int],
    reverse: bool = False,
) -> tuple[Tensor, ...]:
    """States computed place by place: each step takes some ``before`` (which, and how
    many places before), what ``slices`` have at the place, and the states that it has
    already. Their axis is the one of ``axes``, and in the results that of ``places``.
    """
    given = [one.unbind(axis) for one, axis in zip(slices, axes, strict=True)]
    size = len(given[0])
    found: list[list[Tensor]] = [[] for _ in steps]
    for t in reversed(range(size)) if reverse else range(size):
        was = [
            found[state][-lag] if lag <= len(found[state]) else starts[state]
            for state, lag in before
        ]
        at, now = [one[t] for one in given], list[Tensor]()
        for step, run in zip(steps, found, strict=True):
            now.append(step(was, at, now))
            run.append(now[-1])
    if size == 0:
        was = [starts[state] for state, _ in before]
        at = [s.sum(axis).to(s.dtype) for s, axis in zip(slices, axes, strict=True)]
        ends: list[Tensor] = []
        for step in steps:
            ends.append(step(was, at, ends))
        return tuple(
            end.unsqueeze(place).narrow(place, 0, 0)
            for end, place in zip(ends, places, strict=True)
        )
    order = -1 if reverse else 1
    made = []
    for run, place in zip(found, places, strict=True):
        shape = torch.broadcast_shapes(*(one.shape for one in run))
        made.append(torch.stack([one.expand(shape) for one in run[::order]], place))
    return tuple(made)
