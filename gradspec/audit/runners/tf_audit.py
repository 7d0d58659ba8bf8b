"""Audit of TensorFlow modules, beside TensorFlow's own functions and its tapes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from types import ModuleType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from auditing import Arrays, Case, Function, floats, main, outputs

M = tf.math

OPERATIONS: Mapping[str, Function] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "mod": M.floormod,
    "pow": M.pow,
    "neg": lambda x: -x,
    "stop": tf.stop_gradient,
    "lt": M.less,
    "le": M.less_equal,
    "gt": M.greater,
    "ge": M.greater_equal,
    "eq": M.equal,
    "ne": M.not_equal,
    "and": M.logical_and,
    "or": M.logical_or,
    "not": M.logical_not,
    "select": lambda c, x, y: tf.where(c, x, y),
    "exp": M.exp,
    "expm1": M.expm1,
    "log": M.log,
    "log1p": M.log1p,
    "sigmoid": M.sigmoid,
    "logsigmoid": M.log_sigmoid,
    "softplus": M.softplus,
    "xlogy": M.xlogy,
    "xlog1py": M.xlog1py,
    "square": M.square,
    "reciprocal": M.reciprocal,
    "sqrt": M.sqrt,
    "rsqrt": M.rsqrt,
    "abs": M.abs,
    "max": M.maximum,
    "min": M.minimum,
    "clip": lambda x, low, high: M.minimum(M.maximum(x, low), high),
    "relu": tf.nn.relu,
    "sign": M.sign,
    "floor": M.floor,
    "ceil": M.ceil,
    "round": M.round,
    "sin": M.sin,
    "cos": M.cos,
    "tan": M.tan,
    "asin": M.asin,
    "acos": M.acos,
    "atan": M.atan,
    "atan2": M.atan2,
    "sinh": M.sinh,
    "cosh": M.cosh,
    "tanh": M.tanh,
    "asinh": M.asinh,
    "acosh": M.acosh,
    "atanh": M.atanh,
    "erf": M.erf,
    "erfc": M.erfc,
    "erfinv": M.erfinv,
    "ndtri": M.ndtri,
    "lgamma": M.lgamma,
    "digamma": M.digamma,
    "i0": M.bessel_i0,
    "i1": M.bessel_i1,
    "i0e": M.bessel_i0e,
    "i1e": M.bessel_i1e,
}


def _bce(x: Any, t: Any) -> Any:
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=t, logits=x)


NATIVES: Mapping[str, Function] = {
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "leaky_relu": lambda x, slope: tf.nn.leaky_relu(x, slope),
    "elu": lambda x, alpha: tf.nn.elu(x),
    "selu": tf.nn.selu,
    "sigmoid": tf.sigmoid,
    "tanh": tf.tanh,
    "softsign": tf.nn.softsign,
    "logsigmoid": M.log_sigmoid,
    "softplus": lambda x, beta: M.softplus(x),
    "log1pexp": M.softplus,
    "silu": tf.nn.silu,
    "gelu": lambda x: tf.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True),
    "bce_with_logits": _bce,
    "log_poisson_nll": lambda x, t: tf.nn.log_poisson_loss(t, x),
    "squared_error": M.squared_difference,
    "i0": M.bessel_i0,
    "i1": M.bessel_i1,
    "i0e": M.bessel_i0e,
    "i1e": M.bessel_i1e,
    "rsqrt": tf.math.rsqrt,
    "power": tf.pow,
    "sinc": lambda x: tf.experimental.numpy.sinc(x),
    "asin": M.asin,
    "acos": M.acos,
    "atan": M.atan,
    "asinh": M.asinh,
    "acosh": M.acosh,
    "atanh": M.atanh,
    "erf": M.erf,
    "erfc": M.erfc,
    "erfinv": M.erfinv,
    "erfcinv": M.erfcinv,
    "lgamma": M.lgamma,
    "digamma": M.digamma,
    "trigamma": lambda x: M.polygamma(tf.ones_like(x), x),
    "ndtri": M.ndtri,
    "expm1": M.expm1,
    "log1p": M.log1p,
    "hypot": lambda x, y: tf.experimental.numpy.hypot(x, y),
    "atan2": M.atan2,
    "xlogy": M.xlogy,
    "xlog1py": M.xlog1py,
    "logaddexp": lambda a, b: tf.experimental.numpy.logaddexp(a, b),
}


class TensorFlowAdapter:
    """See `auditing.Adapter`."""

    operations = OPERATIONS
    natives = NATIVES

    def emitted(self, module: ModuleType, case: Case, columns: list[Any]) -> Arrays:
        return self.own(getattr(module, case["rule"]), case, columns)

    def compiled(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        """In one graph: TensorFlow's optimiser adds constants up, for instance. The
        upstream gradient comes from outside, as within a model."""

        @tf.function(autograph=False)
        def graph(inputs: list[Any], upstream: Any) -> dict[str, Any]:
            return _measured(function, case, inputs, upstream)

        return _arrays(graph(_tensors(case, columns), _one(case)))

    def own(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        return _arrays(_measured(function, case, _tensors(case, columns), _one(case)))

    def constant(self, value: float, case: Case) -> Any:
        return tf.constant(value, case["dtype"])


def _measured(
    function: Function, case: Case, inputs: list[Any], upstream: Any
) -> dict[str, Any]:
    leaves = [inputs[k] for k in floats(case)]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(leaves)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(leaves)
            values = outputs(case, function(*inputs, **case["statics"]))
        found = {f"0:{name}:": value for name, value in values}
        is_recorded = case["order"] >= 2  # else as users have it: rules may tell
        with nullcontext() if is_recorded else outer.stop_recording():
            firsts = (
                {n: _slopes(inner, v, leaves, upstream) for n, v in values}
                if case["order"] >= 1 and case["differentiable"]
                else {}
            )
    for name, slopes in firsts.items():
        for place, first in zip(floats(case), slopes, strict=True):
            key = f"{name}:{case['inputs'][place][0]}"
            found[f"1:{key}"] = first
            if case["order"] >= 2:
                found[f"2:{key}"] = _slopes(outer, first, inputs[place], upstream)
    return found


def _slopes(tape: Any, value: Any, leaves: Any, upstream: Any) -> Any:
    return tape.gradient(
        value,
        leaves,
        output_gradients=tf.broadcast_to(upstream, tf.shape(value)),
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )


def _one(case: Case) -> Any:
    """Upstream gradients of 1 for every output."""
    return tf.constant(1.0, case["dtype"])


def _tensors(case: Case, columns: list[Any]) -> list[Any]:
    return [
        _tensor(column, kind, case["dtype"])
        for column, (_, kind) in zip(columns, case["inputs"], strict=True)
    ]


def _tensor(column: Any, kind: str, dtype: str) -> Any:
    wanted = {"int": "int64", "bool": "bool"}.get(kind, dtype)
    return tf.cast(tf.constant(np.asarray(column), tf.float64), wanted)


def _arrays(found: dict[str, Any]) -> Arrays:
    return {key: _array(tensor) for key, tensor in found.items()}


def _array(tensor: Any) -> Any:
    return tf.cast(tf.convert_to_tensor(tensor), tf.float64).numpy()


if __name__ == "__main__":
    main(TensorFlowAdapter())
