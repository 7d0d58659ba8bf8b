"""The private functions of a torch module that look at what a public function is given."""

from __future__ import annotations

from gradspec.primitives.row import Helper

AS_TENSOR = Helper(
    "_as_tensor",
    '''\
def _as_tensor(value: Any, **kind: Any) -> torch.Tensor:
    """``value`` as a floating tensor; a compiler's symbol for a number stays one."""
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return torch.scalar_tensor(value, **kind)
    if isinstance(value, (int, float)) and torch.compiler.is_compiling():
        return torch.scalar_tensor(float(value), **kind)
    if isinstance(value, torch.fx.Proxy):
        raise TypeError(
            "torch.fx finds a rule by its name in a module: call module.rule(x), "
            "or say torch.fx.wrap('rule') where it was imported by name"
        )
    return torch.as_tensor(value, **kind)
''',
    imports=("from typing import Any",),
)

FLOATING = Helper(
    "_floating",
    '''\
def _floating(rule: str, name: str, value: torch.Tensor) -> torch.Tensor:
    """``value`` as a floating tensor; a Python number takes the default type."""
    if not isinstance(value, torch.Tensor):
        return _as_tensor(value, dtype=torch.get_default_dtype())
    if not value.is_floating_point():
        raise TypeError(
            f"{rule}: {name} must be a floating tensor, not {value.dtype}; "
            f"convert it first, as in {name}.to(torch.float32)"
        )
    return value
''',
)

PROMOTE = Helper(
    "_promote",
    '''\
def _promote(rule: str, **values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Tensors of one floating type, the widest; Python numbers take it over."""
    given = tuple(values.values())
    if all(
        isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and value.dtype == given[0].dtype
        for value in given
    ):
        return given
    tensors = [
        _floating(rule, name, value)
        for name, value in values.items()
        if isinstance(value, torch.Tensor)
    ] or [torch.empty(0)]
    dtype, device = tensors[0].dtype, tensors[0].device
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)

    def converted(value: Any) -> torch.Tensor:
        if isinstance(value, torch.Tensor):
            return value.to(dtype)
        make = torch.scalar_tensor if isinstance(value, float) else _as_tensor
        return make(value, dtype=dtype, device=device)

    return tuple(map(converted, values.values()))
''',
)

NUMBER = Helper(
    "_number",
    '''\
def _number(rule: str, name: str, value: Any) -> Any:
    """A static parameter as a float; a compiler that has a symbol for it keeps it.
    A tensor stays one, and is refused if it asks for a gradient: it would get none.
    """
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            raise TypeError(
                f"{rule}: {name} is static and gets no gradient; "
                f"give a number, as in {name}.item()"
            )
        if value.is_complex():
            raise TypeError(f"{rule}: {name} must be a real number, not {value.dtype}")
        return value
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return torch.sym_float(value)
    if isinstance(value, str):
        raise TypeError(f"{rule}: {name} must be a number, not a string")
    return float(value)
''',
    imports=("from typing import Any",),
)

NUMBERS = Helper(
    "_numbers",
    '''\
def _numbers(rule: str, **values: Any) -> tuple[Any, ...]:
    """Static parameters as floats. Beside a tensor all are tensors: what torch has for
    numbers and what it has for tensors take no mixture.
    """
    made = [_number(rule, name, value) for name, value in values.items()]
    like = next((value for value in made if isinstance(value, torch.Tensor)), None)
    if like is None:
        return tuple(made)
    wide = torch.float32 if like.device.type == "mps" else torch.float64
    return tuple(
        (
            value
            if isinstance(value, torch.Tensor)
            else torch.scalar_tensor(value, dtype=wide, device=like.device)
        )
        for value in made
    )
''',
    imports=("from typing import Any",),
    needs=(NUMBER,),
)

WHOLE = Helper(
    "_whole",
    '''\
def _whole(value: Any) -> int:
    """A static integer (``TypeError`` if it is none), or a compiler's symbol for it."""
    return value if isinstance(value, torch.SymInt) else operator.index(value)
''',
    imports=("import operator", "from typing import Any"),
)

INTEGER = Helper(
    "_integer",
    '''\
def _integer(rule: str, name: str, value: torch.Tensor) -> torch.Tensor:
    """``value`` as an integer tensor, of a type that holds what is made of positions."""
    if type(value) in (int, torch.SymInt):
        return torch.scalar_tensor(value, dtype=torch.int64)
    if not isinstance(value, torch.Tensor):  # a tensor stays on its device
        value = torch.as_tensor(value)
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise TypeError(
            f"{rule}: {name} must be an integer tensor, not {value.dtype}; "
            f"convert it first, as in {name}.to(torch.int64)"
        )
    return value.long() if value.itemsize < 4 else value
''',
)

BOOLEAN = Helper(
    "_boolean",
    '''\
def _boolean(rule: str, name: str, value: torch.Tensor) -> torch.Tensor:
    """``value`` as a boolean tensor."""
    if not isinstance(value, torch.Tensor):  # a tensor stays on its device
        value = torch.as_tensor(value)
    if value.dtype != torch.bool:
        raise TypeError(
            f"{rule}: {name} must be a boolean tensor, not {value.dtype}; "
            f"convert it first, as in {name}.to(torch.bool)"
        )
    return value
''',
)

RANK0 = Helper(
    "_check_rank0",
    '''\
def _check_rank0(rule: str, **tensors: torch.Tensor) -> None:
    """Refuse tensors that have axes."""
    for name, tensor in tensors.items():
        if tensor.dim() != 0:
            raise ValueError(
                f"{rule}: {name} must have rank 0, that is the shape (), "
                f"not {tuple(tensor.shape)}"
            )
''',
)

HELPERS = (
    AS_TENSOR,
    FLOATING,
    PROMOTE,
    NUMBER,
    NUMBERS,
    WHOLE,
    INTEGER,
    BOOLEAN,
    RANK0,
)
"""In the order in which a module has them."""
