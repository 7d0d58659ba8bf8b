"""The methods of a `torch.autograd.Function` that run forward."""

from __future__ import annotations

from collections.abc import Callable

from gradspec.ir.rule import Kind, Output
from gradspec.plan.array import Expr, Name
from gradspec.plan.plan import AxisSize
from gradspec.plan.ranked import Diagonal, Einsum, Expand, Permute, Pick, Window
from gradspec.targets.lines import Lines, assignment, indented, tightened, unpacked
from gradspec.targets.python import (
    Scope,
    is_scalar,
    render,
    render_atom,
    render_filled,
)
from gradspec.targets.torch_batches import batched
from gradspec.targets.torch_einsum import is_view
from gradspec.targets.torch_half import in_its_place, widened
from gradspec.targets.torch_parts import Function
from gradspec.targets.torch_trace import traced_forward

_TYPES = {Kind.INT: "torch.int64", Kind.BOOL: "torch.bool"}


def forward_method(function: Function) -> Lines:
    """``forward``: the outputs, in the type of the inputs."""
    block = function.forward
    like = function.floats[0] if function.floats else None
    scope = function.forward_scope(like)
    values = (*(s.value for s in block.statements), *block.results)
    double = function.plan.is_wide_forward
    wide = bool(like) and (double or function.is_widened(values))
    helper = function.widener(double)
    body = [
        *(widening(function, function.floats, f"{like}.dtype", helper) if wide else []),
        *_sizes(function, values),
        *_statements(function, scope),
        *traced_forward(function, scope),
        f"return {_results(function, scope, wide)}",
    ]
    params = ", ".join(i.name for i in function.inputs)
    return ["@staticmethod", f"def forward({params}):", *indented(tightened(body))]


def _sizes(function: Function, values: tuple[Expr, ...]) -> Lines:
    """The sizes of axes that the forward pass uses."""
    return [f"{s.name} = {read(function, s)}" for s in function.sizes(values)]


def read(function: Function, size: AxisSize) -> str:
    """Where a size stands among the inputs."""
    tensors = [i.name for i in function.plan.tensors]
    name, axis = next(place for place in size.places if place[0] in tensors)
    return f"{name}.shape[{axis}]"


def widening(
    function: Function, names: tuple[str, ...], dtype: str, helper: str
) -> Lines:
    """Half precision is computed in float32; ``dtype`` is what results are rounded to.
    An output that was rounded is computed again there, if what it needs is at hand.
    """
    listed = ", ".join(names)
    if helper == "_widen":
        lines = [f"if {function.dtype} in _HALF:", *indented(widened(function, names))]
    elif helper == ".double":  # on the CPU, and nothing is missing
        lines = [f"{listed} = {', '.join(f'{name}.double()' for name in names)}"]
    else:
        left = listed if len(names) > 1 else f"({listed},)"
        lines = [f"{left} = {helper}({listed})"]
    return [f"{function.dtype} = {dtype}", *lines]


def _results(function: Function, scope: Scope, wide: bool) -> str:
    results: Lines = []
    for output, value in zip(function.outputs, function.forward.results, strict=True):
        result = _result(function, output, value, scope, wide)
        result = batched(function.plan, output, result)
        if result in results and not result.endswith(".clone()"):
            result += ".clone()"  # one tensor cannot be two outputs
        results.append(result)
    return ", ".join(results)


def _result(
    function: Function, output: Output, value: Expr, scope: Scope, wide: bool
) -> str:
    atom = output.name if is_scalar(value, scope) else render_atom(value, scope)
    if output not in function.results:
        return atom  # kept as precisely as it was computed
    if output.kind is Kind.INT:
        return f"{atom}.to(torch.int64)"
    # A part of an input returned as it is would be a view, which forbids in-place
    # operations; so would a contraction whose axes are put in order afterwards.
    is_part = _is_part(function, value)
    text = output.name if is_scalar(value, scope) else render(value, scope)
    if _is_turned(function, value, scope):
        text = atom = f"_own({text})"
    if wide and output.kind is not Kind.BOOL:
        if is_part:
            return f"{atom}.to({function.dtype}, copy=True)"
        return function.rounded(text)
    return f"{atom}.clone()" if is_part else atom


def _is_part(function: Function, value: Expr) -> bool:
    """Whether the value is an input, a part of one, or one in another order."""
    statements = {s.name: s.value for s in function.forward.statements}
    match value:
        case Name(id=name) if name in statements:
            return _is_part(function, statements[name])
        case Name(id=name):
            return name in [i.name for i in function.plan.tensors]
        case Diagonal() | Expand() | Permute() | Pick() | Window(padded=False):
            return _is_part(function, value.arg)
        case _:
            return False


