"""What a public function of a torch module makes of its arguments.

Nearly always there is nothing to do, and a call of a private function to find that out
takes longer than looking: what is asked of every call stands in the public function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr, Op, names, nodes
from gradspec.plan.plan import RulePlan
from gradspec.primitives.lookup import primitive
from gradspec.targets.lines import Lines
from gradspec.targets.torch_parts import Function

_TENSOR = "torch.Tensor"


def keywords(given: Sequence[str]) -> str:
    """``a=a, b=b``."""
    return ", ".join(f"{name}={name}" for name in given)


def floating(plan: RulePlan, given: Sequence[str]) -> Lines:
    """The floating arguments as tensors of one type."""
    first, *others = given
    converted = f'{first} = _floating("{plan.name}", "{first}", {first})'
    if others:
        promoted = f'_promote("{plan.name}", {keywords(given)})'
        converted = f"{', '.join(given)} = {promoted}"
    if "type" in [i.name for i in plan.inputs]:
        return [converted]
    if not others:
        doubt = f"type({first}) is not {_TENSOR} or not {first}.is_floating_point()"
        return [f"if {doubt}:", f"    {converted}"]
    types = " is ".join(f"type({name})" for name in given)
    dtypes = " is ".join(f"{name}.dtype" for name in given)
    alike = f"{types} is {_TENSOR} and {dtypes} and {first}.is_floating_point()"
    return [f"if not ({alike}):", f"    {converted}"]


def numbers(function: Function) -> Lines:
    """Static parameters as Python numbers, which they nearly always are."""
    plan = function.plan
    whole = [i.name for i in plan.statics if i.kind is Kind.STATIC_INT]
    others = [i.name for i in plan.statics if i.kind is not Kind.STATIC_INT]
    lines = _unless(plan, whole, "int", [f"{n} = _whole({n})" for n in whole])
    if _has(function, _is_of_an_order):
        lines = _known(whole)
    made = [f'{n} = _number("{plan.name}", "{n}", {n})' for n in others]
    if len(others) > 1:
        taken = f'_numbers("{plan.name}", {keywords(others)})'
        made = [f"{', '.join(others)} = {taken}"]
    return [*lines, *_unless(plan, others, "float", made)]


def _unless(plan: RulePlan, given: Sequence[str], kind: str, lines: Lines) -> Lines:
    """``lines``, where not all of ``given`` are of the Python type ``kind``."""
    if not given or {"type", kind} & {i.name for i in plan.inputs}:
        return lines
    types = " is ".join(f"type({name})" for name in given)
    doubt = f"{types} is not {kind}" if len(given) == 1 else f"not ({types} is {kind})"
    return [f"if {doubt}:", *(f"    {line}" for line in lines)]


def known_exponents(function: Function) -> Lines:
    """Static integers as numbers that a compiler knows: torch differentiates no power of
    a tensor whose exponent is a symbol for an integer.
    """
    whole = [i.name for i in function.plan.statics if i.kind is Kind.STATIC_INT]
    return _known(whole) if _has(function, _is_power) else []


def _known(whole: Sequence[str]) -> Lines:
    return [f"{name} = operator.index({name})" for name in whole]


def _has(function: Function, wanted: Callable[[Expr, frozenset[str]], bool]) -> bool:
    """Whether anything that is computed is what is wanted, given the names of numbers."""
    found = (node for value in function.values for node in nodes(value))
    return any(wanted(node, function.scalars) for node in found)


def _is_power(node: Expr, scalars: frozenset[str]) -> bool:
    """Whether it is a tensor to a power that is computed from numbers with names."""
    match node:
        case Op("pow", (base, exponent)):
            named = {*names(exponent)}
            return bool(named) and named <= scalars and not {*names(base)} <= scalars
        case _:
            return False


def _is_of_an_order(node: Expr, scalars: frozenset[str]) -> bool:
    """Whether torch has it for orders that are known alone: a polygamma."""
    return isinstance(node, Op) and "int" in (primitive(node.primitive).types or ())


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
