"""Functions of other modules as custom operators, which compilers and exporters take as
they are. Where their derivatives are given, these are theirs.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from .._named import named_function
from ._gradspec import Rule, rule

Function = Callable[..., Any]

_SPACE = "gradspec_foreign"


def foreign(call: str, *slopes: Function) -> Function:
    """A function of tensors."""
    return _with_slopes(call, _own(call), slopes)


def foreign_numpy(call: str, *slopes: Function) -> Function:
    """A function of the elements of NumPy arrays; its values have the tensors' floating
    type."""
    return _with_slopes(call, _callback(call), slopes)


@cache
def _own(call: str) -> Function:
    function, count = named_function(call)
    return _operator(f"own {call}", count, function)


@cache
def _callback(call: str) -> Function:
    function, count = named_function(call)

    def compute(*tensors: Tensor) -> Any:
        wide = torch.float32 if tensors[0].dtype.itemsize < 4 else tensors[0].dtype
        arrays = (t.detach().to("cpu", wide).numpy() for t in tensors)
        return torch.as_tensor(function(*arrays))

    return _operator(call, count, compute)


def _with_slopes(
    call: str, function: Function, slopes: tuple[Function, ...]
) -> Function:
    """A rule whose derivatives are given; the function itself if none are."""
    if not slopes:
        return function

    class Known(Rule):
        @staticmethod
        def value(*tensors: Tensor) -> Tensor:
            return function(*tensors)

        @staticmethod
        def pullback(needs: Any, *given: Tensor) -> tuple[Tensor, ...]:
            *tensors, upstream = given
            return tuple(upstream * slope(*tensors) for slope in slopes)

        @staticmethod
        def pushforward(*given: Tensor) -> Tensor:
            tensors, tangents = given[: len(slopes)], given[len(slopes) :]
            pairs = zip(slopes, tangents, strict=True)
            return sum(slope(*tensors) * dot for slope, dot in pairs)

    code = slopes[0].__code__
    return rule(call, inputs=code.co_varnames[: code.co_argcount])(Known).call


def _operator(call: str, count: int, compute: Function) -> Function:
    """An operator of tensors that broadcast. It has the name of the call, so that a saved
    program finds it."""
    digest = zlib.crc32(f"{__file__} {call}".encode())
    words = re.sub(r"\W+", "_", call.partition("(")[0])

    def apply(*tensors: Tensor) -> Tensor:
        like, made = empty(*tensors), compute(*tensors)
        if made.shape != like.shape:
            raise ValueError(
                f"{call} returned the shape {tuple(made.shape)} for inputs that"
                f" broadcast to {tuple(like.shape)}"
            )
        return made.to(like.device, like.dtype, copy=True)

    def empty(*tensors: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(*(t.shape for t in tensors))
        return tensors[0].new_empty(shape)

    def apply_in_batch(
        info: Any, where: tuple[int | None, ...], *tensors: Tensor
    ) -> tuple[Tensor, int]:
        rank = max(
            t.ndim - (d is not None) for t, d in zip(tensors, where, strict=True)
        )
        given = []
        for tensor, place in zip(tensors, where, strict=True):
            front = tensor.unsqueeze(0) if place is None else tensor.movedim(place, 0)
            missing = rank + 1 - front.ndim
            given.append(front[(slice(None), *[None] * missing)])
        return operator(*given), 0

    params = ", ".join(f"Tensor x{k}" for k in range(count))
    operator = torch.library.custom_op(
        f"{_SPACE}::{words}_{digest:08x}",
        apply,
        mutates_args=(),
        schema=f"({params}) -> Tensor",
    )
    operator.register_fake(empty)
    operator.register_vmap(apply_in_batch)
    made: Function = operator
    return made
