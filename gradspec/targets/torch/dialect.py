"""PyTorch spellings that the table of primitives does not contain.

Batch axes come first and are never counted: axes are negative, helpers leave the rest
alone. Functions that legacy `vmap` (`is_grads_batched`) does not support
(`torch.einsum`, `broadcast_to`, `flatten`) are avoided where another one is equivalent.
"""

from __future__ import annotations

from gradspec.plan import arrays
from gradspec.plan.arrays import Einsum, Op
from gradspec.plan.operations import ONE
from gradspec.plan.program import Operators, Residuals
from gradspec.primitives.lookup import spellings
from gradspec.primitives.row import Template
from gradspec.targets.axes import (
    inner_product,
    kept_column,
    matrix_product,
    new_axes,
    outer_sum,
    places,
    position,
    runtime_call,
    whole,
)
from gradspec.targets.expressions import ATOM, PRODUCT, Dialect, Scope, Text
from gradspec.targets.target import Page

MODULES = {"torch": "import torch"}

SPELLINGS = spellings("torch")

OPERATORS = Operators(
    spellings=SPELLINGS,
    reserved=frozenset(["torch", "Tensor", "math"]),
    residuals=Residuals.SAVED,
    by_output=True,
)


# --- operations on named axes ---------------------------------------------------------


_REDUCTIONS = {"max": "torch.amax", "min": "torch.amin"}


def ranked_text(node: arrays.RankedNode, parts: tuple[Text, ...], scope: Scope) -> Text:
    """The operation as text."""
    if isinstance(node, arrays.Einsum):
        return einsum(node, parts, scope.page)
    if column := kept_column(node, parts[0], _COLUMN):
        return column
    return Text(_operation_text(node, parts, scope.like, scope.page), ATOM)


def _operation_text(
    node: arrays.RankedNode, parts: tuple[Text, ...], like: str, page: Page
) -> str:
    texts = [part.text for part in parts]
    match node:
        case arrays.Reduce(op="prod", axes=axes, keep=keep):
            return _prod(texts[0], axes, keep)
        case arrays.Reduce(op=op, axes=axes, keep=keep):
            name = _REDUCTIONS.get(op, f"torch.{op}")
            if op in ("peak", "norm"):
                name = page.axes("largest" if op == "peak" else "norm")
            return f"{name}({texts[0]}, {places(axes)}{_keepdim(keep)})"
        case arrays.Expand(axes=axes):
            return with_new_axes(parts[0], axes)
        case arrays.Spread(axis=axis, size=size) if parts[0].is_scalar:
            shape = ", ".join([whole(size).text, *["1"] * (-axis - 1)])
            return f"{like}.new_full(({shape}{',' if axis == -1 else ''}), {texts[0]})"
        case arrays.Permute(order=order):
            return _permute(parts[0], order, page)
        case arrays.Diagonal(first=first, second=second):
            return f"torch.diagonal({texts[0]}, dim1={first}, dim2={second})"
        case arrays.Window(axis=axis, start=start, size=size, padded=False):
            stretch = f"{whole(start).text}, {whole(size).text}"
            return f"torch.narrow({texts[0]}, {axis}, {stretch})"
        case arrays.Pick(axis=axis) if _has_one(node.arg, axis):
            return f"{parts[0].within(ATOM)}.squeeze({axis})"
        case arrays.Pick(axis=axis, at=at):
            return f"torch.select({texts[0]}, {axis}, {position(at, parts[1])})"
        case arrays.Arange(size=size):
            return f"{page.axes('positions')}({whole(size).text}, {parts[-1].text})"
        case arrays.ScatterAdd():
            return _scatter(node, texts, page)
        case arrays.Factor(routine=routine):
            return f"torch.linalg.{routine}({texts[0]})"
        case arrays.Solve():
            return _solution(node, texts, parts, page)
        case arrays.Argsort(axis=axis):
            return f"torch.argsort({texts[0]}, dim={axis}, stable=True)"
        case arrays.Cumulative(axis=axis, reverse=reverse):
            return _running(texts[0], axis, reverse)
        case arrays.Softmax(axis=axis):
            return f"torch.softmax({texts[0]}, {axis})"
        case arrays.LogSoftmax(axis=axis):
            return f"torch.log_softmax({texts[0]}, {axis})"
        case _:
            return runtime_call(node, parts, page)


def _has_one(value: arrays.Expr, axis: int) -> bool:
    """True if an axis has size 1: elements are taken at one position."""
    match value:
        case arrays.Gather(index=arrays.Expand(axes=axes)):
            return value.axis == axis and axis in axes
        case _:
            return False


def _keepdim(keep: bool) -> str:
    return ", keepdim=True" if keep else ""


def _prod(text: str, axes: tuple[int, ...], keep: bool) -> str:
    """One axis at a time, which is all that `torch.prod` takes. The first axes go
    first, so that the others keep their positions.
    """
    for axis in sorted(axes):
        text = f"torch.prod({text}, {axis}{_keepdim(keep)})"
    return text


def with_new_axes(part: Text, axes: tuple[int, ...]) -> str:
    """New axes of size 1 by indexing; a single one by the cheaper method."""
    if len(axes) == 1:
        return f"{part.within(ATOM)}.unsqueeze({axes[0]})"
    return new_axes(part, axes)


def _permute(part: Text, order: tuple[int, ...], page: Page) -> str:
    if order == (-1, -2):
        return f"{part.within(ATOM)}.mT"
    return f"{page.axes('permute_last')}({part.text}, {order})"


def _running(text: str, axis: int, reverse: bool) -> str:
    if not reverse:
        return f"torch.cumsum({text}, {axis})"
    return f"torch.cumsum(torch.flip({text}, ({axis},)), {axis}).flip({axis})"


