"""Functions of other modules as custom operators, which compilers and exporters take as
they are. Where their derivatives are given, these are theirs. And rules whose values or
gradients they compute.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor

from .._named import call_by_name, named_function
from ._gradspec import Rule, _transforms_are_active, rule

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


# --- values and gradients of rules -------------------------------------------------------


def computes(call: str, order: tuple[int, ...] = ()) -> Callable[[Function], Function]:
    """A decorator: the call, of inputs by their names, computes the values in the place
    of the formula; ``order`` are the places of the outputs in its results. The formula
    tells compilers the shapes."""

    def decorate(formula: Function) -> Function:
        kernel, names = call_by_name(call), _names(formula)

        def compute(*given: Any) -> Any:
            made = kernel(dict(zip(names, map(_whole, given), strict=True)))
            return tuple(made[k] for k in order) if order else made

        kinds = [formula.__annotations__[name] for name in names]
        results = formula.__annotations__["return"].count("Tensor")
        operator = _kernel(call, names, kinds, results, compute)
        operator.register_fake(formula)

        @wraps(formula)
        def value(*given: Any) -> Any:
            return operator(*given)

        return value

    return decorate


def differentiates(call: str, **places: int) -> Callable[[Function], Function]:
    """A decorator: the call computes these gradients, which have those places among all,
    in the place of the formula. That is differentiated where a gradient is, and used by
    ``torch.func``."""

    def decorate(formula: Function) -> Function:
        kernel, (_, *names) = call_by_name(call), _names(formula)
        wanted = [names.index(name.removeprefix("d")) for name in places]
        own = tuple(k in places.values() for k in range(max(places.values()) + 1))

        def compute(*given: Tensor) -> tuple[Tensor, ...]:
            made = kernel(dict(zip(names, map(_whole, given), strict=True)))
            pairs = zip(_tuple(made), wanted, strict=True)
            return tuple(g.to(given[k].dtype).contiguous() for g, k in pairs)

        def empty(*given: Tensor) -> tuple[Tensor, ...]:
            return tuple(torch.empty_like(given[k]) for k in wanted)

        def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.numbers = [None if isinstance(x, Tensor) else x for x in inputs]
            ctx.save_for_backward(*(x for x in inputs if isinstance(x, Tensor)))

        def again(ctx: Any, *upstream: Any) -> Any:
            first = upstream[0]
            above = first if isinstance(first, list | tuple) else upstream
            saved = iter(ctx.saved_tensors)
            given = [next(saved) if n is None else n for n in ctx.numbers]
            with torch.enable_grad():
                ends = [x.view_as(x) if isinstance(x, Tensor) else x for x in given]
                leaves = [x for x in ends if isinstance(x, Tensor) and x.requires_grad]
                found = _tuple(formula(own, *ends))
                made = [found[place] for place in places.values()]
                slopes = torch.autograd.grad(
                    made, leaves, above, create_graph=True, allow_unused=True
                )
            left = iter(slopes)
            return tuple(
                next(left) if isinstance(x, Tensor) and x.requires_grad else None
                for x in ends
            )

        kinds = [formula.__annotations__.get(name, "Tensor") for name in names]
        operator = _kernel(call, names, kinds, len(places), compute, is_tuple=True)
        operator.register_fake(empty)
        operator.register_autograd(again, setup_context=keep)

        @wraps(formula)
        def pullback(needs: tuple[bool, ...], *given: Any) -> Any:
            if _transforms_are_active():
                return formula(needs, *given)
            others = [n and k not in places.values() for k, n in enumerate(needs)]
            found = [*_tuple(formula(tuple(others), *given))] if any(others) else []
            found += [None] * (len(needs) - len(found))
            for place, gradient in zip(places.values(), operator(*given), strict=True):
                found[place] = gradient
            return tuple(found)

        return pullback

    return decorate


def _kernel(
    call: str,
    names: list[str],
    kinds: list[str],
    results: int,
    compute: Function,
    is_tuple: bool = False,
) -> Any:
    """An operator of the arguments of a formula. Of a batch it is called for each
    element."""
    params = (
        f"{_SCHEMA[kind]} {name}_" for kind, name in zip(kinds, names, strict=True)
    )
    made = f"({', '.join(['Tensor'] * results)})"
    schema = f"({', '.join(params)}) -> {'Tensor' if results == 1 and not is_tuple else made}"
    words = re.sub(r"\W+", "_", call.partition("(")[0])
    digest = zlib.crc32(f"{__file__} {call} {schema}".encode())

    def apply_to_each(info: Any, where: Any, *given: Any) -> Any:
        rows = [
            operator(
                *(
                    x if d is None else x.select(d, k)
                    for x, d in zip(given, where, strict=True)
                )
            )
            for k in range(info.batch_size)
        ]
        if isinstance(rows[0], Tensor):
            return torch.stack(rows), 0
        columns = tuple(map(torch.stack, zip(*rows, strict=True)))
        return columns, (0,) * len(columns)

    operator = torch.library.custom_op(
        f"{_SPACE}::{words}_{digest:08x}", compute, mutates_args=(), schema=schema
    )
    operator.register_vmap(apply_to_each)
    return operator


_SCHEMA = {"Tensor": "Tensor", "float": "float", "int": "SymInt"}


def _names(formula: Function) -> list[str]:
    """The names of what a formula takes; what it does not use begins with a line."""
    code = inspect.unwrap(formula).__code__
    return [name.lstrip("_") for name in code.co_varnames[: code.co_argcount]]


def _tuple(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _whole(value: Any) -> Any:
    """A tensor without gaps: kernels compute with addresses."""
    return value.contiguous() if isinstance(value, Tensor) else value
