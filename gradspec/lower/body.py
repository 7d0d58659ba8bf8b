"""The assignments of a rule: outputs, locals of either pass, gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gradspec.ir.expr import Expr, Ref
from gradspec.ir.rule import Definition, Input, Kind, Origin, Output, Role
from gradspec.ir.walk import nodes as expr_nodes
from gradspec.lower.arrays import letters
from gradspec.lower.calls import array_of, is_whole
from gradspec.lower.context import (
    UNKNOWN,
    Binding,
    Context,
    Hidden,
    NameRole,
    Scope,
    Variable,
)
from gradspec.lower.equations import as_definition
from gradspec.lower.header import Declaration
from gradspec.lower.indices import make_bindings, solve, stand
from gradspec.lower.module import DEEPEST, Value, depth, type_of_kind
from gradspec.source import Span
from gradspec.syntax import nodes

Assignment = nodes.Assign | nodes.Override | nodes.Solve


@dataclass(slots=True)
class Body:
    """A rule's body as far as it has been read."""

    cx: Context
    made: Declaration
    definitions: list[Definition] = field(default_factory=list)
    assigned: dict[str, Span] = field(default_factory=dict)


# --- what is in view -----------------------------------------------------------------


def first_scope(
    made: Declaration,
    assignments: tuple[Assignment, ...],
    states: Mapping[str, Variable],
) -> Scope:
    """Inputs, upstream gradients and the values of recurrences; every other name waits
    for its assignment."""
    scope = Scope(sizes=dict(made.sizes))
    for variable in made.variables:
        _hide_gradient(variable, scope)
    for output in made.outputs:
        scope.variables[output.name] = Variable(output.name, NameRole.OUTPUT, None)
    for assignment in assignments:
        _hide_until(assignment, scope)
    for input in made.inputs:
        scope.variables[input.name] = input_variable(input)
        scope.hidden.pop(input.name, None)
    for output in made.outputs:
        if output.takes_gradient:
            _show_upstream(output, scope)
    for name, state in states.items():
        scope.variables[name] = state
        scope.hidden.pop(name, None)
    return scope


def _hide_gradient(variable: Input | Output, scope: Scope) -> None:
    name = variable.cotangent
    if not variable.takes_gradient:
        scope.hidden[name] = Hidden(
            "GS212",
            f"there is no `{name}`: `{variable.name}` ({variable.kind.value}) takes no"
            " gradient",
            help=f"leave `: {variable.kind.value}` out to give it one",
        )
    elif isinstance(variable, Input):
        scope.hidden[name] = Hidden(
            "GS208",
            f"`{name}` is not assigned in this rule, so it has no value here",
            "it is derived after the whole body",
            f"assign `{name}` first, or write its formula here",
        )


def _hide_until(assignment: Assignment, scope: Scope) -> None:
    name = assignment.name
    if scope.hidden.get(name, Hidden("GS208", "")).code == "GS208":
        scope.variables.pop(name, None)
        scope.hidden[name] = Hidden(
            "GS208",
            f"`{name}` is used before it is assigned",
            "it has no value yet",
            "a name is assigned once, above its first use",
        )


def _show_upstream(output: Output, scope: Scope) -> None:
    name = output.cotangent
    scope.hidden.pop(name, None)
    scope.variables[name] = Variable(
        name,
        NameRole.UPSTREAM,
        type_of_kind(output.kind),
        output.shape.axes,
        output.shape.batch,
        is_backward=True,
    )


def input_variable(input: Input) -> Variable:
    """An input as expressions see it."""
    static = input.kind.is_static
    return Variable(
        input.name,
        NameRole.INPUT,
        type_of_kind(input.kind),
        input.shape.axes,
        batch=input.shape.batch and not static,
        is_static=static,
    )


# --- assignments ---------------------------------------------------------------------


def _hide_from_itself(node: Assignment, body: Body) -> None:
    """Say of a name that stands in its own definition why it is no recurrence."""
    name, hidden = node.name, body.cx.scope.hidden
    if name in hidden and hidden[name].code == "GS208":
        help = f"give the new value a name of its own, such as `{name}1`"
        if node.indices:
            help = (
                f"give the recurrence a name of its own, `g[t] = … g[t + 1] …`, and"
                f" write `{name}[t] = g[t]`"
            )
        hidden[name] = Hidden(
            "GS208",
            f"`{name}` is defined by itself",
            "its own value is not known here",
            help,
        )


