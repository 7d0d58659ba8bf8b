"""Audit of TensorFlow modules, beside TensorFlow's own functions and its tapes."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf
from auditing import Arrays, Audit, Case, Library, main, measured
from setting_tf import Setting

_NUMPY = tf.experimental.numpy

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


class TensorFlowAudit(Audit):
    """See `auditing.Audit`."""

    library = LIBRARY
    setting = Setting

    def compiled(self, s: Any, case: Case) -> Arrays:
        """In one graph: TensorFlow's optimiser adds constants up, for instance. The
        upstream gradient comes from outside, as within a model."""
        graph = tf.function(partial(measured, s, case), autograph=False)
        found: Arrays = graph(list(s.floats), self.ones(s))
        return found


if __name__ == "__main__":
    main(TensorFlowAudit())
