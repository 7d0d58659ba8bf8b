"""PyTorch: its dialect, and the private functions that a module may need."""

from __future__ import annotations

from dataclasses import replace

from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Helper, Template
from gradspec.targets import torch_given_texts
from gradspec.targets.python import Dialect
from gradspec.targets.torch_fused import fused, fused_forward, fused_in_double

RESERVED = frozenset(
    (
        *("torch", "contextlib", "ctypes", "itertools", "math", "mmap"),
        *("operator", "os", "types"),
        *("Any", "Callable", "print"),
    )
)
"""Names that no variable of a rule can have beside the text of its module."""

LOCALS = frozenset(["ctx", "inputs", "output", "dtype", "current"])
"""Names of the text's own values; the author's variables go before."""

_TENSORS_ONLY = ("atan2", "heaviside", "hypot", "logaddexp", "max", "min")

_CLAMPS: dict[tuple[str, tuple[bool, ...]], Template] = {
    ("max", (False, True)): Template("torch.clamp_min({x}, {y})"),
    ("max", (True, False)): Template("torch.clamp_min({y}, {x})"),
    ("min", (False, True)): Template("torch.clamp_max({x}, {y})"),
    ("min", (True, False)): Template("torch.clamp_max({y}, {x})"),
}

# `torch.clamp` cannot be differentiated where one of two tensor bounds has more axes than
# all else; a forward pass is not, and it takes half the time there.
_CLIPS: dict[tuple[str, tuple[bool, ...]], Template] = {
    **{
        ("clip", (False, *bounds)): Template(
            "torch.clamp_max(torch.clamp_min({x}, {y}), {z})"
        )
        for bounds in ((False, False), (False, True), (True, False))
    },
    **{
        ("clip", (True, False, is_number)): Template(
            "torch.clamp_max(torch.clamp_min({y}, {x}), {z})"
        )
        for is_number in (False, True)
    },
    ("clip", (True, True, False)): Template("torch.clamp_max({z}, max({x}, {y}))"),
}


