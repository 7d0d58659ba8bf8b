"""Outputs that the backward pass reads, in half precision: computed again in float32.

What a context keeps of an output is rounded to its type. As a factor that is half a unit
more, and beside a factor near a power of two up to three; a gradient is to be rounded
once. A float32 output is what it was, and is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.plan.array import Name, names
from gradspec.plan.plan import Assign
from gradspec.targets.lines import Lines, assignments
from gradspec.targets.torch_parts import Function


def exact_again(function: Function, given: tuple[str, ...]) -> Mapping[str, Lines]:
    """Statements for each output among the names ``given``, in the order of the outputs,
    of the inputs among them and statics; none where that does not do, and none for what
    the author saves."""
    if function.plan.is_ranked:
        return {}
    found: dict[str, Lines] = {}
    known = {*given, *function.statics} - {*function.float_outputs}
    rounded = {o.name for o in function.results} & {*given} & {*function.float_outputs}
    for output, value in zip(function.outputs, function.forward.results, strict=True):
        if output.name not in rounded:
            continue
        last = () if value == Name(output.name) else (Assign(output.name, value),)
        steps = _needed(function, output.name, last)
        bound = {step.name for step in steps}
        exact = not function.is_widened(tuple(step.value for step in steps))
        free = {*names(*(step.value for step in steps))} - bound
        if steps and not exact and free <= known:
            found[output.name] = assignments(steps, function.scope(given[0]))
    return found


def _needed(
    function: Function, name: str, last: tuple[Assign, ...]
) -> tuple[Assign, ...]:
    """The statements of the forward pass of which ``name`` is made, without comments."""
    wanted, steps = {name}, []
    ahead = (Assign(s.name, s.value) for s in function.forward.statements)
    for step in reversed((*ahead, *last)):
        if step.name in wanted:
            wanted.update(names(step.value))
            steps.append(step)
    return tuple(reversed(steps))
