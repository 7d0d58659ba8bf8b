"""JAX spellings that the table of primitives does not contain."""

from __future__ import annotations

from dataclasses import replace

from gradspec.plan.program import Operators, Program, Residuals
from gradspec.targets.expressions import Dialect, Scope
from gradspec.targets.expressions import scope_of as scoped
from gradspec.targets.jax.axes import ranked
from gradspec.targets.page import Page

OPERATORS = Operators(
    target="jax",
    reserved=frozenset(["jax", "jnp"]),
    residuals=Residuals.OUTPUTS,
    by_slope=True,
)


def _lifts(name: str, scalars: tuple[bool, ...]) -> tuple[bool, ...]:
    """Numbers in a choice by a number must be arrays if the other branch is one."""
    return scalars if name == "choice" else (False,) * len(scalars)


DIALECT = Dialect(
    target="jax",
    where="jnp.where({c}, {x}, {y})",
    to_float="{x}.astype({like}.dtype)",
    lift="jnp.asarray({x}, {like}.dtype)",
    lifts=_lifts,
    ranked=ranked,
)
_UNTYPED = replace(
    DIALECT,
    to_float="{x}.astype(jnp.result_type(0.0))",
    lift="jnp.asarray({x}, jnp.result_type(0.0))",
)


def scope_of(program: Program, page: Page) -> Scope:
    """The scope in which the rule's expressions are printed."""
    like = next(iter(program.floats), "")
    dialect = DIALECT if like else _UNTYPED
    return scoped(program, page, dialect, like or program.tensors[0].name)
