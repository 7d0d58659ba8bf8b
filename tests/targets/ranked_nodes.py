"""Each array operation that knows axes, with NumPy's word for what it means."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.plan.arrays import (
    Arange,
    Cumulative,
    Diagonal,
    Einsum,
    Expand,
    Expr,
    Gather,
    Literal,
    LogSoftmax,
    Name,
    Permute,
    Pick,
    ProductOfOthers,
    Reduce,
    ScatterAdd,
    Softmax,
    Spread,
    Stack,
    Take,
    Window,
    Windows,
)

X, W, T = Name("x"), Name("w"), Name("t")
Shapes = tuple[tuple[int, ...], ...]
Case = tuple[Expr, Shapes, Callable[..., Any]]
"""The node; the shapes of ``x`` and ``w``; the meaning, of ``x``, ``w`` and ``t``."""

POSITIONS = np.array([[0, 2, 2], [1, 0, 1]])


def number(value: int) -> Literal:
    return Literal(Fraction(value))


def _einsum(
    left: str, right: str, output: str, first: tuple[int, ...], second: tuple[int, ...]
) -> Case:
    """NumPy does not sum over what ``...`` stands for: that comes after."""
    words = f"{left},{right}->...{output.removeprefix('...')}"
    is_summed = not output.startswith("...")

    def meaning(x: Any, w: Any, t: Any) -> Any:
        found = np.einsum(words, x, w)
        before = tuple(range(found.ndim - len(output)))
        return found.sum(before) if is_summed else found

    return Einsum((X, W), (left, right), output), (first, second), meaning


def _gathered(x: Any, w: Any, t: Any) -> Any:
    shape = np.broadcast_shapes(x.shape[:-1], t.shape[:-1])
    x = np.broadcast_to(x, (*shape, x.shape[-1]))
    return np.take_along_axis(x, np.broadcast_to(t, (*shape, t.shape[-1])), -1)


def _by_position(x: Any, w: Any, t: Any) -> Any:
    """``x`` of the shape of ``t`` and then two axes, summed over all of ``t``."""
    found = np.zeros((4, *x.shape[2:]))
    np.add.at(found, t, x)
    return found


def _scattered(x: Any, w: Any, t: Any) -> Any:
    """Along the last axis of ``t``, row by row."""
    found = np.zeros((2, 4, *x.shape[2:]))
    for row in range(2):
        np.add.at(found[row], t[row], x[row])
    return found


def _window(x: Any, w: Any, t: Any) -> Any:
    padded = np.pad(x, [(0, 0), (3, 3), (0, 0)])
    return padded[:, 3 - 1 : 3 - 1 + 6]


CASES: dict[str, Case] = {
    "sum": (Reduce("sum", X, (-1,)), ((2, 3),), lambda x, w, t: x.sum(-1)),
    "sum kept": (
        Reduce("sum", X, (-2, -1), True),
        ((2, 3, 4),),
        lambda x, w, t: x.sum((-2, -1), keepdims=True),
    ),
    "mean": (Reduce("mean", X, (-2,)), ((2, 3, 4),), lambda x, w, t: x.mean(-2)),
    "prod": (
        Reduce("prod", X, (-3, -1)),
        ((2, 3, 4),),
        lambda x, w, t: x.prod((-3, -1)),
    ),
    "prod kept": (
        Reduce("prod", X, (-2, -1), True),
        ((2, 3, 4),),
        lambda x, w, t: x.prod((-2, -1), keepdims=True),
    ),
    "max": (
        Reduce("max", X, (-1,), True),
        ((2, 3),),
        lambda x, w, t: x.max(-1)[:, None],
    ),
    "peak": (
        Reduce("peak", X, (-2, -1)),
        ((2, 3, 4),),
        lambda x, w, t: x.max((-2, -1)),
    ),
    "min": (Reduce("min", X, (-2, -1)), ((2, 3, 4),), lambda x, w, t: x.min((-2, -1))),
    "logsumexp": (
        Reduce("logsumexp", X, (-1,)),
        ((2, 3),),
        lambda x, w, t: np.log(np.exp(x).sum(-1)),
    ),
    "expand": (Expand(X, (-1,)), ((2, 3),), lambda x, w, t: x[..., None]),
    "expand before": (Expand(X, (-2,)), ((2, 3),), lambda x, w, t: x[..., None, :]),
    "expand two": (
        Expand(X, (-3, -1)),
        ((2, 3),),
        lambda x, w, t: x[..., None, :, None],
    ),
    "spread": (
        Spread(X, -2, number(4)),
        ((2, 1, 3),),
        lambda x, w, t: np.broadcast_to(x, (2, 4, 3)),
    ),
    "spread last": (
        Spread(X, -1, number(4)),
        ((2, 1),),
        lambda x, w, t: np.broadcast_to(x, (2, 4)),
    ),
    "spread number": (
        Spread(Spread(number(2), -2, number(3)), -1, number(4)),
        ((2, 1),),
        lambda x, w, t: np.full((3, 4), 2.0),
    ),
    "transpose": (Permute(X, (-1, -2)), ((2, 3, 4),), lambda x, w, t: x.swapaxes(1, 2)),
    "permute": (
        Permute(X, (-1, -3, -2)),
        ((2, 3, 4, 5),),
        lambda x, w, t: x.transpose(0, 3, 1, 2),
    ),
    "diagonal": (
        Diagonal(X, -2, -1),
        ((2, 3, 3),),
        lambda x, w, t: np.diagonal(x, axis1=-2, axis2=-1),
    ),
    "diagonal apart": (
        Diagonal(X, -3, -1),
        ((2, 3, 4, 3),),
        lambda x, w, t: np.diagonal(x, axis1=-3, axis2=-1),
    ),
    "window": (
        Window(X, -2, number(1), number(2)),
        ((2, 4, 3),),
        lambda x, w, t: x[:, 1:3],
    ),
    "window last": (
        Window(X, -1, number(1), number(2)),
        ((2, 4),),
        lambda x, w, t: x[:, 1:3],
    ),
    "window padded": (
        Window(X, -2, number(-1), number(6), True),
        ((2, 4, 3),),
        _window,
    ),
    "window within": (
        Window(X, -1, number(1), number(2), True),
        ((2, 4),),
        lambda x, w, t: x[:, 1:3],
    ),
    "windows": (
        Windows(X, -2, number(1), number(2), number(3)),
        ((2, 5, 3),),
        lambda x, w, t: x[:, 1 + np.arange(2)[:, None] + np.arange(3)],
    ),
    "windows backward": (
        Windows(X, -1, number(2), number(3), number(2), True),
        ((2, 5),),
        lambda x, w, t: x[:, 2 + np.arange(3)[:, None] - np.arange(2)],
    ),
    "windows padded": (
        Windows(X, -1, number(-1), number(4), number(3), False, True),
        ((2, 3),),
        lambda x, w, t: np.pad(x, [(0, 0), (1, 3)])[
            :, np.arange(4)[:, None] + np.arange(3)
        ],
    ),
    "windows padded, backward": (
        Windows(X, -1, number(0), number(4), number(2), True, True),
        ((2, 3),),
        lambda x, w, t: np.pad(x, [(0, 0), (1, 1)])[
            :, 1 + np.arange(4)[:, None] - np.arange(2)
        ],
    ),
    "product of others": (
        ProductOfOthers(X, -2),
        ((2, 3, 2),),
        lambda x, w, t: np.stack([x[:, [1, 2]], x[:, [0, 2]], x[:, [0, 1]]], 1).prod(2),
    ),
    "stack": (
        Stack((Pick(X, -1, number(1)), number(2), Pick(X, -1, number(0)))),
        ((2, 3),),
        lambda x, w, t: np.stack([x[:, 1], np.full(2, 2.0), x[:, 0]], -1),
    ),
    "softmax": (
        Softmax(X, -2),
        ((2, 3, 4),),
        lambda x, w, t: np.exp(x) / np.exp(x).sum(-2, keepdims=True),
    ),
    "log softmax": (
        LogSoftmax(X, -1),
        ((2, 3),),
        lambda x, w, t: x - np.log(np.exp(x).sum(-1, keepdims=True)),
    ),
    "pick": (Pick(X, -1, number(1)), ((2, 3),), lambda x, w, t: x[..., 1]),
    "pick before": (Pick(X, -2, number(1)), ((2, 3, 4),), lambda x, w, t: x[:, 1]),
    "arange": (Arange(number(4), X), ((2,),), lambda x, w, t: np.arange(4)),
    "take": (Take(X, T, -2), ((3, 4),), lambda x, w, t: x[t]),
    "take vector": (Take(X, T, -1), ((3,),), lambda x, w, t: x[t]),
    "take inside": (Take(X, T, -2), ((2, 3, 4),), lambda x, w, t: x[:, t]),
    "take clipped": (
        Take(X, T, -1, True),
        ((2,),),
        lambda x, w, t: x[np.clip(t, 0, 1)],
    ),
    "gather": (Gather(X, T, -1), ((2, 3),), _gathered),
    "gather of more": (Gather(X, T, -1), ((4, 1, 3),), _gathered),
    "gather of less": (Gather(X, T, -1), ((3,),), _gathered),
    "gather along rows": (
        Gather(X, T, -2),
        ((3, 1),),
        lambda x, w, t: np.take_along_axis(np.broadcast_to(x, (3, 3)), t, 0),
    ),
    "sum by position": (
        ScatterAdd(T, X, number(4), 1, 2, True),
        ((2, 3, 5, 2),),
        _by_position,
    ),
    "sum by position of one number": (
        ScatterAdd(T, X, number(4), 0, 0, True),
        ((1,),),
        lambda x, w, t: _by_position(np.broadcast_to(x, (2, 3)), w, t),
    ),
    "scatter": (ScatterAdd(T, X, number(4), 1, 0, False), ((2, 3),), _scattered),
    "scatter rows": (
        ScatterAdd(T, X, number(4), 1, 2, False),
        ((2, 3, 5, 2),),
        _scattered,
    ),
    "cumulative": (Cumulative(X, -2), ((2, 3, 4),), lambda x, w, t: x.cumsum(-2)),
    "cumulative back": (
        Cumulative(X, -1, True),
        ((2, 3),),
        lambda x, w, t: x[:, ::-1].cumsum(-1)[:, ::-1],
    ),
    "linear": _einsum("...k", "mk", "...m", (2, 3), (4, 3)),
    "linear of one": _einsum("...k", "mk", "...m", (3,), (4, 3)),
    "linear of batches": _einsum("...k", "km", "...m", (5, 2, 3), (3, 4)),
    "matrix and vector": _einsum("mk", "k", "m", (4, 3), (3,)),
    "matrices and vector": _einsum("...mk", "k", "...m", (2, 4, 3), (3,)),
    "matrices and vectors": _einsum("...mk", "...k", "...m", (5, 1, 4, 3), (2, 3)),
    "vectors and matrices": _einsum("...k", "...km", "...m", (3,), (2, 3, 4)),
    "matrix and vectors": _einsum("km", "...k", "...m", (3, 4), (2, 3)),
    "product": _einsum("...ik", "...kj", "...ij", (5, 1, 2, 3), (2, 3, 4)),
    "product turned": _einsum("...ki", "...jk", "...ij", (2, 3, 2), (4, 3)),
    "product back": _einsum("ik", "kj", "ji", (2, 3), (3, 4)),
    "rows": _einsum("...ij", "...ij", "...i", (2, 3, 4), (3, 4)),
    "dot": _einsum("i", "i", "", (3,), (3,)),
    "dot turned": _einsum("ij", "ji", "", (3, 4), (4, 3)),
    "heads": _einsum("...hik", "...hjk", "...hij", (2, 3, 4, 5), (3, 2, 5)),
    "heads one": _einsum("hik", "hk", "hi", (3, 4, 5), (3, 5)),
    "weights": _einsum("...i", "...l", "il", (2, 3), (2, 4)),
    "weights of broadcast": _einsum("...i", "...l", "li", (5, 1, 3), (2, 4)),
    "weights of sequences": _einsum("...ti", "...tl", "il", (2, 5, 3), (5, 4)),
    "weights of one": _einsum("...i", "l", "il", (2, 3), (4,)),
    "weights of matrices": _einsum("...ik", "...kj", "ij", (2, 3, 4), (5, 1, 4, 3)),
    "weights of rows": _einsum("...", "...i", "i", (5, 2), (2, 3)),
    "weighted rows": _einsum("...i", "...", "i", (2, 3), (5, 2)),
    "bias": (
        Einsum((X,), ("...i",), "i"),
        ((5, 2, 3),),
        lambda x, w, t: x.sum((0, 1)),
    ),
    "outer": _einsum("i", "j", "ij", (2,), (3,)),
}
