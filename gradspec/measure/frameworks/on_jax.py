"""Rules in JAX: derivatives, transformations, export."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

from gradspec.driver.emitted import import_file
from gradspec.measure.frameworks import setting
from gradspec.measure.frameworks.audit import Library
from gradspec.measure.frameworks.setting import Case, Register
from gradspec.measure.frameworks.shared import (
    PLAIN,
    in_format,
    one_output,
    rows,
    transforms,
    without_calls,
)

special, nn = jax.scipy.special, jax.nn
ALWAYS_WIDE = bool(jax.config.read("jax_enable_x64"))


class Setting(setting.Setting):
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

    @staticmethod
    def columns(columns: list[Any], case: Case) -> list[Any]:
        """With the last number repeated up to a power of two: JAX compiles each
        operation anew for every shape. Float64 is off, as JAX comes, unless what is
        measured is float64 (or JAX_ENABLE_X64 is set)."""
        jax.config.update("jax_enable_x64", ALWAYS_WIDE or case["dtype"] == "float64")
        if not case["batched"]:
            return columns
        count = len(columns[0])
        more = max(64, 1 << (count - 1).bit_length()) - count
        return [np.pad(column, (0, more), mode="edge") for column in columns]

    def compiled(self) -> Case:
        """Under `jit`, outputs and gradients in one: XLA adds constants up, for
        instance."""
        run = jax.jit(lambda *floats: self.quantities(floats))
        found: Case = run(*self.floats)
        return found

    @staticmethod
    def plain(path: str) -> ModuleType:
        """The core alone."""
        real = (jax.custom_jvp, jax.custom_vjp)
        jax.custom_jvp = jax.custom_vjp = _ruleless
        try:
            return import_file(path, PLAIN)
        finally:
            jax.custom_jvp, jax.custom_vjp = real

    @staticmethod
    def library() -> Library:
        return LIBRARY


def _ruleless(core: Any, **_: Any) -> Any:
    """In place of `jax.custom_jvp` and `jax.custom_vjp`: nothing is declared."""
    core.defjvp = core.defvjp = lambda *_, **__: None
    return core


LIBRARY = Library(
    (jnp, special, nn, jax.lax),
    {
        "polygamma": lambda n, x: special.polygamma(int(n), x),
        "logsigmoid": nn.log_sigmoid,
        "lgamma": special.gammaln,
        "sinc": lambda x: jnp.sinc(x / np.pi),
        "i0": special.i0,
    },
    {
        "leaky_relu": lambda x, slope: nn.leaky_relu(x, slope),
        "softsign": nn.soft_sign,
        "hardsigmoid": nn.hard_sigmoid,
        "hardtanh": lambda x, low, high: nn.hard_tanh(x),
        "softplus": lambda x, beta: nn.softplus(x),
        "log1pexp": nn.softplus,
        "gelu": lambda x: nn.gelu(x, approximate=False),
        "gelu_tanh": lambda x: nn.gelu(x, approximate=True),
        "hardswish": nn.hard_swish,
        "squareplus": lambda x, b: nn.squareplus(x, b),
        "sinc": jnp.sinc,
        "trigamma": lambda x: special.polygamma(1, x),
        "entropy": special.entr,
        "relative_entropy": special.rel_entr,
    },
)

# --- features --------------------------------------------------------------------------

feature = Register(transforms(jax))
feature |= {
    "values": lambda s: s.outputs(*s.floats),
    "vjp": lambda s: jax.vjp(s.tuple_of, *s.floats)[1](tuple(s.upstream)),
    "grad of grad": lambda s: s.second(),
    "grad of grad, compiled": lambda s: jax.jit(s.second)(*s.floats),
    "grad of grad of grad": lambda s: s.third(),
    "jvp of grad (hvp)": lambda s: s.along(
        lambda t: jax.jvp(s.probing(s.total), s.floats, t)[1]
    ),
    "one output at a time": one_output,
    "empty arrays": without_calls,
    "bfloat16": in_format("bfloat16"),
    "jit": lambda s: jax.jit(s.first)(*s.floats),
    "jacfwd, compiled": lambda s: jax.jit(jax.jacfwd(s.total, s.every))(*s.floats),
    "jit of hessian": lambda s: s.contracted(
        jax.jit(jax.hessian(s.total, s.every))(*s.floats)
    ),
}


@feature("float64")
def float64(s: Setting) -> Any:
    with jax.enable_x64(True):
        return [np.asarray(g) for g in in_format("float64")(s)]


@feature("debug_nans")
def debug_nans(s: Setting) -> Any:
    """No number on the way is NaN."""
    with jax.debug_nans(True):
        return s.first()


@feature("export, sizes unknown")
def export_symbolic(s: Setting) -> Any:
    """The first axis of a batch."""
    size, *marks = rows(s.case)
    (symbol,) = jax.export.symbolic_shape("rows") if size > 1 else (size,)

    def kinds(arrays: Any, have_rows: Any) -> list[Any]:
        return [
            jax.ShapeDtypeStruct((symbol, *x.shape[1:]) if has else x.shape, x.dtype)
            for x, has in zip(arrays, have_rows, strict=True)
        ]

    def gradients(inputs: Any, upstream: Any) -> Any:
        here = copy.copy(s)
        here.inputs, here.upstream = inputs, upstream
        return here.first()

    given = s.inputs, s.upstream
    exported = jax.export.export(jax.jit(gradients))(*map(kinds, given, marks))
    return jax.export.deserialize(exported.serialize()).call(*given)


if __name__ == "__main__":
    setting.do_job(Setting, feature)
