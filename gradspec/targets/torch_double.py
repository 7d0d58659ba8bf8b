"""The evaluation in float64 for narrower tensors on the CPU in eager mode.

There every operation is a call and a pass through memory, so a short formula in float64,
rounded once, takes less than a long one in float32. A second class has it: it keeps what
the first keeps, and a pass that is itself recorded, or that a compiler, a tracer or a
transform looks at, is the first one's. Compilers fuse, and accelerators have little
float64: they never get here.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr
from gradspec.plan.program import Vocabulary, forward, split_backward
from gradspec.targets.lines import Lines, indented
from gradspec.targets.torch_backward import backward_method
from gradspec.targets.torch_costs import in_double, in_single
from gradspec.targets.torch_forward import forward_method
from gradspec.targets.torch_parts import Function
from gradspec.targets.unnamed import unnamed

_GAIN = 0.9
"""Of what a pass costs in float32, what it may cost in float64."""


def doubled(function: Function, words: Vocabulary) -> Function | None:
    """The same rule in float64, if a pass of it costs less there."""
    plan, first = function.plan.double, function.inputs[0]
    if plan is None or function.is_traced or function.kept:
        return None
    if first.kind is not Kind.FLOAT or not first.shape.batch:
        return None
    made = replace(
        function,
        name=f"{function.name}InDouble",
        plan=plan,
        forward=forward(plan, words),
        backward=unnamed(split_backward(plan, words)),
        tangents=None,
        base=function,
    )
    return made if doubled_passes(made) else None


def doubled_passes(made: Function) -> tuple[str, ...]:
    """The passes that cost less in float64."""
    base, plan = made.base, made.plan
    assert base is not None
    before, after = base.plan, plan
    forward_ = after.is_wide_forward and _is_cheaper(
        made, base.forward_values, made.forward_values, before.is_wide_forward
    )
    backward = after.is_wide_backward and _is_cheaper(
        made, base.backward_values, made.backward_values, before.is_wide_backward
    )
    keeps = {*made.backward.residuals} <= {*base.residuals}
    chosen = {"forward": forward_, "backward": backward and keeps}
    return tuple(name for name, is_chosen in chosen.items() if is_chosen)


def _is_cheaper(
    made: Function, long: tuple[Expr, ...], short: tuple[Expr, ...], is_wide: bool
) -> bool:
    converted = len(made.floats) + 1
    before = in_single(long, made.scalars)
    if is_wide:
        before = in_double(long, made.scalars, converted)
    return in_double(short, made.scalars, converted) <= _GAIN * before


def double_class(made: Function) -> Lines:
    """The class for narrow tensors on the CPU."""
    base = made.base
    assert base is not None
    methods = {"forward": forward_method(made), "backward": backward_method(made)}
    chosen = (_unwatched(base, methods[name]) for name in doubled_passes(made))
    return [
        f"class {made.name}({base.name}):",
        '    """On a CPU: float64, rounded once, takes less than as many digits of float32."""',
        *(line for method in chosen for line in ("", *indented(method))),
    ]


def _unwatched(base: Function, method: Lines) -> Lines:
    """The method, if nothing looks at it; it is that of the other class else."""
    decorator, header, *body = method
    called = header.removeprefix("def ").removesuffix(":")
    recorded = "torch.is_grad_enabled() or " if called.startswith("backward") else ""
    guard = [f"if {recorded}_is_watched():", f"    return {base.name}.{called}"]
    return [decorator, header, *indented(guard), *body]
