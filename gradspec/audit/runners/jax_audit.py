"""Audit of JAX modules, beside JAX's own functions and its differentiation.

Float64 is off, as JAX comes, unless what is measured is float64 (or JAX_ENABLE_X64 is
set). Points are filled up to a power of two: JAX compiles each operation anew for every
shape.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from auditing import Arrays, Audit, Case, Library, main, measured
from setting_jax import Setting

special = jax.scipy.special
nn = jax.nn

ALWAYS_WIDE = bool(jax.config.read("jax_enable_x64"))

LIBRARY = Library(
    (jnp, special, nn, jax.lax),
    {
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


class JaxAudit(Audit):
    """See `auditing.Audit`."""

    library = LIBRARY
    setting = Setting

    def columns(self, columns: list[Any], case: Case) -> list[Any]:
        """With the last number repeated up to a power of two."""
        jax.config.update("jax_enable_x64", ALWAYS_WIDE or case["dtype"] == "float64")
        if not case["batched"]:
            return columns
        count = len(columns[0])
        more = max(64, 1 << (count - 1).bit_length()) - count
        return [np.pad(column, (0, more), mode="edge") for column in columns]

    def compiled(self, s: Any, case: Case) -> Arrays:
        """Under `jit`, outputs and gradients in one: XLA adds constants up, for
        instance."""
        run = jax.jit(lambda *floats: measured(s, case, floats, self.ones(s)))
        found: Arrays = run(*s.floats)
        return found


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(JaxAudit())
