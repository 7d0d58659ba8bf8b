"""The inputs that an output depends on as it is written."""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.calls import expand
from gradspec.ir.rule import Output, Rule
from gradspec.ir.walk import names


def with_spans(rule: Rule) -> Rule:
    """The rule with the ``spans`` of its outputs."""
    reach: dict[str, frozenset[str]] = {}
    for let in rule.forward:
        used = names(expand(let.value))
        reach[let.name] = frozenset[str]().union(*(reach.get(n, {n}) for n in used))

    def visit(output: Output) -> Output:
        of = reach[output.name]
        spans = tuple(i.name for i in rule.tensor_inputs if i.name in of)
        return replace(output, spans=spans)

    return replace(rule, outputs=tuple(map(visit, rule.outputs)))
