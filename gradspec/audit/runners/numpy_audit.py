"""Audit of NumPy modules, beside SciPy's functions and the formulas as written.

NumPy does not differentiate, so only values are set beside those of others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from auditing import Arrays, Audit, Case, Library, main, measured
from scipy import special
from setting_numpy import Setting, tuple_of

_INVERSES = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")

LIBRARY = Library(
    (np, special),
    {f"a{name}": getattr(np, f"arc{name}") for name in _INVERSES}
    | {
        "stop": lambda x: x,
        "sigmoid": special.expit,
        "logsigmoid": special.log_expit,
        "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
        "lgamma": special.gammaln,
        "sinc": lambda x: np.sinc(x / np.pi),
        "i0": special.i0,
    },
    {
        "huber": lambda x, t, delta: special.huber(delta, x - t),
        "pseudo_huber": lambda x, t, delta: special.pseudo_huber(delta, x - t),
        "sinc": np.sinc,
        "trigamma": lambda x: special.polygamma(1, x),
        "entropy": special.entr,
        "relative_entropy": special.rel_entr,
    },
)


class NumpyAudit(Audit):
    """See `auditing.Audit`."""

    library = LIBRARY
    setting = Setting

    def emitted(self, s: Any, case: Case) -> Arrays:
        values, pullback = s.vjp()
        outputs = dict(zip(_floating(case["outputs"]), s.floating(values), strict=True))
        found = {f"0:{name}:": value for name, value in outputs.items()}
        for name in outputs if case["order"] else ():
            upstream = zip(outputs.items(), self.ones(s), strict=True)
            seeds = (np.full_like(o, w * (n == name)) for (n, o), w in upstream)
            gradients = s.among_floats(tuple_of(pullback(*seeds)))
            variables = _floating(case["inputs"])
            for variable, gradient, x in zip(
                variables, gradients, s.floats, strict=True
            ):
                found[f"1:{name}:{variable}"] = np.broadcast_to(gradient, x.shape)
        return found

    def own(self, s: Any, case: Case) -> Arrays:
        return measured(s, {**case, "order": 0}, s.floats, None)


def _floating(variables: list[list[str]]) -> list[str]:
    return [name for name, kind in variables if kind == "float"]


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(NumpyAudit())
