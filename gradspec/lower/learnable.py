"""Learned inputs (``beta: param = 1.0``): their initial values and requirements."""

from __future__ import annotations

from fractions import Fraction

from gradspec.ir.rule import Input
from gradspec.lower.constants import NotConstant, evaluate
from gradspec.lower.findings import Findings
from gradspec.source import Span
from gradspec.syntax import nodes

PARAM = "param"


def initial_value(parameter: nodes.Parameter, findings: Findings) -> Fraction | None:
    """The number that every element of a `param` starts from; None of other inputs."""
    if parameter.kind != PARAM:
        return None
    if parameter.default is None:
        findings.error(
            "GS260",
            f"the param `{parameter.name}` has no initial value",
            Span(parameter.name_span.start, parameter.span.end),
            label="what does a layer start from?",
            help=f"give it one: `{_head(parameter)} = 1.0`",
        )
        return Fraction(0)
    try:
        return evaluate(parameter.default)
    except NotConstant as fault:
        findings.error(
            "GS261",
            f"the initial value of `{parameter.name}` {fault}",
            parameter.default.span,
            help="an initial value is one finite number, such as 1.0 or 1 / 3, from"
            " which every element starts",
        )
        return Fraction(0)


def _head(parameter: nodes.Parameter) -> str:
    axes = parameter.axes
    parts = ", ".join(str(axis) for axis in axes.axes) if axes is not None else ""
    return f"{parameter.name}{f'[{parts}]' if parts else ''}: param"


def check_params(
    node: nodes.RuleDef, made: tuple[Input, ...], findings: Findings
) -> None:
    """A param has a size of its own, and a rule with params takes data as well."""
    for parameter in node.inputs:
        if parameter.kind == PARAM and parameter.axes and parameter.axes.batch:
            findings.error(
                "GS262",
                f"the param `{parameter.name}` has batch axes",
                parameter.axes.span,
                label="`...` comes with the data, and differs from call to call",
                help=f"leave the dots out, `{_head(parameter)} = …`: it broadcasts"
                " over the batch",
            )
    tensors = [i for i in made if not i.kind.is_static]
    if tensors and all(i.is_param for i in tensors):
        findings.error(
            "GS263",
            f"every tensor that `{node.name}` takes is a param",
            node.name_span,
            label="a layer would have nothing to be called with",
            help=f"add an input for the data, `rule {node.name}(x, …) -> …`",
        )
