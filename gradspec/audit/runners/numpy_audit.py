"""Audit of NumPy modules, beside SciPy's functions and the formulas as written.

NumPy does not differentiate, so only values are set beside those of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from auditing import Arrays, Case, Function, floats, main, outputs
from scipy import special

OPERATIONS: Mapping[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.mod,
    "pow": np.power,
    "neg": np.negative,
    "stop": lambda x: x,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,
    "exp": np.exp,
    "expm1": np.expm1,
    "exp2": np.exp2,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sigmoid": special.expit,
    "logsigmoid": special.log_expit,
    "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "logaddexp": np.logaddexp,
    "logit": special.logit,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "hypot": np.hypot,
    "abs": np.abs,
    "max": np.maximum,
    "min": np.minimum,
    "clip": np.clip,
    "sign": np.sign,
    "heaviside": np.heaviside,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "trunc": np.trunc,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "erfcinv": special.erfcinv,
    "ndtr": special.ndtr,
    "ndtri": special.ndtri,
    "log_ndtr": special.log_ndtr,
    "lgamma": special.gammaln,
    "gamma": special.gamma,
    "digamma": special.digamma,
    "i0": special.i0,
    "i1": special.i1,
    "i0e": special.i0e,
    "i1e": special.i1e,
}

NATIVES: Mapping[str, Function] = {
    "sigmoid": special.expit,
    "tanh": np.tanh,
    "logsigmoid": special.log_expit,
    "huber": lambda x, t, delta: special.huber(delta, x - t),
    "pseudo_huber": lambda x, t, delta: special.pseudo_huber(delta, x - t),
    "i0": special.i0,
    "i1": special.i1,
    "i0e": special.i0e,
    "i1e": special.i1e,
    "sinc": np.sinc,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "erfcinv": special.erfcinv,
    "gamma": special.gamma,
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "trigamma": lambda x: special.polygamma(1, x),
    "ndtr": special.ndtr,
    "log_ndtr": special.log_ndtr,
    "ndtri": special.ndtri,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "hypot": np.hypot,
    "atan2": np.arctan2,
    "entropy": special.entr,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
    "relative_entropy": special.rel_entr,
    "logaddexp": np.logaddexp,
    "logit": special.logit,
}


class NumpyAdapter:
    """See `auditing.Adapter`."""

    operations = OPERATIONS
    natives = NATIVES

    def emitted(self, module: ModuleType, case: Case, columns: list[Any]) -> Arrays:
        inputs = _inputs(case, columns)
        value, pullback = getattr(module, f"{case['rule']}_vjp")(
            *inputs, **case["statics"]
        )
        values = outputs(case, value)
        found = {f"0:{name}:": np.float64(out) for name, out in values}
        for name, out in values if case["order"] >= 1 else ():
            seeds = [
                np.ones_like(o) if n == name else np.zeros_like(o) for n, o in values
            ]
            gradients = pullback(*seeds)
            listed = gradients if isinstance(gradients, tuple) else (gradients,)
            for place in floats(case):
                variable = case["inputs"][place][0]
                wide = np.broadcast_to(listed[place], np.shape(out))
                found[f"1:{name}:{variable}"] = np.float64(wide)
        return found

    def compiled(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        return {}

    def own(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        values = outputs(case, function(*_inputs(case, columns), **case["statics"]))
        return {f"0:{name}:": np.float64(value) for name, value in values}

    def constant(self, value: float, case: Case) -> Any:
        return np.dtype(case["dtype"]).type(value)


def _inputs(case: Case, columns: list[Any]) -> list[Any]:
    kinds = {"int": "int64", "bool": "bool"}
    return [
        np.asarray(column).astype(kinds.get(kind, case["dtype"]))
        for column, (_, kind) in zip(columns, case["inputs"], strict=True)
    ]


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(NumpyAdapter())
