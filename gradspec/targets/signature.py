"""The public signature of a rule, and names that nothing else has."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.array import names
from gradspec.plan.plan import RulePlan
from gradspec.plan.shadowing import bare
from gradspec.targets.numerals import numeral


def parameters(plan: RulePlan, tensor: str) -> str:
    """Tensors by position or keyword, statics by keyword: ``x: T, *, k: float = 1.0``."""
    tensors = [f"{i.name}: {tensor}" for i in plan.tensors]
    statics = [_static(i) for i in plan.statics]
    return ", ".join([*tensors, *(["*"] if statics else []), *statics])


def _static(i: Input) -> str:
    kind = "int" if i.kind is Kind.STATIC_INT else "float"
    if i.default is None:
        return f"{i.name}: {kind}"
    if kind == "int" and i.default.denominator == 1:
        return f"{i.name}: int = {i.default.numerator}"
    return f"{i.name}: {kind} = {numeral(i.default)[0]}"


def whole_statics(plan: RulePlan) -> list[str]:
    """Statements that refuse a static integer which is none (``TypeError``)."""
    whole = (i.name for i in plan.statics if i.kind is Kind.STATIC_INT)
    return [f"{name} = operator.index({name})" for name in whole]


def declared_shapes(plan: RulePlan) -> Iterator[str]:
    """``x=(x, ..., "n")`` for each input whose shape says more than batch axes; the
    size of an axis that is named like a static is that number.
    """
    numbers = [static.name for static in plan.statics]
    for i in plan.tensors:
        if not i.shape.is_elementwise:
            axes = [
                str(axis) if isinstance(axis, int) or axis in numbers else f'"{axis}"'
                for axis in i.shape.axes
            ]
            parts = [i.name, *(["..."] if i.shape.batch else []), *axes]
            comma = "," if len(parts) == 1 else ""
            yield f"{i.name}=({', '.join(parts)}{comma})"


def scalars(plan: RulePlan) -> frozenset[str]:
    """The names that hold Python numbers: statics, locals of statics alone, sizes."""
    statics = [static.name for static in plan.statics]
    sizes = [size.name for size in plan.sizes]
    return frozenset([*statics, *sizes, *(c.name for c in plan.constants)])


def variables(plan: RulePlan) -> frozenset[str]:
    """All names that the author gave, and those of gradients, as they are written."""
    ends = [*(i.name for i in plan.inputs), *(o.name for o in plan.outputs)]
    lets = (*plan.constants, *plan.forward, *plan.backward_locals)
    sizes = (size.name for size in plan.sizes)
    given = [*ends, *(f"d{end}" for end in ends), *(let.name for let in lets), *sizes]
    return frozenset(map(bare, given))


def unreached(plan: RulePlan, output: Output) -> tuple[str, ...]:
    """The tensors that an output does not depend on."""
    values = {assign.name: assign.value for assign in plan.forward}
    reached, todo = set[str](), [output.name]
    while todo:
        if (name := todo.pop()) not in reached:
            reached.add(name)
            todo += names(values[name]) if name in values else ()
    return tuple(i.name for i in plan.tensors if i.name not in reached)


def fresh(name: str, taken: Collection[str]) -> str:
    """``name``, or ``name2``, ``name3``, … if it is taken."""
    candidate, number = name, 2
    written = set(map(bare, taken))
    while bare(candidate) in written:
        candidate, number = f"{name}{number}", number + 1
    return candidate
