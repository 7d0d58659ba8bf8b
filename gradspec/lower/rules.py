"""One rule: header, assignments, examples, clauses (assume, surrogate, save,
recompute). A def, resolved once where it
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
from gradspec.lower.body import (
    Body,
    check_growth,
    first_scope,
    input_variable,
    read_assignment,
    read_value,
)
from gradspec.lower.context import (
    Context,
    Findings,
    Hidden,
    Role,
    Scope,
    Variable,
    near,
)
from gradspec.lower.examples import read_example
from gradspec.lower.expressions import lower_expression, make_bindings, solve
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


# --- clauses --------------------------------------------------------------------------


# --- assume --------------------------------------------------------------------------


def read_assumes(node: nodes.Assume, body: Body) -> tuple[Assume, ...]:
    """One assumption for each condition."""
    made = (_assume(condition, body) for condition in node.conditions)
    return tuple(assume for assume in made if assume is not None)


def _assume(node: nodes.Expr, body: Body) -> Assume | None:
    scope = _assume_scope(body)
    cx = replace(body.cx, scope=scope)
    names = (*scope.variables, *scope.sizes, *scope.hidden)
    free = tuple(name for name in _free_indices(node) if name.id not in names)
    bindings = make_bindings(free, cx)
    with scope.bind(bindings):
        value = cx.condition(node)
    if value is None:
        return None
    axes = [(b.id, solve(b, cx)) for b in bindings]
    ranges = tuple((name, axis) for name, axis in axes if axis is not None)
    return Assume(value.expr, ranges, node.span)


def _free_indices(node: nodes.Expr) -> tuple[nodes.Name, ...]:
    """The names that stand in index position and that no reduction around them binds,
    each at its first place.
    """
    found: dict[str, nodes.Name] = {}
    todo: list[tuple[nodes.Expr, tuple[str, ...]]] = [(node, ())]
    while todo:
        part, bound = todo.pop()
        match part:
            case nodes.Indexed(indices=indices):
                inner = (n for index in indices for n in nodes.walk(index))
                names = (n for n in inner if isinstance(n, nodes.Name))
                found |= {n.id: n for n in names if n.id not in (*bound, *found)}
            case nodes.Comprehension(indices=indices):
                bound = (*bound, *(name.id for name in indices))
            case _:
                pass
        todo.extend((below, bound) for below in reversed(nodes.parts(part)))
    return tuple(found.values())


def _assume_scope(body: Body) -> Scope:
    inputs = {i.name: input_variable(i) for i in body.made.inputs}
    others = (*body.cx.scope.variables, *body.cx.scope.hidden)
    hidden = {
        name: Hidden(
            "GS214",
            f"an assumption cannot name `{name}`: it is not an input",
            help="say what holds of the inputs and statics",
        )
        for name in others
        if name not in inputs
    }
    return Scope(inputs, dict(body.made.sizes), hidden, sees="an assumption")


# --- surrogate -----------------------------------------------------------------------


def read_surrogate(
    node: nodes.Surrogate, body: Body, seen: dict[str, Span]
) -> Surrogate | None:
    """A formula that replaces an output when the backward pass is derived."""
    cx = body.cx
    output = next((o for o in body.made.outputs if o.name == node.name), None)
    if output is None or not output.takes_gradient:
        _not_replaceable(node, output, body)
    elif node.name in seen:
        headline = f"`{node.name}` has two surrogates"
        first = seen[node.name]
        cx.findings.twice("GS207", node, first, "replaced", "keep one", headline)
    seen.setdefault(node.name, node.name_span)
    axes = None if output is None else output.shape.axes
    inner = replace(cx, scope=_surrogate_scope(node.name, body))
    bindings, value = read_value(node, axes, inner, inner.number)
    if value is None:
        return None
    indices = tuple(b.id for b in bindings)
    return Surrogate(node.name, indices, value.expr, node.value.span)


def _not_replaceable(node: nodes.Surrogate, output: Output | None, body: Body) -> None:
    names = tuple(o.name for o in body.made.outputs if o.takes_gradient)
    if output is None:
        headline = f"`{node.name}` is not an output: only an output has a surrogate"
    else:
        headline = f"output `{node.name}` ({output.kind.value}) takes no gradient, so a"
        headline += " surrogate has no effect"
    listed = ", ".join(f"`{name}`" for name in names)
    help = near(node.name, names) or f"outputs that can have one: {listed or 'none'}"
    body.cx.findings.error("GS215", headline, node.name_span, help=help)


def _surrogate_scope(name: str, body: Body) -> Scope:
    """All of the forward pass but the output itself."""
    scope = body.cx.scope
    forward = {n: v for n, v in scope.variables.items() if not v.is_backward}
    hidden = {
        n: Hidden(
            "GS213",
            f"a surrogate cannot use `{n}`, which exists in the backward pass only",
            help="a surrogate is a function of the inputs, like the output it replaces",
        )
        for n in (*scope.variables, *scope.hidden)
        if n not in forward
    }
    if name in forward and forward.pop(name).role is not Role.INPUT:
        hidden[name] = Hidden(
            "GS215",
            f"the surrogate of `{name}` cannot use `{name}` itself",
            help="write it in terms of the inputs",
        )
    return Scope(forward, dict(scope.sizes), hidden, sees="a surrogate")


# --- save and recompute --------------------------------------------------------------


def read_keep(node: nodes.Keep, body: Body, words: dict[str, str]) -> None:
    """File each name under its word (``save`` or ``recompute``)."""
    for name in node.names:
        fault = _keep_fault(name.id, node.word, body)
        if fault is None and words.get(name.id, node.word) != node.word:
            fault = f"`{name.id}` is both saved and recomputed"
        elif fault is None and name.id in words:
            fault = f"`{name.id}` stands twice in `{node.word}`"
        if fault is None:
            words[name.id] = node.word
        else:
            known = tuple(let.name for let in body.forward)
            is_unknown = name.id not in body.cx.scope.variables
            offer = _offer(known, node.word)
            help = (near(name.id, known) if is_unknown else "") or offer
            body.cx.findings.error("GS216", fault, name.span, help=help)


def _offer(known: tuple[str, ...], word: str) -> str:
    listed = ", ".join(f"`{name}`" for name in known)
    return f"forward values that can stand in `{word}`: {listed}" if known else ""


def _keep_fault(name: str, word: str, body: Body) -> str | None:
    variable = body.cx.scope.variables.get(name)
    if variable is None:
        return f"unknown name `{name}`"
    if variable.is_backward:
        return f"`{name}` belongs to the backward pass: only forward values are kept"
    if variable.role is Role.INPUT:
        return _keep_input_fault(variable, word, body)
    return None


def _keep_input_fault(variable: Variable, word: str, body: Body) -> str | None:
    input: Input = next(i for i in body.made.inputs if i.name == variable.name)
    if input.kind.is_static:
        return f"`{input.name}` is static: it is always at hand"
    if word == "recompute":
        return f"`{input.name}` is an input: it cannot be computed again"
    return None
