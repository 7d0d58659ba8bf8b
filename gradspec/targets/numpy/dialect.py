"""NumPy spellings that the table of primitives does not contain."""

from __future__ import annotations

from gradspec.plan.plan import Assign, Step, positions
from gradspec.plan.program import Operators, Program
from gradspec.targets.expressions import Dialect, Scope
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
_UNTYPED = Dialect(
    target="numpy",
    where="np.where({c}, {x}, {y})",
    to_float="{x}.astype(np.float64)",
    lift="np.asarray({x})",
    ranked=ranked,
    imports=((NP, NUMPY),),
)


def scope_of(program: Program, page: Page) -> Scope:
    """The scope in which the rule's expressions are printed."""
    floats = program.floats
    blocks: list[tuple[Assign | Step, ...]] = [program.forward.statements]
    blocks.append(program.backward.statements)
    if program.pushforward:
        blocks.append(program.pushforward.statements)
    integers = program.integers
    return Scope(
        DIALECT if floats else _UNTYPED,
        page,
        program.numbers,
        integers,
        floats[0] if floats else "",
        frozenset().union(*(positions(block, integers) for block in blocks)),
    )
