"""The forward mode of a `torch.autograd.Function`.

Tangents follow from the same terms as gradients (`plan.gradients`), so that a surrogate
or an override is what forward mode sees as well.
"""

from __future__ import annotations

from collections.abc import Callable

from gradspec.ir.rule import Output
from gradspec.plan.array import Expr, Literal, Name
from gradspec.plan.plan import Block
from gradspec.targets.lines import Lines, assignments, indented, tightened, unpacked
from gradspec.targets.python import (
    Scope,
    may_be_number,
    render_atom,
    render_filled,
)
from gradspec.targets.torch_forward import widening
from gradspec.targets.torch_parts import Function

ShapeOf = Callable[[Output], str]


def jvp_method(function: Function) -> Lines:
    """``jvp``: the tangent of each output; nothing where the rule has none."""
    block = function.tangents
    if block is None:
        return []
    gradients = function.gradients
    given = [
        f"{i.name}_dot" if i.name in gradients else f"_{i.name}"
        for i in function.inputs
    ]
    body = [
        *_restored(function),
        *_moved(function),
        *_sizes(function),
        *_widened(function, function.saved_floats),
        *assignments(block.statements, _scope(function)),
        f"return {_returned(function, block)}",
    ]
    return [
        "@staticmethod",
        f"def jvp({function.ctx}, {', '.join(given)}):",
        "    with _forward_mode():",
        *indented(indented(tightened(body))),
    ]


# --- the body of jvp ---------------------------------------------------------------------


def _restored(function: Function) -> Lines:
    """What the context kept, as far as it is used."""
    used = {*function.tangent_uses, *function.filled}
    saved = [name if name in used else "_" for name in function.residuals]
    statics = [i.name for i in function.plan.statics if i.name in used]
    return [
        *(unpacked(saved, f"_primals({function.ctx})") if saved else []),
        *(f"{name} = {function.ctx}.{name}" for name in statics),
    ]


def _sizes(function: Function) -> Lines:
    """The sizes of axes, of which tangents may tell."""
    return [
        f"{s.name} = {function.tangent_place(s) or f'{function.ctx}.{s.name}'}"
        for s in function.tangent_sizes
    ]


def _moved(function: Function) -> Lines:
    """Several inputs of which some may stand still."""
    return [f"{name}_dot = _tangent({name}_dot, {name})" for name in function.filled]


def _widened(function: Function, floats: tuple[str, ...]) -> Lines:
    if not _is_wide(function):
        return []
    used = function.tangent_uses
    values = tuple(name for name in floats if name in used)
    dots = tuple(f"{name}_dot" for name in function.gradients)
    helper = "_in_double" if function.plan.is_wide_backward else "_widen"
    return widening(function, (*values, *dots), f"{dots[0]}.dtype", helper)


def _is_wide(function: Function) -> bool:
    double = function.plan.is_wide_backward
    return double or function.is_widened(function.tangent_values)


def _returned(function: Function, block: Block) -> str:
    texts = _tangents(function, block, _recorded(function))
    return ", ".join(
        texts.pop(0) if output.takes_gradient else "None" for output in function.outputs
    )


def _recorded(function: Function) -> ShapeOf:
    return lambda output: f"{function.ctx}.{output.name}_shape"


# --- tangents ----------------------------------------------------------------------------


def _tangents(function: Function, block: Block, shape: ShapeOf) -> Lines:
    """The text of each tangent, in the shape and type of its output."""
    outputs = [o for o in function.outputs if o.takes_gradient]
    texts = [
        _tangent(
            function, value, shape(output) if output.name in function.expanded else ""
        )
        for output, value in zip(outputs, block.results, strict=True)
    ]
    if not _is_wide(function):
        return texts
    return [f"_rounded({text}, {function.dtype})" for text in texts]


def _tangent(function: Function, value: Expr, shape: str) -> str:
    """An atom; ``shape`` is what it is expanded to, if it must be."""
    scope = _scope(function)
    text = render_atom(value, scope)
    if may_be_number(value, scope.scalars):
        like = scope.like
        filled = render_filled(value, scope, lambda n: f"_filled({like}, {n})")
        text = filled if isinstance(value, Name | Literal) else f"({filled})"
    return f"{text}.expand({shape})" if shape else text


def _scope(function: Function) -> Scope:
    return function.scope(f"{next(iter(function.gradients))}_dot")
