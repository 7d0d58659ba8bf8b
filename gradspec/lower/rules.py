"""One rule: header, assignments, clauses, examples. A def, resolved once where it
stands."""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import (
    Assume,
    Backward,
    Example,
    Input,
    NoGradient,
    Output,
    Pending,
    Rule,
    Surrogate,
)
from gradspec.ir.walk import expand, names
from gradspec.lower.body import Body, check_growth, first_scope, read_assignment
from gradspec.lower.clauses import read_assumes, read_keep, read_surrogate
from gradspec.lower.context import Context, Role, Scope, Variable
from gradspec.lower.examples import read_example
from gradspec.lower.expressions import lower_expression
from gradspec.lower.findings import Findings
from gradspec.lower.header import declare
from gradspec.lower.module import Function, FunctionParameter, Library, Type
from gradspec.lower.values import LONGEST
from gradspec.source import Span
from gradspec.syntax import nodes


def lower_rule(
    node: nodes.RuleDef, library: Library, findings: Findings
) -> Rule | None:
    """The rule; None if it has a fault or calls something that has one."""
    if len(node.body) > LONGEST:
        _report_length(node, findings)
        return None
    made = declare(node, findings)
    assignments = tuple(
        s for s in node.body if isinstance(s, nodes.Assign | nodes.Override)
    )
    scope = first_scope(made, assignments)
    body = Body(Context(scope, library, findings, lower_expression), made)
    for assignment in assignments:
        read_assignment(assignment, body)
    _check_outputs(body)
    check_growth(body)
    surrogates = _surrogates(node, body)
    assumes = _assumes(node, body)
    kept = _read_keeps(node, body)
    examples = _examples(node, body)
    if not findings.is_sound:
        return None
    rule = Rule(
        name=node.name,
        doc=node.doc,
        inputs=made.inputs,
        outputs=made.outputs,
        forward=tuple(body.forward),
        backward_locals=tuple(body.backward_locals),
        backward=tuple(_backward(i, body) for i in made.inputs),
        surrogates=surrogates,
        assumes=assumes,
        saves=tuple(name for name, word in kept.items() if word == "save"),
        recomputes=tuple(name for name, word in kept.items() if word == "recompute"),
        exacts=tuple(s.name for s in assignments if _is_exact(s)),
        examples=examples,
        source=findings.source,
        span=node.span,
        name_span=node.name_span,
    )
    return with_spans(rule)


def _report_length(node: nodes.RuleDef, findings: Findings) -> None:
    findings.error(
        "GS224",
        f"`{node.name}` has {len(node.body)} statements",
        node.name_span,
        notes=(f"at most {LONGEST} in one rule",),
        help="divide the rule: a rule may call others",
    )


def _check_outputs(body: Body) -> None:
    for output in body.made.outputs:
        if output.name not in (*body.assigned, *body.made.ambiguous):
            body.cx.findings.error(
                "GS209",
                f"output `{output.name}` is never assigned",
                output.span,
                help=f"add a line `{output.name} = …` to the body",
            )


def _surrogates(node: nodes.RuleDef, body: Body) -> tuple[Surrogate, ...]:
    seen: dict[str, Span] = {}
    statements = (s for s in node.body if isinstance(s, nodes.Surrogate))
    made = [read_surrogate(statement, body, seen) for statement in statements]
    return tuple(surrogate for surrogate in made if surrogate is not None)


def _assumes(node: nodes.RuleDef, body: Body) -> tuple[Assume, ...]:
    statements = (s for s in node.body if isinstance(s, nodes.Assume))
    return tuple(a for s in statements for a in read_assumes(s, body))


def _read_keeps(node: nodes.RuleDef, body: Body) -> dict[str, str]:
    words: dict[str, str] = {}
    for statement in node.body:
        if isinstance(statement, nodes.Keep):
            read_keep(statement, body, words)
    return words


def _is_exact(statement: nodes.Assign | nodes.Override) -> bool:
    return isinstance(statement, nodes.Assign) and statement.exact


def _examples(node: nodes.RuleDef, body: Body) -> tuple[Example, ...]:
    statements = (s for s in node.body if isinstance(s, nodes.Example))
    made = [read_example(s, body.made, body.cx.findings) for s in statements]
    return tuple(example for example in made if example is not None)


def _backward(input: Input, body: Body) -> Backward:
    if not input.takes_gradient:
        return NoGradient()
    return body.gradients.get(input.name) or Pending()


def with_spans(rule: Rule) -> Rule:
    """The rule with the ``spans`` of its outputs: the inputs that each depends on as
    written."""
    reach: dict[str, frozenset[str]] = {}
    for let in rule.forward:
        used = names(expand(let.value))
        reach[let.name] = frozenset[str]().union(*(reach.get(n, {n}) for n in used))

    def visit(output: Output) -> Output:
        of = reach[output.name]
        spans = tuple(i.name for i in rule.tensor_inputs if i.name in of)
        return replace(output, spans=spans)

    return replace(rule, outputs=tuple(map(visit, rule.outputs)))


# --- defs ------------------------------------------------------------------------------


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
            help = "give one of the parameters another name"
            findings.twice("GS205", name, first.span, "declared", help)
    return tuple(seen)
