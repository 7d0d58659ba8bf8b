"""TensorFlow spellings that the table of primitives does not contain. No static shape or
rank is needed: axes are negative, `tf.einsum` has ``...``.
"""

from __future__ import annotations

from fractions import Fraction

from gradspec.plan import arrays
from gradspec.plan.arrays import Literal, Op
from gradspec.plan.program import Operators
from gradspec.primitives.lookup import spellings
from gradspec.primitives.row import Runtime, Template
from gradspec.targets.axes import (
    inner_product,
    is_over_batch,
    matrix_product,
    new_axes,
    outer_sum,
    places,
    runtime_call,
    whole,
)
from gradspec.targets.expressions import ATOM, SUM, Dialect, Scope, Text
from gradspec.targets.target import Page

MODULES = {"tf": "import tensorflow as tf"}

SPELLINGS = spellings("tf")

OPERATORS = Operators(
    spellings=SPELLINGS, reserved=frozenset(["tf", "math"]), sizes_are_tensors=True
)


# --- operations on named axes ---------------------------------------------------------


def ranked_text(node: arrays.RankedNode, parts: tuple[Text, ...], scope: Scope) -> Text:
    """The operation as text."""
    match node:
        case arrays.LogSoftmax(axis=axis) if axis != -1:
            total = f"tf.reduce_logsumexp({parts[0].text}, {axis}, keepdims=True)"
            return Text(f"{parts[0].within(SUM)} - {total}", SUM)
        case arrays.Einsum() as contraction:
            return Text(_einsum(contraction, parts, scope.page), ATOM)
        case other:
            return Text(_call(other, parts, scope), ATOM)


def _call(node: arrays.RankedNode, parts: tuple[Text, ...], scope: Scope) -> str:
    page, texts = scope.page, [part.text for part in parts]
    match node:
        case arrays.Reduce(op=op, axes=axes, keep=keep):
            keepdims = ", keepdims=True" if keep else ""
            if op == "norm":
                return f"{page.axes('norm')}({texts[0]}, {places(axes)}{keepdims})"
            name = "max" if op == "peak" else op  # which is -inf of nothing here
            return f"tf.reduce_{name}({texts[0]}, {places(axes)}{keepdims})"
        case arrays.Expand(axes=axes):
            return _expand(parts[0], axes)
        case arrays.Spread(axis=axis, size=size) if parts[0].is_scalar:
            shape = ", ".join([whole(size).text, *["1"] * (-axis - 1)])
            number = f"tf.constant({texts[0]}, {scope.like}.dtype)"
            return f"tf.fill([{shape}], {number})"
        case arrays.Permute(order=order):
            return _permute(texts[0], order, page)
        case arrays.Diagonal(first=first, second=second):
            return _diagonal(texts[0], first, second, page)
        case arrays.Arange(size=size):
            return f"tf.range({whole(size).text}, dtype=tf.int64)"
        case arrays.Factor(routine=routine):
            return f"tf.linalg.{routine}({texts[0]})"
        case arrays.Solve(side=side) if side or (node.axes == 1 and not node.batched):
            return _solution(node, texts)
        case arrays.Argsort(axis=axis):
            return f"{page.axes('argsort')}({texts[0]}, {axis})"
        case arrays.Cumulative(axis=axis, reverse=reverse):
            backwards = ", reverse=True" if reverse else ""
            return f"tf.cumsum({texts[0]}, {axis}{backwards})"
        case arrays.Softmax(axis=-1):
            return f"tf.nn.softmax({texts[0]})"
        case arrays.LogSoftmax():
            return f"tf.nn.log_softmax({texts[0]})"
        case _:
            return runtime_call(node, parts, page)


def _solution(node: arrays.Solve, texts: list[str]) -> str:
    matrix, right = texts
    name, words = "tf.linalg.solve", ""
    if node.side:
        name = "tf.linalg.triangular_solve"
        words = "" if node.side == "lower" else ", lower=False"
    if node.columns:
        return f"{name}({matrix}, {right}{words})"
    return f"tf.squeeze({name}({matrix}, tf.expand_dims({right}, -1){words}), -1)"


def _expand(part: Text, axes: tuple[int, ...]) -> str:
    if len(axes) == 1:
        return f"tf.expand_dims({part.text}, {axes[0]})"
    return new_axes(part, axes, "tf.newaxis")


