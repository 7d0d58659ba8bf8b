"""The evaluation in float64 for narrower tensors on the CPU in eager mode.

There every operation is a call and a pass through memory, so a short formula in float64,
rounded once, takes less than a long one in float32. A second class has it: it keeps what
the first keeps, and a pass that is itself recorded, or that a compiler, a tracer or a
transform looks at, is the first one's. Compilers fuse, and accelerators have little
float64: they never get here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr
from gradspec.plan.program import Vocabulary, forward, split_backward
from gradspec.targets.lines import Lines, indented
from gradspec.targets.torch_backward import backward_method
from gradspec.targets.torch_costs import FEW, MANY, in_double, in_single
from gradspec.targets.torch_forward import forward_method, setup_context_method
from gradspec.targets.torch_half import in_its_place
from gradspec.targets.torch_kernels import (
    backward_kernel,
    backward_lines,
    forward_kernel,
    forward_lines,
)
from gradspec.targets.torch_parts import Function
from gradspec.targets.unnamed import unnamed

_GAIN: Mapping[int, float] = {MANY: 0.9, FEW: 0.7}
"""Of what a pass costs in float32, what it may cost in float64 at so many elements."""


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
        again=(),
        base=function,
    )
    return made if doubled_passes(made) else None


def doubled_passes(made: Function) -> Mapping[str, int]:
    """The passes that cost less in float64, and at how many elements."""
    base, plan = made.base, made.plan
    assert base is not None
    forward_ = backward_ = 0
    if plan.is_wide_forward:
        was = base.plan.is_wide_forward
        forward_ = _elements(made, base.forward_values, made.forward_values, was)
    at_hand = {*made.backward.residuals} <= {*base.residuals}
    if plan.is_wide_backward and at_hand and not in_its_place(base):
        was = base.plan.is_wide_backward
        elements = _elements(made, base.backward_values, made.backward_values, was)
        backward_ = elements if elements == MANY else 0  # it has to serve all
    if forward_kernel(made) is not None:
        forward_ = MANY
    return {n: s for n, s in (("forward", forward_), ("backward", backward_)) if s}


def _elements(
    made: Function, long: tuple[Expr, ...], short: tuple[Expr, ...], is_wide: bool
) -> int:
    """The most at which the short values cost clearly less in float64; 0 for none."""
    converted, scalars = len(made.floats) + 1, made.scalars
    for elements, gain in _GAIN.items():
        before = in_single(long, scalars, elements)
        if is_wide:
            before = in_double(long, scalars, converted, elements)
        if in_double(short, scalars, converted, elements) <= gain * before:
            return elements
    return 0


def double_class(made: Function) -> Lines:
    """The class for narrow tensors on the CPU."""
    base = made.base
    assert base is not None
    methods = {"forward": forward_method(made), "backward": backward_method(made)}
    kernels = _kernels(made)
    chosen: dict[str, Lines] = {"forward": [], "context": _context(base)}
    for name, elements in doubled_passes(made).items():
        method = [*methods[name][:2], *indented(kernels.get(name, []))]
        method = method if name in kernels else methods[name]
        if name == "backward" or not _is_open(made):
            method = _unwatched(base, method, _kept_out(made, name, elements))
        chosen[name] = method
    return [
        f"class {made.name}({base.name}):",
        '    """On a CPU: float64, rounded once, takes less than as many digits of float32."""',
        *(t for method in chosen.values() if method for t in ("", *indented(method))),
    ]


def _kernels(made: Function) -> Mapping[str, Lines]:
    """The bodies of the passes that are functions of torch."""
    found: dict[str, Lines] = {}
    if kernel := forward_kernel(made):
        found["forward"] = forward_lines(made, kernel)
    if kernel := backward_kernel(made):
        found["backward"] = backward_lines(made, kernel)
    return found


def _is_open(made: Function) -> bool:
    """Whether the forward pass may be looked at as it is."""
    kernel = forward_kernel(made)
    return kernel is not None and kernel.is_open


def _kept_out(made: Function, name: str, elements: int) -> str:
    """The condition on tensors for which a pass does not pay: those of few elements, or
    of many.
    """
    kernel = forward_kernel(made) if name == "forward" else backward_kernel(made)
    asked = f"_outweighs_calls({made.inputs[0].name})"
    if kernel is not None:
        return f"not {asked} or " if kernel.is_for_many else ""
    return "" if elements == MANY else f"{asked} or "


def _context(base: Function) -> Lines:
    """That of the other class without what forward mode needs, which never comes here, and
    with zeros for an upstream gradient that is missing, which one of one output never is.
    """
    spared = [f"{base.ctx}.save_for_forward("]
    if len(base.plan.upstream) == 1:
        spared.append(f"{base.ctx}.set_materialize_grads(")
    lines = setup_context_method(base)
    return [t for t in lines if not t.strip().startswith(tuple(spared))]


def _unwatched(base: Function, method: Lines, kept_out: str) -> Lines:
    """The method, if nothing looks at it; it is that of the other class else."""
    decorator, header, *body = method
    called = header.removeprefix("def ").removesuffix(":")
    recorded = "torch.is_grad_enabled() or " if called.startswith("backward") else ""
    guard = [
        f"if {kept_out}{recorded}_is_watched():",
        f"    return {base.name}.{called}",
    ]
    return [decorator, header, *indented(guard), *body]
