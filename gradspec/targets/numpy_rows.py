"""``f_vjp`` of rules over rows: both passes are functions of rows, which are evaluated
some rows at a time where there are many.
"""

from __future__ import annotations

from gradspec.ir.rule import Input
from gradspec.plan.array import Expr, Name, names
from gradspec.plan.contraction import is_over_batch
from gradspec.plan.ranked import Einsum
from gradspec.targets.lines import Lines, indented
from gradspec.targets.numpy_blocks import has_rows, keep_rows
from gradspec.targets.numpy_outputs import bound_outputs, viewed
from gradspec.targets.numpy_parts import (
    ARRAY,
    Functions,
    quiet,
    tuple_type,
    values_of,
)
from gradspec.targets.numpy_places import placed
from gradspec.targets.python import render, render_atom


def goes_by_rows(functions: Functions) -> bool:
    """Whether both passes compute each row by itself, sums over all rows at the end
    excepted, and all that is kept is an input or has rows.
    """
    plan, backward = functions.plan, functions.backward
    if not has_rows(functions) or not all(o.takes_gradient for o in plan.outputs):
        return False
    first = plan.tensors[0].name
    closed = {let.name: let.value for let in plan.forward}
    groups = [group for group in backward.gradients if group is not None]
    return (
        bool(_given(functions))
        and all(len(group) == 1 and group[0].upstream for group in groups if group)
        and keep_rows(values_of(functions.forward))
        and keep_rows(_each_row(functions))
        and all(first in names(closed[n]) for n in backward.residuals if n in closed)
    )


def _each_row(functions: Functions) -> list[Expr]:
    """What the backward pass computes, sums over all rows that nothing else uses left
    out: their arguments in place of them.
    """
    values = {step.name: step.value for step in functions.backward.statements}
    pairs = zip(
        functions.plan.tensors[1:], functions.backward.gradients[1:], strict=True
    )
    ends = [group[0].value for _, group in pairs if group]
    first = functions.backward.gradients[0]
    rest = [group[0].value for group in (first,) if group]
    used = names(*values.values(), *rest)
    sums = {end.id for end in ends if isinstance(end, Name) and end.id not in used}
    inner = [part for name in sums if name in values for part in _summed(values[name])]
    direct = [part for end in ends for part in _summed(end)]
    kept = [value for name, value in values.items() if name not in sums]
    return [*kept, *rest, *inner, *direct]


def _summed(value: Expr) -> tuple[Expr, ...]:
    """The arguments of a sum over all rows; anything else is itself."""
    is_sum = isinstance(value, Einsum) and is_over_batch(value)
    return value.args if isinstance(value, Einsum) and is_sum else (value,)


def _given(functions: Functions) -> list[str]:
    """What the backward pass is given that has rows; those of the input's size first."""
    plan, residuals = functions.plan, functions.backward.residuals
    first = plan.tensors[0]
    like = {o.name for o in plan.outputs if o.shape.axes == first.shape.axes}
    groups = (group for group in functions.backward.gradients if group)
    used = {d for group in groups for d in group[0].upstream}
    whole = {first.name, *like}
    closed = {let.name for let in plan.forward}
    rows = [n for n in residuals if n == first.name or n in closed]
    rows += [d for d in plan.upstream if d in used]
    wide = [n for n in rows if n in whole or n.removeprefix("d") in like]
    return [*wide, *(n for n in rows if n not in wide)] if wide else []


# --- text ----------------------------------------------------------------------------------


def forward_by_rows(functions: Functions) -> Lines:
    """The function of rows that gives outputs and what is kept, and its call."""
    plan = functions.plan
    x, axes = plan.tensors[0].name, len(plan.tensors[0].shape.axes)
    outputs = [o.name for o in plan.outputs]
    inputs = {i.name for i in plan.inputs}
    kept = [n for n in functions.backward.residuals if n not in {*outputs, *inputs}]
    made = ", ".join([*outputs, *kept])
    kept_names = [*functions.forward.results, *map(Name, kept)]
    return [
        *quiet(values_of(functions.forward)),
        f"def forward({x}: {ARRAY}) -> {_kind(len(outputs) + len(kept))}:",
        *indented(placed(functions, functions.forward.statements, kept_names)),
        *indented(bound_outputs(functions, functions.forward)),
        f"    return {made}",
        "",
        f"{made} = _by_rows(forward, {axes}, {x})",
    ]


def backward_by_rows(functions: Functions) -> Lines:
    """The function of rows that gives the gradients."""
    backward = functions.backward
    used = _used(functions)
    params = ", ".join(f"{name}: {ARRAY}" for name in _given(functions))
    results = ", ".join(_result(functions, i, value) for i, value in used)
    return [
        *quiet(functions.pulled),
        f"def backward({params}) -> {_kind(len(used))}:",
        *indented(placed(functions, backward.statements, [v for _, v in used])),
        f"    return {results}",
    ]


def pulled_by_rows(functions: Functions) -> Lines:
    """Its call in the pullback, where it gives each input's gradient."""
    first, used, given = functions.plan.tensors[0], _used(functions), _given(functions)
    sums = [str(k) for k, (i, _) in enumerate(used) if i.name != first.name]
    comma = "," if len(sums) == 1 else ""
    summed = [f"summed=({', '.join(sums)}{comma})"] if sums else []
    axes = len(first.shape.axes)
    call = ", ".join(["backward", str(axes), *given, *summed])
    return [f"{', '.join(f'd{i.name}' for i, _ in used)} = _by_rows({call})"]


def _used(functions: Functions) -> list[tuple[Input, Expr]]:
    pairs = zip(functions.plan.tensors, functions.backward.gradients, strict=True)
    return [(i, group[0].value) for i, group in pairs if group]


def _result(functions: Functions, i: Input, value: Expr) -> str:
    text = render(value, functions.scope)
    if i.name != functions.plan.tensors[0].name:
        return f"_reduced({text}, {i.name}.shape)"
    is_given = viewed(value) in _given(functions)
    return f"{render_atom(value, functions.scope)}.copy()" if is_given else text


def _kind(count: int) -> str:
    return ARRAY if count == 1 else tuple_type([ARRAY] * count)
