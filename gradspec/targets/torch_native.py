"""Rules of which PyTorch has the forward pass and its gradient as one function.

Where the forward pass is one function of torch, and the gradient of the rule is the formula
by which torch differentiates that function, an eager call is that function: nothing would be
gained by a `Function`, which takes ten microseconds in Python. Half precision keeps the
`Function`: widened arguments would be kept for the backward pass, twice the bytes.

The formulas are those of `derivatives.yaml` and `FunctionsManual.cpp` in PyTorch.
"""

from __future__ import annotations

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr, Name, Op
from gradspec.plan.plan import Nature
from gradspec.plan.ranked import Expand, LogSoftmax, Reduce, Softmax
from gradspec.primitives.row import Helper
from gradspec.targets.torch_parts import Function

APPLIED_NATIVELY = Helper(
    "_applied_natively",
    '''\
def _applied_natively(
    function: type[torch.autograd.Function], in_graph: Callable[..., Any]
) -> Callable[..., Any]:
    """The rule where torch's own gradient of the forward pass is that of the rule: a plain
    call needs no Function then. Everything else goes as in other rules.
    """
    eager = super(torch.autograd.Function, function).apply
    is_compiling = torch.compiler.is_compiling

    def apply(*arguments: Any) -> Any:
        if is_compiling():
            way = function.forward if torch.compiler.is_exporting() else in_graph
            return way(*arguments)
        if _transforms_are_active():
            return function.apply(*arguments)
        first = arguments[0]
        if type(first) is torch.Tensor and first.dtype not in _HALF:
            return function.forward(*arguments)
        return eager(*arguments)

    return apply
''',
    imports=("from collections.abc import Callable", "from typing import Any"),
)


APPLIED_NATIVELY_BY_SIZE = Helper(
    "_applied_natively",
    '''\
def _applied_natively(
    function: type[torch.autograd.Function],
    in_graph: Callable[..., Any],
    in_blocks: type[torch.autograd.Function] | None = None,
) -> Callable[..., Any]:
    """The rule where torch's own gradient of the forward pass is that of the rule: a plain
    call needs no Function then. Everything else goes as in other rules, large tensors
    through ``in_blocks``.
    """
    eager = super(torch.autograd.Function, function).apply
    large = super(torch.autograd.Function, in_blocks or function).apply
    is_compiling = torch.compiler.is_compiling

    def apply(*arguments: Any) -> Any:
        if is_compiling():
            way = function.forward if torch.compiler.is_exporting() else in_graph
            return way(*arguments)
        if _transforms_are_active():
            return function.apply(*arguments)
        first = arguments[0]
        if type(first) is torch.Tensor and first.dtype not in _HALF:
            if in_blocks is None or first.numel() < _LARGE:
                return function.forward(*arguments)
            return large(*arguments)
        return eager(*arguments)

    return apply
''',
    imports=("from collections.abc import Callable", "from typing import Any"),
)


def is_native(function: Function) -> bool:
    """Whether torch differentiates the forward pass as the rule says."""
    plan = function.plan
    if plan.nature is not Nature.EXACT or function.is_traced or function.kept:
        return False
    if plan.is_wide_forward or plan.is_wide_backward or len(function.outputs) != 1:
        return False
    (output,) = function.outputs
    steps, tensors = function.forward.statements, plan.tensors
    if len(steps) != 1 or len(tensors) != 1 or function.backward.statements:
        return False
    (result,), terms = function.forward.results, function.gradients.get(tensors[0].name)
    if result != Name(output.name) or tensors[0].kind is not Kind.FLOAT:
        return False
    if terms is None or len(terms) != 1:
        return False
    x, y, dy = (Name(n) for n in (tensors[0].name, output.name, f"d{output.name}"))
    expected = _gradient(steps[0].value, x, y, dy)
    return expected is not None and terms[0].value == expected


def _gradient(value: Expr, x: Expr, y: Expr, dy: Expr) -> Expr | None:
    """How torch differentiates the one function that ``value`` is."""
    match value:
        case Op("softplus", (inner,)) if inner == x:
            return Op("mul", (dy, Op("sigmoid", (x,))))
        case Op("div", (Op("softplus", (Op("mul", (rate, inner)),)), over)) if (
            rate == over and inner == x
        ):
            return Op("mul", (dy, Op("sigmoid", (Op("mul", (rate, x)),))))
        case Softmax(inner, axis) if inner == x:
            shared = Reduce("sum", Op("mul", (dy, y)), (axis,), True)
            return Op("mul", (y, Op("sub", (dy, shared))))
        case LogSoftmax(inner, axis) if inner == x:
            total = Reduce("sum", dy, (axis,), True)
            return Op("sub", (dy, Op("mul", (Op("exp", (y,)), total))))
        case Reduce("logsumexp", inner, (axis,), False) if inner == x:
            below = Op("sub", (x, Expand(y, (axis,))))
            return Op("mul", (Expand(dy, (axis,)), Op("exp", (below,))))
        case _:
            return None
