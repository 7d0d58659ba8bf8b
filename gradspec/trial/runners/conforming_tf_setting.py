"""A rule at one point, for the features of TensorFlow."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf
from conforming import Case, Register, elsewhere

feature = Register()
"""All features of TensorFlow, over several files."""

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
# Two devices for `MirroredStrategy`; they must be asked for before anything runs.

_DTYPES = {"int": tf.int64, "bool": tf.bool}


class Setting:
    """A number made of the rule's outputs, as a function of its floating inputs."""

    def __init__(self, module: ModuleType, case: Case) -> None:
        self.rule, self.case = getattr(module, case["rule"]), case
        self.path = module.__file__
        self.inputs = [_tensor(case["given"][n], kind) for n, kind in case["inputs"]]
        names = [name for name, kind in case["inputs"] if kind == "float"]
        self.places = [k for k, (n, _) in enumerate(case["inputs"]) if n in names]
        self.upstream = [_tensor(v, "float") for v in case["upstream"].values()]
        probes = case.get("probes", {})
        self.probes = [
            _tensor(probes[n], "float") if probes else tf.ones_like(x)
            for n, x in zip(names, self.floats, strict=True)
        ]

    def double(self) -> None:
        """Everything in float64."""

        def wide(x: Any) -> Any:
            return tf.cast(x, tf.float64) if x.dtype.is_floating else x

        self.inputs = list(map(wide, self.inputs))
        self.upstream = list(map(wide, self.upstream))

    @property
    def floats(self) -> list[Any]:
        return [self.inputs[k] for k in self.places]

    def outputs(self, *floats: Any) -> list[Any]:
        """The outputs that take an upstream gradient."""
        given = list(self.inputs)
        for place, x in zip(self.places, floats, strict=True):
            given[place] = x
        made = self.rule(*given, **self.case["statics"])
        made = made if isinstance(made, (tuple, list)) else (made,)
        kinds = (kind for _, kind in self.case["outputs"])
        return [y for y, kind in zip(made, kinds, strict=True) if kind == "float"]

    def total(self, *floats: Any) -> Any:
        """Upstream gradients times outputs."""
        pairs = zip(self.outputs(*floats), self.upstream, strict=True)
        return tf.add_n([tf.reduce_sum(y * tf.cast(u, y.dtype)) for y, u in pairs])

    def moved(self) -> Any:
        """The gradients at another point and with other statics."""
        here = copy.copy(self)
        here.case = elsewhere(self.case)
        return here.first([x / 2 for x in self.floats])

    def gradient(self, function: Callable[..., Any], floats: Any) -> Any:
        """The gradients of a function of the floating inputs."""
        floats = list(floats)
        with tf.GradientTape() as recorded:
            recorded.watch(floats)
            made = function(*floats)
        return recorded.gradient(made, floats, unconnected_gradients="zero")

    def first(self, floats: Any) -> Any:
        """The gradients of the total."""
        return self.gradient(self.total, floats)

    def probed(self, gradients: Any) -> Any:
        """Probes times gradients."""
        pairs = zip(gradients, self.probes, strict=True)
        return tf.add_n([tf.reduce_sum(g * p) for g, p in pairs])

    def listed(self, gradients: Any) -> list[Any]:
        """[shape, values] of each gradient."""
        arrays = [tf.cast(tf.convert_to_tensor(g), tf.float64) for g in gradients]
        return [
            [a.shape.as_list(), tf.reshape(a, [-1]).numpy().tolist()] for a in arrays
        ]

    def unit(self, place: int, k: int) -> Any:
        """1 at one element of an input."""
        x = self.floats[place]
        return tf.reshape(tf.one_hot(k, int(tf.size(x)), dtype=x.dtype), x.shape)

    def contracted(self, matrices: Any) -> list[Any]:
        """Probes times second derivatives: one row of blocks for each gradient."""
        found = []
        for by, x in enumerate(self.floats):
            parts = [
                tf.tensordot(p, matrices[k][by], p.shape.rank)
                for k, p in enumerate(self.probes)
            ]
            found.append(tf.reshape(tf.add_n(parts), x.shape))
        return self.listed(found)

    def along(self, push: Callable[[list[Any]], Any]) -> list[Any]:
        """Gradients from tangents, one element at a time."""
        found = []
        for place, x in enumerate(self.floats):
            size = int(tf.size(x))
            slopes = []
            for k in range(size):
                tangents = [tf.zeros_like(v) for v in self.floats]
                tangents[place] = self.unit(place, k)
                slopes.append(float(push(tangents)))
            found.append(tf.reshape(tf.constant(slopes), x.shape))
        return self.listed(found)


def _tensor(value: Any, kind: str) -> Any:
    shape, flat = value
    tensor = tf.reshape(tf.constant(flat, tf.float64, [len(flat)]), shape)
    return tf.cast(tensor, _DTYPES.get(kind, tf.float32))