def read_assignment(node: Assignment, body: Body) -> None:
    """One assignment, filed where its name says that it belongs."""
    _hide_from_itself(node, body)
    outputs = {o.name: o for o in body.made.outputs}
    gradients = {i.cotangent: i for i in body.made.inputs if i.takes_gradient}
    if node.name in body.made.ambiguous:
        read_value(node, None, body.cx, body.cx.lower)
        return
    fault = _refusal(node, body, tuple(gradients))
    if fault is not None:
        code, headline, help = fault
        body.cx.findings.error(code, headline, node.name_span, help=help)
        read_value(node, None, body.cx, body.cx.lower)
        if node.name not in body.cx.scope.variables:
            _show_faulty(node.name, body)
    elif _again(node, body):
        read_value(node, None, body.cx, body.cx.lower)
    elif isinstance(node, nodes.Solve):
        _read_equation(node, outputs.get(node.name), body)
    elif node.name in outputs:
        _read_output(node, outputs[node.name], body)
    elif node.name in gradients:
        _read_gradient(node, gradients[node.name], body)
    else:
        _read_local(node, body)


def _refusal(
    node: Assignment, body: Body, gradients: tuple[str, ...]
) -> tuple[str, str, str] | None:
    """Code, headline and help if this name cannot be assigned."""
    name = node.name
    inputs = {i.name for i in body.made.inputs}
    variables = {v.cotangent: v for v in body.made.variables}
    if name in inputs:
        help = f"inputs keep their values: use another name, such as `{name}1`"
        return "GS206", f"`{name}` is an input and cannot be assigned", help
    if name in variables and name not in gradients:
        owner = variables[name]
        if owner.takes_gradient:
            help = "use another name for a local; the gradients of inputs are assigned"
            what = f"`{name}` is the upstream gradient of output `{owner.name}`"
            return "GS206", f"{what}: it is given, not assigned", help
        what = f"`{owner.name}` ({owner.kind.value}) takes no gradient"
        help = "leave this line out; if a local is meant, give it another name"
        return "GS212", f"{what}, so `{name}` cannot be assigned", help
    if name in body.made.sizes:
        return "GS206", f"`{name}` is the size of an axis", "use another name"
    if isinstance(node, nodes.Solve) and name in gradients:
        help = f"solve an adjoint state, `solve u: …`, and write `{name} = …` with it"
        return "GS206", f"`{name}` is a gradient: no equation can define it", help
    if isinstance(node, nodes.Override) and name not in gradients:
        listed = ", ".join(f"`{g}`" for g in gradients) or "none here"
        help = f"the gradients that can be overridden: {listed}"
        return "GS212", f"`{name}` is not the gradient of an input", help
    return None


def _again(node: Assignment, body: Body) -> bool:
    first = body.assigned.setdefault(node.name, node.name_span)
    if first is node.name_span:
        return False
    help = "use a name of its own for each value"
    body.cx.findings.twice("GS207", node, first, "assigned", help)
    return True


def _read_output(node: Assignment, output: Output, body: Body) -> None:
    cx = body.cx
    bindings, value = read_value(node, output.shape.axes, cx, _reader(output.kind, cx))
    if value is None:
        _show_faulty(node.name, body)
        return
    _check_forward(value, node, cx)
    _check_batch(value, node, output, cx)
    axes = output.shape.axes
    _define(node, Role.OUTPUT, value, bindings, axes, body)
    type = type_of_kind(output.kind)
    _show(Variable(node.name, NameRole.OUTPUT, type, axes, output.shape.batch), body)


def _read_gradient(node: Assignment, input: Input, body: Body) -> None:
    axes = input.shape.axes
    bindings, value = read_value(node, axes, body.cx, body.cx.number)
    if value is None:
        _show_faulty(node.name, body)
        return
    _define(node, Role.COTANGENT, value, bindings, axes, body)
    type = type_of_kind(input.kind)
    batch = input.shape.batch
    _show(Variable(node.name, NameRole.COTANGENT, type, axes, batch, True), body)