def _lifts(name: str, scalars: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which numbers must be tensors: those of functions that insist on tensors, one of
    two numbers between which `torch.where` chooses, for the type of the result, and the
    number beside a tensor in a Python choice.
    """
    match name, scalars:
        case "where", (True, True):
            return (True, False)
        case "choice", _:
            return scalars
        case "clip", (False, bound, other) if bound != other:
            return scalars
        case "clip", (True, _, _):
            return scalars
        case _ if name in _TENSORS_ONLY or _is_helper(name):
            return scalars
        case _:
            return (False,) * len(scalars)


def _is_helper(name: str) -> bool:
    """Our own functions are written for tensors."""
    if name in ("where", "choice"):
        return False
    return isinstance(primitive(name).spellings.get("torch"), Helper)


DIALECT = Dialect(
    target="torch",
    where="_where({c}, {x}, {y})",
    compared="_choice(torch.{op}, {a}, {b}, {x}, {y})",
    is_nan="torch.isnan({x})",
    to_float="{x}.to({like}.dtype)",
    lift="_filled({like}, {x})",
    lifts=_lifts,
    variants=lambda name, scalars: (_CLAMPS | _CLIPS).get((name, scalars)),
    fused=fused,
)

FORWARD = replace(
    DIALECT,
    variants=lambda name, scalars: _CLAMPS.get((name, scalars)),
    fused=fused_forward,
)
IN_DOUBLE = replace(DIALECT, fused=fused_in_double)
"""Where float64 is taken for narrower arguments."""

WIDEN = Helper(
    "_widen",
    '''\
_HALF = (torch.float16, torch.bfloat16)


def _widen(*tensors: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    """Half precision is computed in float32, and rounded once at the end."""
    return tuple(None if t is None else t.float() for t in tensors)
''',
)

ROUNDED = Helper(
    "_rounded",
    '''\
def _rounded(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``tensor`` in the type of the arguments."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)
''',
)

DOUBLE = Helper(
    "_in_double",
    '''\
def _in_double(*tensors: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    """Computed in float64 (float32 where a device has none), and rounded once."""
    wide = torch.float32 if tensors[0].device.type == "mps" else torch.float64
    return tuple(None if t is None else t.to(wide) for t in tensors)
''',
)

NARROW = Helper(
    "_narrow",
    '''\
def _narrow(
    dtype: torch.dtype, *tensors: torch.Tensor | None
) -> tuple[torch.Tensor | None, ...]:
    """The gradients that there are, in the type of the arguments."""
    return tuple(None if t is None else _rounded(t, dtype) for t in tensors)
''',
)

PLUS = Helper(
    "_plus",
    '''\
def _plus(total: torch.Tensor | None, term: torch.Tensor) -> torch.Tensor:
    """``total + term``, where there may be no total yet."""
    return term if total is None else total + term
''',
)

REDUCED = Helper(
    "_reduced",
    '''\
def _reduced(tensor: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """``tensor`` summed over the axes that a shape which was broadcast lacks."""
    try:
        return tensor if tensor.shape == shape else tensor.sum_to_size(shape)
    except RuntimeError:  # a compiler has no numbers for the sizes, and compares none
        padded = [1] * (tensor.dim() - len(shape)) + list(shape)
        axes = [k for k, size in enumerate(padded) if type(size) is int and size == 1]
        return tensor.sum(axes, keepdim=True).view(shape) if axes else tensor
''',
)

FORWARD_MODE = Helper(
    "_forward_mode",
    '''\
def _forward_mode() -> contextlib.AbstractContextManager[None]:
    """Tangents of tangents: torch switches forward mode off inside a jvp, where a second
    derivative would then be 0.
    """
    return torch.autograd.forward_ad._set_fwd_grad_enabled(True)
''',
    imports=("import contextlib",),
)

PRIMAL = Helper(
    "_primal",
    '''\
def _primal(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` without its tangent, which stands inside a batch of vmap."""
    inside = torch._C._functorch
    if inside.is_batchedtensor(tensor):
        primal = _primal(inside.get_unwrapped(tensor))
        axis, level = inside.maybe_get_bdim(tensor), inside.maybe_get_level(tensor)
        return inside._add_batch_dim(primal, axis, level)
    # the level is said: a compiler that traces forward mode does not tell Python of it
    return torch.autograd.forward_ad.unpack_dual(tensor, level=0).primal
''',
)

PRIMALS = Helper(
    "_primals",
    '''\
def _primals(ctx: Any) -> tuple[torch.Tensor, ...]:
    """What the context kept, without the tangents at which jvp is just called."""
    return tuple(_primal(tensor) for tensor in ctx.saved_tensors)
''',
)

TANGENT = Helper(
    "_tangent",
    '''\
def _tangent(tangent: torch.Tensor | None, primal: torch.Tensor) -> torch.Tensor:
    """``tangent``, or zeros where an input stands still beside one that moves."""
    return torch.zeros_like(primal) if tangent is None else tangent
''',
)

OPERATION = Helper(
    "_operation",
    '''\
def _operation(
    name: str, schema: str, function: type[torch.autograd.Function]
) -> Callable[..., Any]:
    """The rule as one node of an exported graph; a program that was saved finds it by
    its name once this module is imported. Static parameters may be tensors, too.
    """
    if not hasattr(torch.ops.gradspec, name):
        ways = {name: schema}
        if "Scalar " in schema:
            ways[f"{name}.tensors"] = schema.replace("Scalar ", "Tensor ")
        for way, taken in ways.items():
            torch.library.define(f"gradspec::{way}", taken)
            for key in ("CompositeImplicitAutograd", "FuncTorchDynamicLayerFrontMode"):
                torch.library.impl(f"gradspec::{way}", key, function.apply)
    return getattr(torch.ops.gradspec, name)
''',
    imports=("from collections.abc import Callable", "from typing import Any"),
)

FILLED = Helper(
    "_filled",
    '''\
def _filled(like: torch.Tensor, value: float | torch.Tensor) -> torch.Tensor:
    """``value`` as a tensor of the same type; a number has no axes."""
    if isinstance(value, torch.Tensor):
        return value.to(like.dtype)
    try:
        return like.new_full((), value)
    except NotImplementedError:  # of a nested tensor
        return torch.full((), value, dtype=like.dtype, device=like.device)
''',
)

HELPERS = (
    FILLED,
    FORWARD_MODE,
    PRIMAL,
    PRIMALS,
    TANGENT,
    OPERATION,
    *torch_given_texts.HELPERS,
    WIDEN,
    DOUBLE,
    ROUNDED,
    NARROW,
    REDUCED,
    PLUS,
)
"""In the order in which a module has them."""
