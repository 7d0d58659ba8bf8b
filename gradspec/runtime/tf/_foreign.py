"""Functions of other modules: TensorFlow's own as they are, those of NumPy arrays as
callbacks. Where their derivatives are given, these are theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import tensorflow as tf

from .._named import named_function
from ._gradspec import sum_to

Function = Callable[..., Any]


def foreign(call: str, *slopes: Function) -> Function:
    """A function of TensorFlow's tensors."""
    return (
        _with_slopes(named_function(call)[0], slopes)
        if slopes
        else named_function(call)[0]
    )


def foreign_numpy(call: str, *slopes: Function) -> Function:
    """A function of the elements of NumPy arrays; its values have the tensors' floating
    type."""
    function, _ = named_function(call)

    def apply(*tensors: Any) -> tf.Tensor:
        kind = tensors[0].dtype
        wide = np.float32 if kind.size < 4 else kind.as_numpy_dtype

        def compute(*arrays: Any) -> Any:
            made = function(*(np.asarray(array).astype(wide) for array in arrays))
            return np.asarray(made).astype(kind.as_numpy_dtype)

        made = tf.numpy_function(compute, tensors, kind, stateful=False)
        shapes = (tensor.shape for tensor in tensors)
        return tf.ensure_shape(made, reduce(tf.broadcast_static_shape, shapes))

    def unknown(*_: Any) -> Any:
        raise LookupError(f"the derivative of {call} is not given")

    return _with_slopes(apply, slopes or (unknown,) * named_function(call)[1])


def _with_slopes(function: Function, slopes: tuple[Function, ...]) -> Function:
    @tf.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def apply(*tensors: tf.Tensor) -> Any:
        def pullback(upstream: tf.Tensor) -> list[tf.Tensor]:
            pairs = zip(slopes, tensors, strict=True)
            return [sum_to(upstream * slope(*tensors), x) for slope, x in pairs]

        return function(*tensors), pullback

    return apply  # type: ignore[no-any-return, unused-ignore]
