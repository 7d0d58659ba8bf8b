"""Conformance of NumPy modules."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from conforming import (
    Case,
    Register,
    elsewhere,
    emptied,
    imported,
    imported_as,
    main,
    require,
)
from conforming_setting import Setting as Shared

feature = Register()


class Setting(Shared):
    """A rule at one point, and its derivatives."""

    def __init__(self, module: ModuleType, case: Case) -> None:
        super().__init__(module, case)
        self.module, self.statics = module, case["statics"]

    def tensor(self, value: Any, kind: str) -> Any:
        shape, flat = value
        dtype = {"int": np.int64, "bool": np.bool_}.get(kind, np.float32)
        return np.asarray(flat, np.float64).reshape(shape).astype(dtype)

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        array = np.asarray(x, np.float64)
        return list(array.shape), array.ravel().tolist()

    def widened(self, x: Any) -> Any:
        return x.astype(float) if x.dtype == np.float32 else x

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
        return self.among_floats(_tuple(self.vjp()[1](*self.upstream)))

    def jvp(self, tangents: Sequence[Any]) -> Any:
        moved = self.among([None] * len(self.inputs), tangents)
        return self.function("_jvp")(tuple(self.inputs), tuple(moved), **self.statics)

    def floating(self, outputs: Any) -> list[Any]:
        """The outputs that take a cotangent."""
        kinds = [kind for _, kind in self.case["outputs"]]
        pairs = zip(_tuple(outputs), kinds, strict=True)
        return [y for y, kind in pairs if kind == "float"]


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _push(s: Setting, tangents: Sequence[Any]) -> Any:
    moved = (t for t in _tuple(s.jvp(tangents)[1]) if t is not None)
    return sum(map(s.dot, moved, s.upstream))


feature |= {
    "values": lambda s: s.outputs(*s.floats),
    "f_vjp, values": lambda s: s.floating(s.vjp()[0]),
    "f_jvp, values": lambda s: s.floating(s.jvp(list(map(np.ones_like, s.floats)))[0]),
    "f_jvp": lambda s: s.along(lambda tangents: _push(s, tangents)),
}


@feature("f_vjp")
def pulled(s: Setting) -> Any:
    found = _tuple(s.vjp()[1](*s.upstream))
    kinds = [None if g is None else g.dtype for g in found]
    wanted = [x.dtype if x.dtype.kind == "f" else None for x in s.inputs]
    require(kinds == wanted, f"gradients of the types {kinds}")
    return s.among_floats(found)


@feature("pullback twice")
def pulled_twice(s: Setting) -> Any:
    """Two calls of one pullback leave arguments and cotangents unchanged."""
    before = [x.copy() for x in (*s.inputs, *s.upstream)]
    _, pullback = s.vjp()
    pullback(*s.upstream)
    found = s.among_floats(_tuple(pullback(*s.upstream)))
    same = all(map(np.array_equal, before, (*s.inputs, *s.upstream)))
    require(same, "an argument or a cotangent was changed in place")
    return found


@feature("other calls between")
def calls_between(s: Setting) -> Any:
    """Nothing may stay of a call but what its own pullback has."""
    s.module = imported_as("unused_", s.path)
    statics = elsewhere(s.case)["statics"]
    moved = [x / 2 if x.dtype.kind == "f" else x for x in s.inputs]

    def other() -> None:
        with np.errstate(all="ignore"):
            s.function("_vjp")(*moved, **statics)[1](*s.upstream)

    other()
    _, pullback = s.vjp()
    other()
    return s.among_floats(_tuple(pullback(*s.upstream)))


@feature("keyword call")
def keyword_call(s: Setting) -> Any:
    names = [name for name, _ in s.case["inputs"]]
    s.statics = {**s.statics, **dict(zip(names, s.inputs, strict=True))}
    _, pullback = s.function("_vjp")(**s.statics)
    return s.among_floats(_tuple(pullback(*s.upstream)))


@feature("float64")
def float64(s: Setting) -> Any:
    s.double()
    found = s.pulled()
    require(all(g.dtype == np.float64 for g in found), "not float64")
    return found


@feature("non-contiguous inputs")
def strided(s: Setting) -> Any:
    s.inputs = [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in s.inputs]
    return s.pulled()


@feature("empty arrays")
def empty(s: Setting) -> None:
    s.inputs = emptied(s.case, s.inputs)
    outputs, pullback = s.vjp()
    found = _tuple(pullback(*map(np.ones_like, s.floating(outputs))))
    shapes = [g.shape for g in s.among_floats(found)]
    require(shapes == [x.shape for x in s.floats], f"shapes {shapes}")


@feature("pickle")
def pickled(s: Setting) -> Any:
    function = pickle.loads(pickle.dumps(s.function("_vjp")))
    _, pullback = function(*s.inputs, **s.statics)
    return s.among_floats(_tuple(pullback(*s.upstream)))


if __name__ == "__main__":
    main(feature, Setting, imported)
