"""Large arrays in NumPy: which functions are evaluated a block at a time.

The formula stands once: a function that is given large arrays calls itself with slices of
them, and what lies between arguments and results stays in the cache. A block is so large
that NumPy computes `1.0 + t` in the memory of `t` where nobody else has it (from 256 KB).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradspec.plan.array import Expr, Op, nodes
from gradspec.plan.ranked import Expand, LogSoftmax, RankedNode, Reduce, Softmax
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Helper
from gradspec.targets.lines import Lines
from gradspec.targets.passes import WORTH_BLOCKS, passes
from gradspec.targets.signature import scalars

if TYPE_CHECKING:
    from gradspec.targets.numpy_parts import Functions


def value_in_blocks(functions: Functions) -> Lines:
    """The forward function's way out."""
    block = functions.value
    values = (*(s.value for s in block.statements), *block.results)
    plan = functions.plan
    if plan.is_ranked:
        return _by_rows(functions, values)
    return _way_out(functions, plan.name, "_in_blocks", (), values, ("out=out",))


def pullback_in_blocks(functions: Functions, name: str) -> Lines:
    """The way out of a pullback that stands by itself."""
    values = functions.pulled
    return _way_out(
        functions, name, "_pulled_in_blocks", functions.plan.upstream, values
    )


def vjp_in_blocks(functions: Functions) -> Lines:
    """The way out of a function that has its pullback inside."""
    return _way_out(functions, functions.vjp, "_vjp_in_blocks")


def _way_out(
    functions: Functions,
    name: str,
    helper: str,
    more: Iterable[str] = (),
    values: Iterable[Expr] | None = None,
    keywords: Iterable[str] = (),
) -> Lines:
    plan = functions.plan
    if plan.is_ranked or functions.is_traced or not functions.floats:
        return []
    if values is not None and not _are_worth(values, scalars(plan)):
        return []
    tensors = [i.name for i in plan.tensors]
    statics = [f"{i.name}={i.name}" for i in plan.statics]
    call = ", ".join([name, *tensors, *more, *statics, *keywords])
    return [f"if _are_large({', '.join(tensors)}):", f"    return {helper}({call})"]


def _by_rows(functions: Functions, values: tuple[Expr, ...]) -> Lines:
    """Rows are computed each by itself where nothing is contracted: the order of a
    contraction's sums is the library's.
    """
    plan = functions.plan
    if not has_rows(functions) or not keep_rows(values):
        return []
    first = plan.tensors[0]
    axes = len(first.shape.axes)
    statics = (f"{i.name}={i.name}" for i in plan.statics)
    given = ", ".join([*(i.name for i in plan.tensors), *statics, "out=out"])
    return [
        f"if _has_many_rows({first.name}, {axes}):",
        f"    return _in_rows({plan.name}, {axes}, {given})",
    ]


def has_rows(functions: Functions) -> bool:
    """Whether the first input has rows, and all outputs, but no other input."""
    plan = functions.plan
    if functions.is_traced or not plan.is_ranked or not plan.tensors:
        return False
    first, *others = plan.tensors
    return (
        first.shape.batch
        and not any(i.shape.batch for i in others)
        and all(o.shape.batch for o in plan.outputs)
    )


def keep_rows(values: Iterable[Expr]) -> bool:
    """Whether each row is computed by itself."""
    return all(isinstance(n, _ROWWISE) for n in nodes(*values) if _is_ranked(n))


_ROWWISE = (Reduce, Expand, Softmax, LogSoftmax)


def _is_ranked(node: Expr) -> bool:
    return isinstance(node, RankedNode)


def _are_worth(values: Iterable[Expr], scalars: frozenset[str]) -> bool:
    """Whether there are several passes; each function of ours has some."""
    values = tuple(values)
    ours = (
        isinstance(primitive(node.primitive).spellings.get("numpy"), Helper)
        for node in nodes(*values)
        if isinstance(node, Op)
    )
    return passes(values, scalars) >= WORTH_BLOCKS or any(ours)
