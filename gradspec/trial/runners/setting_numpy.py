"""A rule at one point, and its derivatives, in NumPy's words."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from conforming import Case
from setting import Setting as Shared


class Setting(Shared):
    """A rule at one point, and its derivatives."""

    def __init__(self, module: ModuleType, case: Case, dtype: str = "float32") -> None:
        super().__init__(module, case, dtype)
        self.module, self.statics = module, case["statics"]

    def tensor(self, value: Any, kind: str) -> Any:
        shape, flat = value
        dtype = {"int": "int64", "bool": "bool"}.get(kind, self.dtype)
        return np.asarray(flat, np.float64).reshape(shape).astype(dtype)

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        array = np.asarray(x, np.float64)
        return list(array.shape), array.ravel().tolist()

    def dot(self, x: Any, y: Any) -> Any:
        return np.sum(x * y)

    def units(self, x: Any) -> Sequence[Any]:
        return [u.reshape(x.shape) for u in np.eye(x.size, dtype=x.dtype)]

    def function(self, suffix: str) -> Any:
        return getattr(self.module, self.case["rule"] + suffix)

    def among_floats(self, found: Sequence[Any]) -> list[Any]:
        """Of one for each input, those of the floating ones."""
        return [found[k] for k in self.places]

    def vjp(self, *inputs: Any) -> Any:
        return self.function("_vjp")(*(inputs or self.inputs), **self.statics)

    def pulled(self) -> list[Any]:
        """The gradients."""
        return self.among_floats(tuple_of(self.vjp()[1](*self.upstream)))

    def jvp(self, tangents: Sequence[Any]) -> Any:
        moved = self.among([None] * len(self.inputs), tangents)
        return self.function("_jvp")(tuple(self.inputs), tuple(moved), **self.statics)

    def floating(self, outputs: Any) -> list[Any]:
        """The outputs that take a cotangent."""
        kinds = [kind for _, kind in self.case["outputs"]]
        pairs = zip(tuple_of(outputs), kinds, strict=True)
        return [y for y, kind in pairs if kind == "float"]


def tuple_of(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
