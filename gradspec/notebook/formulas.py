"""The formulas of a rule as people read them: what is written, and the shortest form of
what is derived."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradspec.derive.shortest import as_written, shortest
from gradspec.ir.rule import Definition, Judged, Rule
from gradspec.notebook import latex
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse_expression


@dataclass(frozen=True, slots=True)
class GradientFormula:
    """A definition of the backward pass, called ``name``, as LaTeX and as text
    (``dx = dy * y``); ``latex`` is empty if its brackets are deeper than a text may have
    them. ``reason`` is that of an override."""

    name: str
    latex: str
    text: str
    reason: str = ""


def forward_formulas(rule: Rule, definition: nodes.RuleDef) -> Iterator[str]:
    """Assumptions, locals, outputs and surrogates as they are written, in LaTeX."""
    backward = {one.name for one in (*rule.backward_locals, *rule.backward)}
    for statement in definition.body:
        match statement:
            case nodes.Assign(name, indices, value) if name not in backward:
                yield latex.assignment(name, indices, value)
            case nodes.Solve(name) if name not in backward:
                yield latex.equation(statement)
            case nodes.Surrogate(name, indices, value):
                text = latex.assignment(name, indices, value)
                yield rf"\text{{surrogate }} {text}"
            case nodes.Assume(conditions):
                for condition in conditions:
                    yield rf"\text{{assume }} {latex.expression(condition)}"


def gradient_formulas(
    checked: Judged, definition: nodes.RuleDef
) -> Iterator[GradientFormula]:
    """Locals that only gradients use, and the gradients in the order of the inputs."""
    rule = checked.rule
    written = {
        one.name: one
        for one in definition.body
        if isinstance(one, nodes.Assign | nodes.Override | nodes.Solve)
    }
    for one in (*rule.backward_locals, *rule.backward):
        if one.is_derived:
            yield _derived(rule, one)
        else:
            found = written[one.name]
            is_equation = isinstance(found, nodes.Solve)
            text = (
                latex.equation(found)
                if isinstance(found, nodes.Solve)
                else latex.assignment(found.name, found.indices, found.value)
            )
            source = rule.source.slice(found.value.span)
            said = (
                f"solve {one.name}: {source}"
                if is_equation
                else f"{one.name} = {source}"
            )
            yield GradientFormula(one.name, text, said, one.reason)


def _derived(rule: Rule, entry: Definition) -> GradientFormula:
    value = as_written(shortest(rule, entry.input, entry.value))
    own = f"{entry.name}[{', '.join(entry.indices)}]" if entry.indices else entry.name
    try:
        indices = tuple(parse_expression(index) for index in entry.indices)
        line = latex.assignment(entry.name, indices, parse_expression(value))
    except ValueError:
        line = ""
    return GradientFormula(entry.name, line, f"{own} = {value}")
