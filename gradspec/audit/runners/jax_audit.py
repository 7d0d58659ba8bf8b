"""Audit of JAX modules, beside JAX's own functions and its differentiation.

Float64 is off, as JAX comes, unless what is measured is float64 (or JAX_ENABLE_X64 is
set). Points are filled up to a power of two: JAX compiles each operation anew for every
shape.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from auditing import Arrays, Case, Function, floats, main, outputs

special = jax.scipy.special
nn = jax.nn

ALWAYS_WIDE = bool(jax.config.read("jax_enable_x64"))

OPERATIONS: Mapping[str, Function] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "mod": jnp.mod,
    "pow": jnp.power,
    "neg": lambda x: -x,
    "stop": jax.lax.stop_gradient,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": jnp.logical_and,
    "or": jnp.logical_or,
    "not": jnp.logical_not,
    "select": jnp.where,
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "exp2": jnp.exp2,
    "log": jnp.log,
    "log1p": jnp.log1p,
    "log2": jnp.log2,
    "log10": jnp.log10,
    "sigmoid": nn.sigmoid,
    "logsigmoid": nn.log_sigmoid,
    "softplus": nn.softplus,
    "logaddexp": jnp.logaddexp,
    "logit": special.logit,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
    "square": jnp.square,
    "reciprocal": jnp.reciprocal,
    "sqrt": jnp.sqrt,
    "rsqrt": jax.lax.rsqrt,
    "cbrt": jnp.cbrt,
    "hypot": jnp.hypot,
    "abs": jnp.abs,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "clip": lambda x, low, high: jnp.minimum(jnp.maximum(x, low), high),
    "relu": nn.relu,
    "sign": jnp.sign,
    "heaviside": jnp.heaviside,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jnp.round,
    "trunc": jnp.trunc,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "sinc": lambda x: jnp.sinc(x / np.pi),
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atan": jnp.arctan,
    "atan2": jnp.arctan2,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "tanh": jnp.tanh,
    "asinh": jnp.arcsinh,
    "acosh": jnp.arccosh,
    "atanh": jnp.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
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
    "relu": nn.relu,
    "relu6": nn.relu6,
    "leaky_relu": lambda x, slope: nn.leaky_relu(x, slope),
    "elu": lambda x, alpha: nn.elu(x, alpha),
    "selu": nn.selu,
    "celu": lambda x, alpha: nn.celu(x, alpha),
    "sigmoid": nn.sigmoid,
    "tanh": jnp.tanh,
    "softsign": nn.soft_sign,
    "hardsigmoid": nn.hard_sigmoid,
    "hardtanh": lambda x, low, high: nn.hard_tanh(x),
    "logsigmoid": nn.log_sigmoid,
    "softplus": lambda x, beta: nn.softplus(x),
    "log1pexp": nn.softplus,
    "silu": nn.silu,
    "mish": nn.mish,
    "gelu": lambda x: nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: nn.gelu(x, approximate=True),
    "hardswish": nn.hard_swish,
    "squareplus": lambda x, b: nn.squareplus(x, b),
    "i0": special.i0,
    "i1": special.i1,
    "i0e": special.i0e,
    "i1e": special.i1e,
    "sinc": jnp.sinc,
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atan": jnp.arctan,
    "asinh": jnp.arcsinh,
    "acosh": jnp.arccosh,
    "atanh": jnp.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "gamma": special.gamma,
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "trigamma": lambda x: special.polygamma(1, x),
    "ndtr": special.ndtr,
    "log_ndtr": special.log_ndtr,
    "ndtri": special.ndtri,
    "expm1": jnp.expm1,
    "log1p": jnp.log1p,
    "hypot": jnp.hypot,
    "atan2": jnp.arctan2,
    "entropy": special.entr,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
    "relative_entropy": special.rel_entr,
    "logaddexp": jnp.logaddexp,
    "logit": special.logit,
}

_YOUNG = {"log1mexp": (nn, "log1mexp"), "erfcx": (special, "erfcx")}
"""Functions that not every version of JAX has."""

NATIVES = {**NATIVES} | {
    rule: getattr(place, name)
    for rule, (place, name) in _YOUNG.items()
    if hasattr(place, name)
}


class JaxAdapter:
    """See `auditing.Adapter`."""

    operations = OPERATIONS
    natives = NATIVES

    def emitted(self, module: ModuleType, case: Case, columns: list[Any]) -> Arrays:
        return self.own(getattr(module, case["rule"]), case, columns)

    def compiled(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        """Under `jit`, outputs and gradients in one: XLA adds constants up, for
        instance."""
        return self._run(function, case, columns, jax.jit)

    def own(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        """Values and derivatives, each operation by itself."""
        return self._run(function, case, columns, lambda run: run)

    def _run(
        self, function: Function, case: Case, columns: list[Any], compiler: Function
    ) -> Arrays:
        jax.config.update("jax_enable_x64", ALWAYS_WIDE or case["dtype"] == "float64")
        count = np.size(columns[0])
        inputs = [
            _array(_filled(column), kind, case["dtype"])
            for column, (_, kind) in zip(columns, case["inputs"], strict=True)
        ]

        def values(*leaves: Any) -> dict[str, Any]:
            given = list(inputs)
            for place, leaf in zip(floats(case), leaves, strict=True):
                given[place] = leaf
            return dict(outputs(case, function(*given, **case["statics"])))

        run = compiler(lambda *leaves: _measured(case, values, list(leaves)))
        found = run(*[inputs[k] for k in floats(case)])
        wide = {
            key: np.asarray(value).astype(np.float64) for key, value in found.items()
        }
        return {key: v[:count] if v.ndim else v for key, v in wide.items()}

    def constant(self, value: float, case: Case) -> Any:
        return jnp.asarray(value, case["dtype"])


def _measured(case: Case, values: Function, leaves: list[Any]) -> dict[str, Any]:
    if case["order"] == 0 or not case["differentiable"]:
        return {f"0:{name}:": value for name, value in values(*leaves).items()}
    result, *_ = jax.vjp(values, *leaves)
    found = {f"0:{name}:": value for name, value in result.items()}
    for name in result:
        for place, first in enumerate(_slopes(values, leaves, name)):
            variable = case["inputs"][floats(case)[place]][0]
            found[f"1:{name}:{variable}"] = first
            if case["order"] >= 2:
                second = _second(values, leaves, name, place)
                found[f"2:{name}:{variable}"] = second
    return found


def _slopes(values: Function, leaves: list[Any], name: str) -> tuple[Any, ...]:
    """The gradients of one output, as `jax.grad` of a loss that uses it alone has them:
    what is handed to the other outputs is no array of zeros, but nothing."""
    one, pullback = jax.vjp(lambda *leaves: values(*leaves)[name], *leaves)
    found: tuple[Any, ...] = pullback(jnp.ones_like(one))
    return found


def _second(values: Function, leaves: list[Any], name: str, place: int) -> Any:
    def slope(*leaves: Any) -> Any:
        return _slopes(values, list(leaves), name)[place]

    first, pullback = jax.vjp(slope, *leaves)
    return pullback(jnp.ones_like(first))[place]


def _filled(column: Any) -> Any:
    """The column with its last number repeated up to a power of two."""
    column = np.asarray(column)
    if column.ndim == 0:
        return column
    size = max(64, 1 << (len(column) - 1).bit_length())
    return np.pad(column, (0, size - len(column)), mode="edge")


def _array(column: Any, kind: str, dtype: str) -> Any:
    wanted = {"int": "int32", "bool": "bool"}.get(kind) or jnp.dtype(dtype)
    return jnp.asarray(column.astype(wanted))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(JaxAdapter())
