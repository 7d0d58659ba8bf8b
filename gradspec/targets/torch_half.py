"""Outputs that the backward pass reads, in half precision: computed again in float32.

What a context keeps of an output is rounded to its type. As a factor that is half a unit
more, and beside a factor near a power of two up to three; a gradient is to be rounded
once. A float32 output is what it was, and is read. Where nothing but one output is kept,
half precision keeps the input in its place (`in_its_place`): beyond 16, 2**x is infinite
in float16, and its derivative is not yet.
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


def in_its_place(function: Function) -> str | None:
    """The input that half precision keeps for the output that is all that is kept."""
    plan, kept = function.plan, function.residuals
    if plan.is_ranked or plan.is_wide_backward or function.base is not None:
        return None
    if len(kept) != 1 or len(function.floats) != 1 or len(plan.tensors) != 1:
        return None
    given = function.floats[0]
    return given if {*kept} == {*exact_again(function, (given, *kept))} else None


def widened(function: Function, given: tuple[str, ...]) -> Lines:
    """The names ``given`` in float32, and outputs among them computed again."""
    lent = in_its_place(function)
    place = {kept: lent for kept in function.residuals if lent and kept in given}
    known = tuple(place.get(name) or name for name in given)
    again = exact_again(function, (*known, *place))
    pairs = [p for p in zip(known, given, strict=True) if p[0] not in again]
    left = ", ".join(made for made, _ in pairs)
    read = ", ".join(name for _, name in pairs)
    anew = [line for lines in again.values() for line in lines]
    return [f"{left if len(pairs) > 1 else f'({left},)'} = _widen({read})", *anew]


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
