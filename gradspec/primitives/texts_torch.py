"""Private functions of torch modules that see whether an evaluation may go another way than
the one that is recorded, and a choice that does.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper

ACTIVE = Helper(
    "_transforms_are_active",
    """\
_transforms_are_active = getattr(
    torch._C, "_are_functorch_transforms_active", lambda: True
)
""",
)

IS_PLAIN = Helper(
    "_is_plain",
    '''\
def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether its elements are numbers in the memory of the CPU, in order (or one number
    for all), and it is no subclass: the keys of any other differ.
    """
    keys = torch._C._dispatch_keys
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and keys(tensor) == keys(torch.empty(0, device="cpu"))
        and (tensor.is_contiguous() or not any(tensor.stride()))
    )
''',
)

IS_WATCHED = Helper(
    "_is_watched",
    '''\
_is_compiling, _is_tracing = torch.compiler.is_compiling, torch._C._is_tracing
_modes, _forward_ad = torch._C._len_torch_dispatch_stack, torch.autograd.forward_ad


def _is_watched() -> bool:
    """Whether a compiler, a tracer, a transform, a mode or forward mode looks on."""
    return (
        _is_compiling()
        or _is_tracing()
        or _transforms_are_active()
        or _modes() > 0
        or _forward_ad._current_level >= 0
    )
''',
    needs=(ACTIVE,),
)

WHERE = Helper(
    "_where",
    '''\
_WHOLE = {torch.float32: torch.int32, torch.float64: torch.int64}


def _where(
    condition: torch.Tensor, x: torch.Tensor | float, y: torch.Tensor | float
) -> torch.Tensor:
    """``torch.where``, of large tensors by bits while nothing is recorded: it takes a
    branch for each element, which costs twenty products where neighbours differ.
    """
    if _is_short_or_seen(condition) or not _is_plain(condition):
        return torch.where(condition, x, y)
    return _by_bits(-condition.view(torch.int8), x, y)


def _is_short_or_seen(x: torch.Tensor) -> bool:
    """Whether it has few elements, or something looks on."""
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or x.numel() < 8192
        or torch.is_grad_enabled()
        or _is_watched()
    )


def _by_bits(
    mask: torch.Tensor, x: torch.Tensor | float, y: torch.Tensor | float
) -> torch.Tensor:
    """x where the mask is -1, and y where it is 0."""
    like = x if isinstance(x, torch.Tensor) else y
    one, other = (
        value if isinstance(value, torch.Tensor) else like.new_full((), value)
        for value in (x, y)
    )
    plain = _is_plain(one) and _is_plain(other)
    if not plain or one.dtype != other.dtype or one.dtype not in _WHOLE:
        return torch.where(mask != 0, x, y)
    one, other = (value.view(_WHOLE[value.dtype]) for value in (one, other))
    bits = (one ^ other) & mask.to(one.dtype)
    return bits.bitwise_xor_(other).view(like.dtype)
''',
    needs=(IS_PLAIN, IS_WATCHED),
)

CHOICE = Helper(
    "_choice",
    '''\
def _choice(
    compare: Callable[..., torch.Tensor],
    a: torch.Tensor,
    b: torch.Tensor | float,
    x: torch.Tensor | float,
    y: torch.Tensor | float,
) -> torch.Tensor:
    """``_where(compare(a, b), x, y)``. torch compares many numbers at a time if the
    results are numbers, 1.0 and 0.0, and one after the other if they are truth values.
    Of two numbers the second is kept, and what the first is more is added.
    """
    if _is_short_or_seen(a) or a.dtype not in _WHOLE or not _is_plain(a):
        return _where(compare(a, b), x, y)
    if isinstance(b, torch.Tensor) and not (
        b.shape == a.shape and b.dtype == a.dtype and _is_plain(b)
    ):
        return _where(compare(a, b), x, y)
    made = compare(a, b, out=torch.empty_like(a))
    if isinstance(x, torch.Tensor) and x.dim() == 0 and x.dtype == a.dtype:
        if not isinstance(y, torch.Tensor) and y and x:  # a sum has no sign of a zero
            other = x.new_full((), y)
            step = (x - other).item()
            if -torch.inf < step < torch.inf and other + step == x:
                return torch.add(other, made, alpha=step)
    return _by_bits(made.neg_(), x, y)
''',
    imports=("from collections.abc import Callable",),
    needs=(WHERE,),
)

IS_COMPILED = Helper(
    "_is_compiled",
    '''\
def _is_compiled() -> bool:
    """Whether a compiler looks on, which makes one loop of all operations: products cost
    next to nothing there, where each is a pass over memory otherwise.
    """
    return (
        torch.compiler.is_compiling()
        or torch._guards.TracingContext.try_get() is not None
    )
''',
)

IS_FUSED = Helper(
    "_is_fused",
    '''\
def _is_fused(x: torch.Tensor) -> bool:
    """Whether a compiler looks on, of float32."""
    return x.dtype == torch.float32 and _is_compiled()
''',
    needs=(IS_COMPILED,),
)

# `torch.compile` makes `exp(x) - 1` of it on a CPU, in float64 too.
EXPM1 = Helper(
    "_expm1",
    '''\
def _expm1(x: torch.Tensor) -> torch.Tensor:
    """exp(x) - 1; compiled, about 0 its Taylor series."""
    if not _is_compiled():
        return torch.expm1(x)
    near = torch.abs(x) < 0.35
    b = _where(near, x, torch.zeros_like(x))
    count = 14 if x.dtype == torch.float64 else 8
    s = torch.zeros_like(x)
    for k in range(count, 1, -1):
        s = s * b + 1.0 / math.factorial(k)
    return _where(near, b * (1.0 + b * s), torch.exp(x) - 1.0)
''',
    imports=("import math",),
    needs=(WHERE, IS_COMPILED),
)
