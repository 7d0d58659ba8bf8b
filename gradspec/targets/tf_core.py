"""The private core of a rule, over positional tensors: outputs, and the backward pass.

Statics are closed over, once for each value; the backward pass is plain operations, so
that it can be differentiated again; every term is reduced to its input's shape before
terms are added, because TensorFlow does not check the shape of a gradient.
"""

from __future__ import annotations

from collections.abc import Callable

from gradspec.ir.rule import Kind, Output
from gradspec.plan.array import names
from gradspec.plan.plan import Term
from gradspec.plan.pushing import is_linear
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    indented,
    tightened,
)
from gradspec.targets.python import (
    is_scalar,
    may_be_number,
    render,
    render_atom,
    render_filled,
)
from gradspec.targets.signature import fresh, variables
from gradspec.targets.tf_parts import Core
from gradspec.targets.tf_trace import traced_forward, traced_gradient


def core_lines(core: Core) -> Lines:
    """The core, or where there are statics the function that makes it for their values."""
    decorators = [_decorator(core)]
    params = ", ".join(core.tensors)
    inner = fresh(core.plan.name, variables(core.plan))
    if not core.statics:
        return [*decorators, f"def {core.name}({params}):", *indented(_body(core))]
    return [
        "@functools.lru_cache",
        f"def {core.name}({', '.join(core.statics)}):",
        *indented(decorators),
        f"    def {inner}({params}):",
        *indented(indented(_body(core))),
        "",
        f"    return {inner}",
    ]


def decorating(core: Core) -> tuple[str, ...]:
    """The helper that makes a rule of the core, and what it is given beside."""
    helper = "_rule_keeping" if core.keeps else "_rule"
    return (helper,) if is_linear(core.plan) else (helper, "_no_forward_mode")


def _decorator(core: Core) -> str:
    helper, *forward = decorating(core)
    if not forward:
        return f"@{helper}"
    return f"@functools.partial({helper}, forward={forward[0]})"


def _body(core: Core) -> Lines:
    returned = [
        output.name
        if output.kind is Kind.INT or is_scalar(value, core.scope)
        else render(value, core.scope)
        for output, value in zip(core.plan.outputs, core.forward.results, strict=True)
    ]
    statements = [*_sizes(core), *_statements(core), *traced_forward(core)]
    several = f"({', '.join(returned)})" if len(returned) > 1 else returned[0]
    return [
        *([*statements, ""] if statements else []),
        *_backward(core),
        "",
        f"return {several}, backward",
    ]


def _sizes(core: Core) -> Lines:
    """Sizes of axes, for both passes."""
    lines = []
    for size in core.sizes:
        name, axis = next(place for place in size.places if place[0] in core.tensors)
        lines.append(f"{size.name} = _size({name}, {axis})")
    return lines


def _statements(core: Core) -> Lines:
    """Locals and outputs; those that depend on no tensor come last."""
    outputs = {output.name: output for output in core.plan.outputs}
    lines: Lines = []
    for s in core.forward.statements:
        text = render(s.value, core.scope)
        if s.name in outputs:
            text = render_filled(s.value, core.scope, _fill(core, outputs[s.name]))
        lines += assignment(s.name, text, s.comment)
    for output, value in zip(core.plan.outputs, core.forward.results, strict=True):
        name = render(value, core.scope)
        if is_scalar(value, core.scope):
            text = render_filled(value, core.scope, _fill(core, output))
            name, lines = output.name, [*lines, f"{output.name} = {text}"]
        if output.kind is Kind.INT:
            lines += assignment(output.name, f"tf.cast({name}, tf.int64)")
    return lines


def _fill(core: Core, output: Output) -> Callable[[str], str]:
    """A constant output has the shape to which the inputs broadcast."""
    shape = f"tf.shape({core.tensors[0]})"
    for name in core.tensors[1:]:
        shape = f"tf.broadcast_dynamic_shape({shape}, tf.shape({name}))"
    if output.kind in (Kind.INT, Kind.BOOL) or not core.floats:
        return lambda value: f"tf.fill({shape}, {value})"
    like = core.floats[0]
    return lambda value: f"tf.fill({shape}, tf.constant({value}, {like}.dtype))"


# --- backward --------------------------------------------------------------------------


def _backward(core: Core) -> Lines:
    params = [
        f"d{o.name}" if o.takes_gradient else f"_{o.name}" for o in core.plan.outputs
    ]
    body = assignments(core.backward.statements, core.scope)
    for name in _order(core):
        terms = core.gradients[name]
        comments = [term.comment for term in terms if term.comment]
        body += assignment(f"d{name}", _sum(core, name, terms), "\n".join(comments))
        body += traced_gradient(core, name)
    returned = [f"d{v}" if v in core.gradients else "None" for v in core.tensors]
    body.append(f"return {', '.join(returned)}")
    return [f"def backward({', '.join(params)}):", *indented(tightened(body))]


def _order(core: Core) -> tuple[str, ...]:
    """The inputs, one before another of which it uses the gradient (``dz = -dx``): that
    has the shape of its own input once it is assigned.
    """
    uses = {
        name: set(names(*(term.value for term in terms))) - {f"d{name}"}
        for name, terms in core.gradients.items()
    }
    order: list[str] = []
    while uses:
        free = (n for n in uses if not any(f"d{n}" in used for used in uses.values()))
        name = next(free, next(iter(uses)))
        order.append(name)
        del uses[name]
    return tuple(order)


def _sum(core: Core, name: str, terms: tuple[Term, ...]) -> str:
    if not terms:
        return f"tf.zeros_like({name})"
    if len(terms) == 1:
        return _shaped(core, name, terms[0])
    texts = [_shaped(core, name, term) for term in terms]
    pairs = zip(texts, terms, strict=True)
    return " + ".join(
        f"({text})" if may_be_number(term.value, core.scalars) else text
        for text, term in pairs
    )


def _shaped(core: Core, name: str, term: Term) -> str:
    """A term with exactly the input's axes."""
    value = term.value
    text = render_filled(value, core.scope, lambda number: _full_like(name, number))
    if core.is_number(term):
        return text
    if core.lacks_axes(name, term):
        text = f"tf.zeros_like({name}) + {render_atom(value, core.scope)}"
    return f"_unbroadcast({text}, {name})" if core.is_reduced(name, term) else text


def _full_like(name: str, number: str) -> str:
    zeros = f"tf.zeros_like({name})"
    return zeros if number in ("0", "0.0") else f"{zeros} + {number}"
