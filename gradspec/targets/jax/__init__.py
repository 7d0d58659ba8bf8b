"""JAX modules: per rule a plain function over a `custom_jvp` or `custom_vjp`."""

from gradspec.targets.jax.dialect import MODULES, OPERATORS
from gradspec.targets.jax.rule import definitions

__all__ = ["MODULES", "OPERATORS", "definitions"]
