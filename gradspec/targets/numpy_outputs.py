"""What the functions of a rule return: outputs and tangents, rounded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec.ir.rule import Kind, Output
from gradspec.plan.array import Expr, Name, Where, names, nodes
from gradspec.plan.beside import reach_of
from gradspec.plan.plan import Block
from gradspec.plan.ranked import (
    Diagonal,
    Expand,
    Permute,
    Pick,
    Spread,
    Window,
    Windows,
)
from gradspec.targets.lines import Lines, assignment
from gradspec.targets.numpy_fused import bounded
from gradspec.targets.python import is_scalar, render
from gradspec.targets.signature import scalars

if TYPE_CHECKING:
    from gradspec.targets.numpy_parts import Functions

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)


def bound_outputs(functions: Functions, block: Block) -> Lines:
    """Statements for the outputs that are no value of their own: a number takes the
    shape to which the inputs broadcast, another value is copied, so that what is
    returned is never the caller's array.
    """
    lines = []
    for output, value in zip(functions.plan.outputs, block.results, strict=False):
        if is_scalar(value, functions.scope):
            lines.append(f"{output.name} = {_filled(functions, output, value)}")
        elif value != Name(output.name):
            lines.append(f"{output.name} = {render(value, functions.scope)}.copy()")
        elif _is_view(functions, block, output):
            lines.append(f"{output.name} = {output.name}.copy()")
        elif not functions.plan.is_ranked and may_be_number(
            functions, _closed(functions, output)
        ):
            shape = _shape(_reach(functions, output))
            like = functions.scope.like
            dtype = f"{like}.dtype" if like else "np.float64"
            spread = f"np.broadcast_to({output.name}, {shape})"
            lines.append(f"{output.name} = np.array({spread}, {dtype})")
    return lines


def _is_view(functions: Functions, block: Block, output: Output) -> bool:
    """Whether an output may share the memory of an array that it is made of."""
    made = {step.name: step.value for step in block.statements}
    if viewed(made.get(output.name, Name(output.name))) not in (None, output.name):
        return True
    return functions.plan.is_ranked and viewed(_closed(functions, output)) is not None


def viewed(value: Expr) -> str | None:
    """The name of the array whose memory the value may share, if it computes nothing."""
    views = Expand | Permute | Spread | Diagonal | Window | Windows | Pick
    while True:
        if (below := bounded(value)) is not None:
            value = below
        elif isinstance(value, views):
            value = value.arg
        else:
            return value.id if isinstance(value, Name) else None


def outputs_text(functions: Functions) -> str:
    """The outputs, to return."""
    plan = functions.plan
    if len(plan.outputs) > 1 and all(o.kind in _FLOATS for o in plan.outputs):
        return _rounded(functions, [output.name for output in plan.outputs])
    return ", ".join(_output(functions, output) for output in plan.outputs)


def grouped_outputs(functions: Functions) -> str:
    """The outputs as one value."""
    text = outputs_text(functions)
    is_call = text.startswith("_rounded(") or len(functions.plan.outputs) == 1
    return text if is_call else f"({text})"


def returning(functions: Functions) -> Lines:
    """The last lines of ``f``: the outputs, or the arrays for them, filled."""
    outputs = functions.plan.outputs
    lines = [
        line for o in outputs for line in assignment(o.name, _output(functions, o))
    ]
    names_ = ", ".join(output.name for output in outputs)
    results = names_ if len(outputs) == 1 else f"({names_})"
    return [*lines, f"return {results} if out is None else _into(out, {results})"]


def reach(functions: Functions, output: Output) -> tuple[str, ...]:
    """The inputs whose shapes an output has together, first one of its type; none where
    that is not known beforehand.
    """
    if may_be_number(functions, _closed(functions, output)):
        return ()
    names_ = _reach(functions, output)
    floats = [name for name in names_ if name in functions.floats]
    others = [name for name in names_ if name not in floats]
    return (*floats, *others) if floats else ()


def tangents_text(functions: Functions) -> str:
    """The tangents of the outputs, as one value."""
    assert functions.tangents is not None
    plan = functions.plan
    values = functions.tangents.results[len(plan.outputs) :]
    floats = [output for output in plan.outputs if output.takes_gradient]
    parts = [_tangent(functions, o, v) for o, v in zip(floats, values, strict=True)]
    if len(plan.outputs) == 1:
        return f"{parts[0]}.astype({_dtype(functions)}, copy=False)"
    return _rounded(functions, parts)


def _rounded(functions: Functions, parts: list[str]) -> str:
    return f"_rounded({', '.join([_dtype(functions), *parts])})"


def _output(functions: Functions, output: Output) -> str:
    match output.kind:
        case Kind.BOOL:
            return output.name
        case Kind.INT:
            return f"{output.name}.astype(np.int64, copy=False)"
        case _:
            return f"{output.name}.astype({_dtype(functions)}, copy=False)"


def _dtype(functions: Functions) -> str:
    return "dtype" if functions.floats else "np.float64"


def _filled(functions: Functions, output: Output, value: Expr) -> str:
    shapes = [f"{i.name}.shape" for i in functions.plan.tensors]
    shape = (
        f"np.broadcast_shapes({', '.join(shapes)})" if len(shapes) > 1 else shapes[0]
    )
    kinds = {Kind.INT: "np.int64", Kind.BOOL: "bool"}
    dtype = kinds.get(output.kind, _dtype(functions))
    return f"np.full({shape}, {render(value, functions.scope)}, {dtype})"


def _tangent(functions: Functions, output: Output, value: Expr) -> str:
    """A tangent has the shape of its output, also where some input has no part in it."""
    text = render(value, functions.scope)
    if not _has_shape(functions, output):
        return f"_shaped({text}, {output.name}).copy()"
    is_view = functions.plan.is_ranked and viewed(_moved(functions, output)) is not None
    return text if text == f"{output.name}_dot" and not is_view else f"{text}.copy()"


def _has_shape(functions: Functions, output: Output) -> bool:
    tangent = _moved(functions, output)
    moved = {name.removesuffix("_dot") for name in names(tangent)}
    reach = set(_reach(functions, output))
    return bool(moved) and moved >= reach and not may_be_number(functions, tangent)


def _moved(functions: Functions, output: Output) -> Expr:
    assert functions.plan.tangents is not None
    return functions.plan.tangents[functions.plan.outputs.index(output)]


def _closed(functions: Functions, output: Output) -> Expr:
    lets = functions.plan.forward
    return next(let.value for let in lets if let.name == output.name)


def _reach(functions: Functions, output: Output) -> list[str]:
    """The inputs whose shapes an output has: all of them for a number."""
    tensors = functions.plan.tensors
    there = reach_of(_closed(functions, output), tensors)
    return [i.name for i in tensors if i.shape.batch and i.name in there]


def _shape(tensors: list[str]) -> str:
    shapes = [f"{name}.shape" for name in tensors]
    return (
        f"np.broadcast_shapes({', '.join(shapes)})" if len(shapes) != 1 else shapes[0]
    )


def may_be_number(functions: Functions, value: Expr) -> bool:
    """Whether a static decides between values of different shapes."""
    scalar = scalars(functions.plan)
    return any(
        isinstance(node, Where)
        and set(names(node.condition)) <= scalar
        and set(names(node.then)) - scalar != set(names(node.other)) - scalar
        for node in nodes(value)
    )