def _read_equation(node: nodes.Solve, output: Output | None, body: Body) -> None:
    """An equation: the definition whose value is the state without the residual."""
    axes = None if output is None else output.shape.axes
    arranged = as_definition(node, axes, body.cx)
    if arranged is None:
        _show_faulty(node.name, body)
        return
    if output is not None:
        _read_output(arranged, output, body)
    else:
        _read_local(arranged, body)
    if node.start is not None:
        at = replace(arranged, value=node.start)
        _, start = read_value(at, axes, body.cx, body.cx.number)
    if body.definitions and body.definitions[-1].name == node.name:
        made = body.definitions[-1]
        expr = start.expr if node.start is not None and start is not None else None
        body.definitions[-1] = replace(made, is_equation=True, start=expr)


def _define(
    node: Assignment,
    role: Role,
    value: Value,
    bindings: tuple[Binding, ...],
    axes: tuple[str | int, ...],
    body: Body,
) -> None:
    """Add the definition of an assignment; the place of a cotangent is its value's."""
    is_override = isinstance(node, nodes.Override)
    body.definitions.append(
        Definition(
            node.name,
            role,
            value.expr,
            tuple(b.id for b in bindings),
            axes,
            Origin.OVERRIDE if is_override else Origin.WRITTEN,
            node.value.span if role is Role.COTANGENT else node.span,
            node.reason if isinstance(node, nodes.Override) else "",
        )
    )


def _read_local(node: Assignment, body: Body) -> None:
    bindings, value = read_value(node, None, body.cx, body.cx.lower)
    if value is None:
        _show_faulty(node.name, body)
        return
    axes = tuple(a for b in bindings if (a := solve(b, body.cx)) is not None)
    if len(axes) < len(bindings):
        _show_faulty(node.name, body)
        return
    role = Role.BACKWARD_LOCAL if value.is_backward else Role.LOCAL
    _define(node, role, value, bindings, axes, body)
    _show(
        Variable(
            node.name,
            NameRole.LOCAL,
            value.type,
            axes,
            value.batch,
            value.is_backward,
            value.is_static,
        ),
        body,
    )


def _reader(kind: Kind, cx: Context) -> Callable[[nodes.Expr], Value | None]:
    """The reader that accepts values of this kind."""
    match kind:
        case Kind.BOOL:
            return cx.condition
        case Kind.INT:
            return lambda node: cx.integer(node, "an `int` output")
        case _:
            return cx.number


def _show(variable: Variable, body: Body) -> None:
    body.cx.scope.hidden.pop(variable.name, None)
    body.cx.scope.variables[variable.name] = variable


def _show_faulty(name: str, body: Body) -> None:
    """Add a faulty name, so that its uses cause no further diagnostics."""
    _show(Variable(name, NameRole.LOCAL, None), body)


# --- growth ---------------------------------------------------------------------------


def check_growth(body: Body) -> None:
    """Limit the depth of locals once they are inlined."""
    depths: dict[str, int] = {}
    for let in (d for d in body.definitions if d.role is not Role.COTANGENT):
        depths[let.name] = depth(let.value, depths)
        if depths[let.name] > DEEPEST:
            is_deep = depth(let.value, {}) > DEEPEST
            cause = "" if is_deep else " when the locals that it uses are put in place"
            body.cx.findings.error(
                "GS224",
                f"`{let.name}` is too deep{cause}",
                body.assigned.get(let.name, let.span),
                notes=(f"at most {DEEPEST} operations inside one another",),
                help="divide the rule: a rule that is called is not put in place",
            )
            return


# --- both sides ----------------------------------------------------------------------


def read_value(
    node: Assignment | nodes.Surrogate,
    axes: tuple[str | int, ...] | None,
    cx: Context,
    read: Callable[[nodes.Expr], Value | None],
) -> tuple[tuple[Binding, ...], Value | None]:
    """The right side with the left side's indices in force. ``axes`` are those that
    the left side must have, None for those that the right side gives it.
    """
    if node.indices is None and is_whole(node.value, cx):
        spelled = _element_of_whole(node, axes, cx)
        if spelled is None:
            return (), None
        node = spelled
    bindings = _left_indices(node, axes, cx)
    with cx.scope.bind(bindings or ()):
        value = read(node.value)
    return (bindings, value) if bindings is not None else ((), None)


