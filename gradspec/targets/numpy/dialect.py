"""NumPy spellings that the table of primitives does not contain."""

from __future__ import annotations

from dataclasses import replace

from gradspec.plan.program import Operators, Program
from gradspec.targets.expressions import Dialect, Scope
from gradspec.targets.expressions import scope_of as scoped
from gradspec.targets.numpy.axes import ranked
from gradspec.targets.page import Page

NP, NUMPY = "np.", "import numpy as np"

OPERATORS = Operators(
    target="numpy",
    reserved=frozenset(["np", "math"]),
)

DIALECT = Dialect(
    target="numpy",
    where="np.where({c}, {x}, {y})",
    to_float="{x}.astype({like}.dtype)",
    lift="np.asarray({x}, {like}.dtype)",
    ranked=ranked,
    imports=((NP, NUMPY),),
)
_UNTYPED = replace(DIALECT, to_float="{x}.astype(np.float64)", lift="np.asarray({x})")


def scope_of(program: Program, page: Page) -> Scope:
    """The scope in which the rule's expressions are printed."""
    like = next(iter(program.floats), "")
    return scoped(program, page, DIALECT if like else _UNTYPED, like)
