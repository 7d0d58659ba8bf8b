"""A rule at one point, in JAX's words."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from setting import Setting as Shared


class Setting(Shared):
    """A rule at one point, in JAX's words."""

    @staticmethod
    def prepare_trial() -> None:
        jax.config.update("jax_enable_x64", True)

    def tensor(self, value: Any, kind: str) -> Any:
        shape, flat = value
        dtype = {"int": "int32", "bool": "bool"}.get(kind, self.dtype)
        array = np.asarray(flat, np.float64).reshape(shape)
        return jnp.asarray(array.astype(jnp.dtype(dtype)))

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        array = np.asarray(x, np.float64)
        return list(array.shape), array.ravel().tolist()

    def dot(self, x: Any, y: Any) -> Any:
        return jnp.sum(x * y)

    def stack(self, tensors: Sequence[Any], axis: int = 0) -> Any:
        return jnp.stack(tensors, axis)

    def dots(self, x: Any, matrix: Any) -> Any:
        return jnp.tensordot(x, matrix, x.ndim)

    def units(self, x: Any) -> Sequence[Any]:
        return [row.reshape(x.shape) for row in jnp.eye(x.size)]

    def gradient(self, function: Callable[..., Any], floats: Sequence[Any]) -> Any:
        return jax.grad(function, self.every)(*floats)

    def grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The gradients as a function."""
        return lambda *floats: self.gradient(function, floats)

    def of(self, function: Callable[..., Any]) -> Any:
        """The gradients of a function here."""
        return self.gradient(function, self.floats)

    def probing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The gradients of a function, times the probes."""
        return lambda *floats: self.probed(self.gradient(function, floats))

    def each_repeated(self, gradients: Any, count: int) -> list[Any]:
        """Gradients with one input in turn repeated along a new first axis: the mean
        over the inputs. All that is beyond the first place adds nothing.
        """
        found = []
        for place, x in enumerate(self.floats):
            given = list(self.floats)
            given[place] = jnp.stack([x] * count)
            parts = list(gradients(place, tuple(given)))
            parts[place] = parts[place].sum(0)
            found.append(parts)
        return [sum(parts) / len(found) for parts in zip(*found, strict=True)]
