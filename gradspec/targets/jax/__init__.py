"""JAX modules: a plain function over a private `custom_jvp` or `custom_vjp` for each rule."""

from gradspec.targets.jax.dialect import OPERATORS
from gradspec.targets.jax.rule import definitions

__all__ = ["OPERATORS", "definitions"]
