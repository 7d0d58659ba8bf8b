"""The last operation of a function straight into the array that its caller gave: a block of a
large result then goes through memory once, where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr, Name, Op
from gradspec.plan.ranked import Softmax
from gradspec.primitives.row import Helper
from gradspec.primitives.table_known import LOGISTIC_SHARE
from gradspec.targets.lines import Lines, assignment
from gradspec.targets.numpy_fused import stepped
from gradspec.targets.numpy_outputs import reach
from gradspec.targets.numpy_places import placed
from gradspec.targets.python import Scope, is_scalar, render

if TYPE_CHECKING:
    from gradspec.plan.plan import Block
    from gradspec.targets.numpy_parts import Functions

_WORDS = {
    "add": "np.add",
    "sub": "np.subtract",
    "mul": "np.multiply",
    "div": "np.divide",
    LOGISTIC_SHARE: "_logistic_share",
    "logaddexp": "_logaddexp",
}


def with_direct_output(functions: Functions, block: Block) -> Lines | None:
    """The statements of the forward pass, the last of which fills ``out``; None where it is
    no operation of two arrays, or not in the type of the result.
    """
    plan, scope = functions.plan, functions.scope
    if functions.is_traced or plan.is_wide_forward or not block.statements:
        return None
    *before, last = block.statements
    output = plan.outputs[0]
    known = reach(functions, output)
    if len(plan.outputs) > 1 or output.kind is not Kind.FLOAT or not known:
        return None
    (like,) = (i for i in plan.tensors if i.name == known[0])
    if like.shape != output.shape or known[0] not in functions.floats:
        return None
    if block.results != (Name(output.name),) or last.name != output.name:
        return None
    text = _filling(last.value, scope, f"_direct(out, {like.name})")
    if text is None:
        return None
    ahead = placed(functions, before, [last.value])
    return [*ahead, *assignment(last.name, text, last.comment)]


def _filling(value: Expr, scope: Scope, place: str) -> str | None:
    """The text of a value that fills ``place``, if its function can."""
    match value:
        case Op(primitive=name, args=(one, other)) if name in _WORDS and not is_scalar(
            value, scope
        ):
            call = f"{render(one, scope)}, {render(other, scope)}"
            return f"{_WORDS[name]}({call}, out={place})"
        case Op("ceil") if (x := stepped(value)) is not None:
            return f"_step({render(x, scope)}, out={place})"
        case Softmax():
            return f"{render(value, scope).removesuffix(')')}, out={place})"
        case _:
            return None


DIRECT = Helper(
    "_direct",
    '''\
def _direct(out: np.ndarray | None, x: np.ndarray) -> np.ndarray | None:
    """``out``, if an operation of arrays like ``x`` can have it for its result."""
    if out is None or type(out) is not np.ndarray or out.dtype is not x.dtype:
        return None
    return out if out.shape == x.shape else None
''',
)
