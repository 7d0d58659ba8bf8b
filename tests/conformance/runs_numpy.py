"""Features of the runtime for NumPy."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from more import other_statics

from gradspec.driver.emitted import import_file
from gradspec.measure.frameworks.on_numpy import Setting, feature
from gradspec.measure.frameworks.setting import do_job


def _between(s: Any) -> Any:
    """Nothing may stay of a call but what its own pullback has."""
    s.module = import_file(s.path, "unused_")
    moved = [x / 2 if x.dtype.kind == "f" else x for x in s.inputs]

    def other() -> None:
        statics = other_statics(s).case["statics"]
        with np.errstate(all="ignore"):
            s.function("_vjp")(*moved, **statics)[1](*s.upstream)

    other()
    _, pullback = s.vjp()
    other()
    return s.pulled(pullback)


def _by_keyword(s: Any) -> Any:
    names = [name for name, _ in s.case["inputs"]]
    given = dict(zip(names, s.inputs, strict=True))
    return s.pulled(s.function("_vjp")(**given, **s.statics)[1])


def _pickled(s: Any) -> Any:
    function = pickle.loads(pickle.dumps(s.function("_vjp")))
    return s.pulled(function(*s.inputs, **s.statics)[1])


feature |= {
    "other calls between": _between,
    "keyword call": _by_keyword,
    "pickle": _pickled,
}

if __name__ == "__main__":
    np.seterr(all="ignore")
    do_job(Setting, feature)
