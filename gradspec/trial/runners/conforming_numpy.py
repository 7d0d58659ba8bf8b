"""Conformance of NumPy modules."""

from __future__ import annotations

import pickle
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

feature = Register()


class Setting:
    """A rule at one point, and its derivatives."""

    def __init__(self, module: ModuleType, case: Case) -> None:
        self.module, self.case = module, case
        self.inputs = [
            _array(case["given"][name], kind) for name, kind in case["inputs"]
        ]
        self.upstream = [_array(v, "float") for v in case["upstream"].values()]
        self.places = [
            k for k, (_, kind) in enumerate(case["inputs"]) if kind == "float"
        ]

    def function(self, suffix: str) -> Any:
        return getattr(self.module, self.case["rule"] + suffix)

    def listed(self, gradients: Any) -> list[Any]:
        found = [np.asarray(gradients[k], np.float64) for k in self.places]
        return [[g.shape, g.ravel().tolist()] for g in found]


def _array(value: Any, kind: str) -> Any:
    shape, flat = value
    dtype = {"int": np.int64, "bool": np.bool_}.get(kind, np.float32)
    return np.asarray(flat, np.float64).reshape(shape).astype(dtype)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@feature("values")
def values(s: Setting) -> Any:
    return _made(s, s.function("")(*s.inputs, **s.case["statics"]))


def _made(s: Setting, outputs: Any) -> Any:
    """The outputs that take an upstream gradient."""
    kinds = [kind for _, kind in s.case["outputs"]]
    pairs = zip(_tuple(outputs), kinds, strict=True)
    arrays = [np.asarray(y, np.float64) for y, kind in pairs if kind == "float"]
    return [[y.shape, y.ravel().tolist()] for y in arrays]


@feature("f_vjp, values")
def vjp_values(s: Setting) -> Any:
    return _made(s, s.function("_vjp")(*s.inputs, **s.case["statics"])[0])


@feature("f_jvp, values")
def jvp_values(s: Setting) -> Any:
    tangents = [np.ones_like(x) if x.dtype.kind == "f" else None for x in s.inputs]
    push = s.function("_jvp")
    return _made(s, push(tuple(s.inputs), tuple(tangents), **s.case["statics"])[0])


@feature("f_vjp")
def pulled(s: Setting) -> Any:
    _, pullback = s.function("_vjp")(*s.inputs, **s.case["statics"])
    found = _tuple(pullback(*s.upstream))
    kinds = [None if g is None else g.dtype for g in found]
    wanted = [x.dtype if x.dtype.kind == "f" else None for x in s.inputs]
    require(kinds == wanted, f"gradients of the types {kinds}")
    return s.listed(found)


@feature("pullback twice")
def pulled_twice(s: Setting) -> Any:
    """What is given stays as it is."""
    before = [x.copy() for x in (*s.inputs, *s.upstream)]
    _, pullback = s.function("_vjp")(*s.inputs, **s.case["statics"])
    pullback(*s.upstream)
    found = s.listed(_tuple(pullback(*s.upstream)))
    same = all(map(np.array_equal, before, (*s.inputs, *s.upstream)))
    require(same, "an argument or an upstream gradient was changed in place")
    return found


@feature("other calls between")
def calls_between(s: Setting) -> Any:
    """Nothing may stay of a call but what its own pullback has."""
    s.module = imported_as("unused_", s.module.__file__)
    statics = elsewhere(s.case)["statics"]
    moved = [x / 2 if x.dtype.kind == "f" else x for x in s.inputs]

    def other() -> None:
        with np.errstate(all="ignore"):
            s.function("_vjp")(*moved, **statics)[1](*s.upstream)

    other()
    _, pullback = s.function("_vjp")(*s.inputs, **s.case["statics"])
    other()
    return s.listed(_tuple(pullback(*s.upstream)))


@feature("f_jvp")
def pushed(s: Setting) -> Any:
    found: list[Any] = [None] * len(s.inputs)
    for place in s.places:
        x = s.inputs[place]
        slopes = [_slope(s, place, k) for k in range(x.size)]
        found[place] = np.reshape(slopes, x.shape)
    return s.listed(found)


def _slope(s: Setting, place: int, k: int) -> float:
    """Upstream gradients times the tangents that one element gives."""
    x = s.inputs[place]
    unit = (np.arange(x.size) == k).reshape(x.shape).astype(x.dtype)
    tangents = [unit if p == place else None for p in range(len(s.inputs))]
    _, made = s.function("_jvp")(tuple(s.inputs), tuple(tangents), **s.case["statics"])
    moved = (t for t in _tuple(made) if t is not None)
    pairs = zip(moved, s.upstream, strict=True)
    return float(sum(np.sum(t * u) for t, u in pairs))


@feature("keyword call")
def keyword_call(s: Setting) -> Any:
    names = [name for name, _ in s.case["inputs"]]
    given = dict(zip(names, s.inputs, strict=True))
    _, pullback = s.function("_vjp")(**given, **s.case["statics"])
    return s.listed(_tuple(pullback(*s.upstream)))


@feature("float64")
def float64(s: Setting) -> Any:
    s.inputs = [x.astype(float) if x.dtype == np.float32 else x for x in s.inputs]
    s.upstream = [u.astype(float) for u in s.upstream]
    _, pullback = s.function("_vjp")(*s.inputs, **s.case["statics"])
    found = _tuple(pullback(*s.upstream))
    require(all(found[k].dtype == np.float64 for k in s.places), "not float64")
    return s.listed(found)


@feature("non-contiguous inputs")
def strided(s: Setting) -> Any:
    s.inputs = [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in s.inputs]
    return pulled(s)


@feature("empty arrays")
def empty(s: Setting) -> None:
    inputs = emptied(s.case, s.inputs)
    outputs, pullback = s.function("_vjp")(*inputs, **s.case["statics"])
    kinds = [kind for _, kind in s.case["outputs"]]
    made = [y for y, k in zip(_tuple(outputs), kinds, strict=True) if k == "float"]
    found = _tuple(pullback(*map(np.ones_like, made)))
    shapes = [found[k].shape for k in s.places]
    require(shapes == [inputs[k].shape for k in s.places], f"shapes {shapes}")


@feature("pickle")
def pickled(s: Setting) -> Any:
    function = pickle.loads(pickle.dumps(s.function("_vjp")))
    _, pullback = function(*s.inputs, **s.case["statics"])
    return s.listed(_tuple(pullback(*s.upstream)))


if __name__ == "__main__":
    main(feature, Setting, imported)