def _is_turned(function: Function, value: Expr, scope: Scope) -> bool:
    """Whether the value is a contraction that is a view of what was computed for it."""
    statements = {s.name: s.value for s in function.forward.statements}
    while isinstance(value, Name) and value.id in statements:
        value = statements[value.id]
    return isinstance(value, Einsum) and is_view(render(value, scope))


def _statements(function: Function, scope: Scope) -> Lines:
    """Locals and outputs; those that depend on no tensor come last."""
    outputs = {output.name: output for output in function.outputs}
    lines: Lines = []
    for s in function.forward.statements:
        text = render(s.value, scope)
        if s.name in outputs:
            text = render_filled(s.value, scope, _fill(function, outputs[s.name]))
        lines += assignment(s.name, text, s.comment)
    pairs = zip(function.outputs, function.forward.results, strict=True)
    for output, value in pairs:
        if is_scalar(value, scope):
            text = render_filled(value, scope, _fill(function, output))
            lines += assignment(output.name, text)
    return lines


def _fill(function: Function, output: Output) -> Callable[[str], str]:
    """A constant output has the shape to which the inputs broadcast. It is made like a
    tensor, whose sizes may be no plain numbers (a nested tensor's)."""
    tensors, dtype = [i.name for i in function.plan.tensors], ""
    if output.kind in _TYPES:
        dtype = f", dtype={_TYPES[output.kind]}"
    elif function.floats:  # of their type
        tensors.sort(key=lambda name: name != function.floats[0])
    else:
        dtype = ", dtype=torch.get_default_dtype()"
    like = tensors[0]
    if len(tensors) > 1:
        like = f"torch.broadcast_tensors({', '.join(tensors)})[0]"
    return lambda value: f"torch.full_like({like}, {value}{dtype})"


# --- the context -------------------------------------------------------------------------


def setup_context_method(function: Function) -> Lines:
    """``setup_context``: what the backward pass is given."""
    plain = [_constant(function, o) for o in function.outputs if not o.takes_gradient]
    saved = [_called(function, name) for name in function.residuals]
    wide = function.expanded
    body = [*_inputs(function), *_outputs(function)]
    if lent := in_its_place(function):
        choice = f"{lent} if {lent}.dtype in _HALF else {saved[0]}"
        saved = [function.local("kept")]
        body.append(f"{saved[0]} = {choice}")
    ctx = function.ctx
    body += [f"{ctx}.{name}_shape = {name}.shape" for name in function.shapes]
    body += [
        f"{ctx}.{size.name} = {read(function, size)}" for size in _kept_sizes(function)
    ]
    body += [f"{ctx}.{name}_shape = {_called(function, name)}.shape" for name in wide]
    if saved:
        body.append(f"{ctx}.save_for_backward({', '.join(saved)})")
    if saved and function.tangents is not None:
        body.append(f"{ctx}.save_for_forward({', '.join(saved)})")
    if plain:
        body.append(f"{ctx}.mark_non_differentiable({', '.join(plain)})")
    if not function.is_materialised:
        body.append(f"{ctx}.set_materialize_grads(False)")
    header = f"def setup_context({ctx}, {_given(function)}, {_made(function)}):"
    return ["@staticmethod", header, *indented(body)]


def _constant(function: Function, output: Output) -> str:
    """An output without a gradient. An integer needs no telling, also in a batch."""
    called = _called(function, output.name)
    return f"_unbatched({called})" if output.kind is Kind.NOGRAD else called


def _kept_sizes(function: Function) -> list[AxisSize]:
    """Sizes that nothing which a later pass is given would show."""
    hidden = [s for s in function.backward_sizes if function.place(s) is None]
    moved = [s for s in function.tangent_sizes if function.tangent_place(s) is None]
    return [*hidden, *(s for s in moved if s not in hidden)]


def _called(function: Function, name: str) -> str:
    """A single output is the argument ``output`` itself."""
    return _made(function) if [o.name for o in function.outputs] == [name] else name


def _given(function: Function) -> str:
    return function.local("inputs")


def _made(function: Function) -> str:
    return function.local("output")


def _inputs(function: Function) -> Lines:
    kept = {*function.residuals, *function.shapes, in_its_place(function)}
    kept |= {read(function, s).partition(".")[0] for s in _kept_sizes(function)}
    statics = function.statics

    def target(name: str) -> str:
        return (
            f"{function.ctx}.{name}"
            if name in statics
            else name
            if name in kept
            else "_"
        )

    return unpacked([target(i.name) for i in function.inputs], _given(function))


def _outputs(function: Function) -> Lines:
    if len(function.outputs) == 1:
        return []
    kept = (*function.residuals, *function.expanded)
    return unpacked(
        [
            o.name if o.name in kept or not o.takes_gradient else "_"
            for o in function.outputs
        ],
        _made(function),
    )
