"""Where the assumptions of a rule hold, as a rule of its own: modules that check them
call it first."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from gradspec.ir.rule import (
    Assume,
    Chosen,
    Complete,
    Definition,
    Judged,
    Kind,
    Output,
    Role,
    Shape,
)
from gradspec.ir.walk import names


def domain_of(chosen: Chosen) -> Chosen | None:
    """The rule with a boolean output for each assumption in the place of its own
    outputs; None if there is no assumption."""
    rule = chosen.rule
    if not rule.assumes:
        return None
    inputs = tuple(
        replace(i, kind=Kind.NOGRAD, initial=None) if i.takes_gradient else i
        for i in rule.inputs
    )
    numbered = (f"holds_{k}" for k in count(1))
    free = (n for n in numbered if all(n != i.name for i in inputs))
    pairs = [_condition(rule, next(free), a) for a in rule.assumes]
    domain = Complete(
        name=f"_{rule.name}_domain",
        doc=None,
        inputs=inputs,
        outputs=tuple(output for output, _ in pairs),
        definitions=tuple(definition for _, definition in pairs),
        source=rule.source,
        name_span=rule.name_span,
    )
    return Chosen(Judged(domain, ()), domain, as_written=True)


def _condition(rule: Complete, name: str, assume: Assume) -> tuple[Output, Definition]:
    used = names(assume.condition)
    spans = [i for i in rule.tensor_inputs if i.name in used]
    indices = tuple(index for index, _ in assume.indices)
    axes = tuple(axis for _, axis in assume.indices)
    shape = Shape(any(i.shape.batch for i in spans), axes)
    output = Output(name, Kind.BOOL, shape, spans=tuple(i.name for i in spans))
    return output, Definition(name, Role.OUTPUT, assume.condition, indices, axes)
