"""One rule: header, assignments, worked examples, clauses (assume, surrogate, save,
recompute). A def, resolved once where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from gradspec.ir.expr import Expr, Reduce, Ref, Size
from gradspec.ir.rule import (
    Assume,
    Definition,
    Example,
    Input,
    Kind,
    Output,
    Role,
    Rule,
    Shape,
    Value,
)
from gradspec.ir.walk import expand, names, transform
from gradspec.ir.walk import nodes as expr_nodes
from gradspec.lower.arrays import without_copies
from gradspec.lower.body import (
    Assignment,
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
    NameRole,
    Placed,
    Scope,
    Variable,
    near,
    near_names,
)
from gradspec.lower.equations import free_indices, with_indices
from gradspec.lower.expressions import lower_expression
from gradspec.lower.header import Declaration, declare
from gradspec.lower.indices import make_bindings, solve
from gradspec.lower.kernels import read_kernels
from gradspec.lower.module import LONGEST, Function, FunctionParameter, Library, Type
from gradspec.lower.states import arrange_states, state_variables
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
    assignments = with_indices(made, node.body)

    taken = _names_in(node, made)

    def read(states: Mapping[str, Variable], told: Findings | None = None) -> Body:
        scope = first_scope(made, assignments, states)
        found = told or Findings(findings.source)
        placed = Placed([], taken)
        cx = Context(scope, library, found, lower_expression, placed=placed)
        body = Body(cx, made, placed.definitions)
        for assignment in assignments:
            read_assignment(assignment, body)
        return body

    body = read(state_variables(made, assignments, read), findings)
    _check_outputs(body)
    surrogates = _surrogates(node, body)
    placed = body.cx.placed
    assert placed is not None
    every = without_copies((*body.definitions, *surrogates), placed)
    surrogates = tuple(d for d in every if d.role is Role.SURROGATE)
    body.definitions[:] = (d for d in every if d.role is not Role.SURROGATE)
    check_growth(body)
    assumes = (*_assumes(node, body), *placed.assumes)
    arrange_states(body, assumes)
    definitions = (*body.definitions, *surrogates)
    _check_ranges(node, definitions, body)
    kept = _read_keeps(node, body)
    examples = _examples(node, body)
    kernels = read_kernels(node, made, findings)
    if not findings.is_sound:
        return None
    rule = Rule(
        name=node.name,
        doc=node.doc,
        inputs=made.inputs,
        outputs=made.outputs,
        definitions=tuple(sorted(definitions, key=lambda d: not d.is_forward)),
        assumes=assumes,
        saves=tuple(name for name, word in kept.items() if word == "save"),
        recomputes=tuple(name for name, word in kept.items() if word == "recompute"),
        exacts=tuple(s.name for s in assignments if _is_exact(s)),
        examples=examples,
        kernels=kernels,
        source=findings.source,
        span=node.span,
        name_span=node.name_span,
    )
    sized = _with_sizes(rule)
    _check_defaults(sized, findings)
    return with_spans(sized) if findings.is_sound else None


def _names_in(node: nodes.RuleDef, made: Declaration) -> frozenset[str]:
    """The names that a rule uses for something, and those of gradients and tangents."""
    values = [s.value for s in node.body if isinstance(s, nodes.Assignment)]
    for equation in (s for s in node.body if isinstance(s, nodes.Solve)):
        values += (e for e in (equation.start, equation.condition) if e is not None)
    every = (n for value in values for n in nodes.walk(value))
    names = {n.id for n in every if isinstance(n, nodes.Name)}
    names |= {s.name for s in node.body if isinstance(s, nodes.Assignment)}
    names |= {v.name for v in made.variables} | {*made.sizes}
    return frozenset(names | {f"d{n}" for n in names} | {f"{n}_dot" for n in names})


def _with_sizes(rule: Rule) -> Rule:
    """A static integer over which an index ranges is the size of an axis wherever it
    stands."""
    values = (
        *(d.value for d in rule.definitions),
        *(a.condition for a in rule.assumes),
    )
    sums = (n for v in values for n in expr_nodes(v) if isinstance(n, Reduce))
    axes = {bound.axis for one in sums for bound in one.bounds}
    axes.update(a for d in rule.definitions for a in d.axes)
    axes.update(n.axis for v in values for n in expr_nodes(v) if isinstance(n, Size))
    named = {i.name for i in rule.static_inputs if i.name in axes}
    if not named:
        return rule

    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name in named:
            return Size(node.name, span=node.span)
        return node

    sized = rule.map(
        lambda one: replace(
            one,
            value=transform(one.value, visit),
            start=one.start and transform(one.start, visit),
        )
    )
    assumes = (
        replace(a, condition=transform(a.condition, visit)) for a in rule.assumes
    )
    inputs = (replace(i, is_size=i.name in named) for i in rule.inputs)
    return replace(sized, inputs=tuple(inputs), assumes=tuple(assumes))


def _check_defaults(rule: Rule, findings: Findings) -> None:
    for one in rule.static_inputs:
        if one.is_size and one.default is not None and one.default < 1:
            findings.error(
                "GS238",
                f"`{one.name}` is the size of an axis, and its default is {one.default}",
                one.span,
                help="an axis has at least one element: give a positive default, or none",
            )


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


def _check_ranges(
    node: nodes.RuleDef, definitions: tuple[Definition, ...], body: Body
) -> None:
    """A rule with indices has an input or output with axes."""
    is_known = body.cx.findings.is_sound
    if not is_known or any(v.shape.axes for v in body.made.variables):
        return
    for one in definitions:
        sums = (n for n in expr_nodes(one.value) if isinstance(n, Reduce))
        span = one.span if one.axes else next((n.span for n in sums), None)
        if span is not None:
            inside = node.span.start <= span.start and span.end <= node.span.end
            body.cx.findings.error(
                "GS238",
                f"`{node.name}` uses an index, and no input or output has an axis",
                span if inside else node.name_span,
                help="declare an axis: `x[..., n]` and `y[..., n]`, with `y[i] = …`",
            )
            return


def _surrogates(node: nodes.RuleDef, body: Body) -> tuple[Definition, ...]:
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


def _is_exact(statement: Assignment) -> bool:
    return isinstance(statement, nodes.Assign) and statement.exact


def _examples(node: nodes.RuleDef, body: Body) -> tuple[Example, ...]:
    statements = (s for s in node.body if isinstance(s, nodes.Example))
    made = [read_example(s, body.made, body.cx.findings) for s in statements]
    return tuple(example for example in made if example is not None)


def with_spans(rule: Rule) -> Rule:
    """The rule with the ``spans`` of its outputs: the inputs that each depends on as
    written."""
    reach: dict[str, frozenset[str]] = {}
    used = {let.name: names(expand(let.value)) for let in rule.forward}
    for name in (*used, *used):  # twice: the values of a recurrence use later ones
        reach[name] = frozenset[str]().union(*(reach.get(n, {n}) for n in used[name]))

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
        n: Variable(n, NameRole.PARAMETER, Type.REAL, is_static=True) for n in names
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
    cx = replace(body.cx, scope=scope, placed=None)
    names = (*scope.variables, *scope.sizes, *scope.hidden)
    free = tuple(name for name in free_indices(node) if name.id not in names)
    bindings = make_bindings(free, cx)
    with scope.bind(bindings):
        value = cx.condition(node)
    if value is None:
        return None
    axes = [(b.id, solve(b, cx)) for b in bindings]
    ranges = tuple((name, axis) for name, axis in axes if axis is not None)
    return Assume(value.expr, ranges, node.span)


def _assume_scope(body: Body) -> Scope:
    inputs = {i.name: input_variable(i) for i in body.made.inputs}
    solved = [d.name for d in body.definitions if d.is_equation and d.is_forward]
    inputs |= {name: body.cx.scope.variables[name] for name in solved}
    others = (*body.cx.scope.variables, *body.cx.scope.hidden)
    hidden = {
        name: Hidden(
            "GS214",
            f"an assumption cannot name `{name}`: it is not an input",
            help="say what holds of the inputs and statics, or of what an equation defines",
        )
        for name in others
        if name not in inputs
    }
    return Scope(inputs, dict(body.made.sizes), hidden, sees="an assumption")


# --- surrogate -----------------------------------------------------------------------


def read_surrogate(
    node: nodes.Surrogate, body: Body, seen: dict[str, Span]
) -> Definition | None:
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
    return Definition(
        node.name,
        Role.SURROGATE,
        value.expr,
        tuple(b.id for b in bindings),
        axes or (),
        span=node.value.span,
    )


def _not_replaceable(node: nodes.Surrogate, output: Output | None, body: Body) -> None:
    names = tuple(o.name for o in body.made.outputs if o.takes_gradient)
    if output is None:
        headline = f"`{node.name}` is not an output: only an output has a surrogate"
    else:
        headline = f"output `{node.name}` ({output.kind.value}) takes no gradient, so a"
        headline += " surrogate has no effect"
    listed = ", ".join(f"`{name}`" for name in names)
    help = near(node.name, names) or f"outputs that can have one: {listed or 'none'}"
    meant = near_names(node.name, names)
    body.cx.findings.error("GS215", headline, node.name_span, help=help, meant=meant)


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
    if name in forward and forward.pop(name).role is not NameRole.INPUT:
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
            known = tuple(d.name for d in body.definitions if d.is_forward)
            is_unknown = name.id not in body.cx.scope.variables
            offer = _offer(known, node.word)
            help = (near(name.id, known) if is_unknown else "") or offer
            meant = near_names(name.id, known) if is_unknown else ()
            body.cx.findings.error("GS216", fault, name.span, help=help, meant=meant)


def _offer(known: tuple[str, ...], word: str) -> str:
    listed = ", ".join(f"`{name}`" for name in known)
    return f"forward values that can stand in `{word}`: {listed}" if known else ""


def _keep_fault(name: str, word: str, body: Body) -> str | None:
    variable = body.cx.scope.variables.get(name)
    if variable is None:
        return f"unknown name `{name}`"
    if variable.is_backward:
        return f"`{name}` belongs to the backward pass: only forward values are kept"
    if variable.role is NameRole.INPUT:
        return _keep_input_fault(variable, word, body)
    return None


def _keep_input_fault(variable: Variable, word: str, body: Body) -> str | None:
    input: Input = next(i for i in body.made.inputs if i.name == variable.name)
    if input.kind.is_static:
        return f"`{input.name}` is static: it is always at hand"
    if word == "recompute":
        return f"`{input.name}` is an input: it cannot be computed again"
    return None


# --- examples -------------------------------------------------------------------------


_NOT_FINITE = ("inf", "nan")
_TRUTHS = ("true", "false")


@dataclass(slots=True)
class _Reading:
    """One example as it is read: the sizes that its values give the axes, the batch
    shapes so far, and the shape that each gradient will have.
    """

    findings: Findings
    sizes: dict[str, int]
    batches: list[tuple[int, ...]]
    shapes: dict[str, tuple[int, ...]]


def read_example(
    node: nodes.Example, made: Declaration, findings: Findings
) -> Example | None:
    """The example with its values as written; None if it has a fault."""
    before = len(findings.diagnostics)
    reading = _Reading(findings, {}, [], {})
    given = {i.name: (i.kind, i.shape) for i in made.inputs}
    given |= {o.cotangent: _like(o) for o in made.outputs if o.takes_gradient}
    expected = {o.name: (o.kind, o.shape) for o in made.outputs}
    expected |= {i.cotangent: _like(i) for i in made.inputs if i.takes_gradient}
    first = _bindings(node.given, given, "given", reading)
    _check_missing(node, made, findings)
    second = _bindings(node.expected, expected, "expected", reading)
    if len(findings.diagnostics) > before:
        return None
    return Example(first, second, node.span)


def _like(variable: Input | Output) -> tuple[Kind, Shape]:
    return Kind.FLOAT, variable.shape


def _bindings(
    bindings: tuple[nodes.Binding, ...],
    allowed: Mapping[str, tuple[Kind, Shape]],
    word: str,
    reading: _Reading,
) -> tuple[tuple[str, Value], ...]:
    seen: dict[str, Value] = {}
    for binding in bindings:
        if binding.name not in allowed:
            _unknown(binding, tuple(allowed), word, reading.findings)
        elif binding.name in seen:
            _fault(reading, binding.span, f"`{binding.name}` stands twice")
        else:
            kind, shape = allowed[binding.name]
            seen[binding.name] = _value(binding.value, kind, reading)
            _check_shape(binding, kind, shape, word, reading)
    return tuple(seen.items())


def _unknown(
    binding: nodes.Binding, allowed: tuple[str, ...], word: str, findings: Findings
) -> None:
    listed = ", ".join(f"`{name}`" for name in allowed)
    side = {
        "given": "before the colon stand inputs and upstream gradients",
        "expected": "after the colon stand outputs and gradients of inputs",
    }[word]
    span = Span(binding.span.start, binding.span.start + len(binding.name))
    findings.error(
        "GS217",
        f"`{binding.name}` cannot be {word} in this example",
        span,
        help=near(binding.name, allowed) or f"{side}: {listed}",
        meant=near_names(binding.name, allowed),
    )


def _fault(reading: _Reading, span: Span, headline: str, help: str = "") -> None:
    reading.findings.error("GS217", f"in this example {headline}", span, help=help)


def _check_missing(node: nodes.Example, made: Declaration, findings: Findings) -> None:
    given = {b.name for b in node.given}
    needed = (i for i in made.inputs if i.default is None)
    missing = [f"`{i.name}`" for i in needed if i.name not in given]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        findings.error(
            "GS217",
            f"in this example {', '.join(missing)} {are} missing",
            node.span,
            help="give every input a value (statics with a default may be left out)",
        )


# --- values --------------------------------------------------------------------------


def _value(node: nodes.Literal, kind: Kind, reading: _Reading) -> Value:
    match node:
        case nodes.Scalar(text=text, span=span):
            _check_kind(text, kind, span, reading)
            return text
        case nodes.Vector(items=items):
            return tuple(_value(item, kind, reading) for item in items)
        case _:
            assert_never(node)


def _check_kind(text: str, kind: Kind, span: Span, reading: _Reading) -> None:
    digits = text.lstrip("+-")
    if (digits in _TRUTHS) != (kind is Kind.BOOL):
        wanted = "true or false" if kind is Kind.BOOL else "a number"
        _fault(reading, span, f"`{text}` should be {wanted}")
    elif kind in (Kind.INT, Kind.STATIC_INT) and not _is_whole(digits):
        _fault(reading, span, f"`{text}` should be an integer")
    elif kind.is_static and digits in _NOT_FINITE:
        _fault(reading, span, f"`{text}` should be finite: it is for a static input")


def _is_whole(digits: str) -> bool:
    return digits not in _NOT_FINITE and Fraction(digits).denominator == 1


# --- shapes --------------------------------------------------------------------------


def _dimensions(node: nodes.Literal) -> tuple[int, ...] | None:
    """The shape of nested brackets; None if they are ragged."""
    if isinstance(node, nodes.Scalar):
        return ()
    below = [_dimensions(item) for item in node.items]
    if not below or any(part is None or part != below[0] for part in below):
        return None if below else (0,)
    return (len(below), *(below[0] or ()))


def _check_shape(
    binding: nodes.Binding, kind: Kind, shape: Shape, word: str, reading: _Reading
) -> None:
    span, name = binding.value.span, binding.name
    found = _dimensions(binding.value)
    if found is None:
        _fault(reading, span, f"the rows of `{name}` differ in length")
        return
    if kind.is_static and found:
        _fault(reading, span, f"`{name}` should be one number: it is static")
        return
    rank, own = len(found), len(shape.axes)
    if rank < own or (rank > own and not shape.batch):
        _fault(reading, span, f"`{name}` should have {_rank(shape)}, and has {rank}")
        return
    _check_sizes(binding, found[rank - own :], shape, reading)
    if word == "given" and not kind.is_static:
        reading.shapes[f"d{name}"] = found
        _check_batch(binding, found[: rank - own], reading)
    elif reading.shapes.get(name, found) != found:
        what = f"`{name}` has the shape {found}, and its input {reading.shapes[name]}"
        _fault(reading, span, what)


def _rank(shape: Shape) -> str:
    least = "at least " if shape.batch else ""
    return f"{least}{len(shape.axes)} dimension{'' if len(shape.axes) == 1 else 's'}"


def _check_sizes(
    binding: nodes.Binding, found: tuple[int, ...], shape: Shape, reading: _Reading
) -> None:
    for size, axis in zip(found, shape.axes, strict=True):
        known = axis if isinstance(axis, int) else reading.sizes.setdefault(axis, size)
        if size != known:
            what = f"axis `{axis}` of `{binding.name}` has size {size} and not {known}"
            _fault(reading, binding.value.span, what)


def _check_batch(
    binding: nodes.Binding, found: tuple[int, ...], reading: _Reading
) -> None:
    for other in reading.batches:
        pairs = zip(reversed(found), reversed(other), strict=False)
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            what = f"the shape {found} of `{binding.name}` does not broadcast with"
            _fault(reading, binding.value.span, f"{what} {other} of a value before it")
            return
    reading.batches.append(found)
