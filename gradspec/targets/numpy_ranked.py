"""Operations that know axes, in NumPy."""

from __future__ import annotations

from typing import assert_never, cast

from gradspec.plan.array import Name, Op
from gradspec.plan.contraction import (
    TensorProduct,
    is_over_batch,
    matrix_product,
    tensor_product,
)
from gradspec.plan.ranked import (
    Arange,
    Cumulative,
    Diagonal,
    Einsum,
    Expand,
    Gather,
    LogSoftmax,
    Permute,
    Pick,
    ProductOfOthers,
    Ranked,
    RankedNode,
    Reduce,
    ScatterAdd,
    Shares,
    Softmax,
    Spread,
    Stack,
    Take,
    Window,
    Windows,
)
from gradspec.targets.python import ATOM, PRODUCT, SUM, Text


def ranked(node: RankedNode, parts: tuple[Text, ...]) -> Text:
    """The operation as text."""
    match cast(Ranked, node):
        case Einsum() as contraction:
            return _einsum(contraction, parts)
        case Reduce(
            op="sum" | "mean" as op,
            arg=Op("mul", (Name(id=one), Name(id=other))),
            axes=(-1,),
            keep=True,
        ):
            return Text(f"_row_{op}_product({one}, {other})", ATOM)
        case Reduce(
            op="sum" | "mean" as op,
            arg=Op("square", (Name(id=one),)),
            axes=(-1,),
            keep=True,
        ):
            return Text(f"_row_{op}_product({one}, {one})", ATOM)
        case Reduce(op="sum" | "mean" as op, axes=(-1,), keep=True):
            return Text(f"_row_{op}({parts[0].text})", ATOM)
        case Reduce(op=op, axes=axes, keep=keep):
            return Text(_reduce(op, parts[0], axes, keep), ATOM)
        case Expand(axes=axes):
            return Text(f"{parts[0].within(ATOM)}[{_new_axes(axes)}]", ATOM)
        case LogSoftmax(axis=axis):
            total = f"_logsumexp({parts[0].text}, axis={axis}, keepdims=True)"
            return Text(f"{parts[0].within(SUM)} - {total}", SUM)
        case other:
            return Text(_call(other, [part.text for part in parts], parts), ATOM)


def _call(node: Ranked, texts: list[str], parts: tuple[Text, ...]) -> str:
    match node:
        case Spread(axis=axis):
            return f"_spread({texts[0]}, {axis}, {_whole(texts[1])})"
        case Permute(order=order) if order == (-1, -2):
            return f"{parts[0].within(ATOM)}.swapaxes(-1, -2)"
        case Permute(order=order):
            return f"np.moveaxis({texts[0]}, {order}, {tuple(range(-len(order), 0))})"
        case Diagonal(first=first, second=second):
            return f"np.diagonal({texts[0]}, axis1={first}, axis2={second})"
        case Window(axis=axis, padded=padded):
            name = "_padded_window" if padded else "_window"
            start, size = _whole(texts[1]), _whole(texts[2])
            return f"{name}({texts[0]}, {axis}, {start}, {size})"
        case Pick(axis=axis):
            behind = ", :" * (-axis - 1)
            return f"{parts[0].within(ATOM)}[..., {_whole(texts[1])}{behind}]"
        case Arange():
            return f"np.arange({_whole(texts[0])})"
        case Take(axis=axis, clipped=clipped):
            name = "_take_nearest" if clipped else "_take"
            return f"{name}({texts[0]}, {texts[1]}, {axis})"
        case Gather(axis=axis):
            return f"_gather({texts[0]}, {texts[1]}, {axis})"
        case ScatterAdd(count=count, others=others, over_batch=over_batch):
            name = "_scatter_add_all" if over_batch else "_scatter_add"
            index, value, size = texts[0], texts[1], _whole(texts[2])
            return f"{name}({index}, {value}, {size}, {count}, {others})"
        case Cumulative(axis=axis, reverse=False):
            return f"np.cumsum({texts[0]}, axis={axis})"
        case Cumulative(axis=axis):
            back = f"np.cumsum(np.flip({texts[0]}, {axis}), axis={axis})"
            return f"np.flip({back}, {axis})"
        case Windows(axis=axis, backward=backward, padded=padded):
            name = "_padded_windows" if padded else "_windows"
            sizes = ", ".join(map(_whole, texts[1:]))
            running = ", backward=True" if backward else ""
            return f"{name}({texts[0]}, {axis}, {sizes}{running})"
        case ProductOfOthers(axis=axis):
            return f"_product_of_others({texts[0]}, {axis})"
        case Stack():
            return f"_stacked({', '.join(texts)})"
        case Softmax(axis=axis):
            return f"_softmax({texts[0]}, {axis})"
        case Einsum() | Reduce() | Expand() | LogSoftmax() | Shares():
            raise AssertionError(node)
        case _:
            assert_never(node)


def _whole(text: str) -> str:
    """A size without a point."""
    return text.removesuffix(".0")


def _reduce(op: str, arg: Text, axes: tuple[int, ...], keep: bool) -> str:
    axis = _axes(axes)
    keeping = ", keepdims=True" if keep else ""
    if op == "logsumexp":
        return f"_logsumexp({arg.text}, axis={axis}{keeping})"
    if op == "peak":  # of nothing, too
        return f"{arg.within(ATOM)}.max(axis={axis}{keeping}, initial=-np.inf)"
    return f"{arg.within(ATOM)}.{op}(axis={axis}{keeping})"


def _new_axes(axes: tuple[int, ...]) -> str:
    depth = -min(axes)
    places = ("None" if p in axes else ":" for p in range(-depth, 0))
    return ", ".join(["...", *places])


def _einsum(node: Einsum, parts: tuple[Text, ...]) -> Text:
    texts = [part.text for part in parts]
    if len(parts) == 1 and not node.output:
        return Text(f"{parts[0].within(ATOM)}.sum()", ATOM)
    if len(parts) == 1:
        return Text(f"_batch_sum({texts[0]}, {len(node.output)})", ATOM)
    words = [word.removeprefix("...") for word in node.inputs]
    if is_over_batch(node):
        spec = f'"{words[0]}", "{words[1]}", "{node.output}"'
        return Text(f"_batch_contraction({spec}, {texts[0]}, {texts[1]})", ATOM)
    product = matrix_product(node)
    if product is None:
        axes = tensor_product(node)
        if axes is not None:
            return Text(_tensordot(texts, axes), ATOM)
        spec = f"{','.join(node.inputs)}->{node.output}"
        return Text(f'np.einsum("{spec}", {", ".join(texts)}, optimize=True)', ATOM)
    left = _swapped(parts[product.left], product.is_left_swapped, PRODUCT)
    right = _swapped(parts[product.right], product.is_right_swapped, PRODUCT + 1)
    return Text(f"{left} @ {right}", PRODUCT)


def _tensordot(texts: list[str], product: TensorProduct) -> str:
    left, right = (_axes(axes) for axes in (product.left_axes, product.right_axes))
    args = f"{texts[product.left]}, {texts[product.right]}"
    return f"np.tensordot({args}, axes=({left}, {right}))"


def _axes(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)


def _swapped(part: Text, is_swapped: bool, least: int) -> str:
    if is_swapped:
        return f"{part.within(ATOM)}.swapaxes(-1, -2)"
    return part.within(least)