def _permute(text: str, order: tuple[int, ...], page: Page) -> str:
    if order == (-1, -2):
        return f"tf.linalg.matrix_transpose({text})"
    return f"{page.axes('permute_last')}({text}, {order})"


def _diagonal(text: str, first: int, second: int, page: Page) -> str:
    if (first, second) != (-2, -1):
        every = range(min(first, second), 0)
        others = (axis for axis in every if axis not in (first, second))
        text = _permute(text, (*others, first, second), page)
    return f"tf.linalg.diag_part({text})"


# --- contractions ------------------------------------------------------------------------


def _einsum(node: arrays.Einsum, parts: tuple[Text, ...], page: Page) -> str:
    """`tf.einsum` is a matrix product internally. A row-wise inner product is faster as
    a product and a sum, and a sum over batch axes needs another spelling.
    """
    texts = ", ".join(part.text for part in parts)
    outer = outer_sum(node, parts, lambda part: _expand(part, (-1,)))
    if outer is not None:
        return f"{page.axes('sum_of_outer')}({outer[0]}){outer[1]}"
    if is_over_batch(node):
        if node.inputs != (f"...{node.output}",):
            texts = f'tf.einsum("{",".join(node.inputs)}->...{node.output}", {texts})'
        return f"{page.axes('batch_sum')}({texts}, {len(node.output)})"
    if (rows := inner_product(node, parts)) is not None:
        return f"tf.reduce_sum({rows[0]}, {rows[1]})"
    product = matrix_product(node)
    are_matrices = all(len(word.lstrip(".")) > 1 for word in node.inputs)
    if product is not None and are_matrices and not product.is_column:
        sides = f"{parts[product.left].text}, {parts[product.right].text}"
        turns = ", transpose_a=True" * product.is_left_swapped
        turns += ", transpose_b=True" * product.is_right_swapped
        return f"tf.matmul({sides}{turns})"
    return f'tf.einsum("{",".join(node.inputs)}->{node.output}", {texts})'


# --- the dialect -----------------------------------------------------------------------


# In a graph a function takes its type from its first argument; and the bounds of
# `tf.clip_by_value` must broadcast to its first argument.
_VARIANTS = {
    ("max", (True, False)): Template("tf.maximum({y}, {x})"),
    ("min", (True, False)): Template("tf.minimum({y}, {x})"),
    ("eq", (True, False)): Template("tf.equal({y}, {x})"),
    ("ne", (True, False)): Template("tf.not_equal({y}, {x})"),
    ("clip", (False, True, True)): Template("tf.clip_by_value({x}, {y}, {z})"),
    ("clip", (True, False, False)): Template("tf.minimum(tf.maximum({y}, {x}), {z})"),
    ("clip", (True, False, True)): Template("tf.minimum(tf.maximum({y}, {x}), {z})"),
}
_ONE = Literal(Fraction(1))
_CLIP = Template("tf.minimum(tf.maximum({x}, {y}), {z})")


def _variants(node: Op, numbers: tuple[bool, ...]) -> Template | None:
    name = node.primitive
    if name == "div" and node.args[0] == _ONE and numbers == (True, False):
        return Template("{special:reciprocal}({y})")  # a graph's own loses digits
    return _VARIANTS.get((name, numbers), _CLIP if name == "clip" else None)


def _lifts(name: str, numbers: tuple[bool, ...]) -> tuple[bool, ...]:
    """The numbers that must be tensors: the first argument, and the first branch."""
    if name == "choice":
        return numbers
    if name != "where" and isinstance(SPELLINGS.get(name), Runtime):
        return numbers
    return tuple(number and not position for position, number in enumerate(numbers))


DIALECT = Dialect(
    target="tf",
    spellings=SPELLINGS,
    where="tf.where({c}, {x}, {y})",
    to_float="tf.cast({x}, {like}.dtype)",
    lift="tf.constant({x}, {like}.dtype)",
    lifts=_lifts,
    variants=_variants,
    untyped=("tf.cast({x}, tf.float32)", "tf.constant({x}, tf.float32)"),
    ranked=ranked_text,
    static_power=Runtime("power", "core"),
    of_numbers=(arrays.Spread,),
)
