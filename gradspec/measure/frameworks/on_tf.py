"""Rules in TensorFlow: tapes, accumulators, graphs, XLA."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf

from gradspec.driver.emitted import import_file
from gradspec.measure.frameworks import setting
from gradspec.measure.frameworks.audit import Library
from gradspec.measure.frameworks.setting import Case, Register
from gradspec.measure.frameworks.shared import (
    PLAIN,
    first_of,
    in_format,
    one_output,
    runtime_of,
    without_calls,
)

ZERO = {"unconnected_gradients": "zero"}
_NUMPY = tf.experimental.numpy


class Setting(setting.Setting):
    """A rule at one point, in TensorFlow's words; gradients are those of tapes."""

    def tensor(self, value: Any, kind: str) -> Any:
        shape, flat = value
        tensor = tf.reshape(tf.constant(flat, tf.float64, [len(flat)]), shape)
        return tf.cast(tensor, {"int": "int64", "bool": "bool"}.get(kind, self.dtype))

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        wide = tf.cast(tf.convert_to_tensor(x), tf.float64)
        return wide.shape.as_list(), tf.reshape(wide, [-1]).numpy().tolist()

    def dot(self, x: Any, y: Any) -> Any:
        return tf.reduce_sum(x * tf.cast(y, x.dtype))

    def stack(self, tensors: Sequence[Any], axis: int = 0) -> Any:
        return tf.stack(tensors, axis)

    def dots(self, x: Any, matrix: Any) -> Any:
        return tf.tensordot(x, matrix, x.shape.rank)

    def units(self, x: Any) -> Sequence[Any]:
        size = int(tf.size(x))
        return [tf.reshape(row, x.shape) for row in tf.eye(size, dtype=x.dtype)]

    def gradient(self, function: Callable[..., Any], floats: Sequence[Any]) -> Any:
        floats = list(floats)
        with tf.GradientTape() as recorded:
            recorded.watch(floats)
            made = function(*floats)
        return recorded.gradient(made, floats, **ZERO)

    def compiled(self) -> Case:
        """In one graph: TensorFlow's optimiser adds constants up, for instance. The
        upstream gradient comes from outside, as within a model."""
        graph = tf.function(self.quantities, autograph=False)
        found: Case = graph(list(self.floats), self.ones)
        return found

    @staticmethod
    def plain(path: str) -> ModuleType:
        """With each rule's forward code recorded operation by operation."""
        module = import_file(path, PLAIN)
        runtime = runtime_of(module)

        def applied(core: Any, tensors: Any, precision: Any, _is_linear: bool) -> Any:
            results, _ = core(*runtime._widen(tensors, precision))
            wide = runtime._widen(tensors, precision)
            types = {x.dtype for w, x in zip(wide, tensors, strict=True) if w is not x}
            outputs = results if isinstance(results, tuple) else (results,)
            for dtype in types:
                cast = functools.partial(tf.cast, dtype=dtype)
                outputs = tuple(cast(y) if y.dtype.is_floating else y for y in outputs)
            return outputs if isinstance(results, tuple) else outputs[0]

        runtime._apply = applied
        return module

    @staticmethod
    def library() -> Library:
        return LIBRARY


LIBRARY = Library(
    (tf.math, tf.nn, tf),
    {name: getattr(tf.math, f"bessel_{name}") for name in ("i0", "i1", "i0e", "i1e")}
    | {"logsigmoid": tf.math.log_sigmoid},
    {
        "leaky_relu": lambda x, slope: tf.nn.leaky_relu(x, slope),
        "elu": lambda x, alpha: tf.nn.elu(x),
        "softplus": lambda x, beta: tf.math.softplus(x),
        "log1pexp": tf.math.softplus,
        "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True),
        "bce_with_logits": lambda x, t: tf.nn.sigmoid_cross_entropy_with_logits(t, x),
        "log_poisson_nll": lambda x, t: tf.nn.log_poisson_loss(t, x),
        "squared_error": tf.math.squared_difference,
        "power": tf.pow,
        "sinc": _NUMPY.sinc,
        "trigamma": lambda x: tf.math.polygamma(tf.ones_like(x), x),
        "hypot": _NUMPY.hypot,
        "logaddexp": _NUMPY.logaddexp,
    },
)

# --- features --------------------------------------------------------------------------


def in_tape(s: Setting) -> Any:
    """The outputs under a tape."""
    with tf.GradientTape() as recorded:
        recorded.watch(s.floats)
        return s.outputs(*s.floats)


def pushed(function: Any, floats: Any, tangents: Any) -> Any:
    """The tangent of a number, in forward mode."""
    with tf.autodiff.ForwardAccumulator(list(floats), list(tangents)) as forward:
        whole = function(*floats)
    return forward.jvp(whole, **ZERO)


def jacobian(s: Setting) -> Any:
    """The gradients as rows of the jacobian of one number."""
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(s.floats)
        made = tf.stack([s.total(*s.floats)])
    return first_of(recorded.jacobian(made, list(s.floats)))


def in_graph(s: Setting, total: Any = None, **options: Any) -> Any:
    """The gradients of a function, taken in a graph."""
    function = total or s.total
    return tf.function(lambda *f: s.gradient(function, f), **options)(*s.floats)


def unknown(s: Setting, shape: Callable[[Any], Any]) -> Any:
    """The gradients in a graph that does not know shapes."""
    return in_graph(
        s, input_signature=[tf.TensorSpec(shape(x), x.dtype) for x in s.floats]
    )


def mapped(function: Any, stacked: Any) -> Any:
    """A function of every row."""
    return tf.vectorized_map(lambda row: tuple(function(*row)), tuple(stacked))


feature = Register(
    {
        "values": in_tape,
        "tape": lambda s: s.first(),
        "nested tapes": lambda s: s.second(),
        "three tapes": lambda s: s.third(),
        "one output at a time": one_output,
        "float64": in_format("float64"),
        "bfloat16": in_format("bfloat16"),
        "empty tensors": without_calls,
        "ForwardAccumulator": lambda s: s.along(lambda t: pushed(s.total, s.floats, t)),
        "tape in an accumulator": lambda s: s.along(
            lambda t: pushed(s.probing(s.total), s.floats, t)
        ),
        "jacobian": jacobian,
        "tf.function": in_graph,
        "tf.function, unknown shapes": lambda s: unknown(
            s, lambda x: [None] * len(x.shape)
        ),
        "tf.function, unknown ranks": lambda s: unknown(s, lambda x: None),
        "tf.function, second order": lambda s: tf.function(s.second)(*s.floats),
        "vectorized_map": lambda s: first_of(mapped(s.first, s.stacked())),
        "XLA": lambda s: in_graph(s, jit_compile=True),
        "XLA, second order": lambda s: tf.function(s.second, jit_compile=True)(
            *s.floats
        ),
    }
)


if __name__ == "__main__":
    setting.do_job(Setting, feature)
