"""Functions of other modules: JAX's own as they are, those of NumPy arrays as callbacks.
Where their derivatives are given, these are theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._named import named_function
from ._gradspec import Array

Function = Callable[..., Any]


def foreign(call: str, *slopes: Function) -> Function:
    """A function of JAX's arrays."""
    return _with_slopes(named_function(call)[0], slopes)


def foreign_numpy(call: str, *slopes: Function) -> Function:
    """A function of the elements of NumPy arrays; its values have the arrays' floating
    type."""
    function, _ = named_function(call)

    def apply(*arrays: Any) -> Array:
        kind = jnp.result_type(*arrays)
        wide = np.float32 if jnp.dtype(kind).itemsize < 4 else kind

        def compute(*given: Any) -> Any:
            made = function(*(np.asarray(array, wide) for array in given))
            return np.asarray(made).astype(kind)

        shape = jnp.broadcast_shapes(*(jnp.shape(array) for array in arrays))
        like = jax.ShapeDtypeStruct(shape, kind)
        made: Array = jax.pure_callback(
            compute, like, *arrays, vmap_method="broadcast_all"
        )
        return made

    return _with_slopes(apply, slopes)


def _with_slopes(function: Function, slopes: tuple[Function, ...]) -> Function:
    if not slopes:
        return function

    def push(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        pairs = zip(slopes, tangents, strict=True)
        total = sum(slope(*primals) * tangent for slope, tangent in pairs)
        return known(*primals), total

    known = jax.custom_jvp(function)
    known.defjvp(push)
    made: Function = known
    return made