def _element_of_whole(
    node: Assignment | nodes.Surrogate, axes: tuple[str | int, ...] | None, cx: Context
) -> Assignment | nodes.Surrogate | None:
    """``y = softmax(x)`` as ``y[i] = softmax(x)[i]``."""
    array = array_of(node.value, cx)
    if array is None or not isinstance(node.value, nodes.Call):
        return None
    if not array.axes:
        return node
    if axes is not None and axes != array.axes and UNKNOWN not in array.axes:
        shown = [
            f"axes ({', '.join(map(str, one))})" if one else "no axes"
            for one in (axes, array.axes)
        ]
        cx.findings.error(
            "GS219",
            f"`{node.name}` has {shown[0]}, and this result has {shown[1]}",
            node.value.span,
            help=f"name the indices: `{node.name}[i] = {node.value.function}(…)[…]`",
        )
        return None
    free = iter(letters((*cx.scope.variables, *cx.scope.sizes)))
    names = tuple(nodes.Name(next(free), span=node.value.span) for _ in array.axes)
    return replace(node, indices=names, value=replace(node.value, indices=names))


def _left_indices(
    node: Assignment | nodes.Surrogate, axes: tuple[str | int, ...] | None, cx: Context
) -> tuple[Binding, ...] | None:
    given = node.indices or ()
    plain = tuple(index for index in given if isinstance(index, nodes.Name))
    if len(plain) < len(given):
        odd = next(index for index in given if not isinstance(index, nodes.Name))
        cx.findings.error(
            "GS236",
            "on the left side an index is a plain name",
            odd.span,
            help=f"write `{node.name}[i] = …`, with a condition on `i` at the right",
        )
        return None
    bindings = make_bindings(plain, cx)
    if axes is None or len(bindings) < len(plain):
        return bindings
    if len(axes) != len(bindings):
        _wrong_left(node, axes, cx)
        return None
    for binding, axis in zip(bindings, axes, strict=True):
        if binding.is_ranged:
            stand(binding, axis, node.name_span, cx)
        else:
            binding.axis, binding.place = axis, binding.span
    return bindings


def _wrong_left(
    node: Assignment | nodes.Surrogate, axes: tuple[str | int, ...], cx: Context
) -> None:
    listed = ", ".join(str(axis) for axis in axes)
    wanted = ", ".join("ijklmnpqrs"[: len(axes)])
    cx.findings.error(
        "GS232",
        f"`{node.name}` has axes ({listed}): it takes one index for each"
        if axes
        else f"`{node.name}` has no axes: it takes no index",
        node.name_span,
        help=f"write `{node.name}[{wanted}] = …`"
        if axes
        else f"write `{node.name} = …`, or give it axes in the header",
    )


# --- what an output may be made of ---------------------------------------------------


def _check_forward(value: Value, node: Assignment, cx: Context) -> None:
    if value.is_backward:
        name, span = _guilty(value.expr, cx, lambda v: v.is_backward)
        help = "outputs are made of inputs and forward locals"
        if cx.scope.variables[name].role is NameRole.COTANGENT:
            help = (
                f"`{name}` is the gradient of `{name[1:]}`: if a local is meant, give"
            )
            help += " it another name"
        cx.findings.error(
            "GS213",
            f"output `{node.name}` uses `{name}`, which exists in the backward pass only",
            span or node.value.span,
            help=help,
        )


def _check_batch(value: Value, node: Assignment, output: Output, cx: Context) -> None:
    if value.batch and not output.shape.batch and not value.is_backward:
        name, span = _guilty(value.expr, cx, lambda v: v.batch)
        axes = ", ".join(("...", *(str(axis) for axis in output.shape.axes)))
        cx.findings.error(
            "GS237",
            f"output `{node.name}` has no batch axes, and `{name}` may have some",
            span or node.value.span,
            help=f"declare `{node.name}[{axes}]`, or `{name}` without batch axes",
        )


def _guilty(
    expr: Expr, cx: Context, is_guilty: Callable[[Variable], bool]
) -> tuple[str, Span | None]:
    """The first name of ``expr`` that causes the error, and its place."""
    for node in expr_nodes(expr):
        if isinstance(node, Ref) and is_guilty(cx.scope.variables[node.name]):
            return node.name, node.span
    raise AssertionError("a value has its properties from a name in it")
