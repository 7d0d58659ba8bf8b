"""Operations that every framework has as one function, found in what is planned.

One function makes one pass where its parts make four, and its own derivative is as
stable. A part that is needed by itself is computed anyway: then all is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

from gradspec.plan.array import Expr, Op, children, nodes, with_children
from gradspec.plan.ranked import Expand, LogSoftmax, Reduce, Softmax

_K = TypeVar("_K", bound=Hashable)


def with_natives(values: Mapping[_K, Expr], wanted: Collection[_K]) -> dict[_K, Expr]:
    """The values, softmax and its logarithm written as such; ``wanted`` are those that
    are needed for themselves.
    """
    uses = Counter(values[name] for name in wanted)
    for node in nodes(*values.values()):
        uses.update(children(node))
    done: dict[Expr, Expr] = {}
    for node in nodes(*values.values()):
        made = _native(node, uses) or node
        done[node] = with_children(made, tuple(done[part] for part in children(made)))
    return {name: done[value] for name, value in values.items()}


def _native(node: Expr, uses: Counter[Expr]) -> Expr | None:
    match node:
        case Op(primitive="div", args=(Op(primitive="exp") as top, below)):
            total = _along_row(("sum",), below)
            shifted = _shifted(("max", "peak"), top.args[0])
            if total is None or shifted is None or uses[top] != 2:
                return None
            is_row = total.arg == top and total.axes == shifted.axes
            return Softmax(shifted.arg, shifted.axes[0]) if is_row else None
        case Op(primitive="exp", args=(shift,)) if uses[shift] == 1:
            shifted = _shifted(("logsumexp",), shift)
            alone = shifted is not None and uses[shifted] == 1
            return Softmax(shifted.arg, shifted.axes[0]) if shifted and alone else None
        case Op(primitive="sub"):
            shifted = _shifted(("logsumexp",), node)
            alone = shifted is not None and uses[shifted] == 1
            found = shifted if alone else None
            return LogSoftmax(found.arg, found.axes[0]) if found else None
        case _:
            return None


def _shifted(ops: tuple[str, ...], value: Expr) -> Reduce | None:
    """``a`` less the reduction of ``a`` along one axis: that reduction."""
    match value:
        case Op(primitive="sub", args=(arg, below)):
            found = _along_row(ops, below)
            return found if found is not None and found.arg == arg else None
        case _:
            return None


def _along_row(ops: tuple[str, ...], value: Expr) -> Reduce | None:
    """A reduction along one axis, which is there with size 1."""
    match value:
        case Expand(arg=Reduce(keep=False) as reduced, axes=axes) if (
            axes == reduced.axes
        ):
            found = reduced
        case Reduce(keep=True):
            found = value
        case _:
            return None
    return found if found.op in ops and len(found.axes) == 1 else None
