"""NumPy spellings that the table of primitives does not contain."""

from __future__ import annotations

from gradspec.plan import arrays
from gradspec.plan.program import Operators
from gradspec.primitives.lookup import spellings
from gradspec.targets.axes import (
    is_over_batch,
    kept_column,
    matrix_product,
    new_axes,
    places,
    runtime_call,
    whole,
)
from gradspec.targets.expressions import ATOM, PRODUCT, SUM, Dialect, Scope, Text
from gradspec.targets.target import Page

MODULES = {"np": "import numpy as np"}

SPELLINGS = spellings("numpy")

OPERATORS = Operators(spellings=SPELLINGS, reserved=frozenset(["np", "math"]))


# --- operations on named axes ---------------------------------------------------------


def ranked_text(node: arrays.RankedNode, parts: tuple[Text, ...], scope: Scope) -> Text:
    """The operation as text."""
    page = scope.page
    match node:
        case arrays.Einsum() as contraction:
            return _einsum(contraction, parts, page)
        case arrays.Reduce(op=op, axes=axes, keep=keep):
            return Text(_reduce(op, parts[0], axes, keep, page), ATOM)
        case arrays.Expand(axes=axes):
            column = kept_column(node, parts[0], _COLUMN)
            return column or Text(new_axes(parts[0], axes), ATOM)
        case arrays.LogSoftmax(axis=axis):
            function = page.axes("logsumexp")
            total = f"{function}({parts[0].text}, axis={axis}, keepdims=True)"
            return Text(f"{parts[0].within(SUM)} - {total}", SUM)
        case other:
            return Text(_call(other, [part.text for part in parts], parts, page), ATOM)


def _call(
    node: arrays.RankedNode, texts: list[str], parts: tuple[Text, ...], page: Page
) -> str:
    match node:
        case arrays.Permute(order=order) if order == (-1, -2):
            return f"{parts[0].within(ATOM)}.swapaxes(-1, -2)"
        case arrays.Permute(order=order):
            return f"np.moveaxis({texts[0]}, {order}, {tuple(range(-len(order), 0))})"
        case arrays.Diagonal(first=first, second=second):
            return f"np.diagonal({texts[0]}, axis1={first}, axis2={second})"
        case arrays.Arange(size=size):
            return f"np.arange({whole(size).text})"
        case arrays.Factor(routine=routine):
            return f"np.linalg.{routine}({texts[0]})"
        case arrays.Solve(axes=1):
            half = {"lower": "np.tril({})", "upper": "np.triu({})"}.get(node.side, "{}")
            solved = [half.format(texts[0]), texts[1]]
            if node.batched:
                return runtime_call(node, [Text(t, ATOM) for t in solved], page)
            return f"np.linalg.solve({', '.join(solved)})"
        case arrays.Argsort(axis=axis):
            return f'np.argsort({texts[0]}, axis={axis}, kind="stable")'
        case arrays.Cumulative(axis=axis, reverse=False):
            return f"np.cumsum({texts[0]}, axis={axis})"
        case arrays.Cumulative(axis=axis):
            back = f"np.cumsum(np.flip({texts[0]}, {axis}), axis={axis})"
            return f"np.flip({back}, {axis})"
        case _:
            return runtime_call(node, parts, page)


def _reduce(op: str, arg: Text, axes: tuple[int, ...], keep: bool, page: Page) -> str:
    axis = places(axes)
    keeping = ", keepdims=True" if keep else ""
    if op in ("logsumexp", "norm"):
        return f"{page.axes(op)}({arg.text}, axis={axis}{keeping})"
    if op == "peak":  # of nothing, too
        return f"{arg.within(ATOM)}.max(axis={axis}{keeping}, initial=-np.inf)"
    return f"{arg.within(ATOM)}.{op}(axis={axis}{keeping})"


_COLUMN = "[..., 0]"


def _einsum(node: arrays.Einsum, parts: tuple[Text, ...], page: Page) -> Text:
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
        spec = f"{','.join(node.inputs)}->{node.output}"
        return Text(f'np.einsum("{spec}", {", ".join(texts)}, optimize=True)', ATOM)
    left = _operand(parts[product.left], product.is_left_swapped, PRODUCT)
    if product.is_column:
        column = new_axes(parts[product.right], (-1,))
        return Text(f"({left} @ {column}){_COLUMN}", ATOM)
    right = _operand(parts[product.right], product.is_right_swapped, PRODUCT + 1)
    return Text(f"{left} @ {right}", PRODUCT)


def _operand(part: Text, is_swapped: bool, least: int) -> str:
    if is_swapped:
        return f"{part.within(ATOM)}.swapaxes(-1, -2)"
    return part.within(least)


# --- the dialect -----------------------------------------------------------------------


DIALECT = Dialect(
    target="numpy",
    spellings=SPELLINGS,
    where="np.where({c}, {x}, {y})",
    to_float="{x}.astype({like}.dtype)",
    root_of_size="{x}**0.5",
    lift="np.asarray({x}, {like}.dtype)",
    untyped=("{x}.astype(np.float64)", "np.asarray({x})"),
    ranked=ranked_text,
    of_numbers=(arrays.Stack,),
)
