"""What a public function of a torch module makes of its arguments.

Nearly always there is nothing to do, and a call of a private function to find that out
takes longer than looking: what is asked of every call stands in the public function.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradspec.plan.plan import RulePlan
from gradspec.targets.lines import Lines

_TENSOR = "torch.Tensor"


def keywords(names: Sequence[str]) -> str:
    """``a=a, b=b``."""
    return ", ".join(f"{name}={name}" for name in names)


def floating(plan: RulePlan, names: Sequence[str]) -> Lines:
    """The floating arguments as tensors of one type."""
    first, *others = names
    converted = f'{first} = _floating("{plan.name}", "{first}", {first})'
    if others:
        promoted = f'_promote("{plan.name}", {keywords(names)})'
        converted = f"{', '.join(names)} = {promoted}"
    if "type" in [i.name for i in plan.inputs]:
        return [converted]
    if not others:
        doubt = f"type({first}) is not {_TENSOR} or not {first}.is_floating_point()"
        return [f"if {doubt}:", f"    {converted}"]
    types = " is ".join(f"type({name})" for name in names)
    dtypes = " is ".join(f"{name}.dtype" for name in names)
    alike = f"{types} is {_TENSOR} and {dtypes} and {first}.is_floating_point()"
    return [f"if not ({alike}):", f"    {converted}"]


def untracked(plan: RulePlan, numbers: Sequence[str]) -> Lines:
    """Static parameters that are no floats may be tensors, which would get no gradient."""
    check = f'_untracked("{plan.name}", {keywords(numbers)})'
    if "type" in [i.name for i in plan.inputs]:
        return [check]
    if len(numbers) == 1:
        return [f"if type({numbers[0]}) is not float:", f"    {check}"]
    types = " is ".join(f"type({name})" for name in numbers)
    return [f"if not ({types} is float):", f"    {check}"]


def checked(plan: RulePlan, check: str) -> Lines:
    """``check``, which says what is wrong with the shapes, where something may be: with
    the same axes in all of them, one look tells.
    """
    doubt = _doubt(plan)
    return [f"if {doubt}:", f"    {check}"] if doubt else [check]


def _doubt(plan: RulePlan) -> str:
    """A condition without which the shapes are as declared, if there is a short one."""
    shaped = [i for i in plan.tensors if not i.shape.is_elementwise]
    axes = shaped[0].shape.axes
    statics = {static.name for static in plan.statics}
    named = [axis for axis in axes if isinstance(axis, str) and axis not in statics]
    if any(i.shape.axes != axes for i in shaped) or len({*named}) != len(axes):
        return ""
    bare = [i.name for i in shaped if not i.shape.batch]
    if len(shaped) == 1:
        return f"{shaped[0].name}.dim() {'!=' if bare else '<'} {len(axes)}"
    if not bare:
        return ""
    ends = [f"{i.name}.shape" + f"[-{len(axes)}:]" * i.shape.batch for i in shaped]
    return f"not ({bare[0]}.dim() == {len(axes)} and {' == '.join(ends)})"
