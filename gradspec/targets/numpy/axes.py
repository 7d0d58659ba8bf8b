"""Operations on named axes, in NumPy."""

from __future__ import annotations

from typing import assert_never, cast

from gradspec.plan.arrays import (
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
from gradspec.plan.contraction import (
    TensorProduct,
    is_over_batch,
    matrix_product,
    tensor_product,
)
from gradspec.targets.expressions import ATOM, PRODUCT, SUM, Scope, Text
from gradspec.targets.page import Page
from gradspec.targets.whole import whole


def ranked(node: RankedNode, parts: tuple[Text, ...], scope: Scope) -> Text:
    """The operation as text."""
    page = scope.page
    match cast(Ranked, node):
        case Einsum() as contraction:
            return _einsum(contraction, parts, page)
        case Reduce(op=op, axes=axes, keep=keep):
            return Text(_reduce(op, parts[0], axes, keep, page), ATOM)
        case Expand(axes=axes):
            return Text(f"{parts[0].within(ATOM)}[{_new_axes(axes)}]", ATOM)
        case LogSoftmax(axis=axis):
            function = page.axes("logsumexp")
            total = f"{function}({parts[0].text}, axis={axis}, keepdims=True)"
            return Text(f"{parts[0].within(SUM)} - {total}", SUM)
        case other:
            return Text(_call(other, [part.text for part in parts], parts, page), ATOM)


def _call(node: Ranked, texts: list[str], parts: tuple[Text, ...], page: Page) -> str:
    match node:
        case Spread(axis=axis, size=size):
            return f"{page.axes('spread')}({texts[0]}, {axis}, {whole(size).text})"
        case Permute(order=order) if order == (-1, -2):
            return f"{parts[0].within(ATOM)}.swapaxes(-1, -2)"
        case Permute(order=order):
            return f"np.moveaxis({texts[0]}, {order}, {tuple(range(-len(order), 0))})"
        case Diagonal(first=first, second=second):
            return f"np.diagonal({texts[0]}, axis1={first}, axis2={second})"
        case Window(axis=axis, start=start, size=size, padded=padded):
            name = page.axes("padded_window" if padded else "window")
            return (
                f"{name}({texts[0]}, {axis}, {whole(start).text}, {whole(size).text})"
            )
        case Pick(axis=axis, at=at):
            behind = ", :" * (-axis - 1)
            return f"{parts[0].within(ATOM)}[..., {whole(at).text}{behind}]"
        case Arange(size=size):
            return f"np.arange({whole(size).text})"
        case Take(axis=axis, clipped=clipped):
            name = page.axes("take_nearest" if clipped else "take")
            return f"{name}({texts[0]}, {texts[1]}, {axis})"
        case Gather(axis=axis):
            return f"{page.axes('gather')}({texts[0]}, {texts[1]}, {axis})"
        case ScatterAdd(size=size, count=count, others=others, over_batch=over_batch):
            name = page.axes("scatter_add_all" if over_batch else "scatter_add")
            index, value = texts[0], texts[1]
            return f"{name}({index}, {value}, {whole(size).text}, {count}, {others})"
        case Cumulative(axis=axis, reverse=False):
            return f"np.cumsum({texts[0]}, axis={axis})"
        case Cumulative(axis=axis):
            back = f"np.cumsum(np.flip({texts[0]}, {axis}), axis={axis})"
            return f"np.flip({back}, {axis})"
        case Windows(axis=axis, backward=backward, padded=padded):
            name = page.axes("padded_windows" if padded else "windows")
            ends = (node.start, node.rows, node.columns)
            sizes = ", ".join(whole(end).text for end in ends)
            running = ", backward=True" if backward else ""
            return f"{name}({texts[0]}, {axis}, {sizes}{running})"
        case ProductOfOthers(axis=axis):
            return f"{page.axes('product_of_others')}({texts[0]}, {axis})"
        case Stack():
            return f"{page.axes('stacked')}({', '.join(texts)})"
        case Softmax(axis=axis):
            return f"{page.axes('softmax')}({texts[0]}, {axis})"
        case Einsum() | Reduce() | Expand() | LogSoftmax() | Shares():
            raise AssertionError(node)
        case _:
            assert_never(node)


def _reduce(op: str, arg: Text, axes: tuple[int, ...], keep: bool, page: Page) -> str:
    axis = _axes(axes)
    keeping = ", keepdims=True" if keep else ""
    if op == "logsumexp":
        return f"{page.axes('logsumexp')}({arg.text}, axis={axis}{keeping})"
    if op == "peak":  # of nothing, too
        return f"{arg.within(ATOM)}.max(axis={axis}{keeping}, initial=-np.inf)"
    return f"{arg.within(ATOM)}.{op}(axis={axis}{keeping})"


def _new_axes(axes: tuple[int, ...]) -> str:
    depth = -min(axes)
    places = ("None" if p in axes else ":" for p in range(-depth, 0))
    return ", ".join(["...", *places])


def _einsum(node: Einsum, parts: tuple[Text, ...], page: Page) -> Text:
    texts = [part.text for part in parts]
    if len(parts) == 1 and not node.output:
        return Text(f"{parts[0].within(ATOM)}.sum()", ATOM)
    if len(parts) == 1:
        return Text(f"{page.axes('batch_sum')}({texts[0]}, {len(node.output)})", ATOM)
    words = [word.removeprefix("...") for word in node.inputs]
    if is_over_batch(node):
        spec = f'"{words[0]}", "{words[1]}", "{node.output}"'
        name = page.axes("batch_contraction")
        return Text(f"{name}({spec}, {texts[0]}, {texts[1]})", ATOM)
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
