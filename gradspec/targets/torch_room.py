"""Memory for large results of torch, in large pages, and the passes of one function of
torch, which writes there itself.

glibc maps every tensor of 32 MiB or more anew and gives it back at once, and Linux then
hands out its pages one by one while it is first written: at 4 KiB each that takes longer
than the products that fill them. NumPy asks for large pages for its arrays; torch does not
unless the environment says so before it is imported.

Two threads that first write to one large page wait for each other while Linux clears it:
what is filled a block at a time is touched beforehand, by all threads, each at its own end.
"""

from __future__ import annotations

import re

from gradspec.ir.rule import Kind
from gradspec.plan.array import Name
from gradspec.primitives.row import Helper
from gradspec.targets.lines import Lines, indented
from gradspec.targets.python import render
from gradspec.targets.torch_parts import Function

# --- passes of one function --------------------------------------------------------------

_CALL = re.compile(
    r"(torch\.(?:special\.|nn\.functional\.(?=softplus|logsigmoid))?[a-z]\w*)\(([\w., -]+)\)"
)
"""A function of torch that takes ``out``, of names and numbers."""

_SLOPE = re.compile(r"(torch\.ops\.aten\.softplus_backward)\(([\w., -]+)\)")


def written_passes(function: Function) -> dict[str, str]:
    """The passes that are one function of torch, each with the call that writes to
    ``out``."""
    plan = function.plan
    if plan.is_ranked or function.is_traced or function.kept or len(plan.outputs) > 1:
        return {}
    if any(tensor.kind is not Kind.FLOAT for tensor in plan.tensors):
        return {}
    if function.inputs[0] not in plan.tensors:
        return {}
    out = function.local("out")
    found = {
        "forward": _into(_CALL, _forward(function), "out", out),
        "backward": _into(_SLOPE, _backward(function), "grad_input", out),
    }
    return {name: call for name, call in found.items() if call}


def _into(form: re.Pattern[str], text: str, keyword: str, out: str) -> str:
    if not (found := form.fullmatch(text)):
        return ""
    name, given = found.groups()
    overload = "" if keyword == "out" else f".{keyword}"
    return f"{name}{overload}({given}, {keyword}={out})"


def _forward(function: Function) -> str:
    """The only value of the forward pass."""
    block = function.forward
    if function.plan.is_wide_forward or len(block.statements) != 1:
        return ""
    (step,), (result,) = block.statements, block.results
    scope = function.forward_scope(function.floats[0])
    return render(step.value, scope) if result == Name(step.name) else ""


def _backward(function: Function) -> str:
    """The only value of the backward pass, of the only tensor."""
    terms = [term for group in function.gradients.values() for term in group]
    if function.plan.is_wide_backward or function.backward.statements:
        return ""
    if len(terms) != 1 or len(function.plan.tensors) != 1:
        return ""
    (name,) = function.gradients
    is_plain = function.residuals == (name,) and not function.again
    return render(terms[0].value, function.scope(name)) if is_plain else ""


def written_methods(function: Function) -> Lines:
    """The methods that write the result of a pass to memory that is given."""
    out, ctx, lines = function.local("out"), function.ctx, []
    inputs = ", ".join(i.name for i in function.inputs)
    upstream = ", ".join((*function.plan.upstream, *function.residuals))
    given = {"forward": f"{out}, {inputs}", "backward": f"{ctx}, {out}, {upstream}"}
    # By name: whoever has the node of the graph may have left something there, too.
    statics = [f"{name} = {ctx}.{name}" for name in function.statics]
    for name, call in written_passes(function).items():
        header = f"def {name}_into({given[name]}):"
        body = [*(statics if name == "backward" else []), f"return {call}"]
        lines += ["", "@staticmethod", header, *indented(body)]
    return lines


# --- private functions -------------------------------------------------------------------

ROOM = Helper(
    "_room",
    '''\
_MADVISE = getattr(ctypes.CDLL(None), "madvise", None) if os.name == "posix" else None
_HUGEPAGE = getattr(mmap, "MADV_HUGEPAGE", None)


def _room(like: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """An empty tensor; of 32 MiB or more, on Linux, in large pages, which are given out
    in a fraction of the time.
    """
    room = like.new_empty(shape)
    size, start = room.untyped_storage().nbytes(), room.data_ptr()
    if size >= 1 << 25 and _MADVISE is not None and _HUGEPAGE is not None:
        skipped = -start % mmap.PAGESIZE
        _MADVISE(
            ctypes.c_void_p(start + skipped),
            ctypes.c_size_t(size - skipped),
            ctypes.c_int(_HUGEPAGE),
        )
    return room
''',
    imports=("import ctypes", "import mmap", "import os"),
)

SHARED_ROOM = Helper(
    "_shared_room",
    '''\
def _shared_room(like: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """The same for threads that fill it a block at a time: no two wait for one page then,
    since each has touched pages of its own.
    """
    room = _room(like, shape)
    if room.numel() * room.element_size() >= 1 << 25:
        room.view(-1)[::128].zero_()
    return room
''',
)

IN_ROOM = Helper(
    "_in_room",
    '''\
def _in_room(
    function: type[torch.autograd.Function],
) -> type[torch.autograd.Function]:
    """``function``, of whose passes some are one function of torch: of large tensors it
    writes the result where it belongs.
    """

    def forward(*arguments: Any) -> Any:
        x = arguments[0]
        if x.dtype in _HALF or not _can_be_split(arguments):
            return function.forward(*arguments)
        return function.forward_into(_room(x, x.shape), *arguments)

    def backward(ctx: Any, dy: torch.Tensor | None) -> Any:
        if dy is None or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return function.backward(ctx, dy)
        saved = ctx.saved_tensors  # once: it may be computed again each time
        asked = ctx.needs_input_grad
        if dy.dtype in _HALF or not _can_be_split((dy, *saved)):
            made = {"saved_tensors": saved, "needs_input_grad": asked, **vars(ctx)}
            return function.backward(types.SimpleNamespace(**made), dy)
        dx = function.backward_into(ctx, _room(dy, dy.shape), dy, *saved)
        return dx, *(None for _ in asked[1:])

    chosen = {
        method.__name__: staticmethod(method)
        for method in (forward, backward)
        if hasattr(function, f"{method.__name__}_into")
    }
    return types.new_class(
        function.__name__, (function,), exec_body=lambda body: body.update(chosen)
    )
''',
    imports=("import types", "from typing import Any"),
)
