"""Contractions that are one matrix product."""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.plan.arrays import Einsum


@dataclass(frozen=True, slots=True)
class Product:
    """``args[left] @ args[right]``, each perhaps with its last two axes swapped."""

    left: int
    right: int
    is_left_swapped: bool
    is_right_swapped: bool


def matrix_product(node: Einsum) -> Product | None:
    """The contraction as a matrix product, if it is one with nothing to rearrange."""
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
    """Whether the batch axes are summed."""
    batched = any(word.startswith("...") for word in node.inputs)
    return batched and not node.output.startswith("...")


def _product(a: str, b: str, out: str) -> tuple[bool, bool] | None:
    """Whether each side is swapped; None if this is no matrix product.

    A right side without batch axes is a matrix or a vector for whatever stands in front
    of the left side's last axis.
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
    """The contraction as a tensor product over some axes with nothing to rearrange."""
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
