"""Passes of which torch has nearly the whole in one function, or in few: one row for each.

They are recognised by their formula, whatever the rule calls its inputs, and taken for
narrow tensors on a CPU in eager mode (`torch_double`). Slopes of one input have a form in
float32 beside it, for compilers, which make one loop of a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gradspec.plan.array import Expr, Name, substitute
from gradspec.plan.translate import Types, translate
from gradspec.primitives.formula import formula
from gradspec.primitives.row import Helper
from gradspec.targets import torch_kernel_texts as texts
from gradspec.targets import torch_loop_texts as loops
from gradspec.targets.lines import Lines
from gradspec.targets.torch_parts import Function


@dataclass(frozen=True, slots=True)
class Kernel:
    """``helper`` computes the ``formulas``, in float64, or within 4 ULP of float32.

    Of a forward pass there is one, of a backward pass one for each of ``inputs``, with dy
    for the upstream gradient. ``is_for_many``: it takes more calls than the formula does;
    ``is_open``: whatever looks on may see it.
    ``in_loop`` is the slope in float32, in few operations of which none is dear.
    """

    helper: Helper
    inputs: tuple[str, ...]
    formulas: tuple[str, ...]
    is_for_many: bool = False
    is_open: bool = False
    in_loop: Helper | None = None


FORWARD = (
    Kernel(
        texts.SILU_FORWARD,
        ("x",),
        ("max(x, -10000) * sigmoid(x)",),
        is_open=True,
    ),
    Kernel(texts.GELU, ("x",), ("max(x, -10000) * ndtr(x)",)),
    Kernel(
        texts.MISH_FORWARD,
        ("x",),
        ("max(x, -10000) * tanh(softplus(x))",),
        is_for_many=True,
    ),
)

_DENSITY = "exp(-0.5 * (x * x)) / sqrt(2 * pi)"

BACKWARD = (
    Kernel(
        texts.SILU,
        ("x",),
        ("dy * silu_slope(clip(x, -10000, 10000))",),
        in_loop=loops.SILU,
    ),
    Kernel(texts.MISH, ("x",), ("dy * mish_slope(x)",)),
    Kernel(
        texts.GELU_SLOPE,
        ("x",),
        (f"dy * (ndtr(x) + clip(x, -10000, 10000) * ({_DENSITY}))",),
        in_loop=loops.GELU,
    ),
    Kernel(
        texts.LOGISTIC,
        ("a", "b"),
        ("dy / (1 + exp(b - a))", "dy / (1 + exp(a - b))"),
    ),
)

HELPERS = (
    texts.ONE,
    *(kernel.helper for kernel in (*FORWARD, *BACKWARD)),
    *loops.HELPERS,
)


def forward_kernel(made: Function) -> Kernel | None:
    """The row that is the whole forward pass, as it is in float64 or in float32."""
    for function in (made, made.base):
        assert function is not None
        steps = function.forward.statements
        values = tuple(step.value for step in steps)
        kernel = _found(FORWARD, made, values, "")
        if kernel is not None and len(function.outputs) == 1:
            return kernel
    return None


def backward_kernel(made: Function) -> Kernel | None:
    """The row that is the whole backward pass."""
    upstream, terms = made.plan.upstream, list(made.gradients.values())
    if len(upstream) != 1 or len(terms) != len(made.inputs) or made.backward.statements:
        return None
    if any(len(of_one) != 1 for of_one in terms):
        return None
    values = tuple(of_one[0].value for of_one in terms)
    return _found(BACKWARD, made, values, upstream[0])


def loop_slope(made: Function | None) -> str:
    """The private function that is the slope in a compiled loop, if there is one."""
    kernel = backward_kernel(made) if made is not None else None
    return kernel.in_loop.name if kernel is not None and kernel.in_loop else ""


def _found(
    rows: tuple[Kernel, ...], made: Function, values: tuple[Expr, ...], dy: str
) -> Kernel | None:
    """The row whose formulas the values are, in the names of the rule."""
    names = tuple(i.name for i in made.inputs)
    for kernel in rows:
        if len(kernel.inputs) != len(names):
            continue
        own = dict(zip(kernel.inputs, map(Name, names), strict=True))
        holes: dict[str, Expr] = {**own, "dy": Name(dy)}
        if values == tuple(substitute(_meaning(f), holes) for f in kernel.formulas):
            return kernel
    return None


@cache
def _meaning(text: str) -> Expr:
    nothing: frozenset[str] = frozenset()
    return translate(formula(text), Types(nothing, nothing, nothing))


# --- text ----------------------------------------------------------------------------------


def forward_lines(made: Function, kernel: Kernel) -> Lines:
    """The body of the forward pass."""
    names = ", ".join(i.name for i in made.inputs)
    return [f"return {kernel.helper.name}({names})"]


def backward_lines(made: Function, kernel: Kernel) -> Lines:
    """The body of the backward pass. What has several inputs is told which gradients are
    wanted."""
    names = [i.name for i in made.inputs]
    ((first, *_), *others) = made.gradients.values()
    comment = [f"# {first.comment}"] if first.comment else []
    asked = [f"{made.ctx}.needs_input_grad"] if others else []
    arguments = ", ".join((made.plan.upstream[0], *names, *asked))
    saved = ", ".join(names) if others else f"({names[0]},)"
    call = f"return {kernel.helper.name}({arguments})"
    return [f"{saved} = {made.ctx}.saved_tensors", *comment, call]
