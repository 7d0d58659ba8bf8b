"""Conformance of NumPy modules."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
from conforming import (
    Register,
    elsewhere,
    emptied,
    imported,
    imported_as,
    main,
    require,
)
from setting_numpy import Setting, tuple_of

feature = Register()


def _push(s: Setting, tangents: Sequence[Any]) -> Any:
    moved = (t for t in tuple_of(s.jvp(tangents)[1]) if t is not None)
    return sum(map(s.dot, moved, s.upstream))


feature |= {
    "values": lambda s: s.outputs(*s.floats),
    "f_vjp, values": lambda s: s.floating(s.vjp()[0]),
    "f_jvp, values": lambda s: s.floating(s.jvp(list(map(np.ones_like, s.floats)))[0]),
    "f_jvp": lambda s: s.along(lambda tangents: _push(s, tangents)),
}


@feature("f_vjp")
def pulled(s: Setting) -> Any:
    found = tuple_of(s.vjp()[1](*s.upstream))
    kinds = [None if g is None else g.dtype for g in found]
    wanted = [x.dtype if k in s.places else None for k, x in enumerate(s.inputs)]
    require(kinds == wanted, f"gradients of the types {kinds}")
    return s.among_floats(found)


@feature("pullback twice")
def pulled_twice(s: Setting) -> Any:
    """Two calls of one pullback leave arguments and cotangents unchanged."""
    before = [x.copy() for x in (*s.inputs, *s.upstream)]
    _, pullback = s.vjp()
    pullback(*s.upstream)
    found = s.among_floats(tuple_of(pullback(*s.upstream)))
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
    return s.among_floats(tuple_of(pullback(*s.upstream)))


@feature("keyword call")
def keyword_call(s: Setting) -> Any:
    names = [name for name, _ in s.case["inputs"]]
    s.statics = {**s.statics, **dict(zip(names, s.inputs, strict=True))}
    _, pullback = s.function("_vjp")(**s.statics)
    return s.among_floats(tuple_of(pullback(*s.upstream)))


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
    found = tuple_of(pullback(*map(np.ones_like, s.floating(outputs))))
    shapes = [g.shape for g in s.among_floats(found)]
    require(shapes == [x.shape for x in s.floats], f"shapes {shapes}")


@feature("pickle")
def pickled(s: Setting) -> Any:
    function = pickle.loads(pickle.dumps(s.function("_vjp")))
    _, pullback = function(*s.inputs, **s.statics)
    return s.among_floats(tuple_of(pullback(*s.upstream)))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(feature, Setting, imported)
