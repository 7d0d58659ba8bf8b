"""Target-independent emission of operations on named axes: sizes, contractions, and
calls of runtime functions with common names.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.plan import arrays
from gradspec.plan.arrays import Einsum, Expr, Literal, Name, Op
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Infix
from gradspec.targets.expressions import ATOM, PRODUCT, UNARY, Text
from gradspec.targets.page import Page


def called(node: arrays.RankedNode, texts: list[str], page: Page) -> str:
    """The call of a runtime function; ``texts`` are the texts of its parts."""
    match node:
        case arrays.Spread(axis=axis, size=size):
            return f"{page.axes('spread')}({texts[0]}, {axis}, {whole(size).text})"
        case arrays.Window(axis=axis, start=start, size=size, padded=padded):
            name = page.axes("padded_window" if padded else "window")
            stretch = f"{whole(start).text}, {whole(size).text}"
            return f"{name}({texts[0]}, {axis}, {stretch})"
        case arrays.Windows(axis=axis, backward=backward, padded=padded):
            name = page.axes("padded_windows" if padded else "windows")
            ends = (node.start, node.rows, node.columns)
            sizes = ", ".join(whole(end).text for end in ends)
            running = ", backward=True" if backward else ""
            return f"{name}({texts[0]}, {axis}, {sizes}{running})"
        case arrays.Take(axis=axis, clipped=clipped):
            name = page.axes("take_nearest" if clipped else "take")
            return f"{name}({texts[0]}, {texts[1]}, {axis})"
        case arrays.Gather(axis=axis):
            return f"{page.axes('gather')}({texts[0]}, {texts[1]}, {axis})"
        case arrays.ScatterAdd(size=size, count=count, others=others):
            name = page.axes("scatter_add_all" if node.over_batch else "scatter_add")
            given = f"{texts[0]}, {texts[1]}"
            return f"{name}({given}, {whole(size).text}, {count}, {others})"
        case arrays.ProductOfOthers(axis=axis):
            return f"{page.axes('product_of_others')}({texts[0]}, {axis})"
        case arrays.Stack():
            return f"{page.axes('stacked')}({', '.join(texts)})"
        case arrays.Softmax(axis=axis):
            return f"{page.axes('softmax')}({texts[0]}, {axis})"
        case _:
            raise AssertionError(node)


def places(axes: tuple[int, ...]) -> str:
    """``-1`` for one axis, ``(-2, -1)`` for several."""
    return str(axes[0]) if len(axes) == 1 else str(axes)


def inner_product(node: Einsum, parts: tuple[Text, ...]) -> tuple[str, str] | None:
    """A row-wise inner product as a product, and the axes that it is summed over; None
    if the contraction is none. A product and a sum are fused, or faster than `einsum`.
    """
    words = [word.removeprefix("...") for word in node.inputs]
    output = node.output.removeprefix("...")
    letters = words[0]
    is_rows = letters.startswith(output) and letters != output
    if is_over_batch(node) or words != [letters] * 2 or not is_rows:
        return None
    product = f"{parts[0].within(PRODUCT)} * {parts[1].within(PRODUCT + 1)}"
    return product, places(tuple(range(len(output) - len(letters), 0)))


# --- sizes and positions: whole numbers without a point ----------------------------------


def whole(expr: Expr) -> Text:
    """``n - k + 1`` of names, integer literals, and Python operators."""
    match expr:
        case Name(id=name):
            return Text(name, ATOM, True)
        case Literal(value=value):
            assert value.denominator == 1, value
            return Text(str(value.numerator), ATOM if value >= 0 else UNARY, True)
        case Op(primitive="neg", args=(arg,)):
            return Text(f"-{whole(arg).within(UNARY)}", UNARY, True)
        case Op(primitive=op, args=(left, right)):
            return _infix(op, whole(left), whole(right))
        case _:
            raise AssertionError(f"not a whole number: {expr}")


def _infix(op: str, left: Text, right: Text) -> Text:
    how = primitive(op).spellings["python"]
    assert isinstance(how, Infix), op
    first, second = left.within(how.precedence), right.within(how.precedence + 1)
    return Text(f"{first} {how.symbol} {second}", how.precedence, True)


# --- contractions ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Product:
    """``args[left] @ args[right]``, each perhaps with its last two axes swapped."""

    left: int
    right: int
    is_left_swapped: bool
    is_right_swapped: bool


def matrix_product(node: Einsum) -> Product | None:
    """The contraction as a matrix product, if that needs no rearrangement."""
    if len(node.args) != 2 or is_over_batch(node):
        return None
    for left, right in ((0, 1), (1, 0)):
        found = _product(
            node.inputs[left], node.inputs[right], node.output.removeprefix("...")
        )
        if found is not None:
            return Product(left, right, *found)
    return None


def is_over_batch(node: Einsum) -> bool:
    """True if the batch axes are summed."""
    batched = any(word.startswith("...") for word in node.inputs)
    return batched and not node.output.startswith("...")


def _product(a: str, b: str, out: str) -> tuple[bool, bool] | None:
    """For each side, True if it is swapped; None if this is no matrix product.

    A right side without batch axes is a matrix or a vector for all axes in front of the
    left side's last one.
    """
    left, right = a.removeprefix("..."), b.removeprefix("...")
    summed = [k for k in left if k in right and k not in out]
    if len(summed) != 1 or set(left + right) != {*out, *summed}:
        return None
    (k,) = summed
    alone = b == right
    if alone and left[-1] == k and right == k and out == left[:-1]:
        return False, False
    if alone and len(right) == 2 and left[-1] == k:
        other = right.replace(k, "")
        if out == left[:-1] + other:
            return False, right[0] != k
    if min(len(left), len(right)) < 2 or not left[:-2] == right[:-2] == out[:-2]:
        return None
    if k in left[:-2] or out[-2:] != left[-2:].replace(k, "") + right[-2:].replace(
        k, ""
    ):
        return None
    return left[-2] == k, right[-1] == k


@dataclass(frozen=True, slots=True)
class TensorProduct:
    """The sum over ``left_axes`` of one argument and ``right_axes`` of the other, both
    counted from the end; the axes that stay stand in order, the left ones first.
    """

    left: int
    right: int
    left_axes: tuple[int, ...]
    right_axes: tuple[int, ...]


def tensor_product(node: Einsum) -> TensorProduct | None:
    """The contraction as a tensor product over some axes, without rearrangement."""
    if len(node.args) != 2 or is_over_batch(node):
        return None
    out = node.output.removeprefix("...")
    for left, right in ((0, 1), (1, 0)):
        a, b = node.inputs[left].removeprefix("..."), node.inputs[right]
        summed = [k for k in a if k in b and k not in out]
        free = [k for k in a + b if k not in summed]
        if not b.startswith("...") and summed and "".join(free) == out:
            return TensorProduct(
                left,
                right,
                tuple(a.index(k) - len(a) for k in summed),
                tuple(b.index(k) - len(b) for k in summed),
            )
    return None
