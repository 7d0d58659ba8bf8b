"""The private core of a rule: `tf.custom_gradient` over positional tensors.

Statics are closed over, once for each value; the backward pass is plain operations, so
that it can be differentiated again; every term is reduced to its input's shape before
terms are added, because TensorFlow does not check the shape of a gradient.
"""

from __future__ import annotations

from gradspec.ir.rule import Kind, Output
from gradspec.plan.array import Expr, Where
from gradspec.plan.plan import Term
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    indented,
    tightened,
)
from gradspec.targets.python import is_scalar, render, render_atom
from gradspec.targets.signature import fresh, variables
from gradspec.targets.tf_parts import Core
from gradspec.targets.tf_trace import traced_forward, traced_gradient


def core_lines(core: Core) -> Lines:
    """The core, or where there are statics the function that makes it for their values."""
    decorators = ["@tf.custom_gradient"]
    if core.is_strict:
        decorators.insert(0, "@tf.function(autograph=False, reduce_retracing=True)")
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


def _body(core: Core) -> Lines:
    statements = assignments(core.forward.statements, core.scope)
    results = []
    for output, value in zip(core.plan.outputs, core.forward.results, strict=True):
        text = _result(core, output, value)
        results.append(text if text.isidentifier() else output.name)
        statements += assignment(results[-1], text)
    statements += traced_forward(core)
    returned = f"({', '.join(results)})" if len(results) > 1 else results[0]
    return [
        *([*statements, ""] if statements else []),
        *_backward(core),
        "",
        f"return {returned}, backward",
    ]


def _result(core: Core, output: Output, value: Expr) -> str:
    text = render(value, core.scope)
    if is_scalar(value, core.scope):
        text = _constant(core, output, text)
    return f"tf.cast({text}, tf.int64)" if output.kind is Kind.INT else text


def _constant(core: Core, output: Output, value: str) -> str:
    """A constant output has the shape to which the inputs broadcast."""
    shape = f"tf.shape({core.tensors[0]})"
    for name in core.tensors[1:]:
        shape = f"tf.broadcast_dynamic_shape({shape}, tf.shape({name}))"
    if output.kind in (Kind.INT, Kind.BOOL) or not core.floats:
        return f"tf.fill({shape}, {value})"
    return f"tf.fill({shape}, tf.constant({value}, {core.floats[0]}.dtype))"


# --- backward --------------------------------------------------------------------------


def _backward(core: Core) -> Lines:
    params = [
        f"d{o.name}" if o.takes_gradient else f"_{o.name}" for o in core.plan.outputs
    ]
    body = assignments(core.backward.statements, core.scope)
    for name, terms in core.gradients.items():
        comments = [term.comment for term in terms if term.comment]
        body += assignment(f"d{name}", _sum(core, name, terms), "\n".join(comments))
        body += traced_gradient(core, name)
    returned = [f"d{v}" if v in core.gradients else "None" for v in core.tensors]
    body.append(f"return {', '.join(returned)}")
    return [f"def backward({', '.join(params)}):", *indented(tightened(body))]


def _sum(core: Core, name: str, terms: tuple[Term, ...]) -> str:
    if not terms:
        return f"tf.zeros_like({name})"
    return " + ".join(_shaped(core, name, term) for term in terms)


def _shaped(core: Core, name: str, term: Term) -> str:
    text = render(term.value, core.scope)
    if isinstance(term.value, Where):
        text = render_atom(term.value, core.scope)
    if core.is_filled(name, term):
        text = f"tf.zeros_like({name}) + {render_atom(term.value, core.scope)}"
    return f"_unbroadcast({text}, {name})" if core.is_reduced(name, term) else text
