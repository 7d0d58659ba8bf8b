"""A `def`, resolved once where it stands."""

from __future__ import annotations

from gradspec.lower.context import Context
from gradspec.lower.expressions import lower_expression
from gradspec.lower.findings import Findings
from gradspec.lower.library import Library
from gradspec.lower.module import Function, FunctionParameter, Type
from gradspec.lower.scope import Role, Scope, Variable
from gradspec.syntax import nodes


def lower_function(
    node: nodes.FunctionDef, library: Library, findings: Findings
) -> Function | None:
    """The def, its parameters typed by what the body asks of them."""
    names = _parameters(node, findings)
    variables = {
        n: Variable(n, Role.PARAMETER, Type.REAL, is_static=True) for n in names
    }
    cx = Context(
        Scope(variables, sees=f"def {node.name}"),
        library,
        findings,
        lower_expression,
        names,
        is_function=True,
    )
    value = cx.lower(node.value)
    if value is None or not findings.is_sound:
        return None
    types, static, rank_0 = cx.demands.types, cx.demands.static, cx.demands.rank_0
    parameters = tuple(
        FunctionParameter(n, types.get(n, Type.REAL), n in static, n in rank_0)
        for n in names
    )
    return Function(node.name, parameters, value.expr, findings.source, node.name_span)


def _parameters(node: nodes.FunctionDef, findings: Findings) -> tuple[str, ...]:
    seen: dict[str, nodes.Name] = {}
    for name in node.parameters:
        first = seen.setdefault(name.id, name)
        if first is not name:
            findings.error(
                "GS205",
                f"`{name.id}` is declared twice",
                name.span,
                also=(findings.place(first.span, "first declared here"),),
                help="give one of the parameters another name",
            )
    return tuple(seen)
