"""Foreign functions: the calls that serve each target, and their derivatives as
formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradspec.ir.expr import Apply, Call, Idx, Reduce, Ref, Size, show
from gradspec.ir.walk import nodes as expr_nodes
from gradspec.ir.walk import substitute
from gradspec.lower.context import Context, Findings, NameRole, Scope, Variable, near
from gradspec.lower.expressions import lower_expression
from gradspec.lower.module import Library, Type
from gradspec.primitives.foreign import ForeignFunction, is_foreign, members
from gradspec.primitives.lookup import is_function
from gradspec.primitives.row import TARGETS
from gradspec.syntax import nodes


def foreign_function(
    node: nodes.ForeignDef, findings: Findings
) -> ForeignFunction | None:
    """The function without its derivatives; None if it has a fault."""
    before = len(findings.diagnostics)
    seen: dict[str, nodes.Name] = {}
    for name in node.parameters:
        first = seen.setdefault(name.id, name)
        if first is not name:
            help = "give one of the parameters another name"
            findings.twice("GS205", name, first.span, "declared", help)
    if is_function(node.name):
        findings.error(
            "GS264",
            f"`{node.name}` is a built-in, whose gradient is known already",
            node.name_span,
            help=f"use the built-in, or give this one a name of its own: `{node.name}_of`",
        )
    calls = read_calls(node.calls, tuple(seen), findings)
    if len(findings.diagnostics) > before:
        return None
    return ForeignFunction(node.name, tuple(map(_param, seen)), calls)


def _param(name: str) -> str:
    """In derivatives ``out`` is the value of the function."""
    return "out_" if name == "out" else name


def read_calls(
    calls: tuple[nodes.ForeignCall, ...], given: tuple[str, ...], findings: Findings
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The calls by target, "" for every target; ``given`` are the names that they may
    pass, all of which each of them must pass."""
    found: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    for call in calls:
        arguments = given if call.arguments is None else call.arguments
        strange = [a for a in arguments if a.isidentifier() and a not in given]
        unused = [name for name in given if name not in arguments]
        if strange or unused:
            _report_arguments(call, strange, unused, findings)
        for name in call.targets or (nodes.Name("", span=call.span),):
            if name.id and name.id not in TARGETS:
                findings.error(
                    "GS265",
                    f"`{name.id}` is no target",
                    name.span,
                    help=near(name.id, TARGETS) or f"targets: {', '.join(TARGETS)}",
                )
            if name.id in found:
                findings.error(
                    "GS265",
                    f"two functions serve `{name.id}`"
                    if name.id
                    else "two functions serve every target",
                    name.span,
                    help='keep one, or say which target each serves: `"…" for numpy`',
                )
            passed = tuple(_param(a) for a in arguments)
            found[name.id] = (name.id, call.path, passed)
    return tuple(found.values())


def _report_arguments(
    call: nodes.ForeignCall, strange: list[str], unused: list[str], findings: Findings
) -> None:
    if strange:
        headline = f"`{strange[0]}` is no argument here"
    else:
        headline = f"`{unused[0]}` is not passed to `{call.path}`"
    findings.error(
        "GS264",
        headline,
        call.span,
        help="it is called with each argument, by name, and with numbers",
    )


def derived_function(
    node: nodes.ForeignDef,
    bare: Mapping[str, ForeignFunction],
    library: Library,
    findings: Findings,
) -> tuple[ForeignFunction, dict[str, ForeignFunction]] | None:
    """The complete function, and those of other files that its derivatives call; None
    if there is a fault. ``bare`` are those of this file, without derivatives."""
    before = len(findings.diagnostics)
    if node.derivatives and len(node.derivatives) != len(node.parameters):
        findings.error(
            "GS264",
            f"`{node.name}` has {len(node.parameters)} arguments, and"
            f" {len(node.derivatives)} derivatives are given",
            node.derivatives[-1].span,
            help="give one for each argument, in their order: `with derivative a, b`",
        )
    variables = {
        name.id: Variable(name.id, NameRole.PARAMETER, Type.REAL)
        for name in node.parameters
    }
    scope = Scope(variables, sees=f"the derivative of {node.name}")
    names = tuple(variables)
    cx = Context(scope, library, findings, lower_expression, names, is_function=True)
    others: dict[str, ForeignFunction] = {}
    texts = []
    for written in node.derivatives:
        value = cx.number(written)
        if value is None:
            continue
        parts = tuple(expr_nodes(value.expr))
        if any(isinstance(part, Reduce | Call | Idx | Size) for part in parts):
            findings.error(
                "GS264",
                f"the derivative of `{node.name}` is no formula of its arguments alone",
                written.span,
                help="it has built-ins, defs and foreign functions; no rule, no reduction",
            )
        for part in parts:
            if isinstance(part, Apply) and is_foreign(part.op):
                for name, other in members(part.op).items():
                    if {**others, **bare}.get(name, other) != other:
                        _report_namesakes(name, written, findings)
                    others.setdefault(name, other)
        texts.append(show(substitute(value.expr, {"out": Ref("out_")})))
    if len(findings.diagnostics) > before:
        return None
    others = {name: other for name, other in others.items() if name not in bare}
    return replace(bare[node.name], derivatives=tuple(texts)), others


def _report_namesakes(name: str, at: nodes.Expr, findings: Findings) -> None:
    findings.error(
        "GS264",
        f"two foreign functions are called `{name}` here, one of them in a file that is"
        " imported",
        at.span,
        help="give one of them another name",
    )