def _solution(
    node: arrays.Solve, texts: list[str], parts: tuple[Text, ...], page: Page
) -> str:
    given = ", ".join(texts)
    if node.side:
        upper = f"upper={node.side == 'upper'}"
        if node.columns:
            return f"torch.linalg.solve_triangular({given}, {upper})"
        column = f"{texts[0]}, {with_new_axes(parts[1], (-1,))}"
        return f"torch.linalg.solve_triangular({column}, {upper}){_COLUMN}"
    if node.batched or node.axes > 1:
        return runtime_call(node, parts, page)
    return f"torch.linalg.solve({given})"


def _scatter(node: arrays.ScatterAdd, texts: list[str], page: Page) -> str:
    index, value, size = texts[0], texts[1], whole(node.size).text
    name = page.axes("sum_by_position" if node.over_batch else "scatter_add")
    return f"{name}({index}, {value}, {size}, {node.count}, {node.others})"


# --- contractions ------------------------------------------------------------------------
#
# Matrix products where possible. `torch.einsum` supports all of them, but is slower to
# start (12 µs where ``x @ w.mT`` takes 4) and unsupported by legacy `vmap`: the rest is
# arranged into matrices by a runtime function. A row-wise inner product is a product and
# a sum: no intermediate is larger than the arguments, and `einsum` takes six times as
# long.


_COLUMN = ".squeeze(-1)"


def einsum(node: Einsum, parts: tuple[Text, ...], page: Page) -> Text:
    """The shortest text of the contraction."""
    outer = outer_sum(node, parts, lambda part: with_new_axes(part, (-1,)))
    if outer is not None:
        return Text(f"{page.axes('sum_of_outer')}({outer[0]}){outer[1]}", ATOM)
    if (rows := inner_product(node, parts)) is not None:
        return Text(f"torch.sum({rows[0]}, {rows[1]})", ATOM)
    if (product := matrix_product(node)) is not None:
        left = _side(parts[product.left], product.is_left_swapped, PRODUCT)
        if product.is_column:
            column = with_new_axes(parts[product.right], (-1,))
            return Text(f"({left} @ {column}){_COLUMN}", ATOM)
        right = _side(parts[product.right], product.is_right_swapped, PRODUCT + 1)
        return Text(f"{left} @ {right}", PRODUCT)
    texts = ", ".join(part.text for part in parts)
    if node.inputs == (f"...{node.output}",):
        return Text(f"{page.axes('sum_over_batch')}({texts}, {len(node.output)})", ATOM)
    name = page.axes("contraction") if len(parts) == 2 else "torch.einsum"
    return Text(f'{name}("{",".join(node.inputs)}->{node.output}", {texts})', ATOM)


def _side(part: Text, is_swapped: bool, least: int) -> str:
    return f"{part.within(ATOM)}.mT" if is_swapped else part.within(least)


def is_view(text: str) -> bool:
    """True if a contraction so written permutes axes after it has computed."""
    of_order = text.startswith(("contraction(", "contraction_(", "torch.einsum("))
    return of_order or text.endswith((_COLUMN, "[0]"))


# --- the dialect -----------------------------------------------------------------------


_TENSORS_ONLY = ("atan2", "heaviside", "hypot", "logaddexp", "max", "min")
_CLAMPED = Template("torch.clamp_max(torch.clamp_min({x}, {y}), {z})")
_TURNED = Template("torch.clamp_max(torch.clamp_min({y}, {x}), {z})")
_NUMBER = "{core:scalar_like}({like}, {x})"

# `torch.clamp` cannot be differentiated where one of two tensor bounds has more axes
# than all else.
_VARIANTS: dict[tuple[str, tuple[bool, ...]], Template] = {
    ("max", (False, True)): Template("torch.clamp_min({x}, {y})"),
    ("max", (True, False)): Template("torch.clamp_min({y}, {x})"),
    ("min", (False, True)): Template("torch.clamp_max({x}, {y})"),
    ("min", (True, False)): Template("torch.clamp_max({y}, {x})"),
    ("clip", (False, False, False)): _CLAMPED,
    ("clip", (False, False, True)): _CLAMPED,
    ("clip", (False, True, False)): _CLAMPED,
    ("clip", (True, True, False)): Template(
        f"torch.clamp_max(torch.clamp_min({_NUMBER}, {{y}}), {{z}})"
    ),
    ("clip", (True, False, False)): _TURNED,
    ("clip", (True, False, True)): _TURNED,
}


def _lifts(name: str, numbers: tuple[bool, ...]) -> tuple[bool, ...]:
    """The numbers that must be tensors: arguments of functions that require tensors,
    one of two numbers between which `torch.where` chooses, for the type of the result,
    and a number beside a tensor in a Python conditional.
    """
    match name, numbers:
        case "where", (True, True):
            return (True, False)
        case "choice", _:
            return numbers
        case _ if name in _TENSORS_ONLY:
            return numbers
        case _:
            return (False,) * len(numbers)


def _variants(node: Op, numbers: tuple[bool, ...]) -> Template | None:
    if node.primitive == "div" and node.args[0] == ONE and numbers == (True, False):
        return Template("torch.reciprocal({y})")  # 1.0 / y is two operations
    return _VARIANTS.get((node.primitive, numbers))


DIALECT = Dialect(
    target="torch",
    spellings=SPELLINGS,
    where="torch.where({c}, {x}, {y})",
    to_float="{x}.to({like}.dtype)",
    lift=_NUMBER,
    root_of_size="{x}**0.5",
    lifts=_lifts,
    variants=_variants,
    untyped=("{x}.to(torch.get_default_dtype())", "torch.scalar_tensor({x})"),
    ranked=ranked_text,
    of_numbers=(arrays.Spread,),
)
