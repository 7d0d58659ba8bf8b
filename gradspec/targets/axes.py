"""Target-independent emission of operations on named axes: sizes, contractions, and
calls of runtime functions with common names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradspec.ir.walk import nodes
from gradspec.plan import arrays
from gradspec.plan.arrays import Einsum, Expr, Literal, Name, Op
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Infix, Prefix
from gradspec.targets.expressions import ATOM, PRODUCT, UNARY, Text
from gradspec.targets.target import Page


def runtime_call(node: arrays.RankedNode, parts: Sequence[Text], page: Page) -> str:
    """The call of a runtime function, or an index."""
    texts = [part.text for part in parts]
    match node:
        case arrays.Pick(axis=axis, at=at):
            behind = ", :" * (-axis - 1)
            return f"{parts[0].within(ATOM)}[..., {position(at, parts[1])}{behind}]"
        case arrays.Spread(axis=axis, size=size):
            return f"{page.axes('spread')}({texts[0]}, {axis}, {whole(size).text})"
        case arrays.Window(axis=axis, start=start, size=size, padded=padded):
            name = page.axes("padded_window" if padded else "window")
            stretch = f"{position(start, parts[1])}, {whole(size).text}"
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
        case arrays.Gather(axis=axis, clipped=clipped):
            name = page.axes("gather_nearest" if clipped else "gather")
            return f"{name}({texts[0]}, {texts[1]}, {axis})"
        case arrays.ScatterAdd(size=size, count=count, others=others):
            name = page.axes("scatter_add_all" if node.over_batch else "scatter_add")
            given = f"{texts[0]}, {texts[1]}"
            return f"{name}({given}, {whole(size).text}, {count}, {others})"
        case arrays.ProductOfOthers(axis=axis):
            return f"{page.axes('product_of_others')}({texts[0]}, {axis})"
        case arrays.LinearScan(axis=axis, reverse=reverse):
            back = ", reverse=True" if reverse else ""
            return f"{page.axes('linear_scan')}({', '.join(texts)}, {axis}{back})"
        case arrays.Loop():
            return f"{page.axes('scan')}({_loop(node, texts)})"
        case arrays.Item(index=index):
            return f"{parts[0].within(ATOM)}[{index}]"
        case arrays.Solve():
            return _solution(node, texts, page)
        case arrays.Root():
            return _root(node, texts, page)
        case arrays.Stack():
            return f"{page.axes('stack_last')}({', '.join(texts)})"
        case arrays.Softmax(axis=axis):
            return f"{page.axes('softmax')}({texts[0]}, {axis})"
        case _:
            raise AssertionError(node)


def _solution(node: arrays.Solve, texts: Sequence[str], page: Page) -> str:
    """The runtime's solution of linear equations, whose batch axes broadcast."""
    axes = f", {node.axes}" if node.axes > 1 else ""
    name = page.equations("solve_columns" if node.columns else "solve")
    return f"{name}({', '.join(texts)}{axes})"


def _root(node: arrays.Root, texts: Sequence[str], page: Page) -> str:
    """The runtime's Newton's method, with functions of the state."""
    residual, slope, start = texts
    steps = ", ".join(f"lambda {node.variable}: {_step(t)}" for t in (residual, slope))
    name = page.equations("root_of_system" if node.axes else "root")
    axes = f", {node.axes}" if node.axes > 1 else ""
    return f"{name}({steps}, {start}{axes}{', iterate=True' * node.iterate})"


_LONG = 40  # characters of a step that gets brackets, in which it is broken


def _step(text: str) -> str:
    return f"({text})" if len(text) > _LONG else text


def _loop(loop: arrays.Loop, texts: Sequence[str]) -> str:
    """The arguments of the runtime's loop: functions of one place."""
    count = len(loop.steps)
    steps = [f"lambda _was, _at, _now: {_step(text)}" for text in texts[:count]]
    groups = (steps, texts[count : 2 * count], texts[2 * count :])
    listed = ", ".join(f"[{', '.join(group)}]" for group in groups)
    back = ", reverse=True" if loop.reverse else ""
    return f"{listed}, {loop.before}, {loop.axes}, {loop.places}{back}"


def new_axes(part: Text, axes: tuple[int, ...], mark: str = "None") -> str:
    """New axes of size 1 by indexing."""
    marks = (mark if axis in axes else ":" for axis in range(min(axes), 0))
    return f"{part.within(ATOM)}[..., {', '.join(marks)}]"


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


def position(expr: Expr, part: Text) -> str:
    """A position, which may be computed by functions: ``part`` is its text then."""
    called = (primitive(n.primitive) for n in nodes(expr) if isinstance(n, Op))
    is_plain = all(isinstance(c.spellings["python"], Infix | Prefix) for c in called)
    return whole(expr).text if is_plain else part.text


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
    """``args[left] @ args[right]``, each perhaps with its last two axes swapped; the
    right one, a vector, perhaps as a column.
    """

    left: int
    right: int
    is_left_swapped: bool
    is_right_swapped: bool
    is_column: bool = False


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


def _product(a: str, b: str, out: str) -> tuple[bool, bool, bool] | None:
    """For each side, True if it is swapped, and True for a column; None if this is no
    matrix product.

    A right side without batch axes is a matrix or a vector for all axes in front of the
    left side's last one.
    """
    left, right = a.removeprefix("..."), b.removeprefix("...")
    summed = [k for k in left if k in right and k not in out]
    if len(summed) != 1 or {*left, *right} != {*out, *summed}:
        return None
    (k,) = summed
    alone = b == right
    if alone and left[-1] == k and right == k and out == left[:-1]:
        return False, False, False
    if alone and len(right) == 2 and left[-1] == k:
        other = right.replace(k, "")
        if out == left[:-1] + other:
            return False, right[0] != k, False
    front = left[:-2]
    if len(left) < 2 or k in front:
        return None
    if a != left and right == front + k and out == left.replace(k, ""):
        return left[-2] == k, False, True
    if len(right) < 2 or not front == right[:-2] == out[:-2]:
        return None
    if out[-2:] != left[-2:].replace(k, "") + right[-2:].replace(k, ""):
        return None
    return left[-2] == k, right[-1] == k, False


def outer_sum(
    node: Einsum, parts: Sequence[Text], column: Callable[[Text], str]
) -> tuple[str, str] | None:
    """The arguments of ``sum_of_outer``, outer products summed over all leading axes,
    and an index of the result.
    """
    words = [word.removeprefix("...") for word in node.inputs]
    if len(words) != 2 or not is_over_batch(node):
        return None
    (a, b), (first, second), out = words, parts, node.output
    if len(out) == 1 and sorted(words) == ["", out]:
        weights, rows = (first, second) if b else (second, first)
        return f"{column(weights)}, {rows.text}", "[0]"
    if not (a and b and a[:-1] == b[:-1] and a[-1] != b[-1]):
        return None
    if sorted(out) != sorted(a[-1] + b[-1]):
        return None
    if out[0] != a[-1]:
        first, second = second, first
    return f"{first.text}, {second.text}", ""


def kept_column(node: arrays.RankedNode, part: Text, column: str) -> Text | None:
    """A product with a vector whose axis of size 1 stays, where ``node`` puts it back:
    the text ends with ``column``, which removes it.
    """
    match node:
        case arrays.Expand(arg=arrays.Einsum(), axes=(-1,)) if part.precedence == ATOM:
            # of a product: in ``dy @ w[..., 0]`` the column is that of a factor
            product = part.text.removesuffix(column)
            is_product = product != part.text and product.startswith("(")
            return Text(product[1:-1], PRODUCT) if is_product else None
        case _:
            return None
