"""A rule at one point, for the features of JAX."""

from __future__ import annotations

import copy
import os
from types import ModuleType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
import numpy as np
from conforming import Case, Register, elsewhere

feature = Register()
"""All features of JAX, over several files."""

DEVICES = 8


class Setting:
    """A rule at one point: a number made of its outputs, as a function of its floating
    inputs.
    """

    def __init__(self, module: ModuleType, case: Case) -> None:
        self.rule, self.case = getattr(module, case["rule"]), case
        self.path = module.__file__
        self.kinds = [kind for _, kind in case["inputs"]]
        self.inputs = [
            _array(case["given"][name], kind) for name, kind in case["inputs"]
        ]
        self.places = [k for k, kind in enumerate(self.kinds) if kind == "float"]
        self.floats = tuple(self.inputs[k] for k in self.places)
        self.upstream = [_array(value, "float") for value in case["upstream"].values()]
        probes = case.get("probes", {})
        self.probes = [
            _array(probes[name], "float") if probes else jnp.ones_like(x)
            for name, x in zip(
                (n for n, kind in case["inputs"] if kind == "float"),
                self.floats,
                strict=True,
            )
        ]

    def outputs(self, *floats: Any) -> list[Any]:
        """The outputs that take an upstream gradient."""
        given = list(self.inputs)
        for place, x in zip(self.places, floats, strict=True):
            given[place] = x
        made = self.rule(*given, **self.case["statics"])
        made = made if isinstance(made, tuple) else (made,)
        kinds = (kind for _, kind in self.case["outputs"])
        return [y for y, kind in zip(made, kinds, strict=True) if kind == "float"]

    def total(self, *floats: Any) -> Any:
        """Upstream gradients times outputs."""
        pairs = zip(self.outputs(*floats), self.upstream, strict=True)
        return sum(jnp.sum(y * u) for y, u in pairs)

    def moved(self) -> Any:
        """The gradients at another point and with other statics."""
        here = copy.copy(self)
        here.case = elsewhere(self.case)
        return here.first(*(x / 2 for x in self.floats))

    @property
    def every(self) -> tuple[int, ...]:
        return tuple(range(len(self.floats)))

    def double(self) -> None:
        """Everything in float64."""

        def wide(x: Any) -> Any:
            floating = jnp.issubdtype(x.dtype, jnp.floating)
            return x.astype(np.float64) if floating else x

        self.inputs = list(map(wide, self.inputs))
        self.floats = tuple(map(wide, self.floats))
        self.upstream = list(map(wide, self.upstream))

    def first(self, *floats: Any) -> Any:
        """The gradients of the total."""
        return jax.grad(self.total, self.every)(*floats)

    def probed(self, function: Any) -> Any:
        """The gradients of a function, times the probes."""

        def whole(*floats: Any) -> Any:
            gradients = jax.grad(function, self.every)(*floats)
            pairs = zip(gradients, self.probes, strict=True)
            return sum(jnp.sum(g * p) for g, p in pairs)

        return whole

    def stacked(self) -> list[Any]:
        """Two calls, of which the first counts."""
        return [jnp.stack([x, 2 * x]) for x in self.floats]

    def listed(self, gradients: Any) -> list[Any]:
        """[shape, values] of each gradient."""
        arrays = [np.asarray(g, np.float64) for g in gradients]
        return [[a.shape, a.ravel().tolist()] for a in arrays]

    def each_repeated(self, gradients: Any, count: int) -> list[Any]:
        """Gradients with one input in turn repeated along a new first axis: the mean over
        the inputs. All that is beyond the first place adds nothing.
        """
        found = []
        for place, x in enumerate(self.floats):
            given = list(self.floats)
            given[place] = jnp.stack([x] * count)
            parts = list(gradients(place, tuple(given)))
            parts[place] = parts[place].sum(0)
            found.append(parts)
        columns = zip(*found, strict=True)
        return self.listed([sum(parts) / len(found) for parts in columns])

    def contracted(self, matrices: Any) -> list[Any]:
        """Probes times second derivatives: one row of blocks for each gradient."""
        found = []
        for by, x in enumerate(self.floats):
            parts = [
                jnp.tensordot(p, matrices[k][by], p.ndim)
                for k, p in enumerate(self.probes)
            ]
            found.append(jnp.reshape(sum(parts), x.shape))
        return self.listed(found)

    def along(self, push: Any) -> list[Any]:
        """Gradients from tangents, one element at a time."""
        found = []
        for place, x in enumerate(self.floats):
            slopes = []
            for k in range(x.size):
                tangents = [jnp.zeros_like(v) for v in self.floats]
                tangents[place] = jnp.eye(x.size)[k].reshape(x.shape)
                slopes.append(push(tuple(tangents)))
            found.append(jnp.asarray(slopes).reshape(x.shape))
        return self.listed(found)


def _array(value: Any, kind: str) -> Any:
    shape, flat = value
    dtype = {"int": np.int32, "bool": np.bool_}.get(kind, np.float32)
    return jnp.asarray(np.asarray(flat, np.float64).reshape(shape).astype(dtype))
