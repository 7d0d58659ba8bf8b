"""One rule in TensorFlow: the public function itself, as `tf.custom_gradient` takes it.

Its body has the forward pass and, as a nested function, the backward pass, which are
plain operations and can be differentiated again. The decorator does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.arrays import Expr, Name, Op, names
from gradspec.plan.plan import Term
from gradspec.plan.program import Program
from gradspec.targets import lines as traces
from gradspec.targets.docstring import docstring
from gradspec.targets.expressions import Scope, render
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    indented,
    keywords,
    kinds_of,
    listed,
    marked,
    parameters,
    returned,
    tightened,
)
from gradspec.targets.page import Page
from gradspec.targets.target import Definition
from gradspec.targets.tf.dialect import scope_of
from gradspec.targets.tf.layer import is_activation, layer_class, registration

_DISCRETE = ("integer", "boolean")
_TENSOR = "tf.Tensor"


def definitions(program: Program, page: Page, *, trace: bool) -> list[Definition]:
    """The function, and the layer of a rule with params."""
    scope = scope_of(program, page)
    result = f"{page.core('Result')}[{returned(program, _TENSOR)}]"
    lines = [
        *([registration(page)] if is_activation(program) else []),
        _decorator(program, page),
        f"def {program.name}({parameters(program, _TENSOR)}) -> {result}:",
        docstring(program.docs),
        *indented(_body(program, scope, trace)),
    ]
    function = Definition(lines, (program.name,))
    layer = layer_class(program, page)
    return [function] if layer is None else [function, layer]


def _decorator(program: Program, page: Page) -> str:
    words = ", ".join(_keywords(program))
    return f"@{page.core('custom_gradient')}" + (f"({words})" if words else "")


def _keywords(program: Program) -> Iterable[str]:
    if program.is_double:
        yield "precision=tf.float64"
    if not program.is_linear:
        yield "is_linear=False"
    ended = [k for k, o in enumerate(program.outputs) if o.kind is Kind.NOGRAD]
    if ended:
        yield f"nograd={ended}"
    kinds = {n: k for n, k in kinds_of(program).items() if k in _DISCRETE}
    yield from keywords(program, kinds)


def _body(program: Program, scope: Scope, trace: bool) -> Lines:
    backward = program.local("backward")
    statements, results = _forward(program, scope, trace)
    before = [*_sizes(program, scope.page, trace), *statements]
    behind = _backward(program, scope, trace)
    cotangents = ", ".join(marked((f"d{o.name}" for o in program.outputs), behind))
    return [
        *before,
        "",
        f"def {backward}({cotangents}):",
        *indented(tightened(behind)),
        "",
        f"return {listed(results)}, {backward}",
    ]


# --- forward ---------------------------------------------------------------------------


def _forward(program: Program, scope: Scope, trace: bool) -> tuple[Lines, list[str]]:
    """Statements, and the texts of the outputs; one that the backward pass uses is
    named.
    """
    block, used = program.forward, names(*program.backward_values)
    outputs = {output.name: output for output in program.outputs}
    lines: Lines = []
    for s in block.statements:
        if s.name in outputs:
            text = _output(program, outputs[s.name], s.value, scope)
        else:
            text = render(s.value, scope)
        lines += assignment(s.name, text, s.comment)
    named, results = {s.name for s in block.statements}, []
    for output, value in zip(program.outputs, block.results, strict=True):
        if value == Name(output.name) and output.name in named:
            results.append(output.name)
            continue
        text = _output(program, output, value, scope)
        if output.name in used or trace:
            lines += assignment(output.name, text)
            text = output.name
        results.append(text)
    if trace:
        lines.append(_shown(program, traces.ends(program), scope.page))
    return lines, results


def _shown(program: Program, values: traces.Shown, page: Page) -> str:
    return f"{page.core('show')}({traces.template(program, values)})"


def _output(program: Program, output: Output, value: Expr, scope: Scope) -> str:
    """The text of an output; a number takes the shape to which its inputs broadcast."""
    text = render(value, scope)
    if program.may_be_number(value):
        text = f"{scope.page.core('filled')}({text}, {', '.join(program.like(output))})"
    elif output.kind is not Kind.INT:
        return text
    to = {Kind.INT: "tf.int64", Kind.BOOL: "tf.bool"}.get(output.kind)
    return f"tf.cast({text}, {to})" if to else text


def _sizes(program: Program, page: Page, trace: bool) -> Lines:
    """Sizes of axes, for both passes."""
    values = [*program.forward_values, *program.backward_values]
    values += program.shown_values if trace else []
    found = program.sizes_of(values, [i.name for i in program.tensors])
    size = page.core("size") if found else ""
    return [f"{name} = {size}({array}, {axis})" for name, array, axis in found]


# --- backward --------------------------------------------------------------------------


def _needs_shape(program: Program, term: Term) -> bool:
    """True for a choice by a number, which may be a number; in a linear gradient that
    is 0.
    """
    return program.takes_shape(term) and not (term.upstream and program.is_linear)


def _backward(program: Program, scope: Scope, trace: bool) -> Lines:
    lines = assignments(program.backward.statements, scope)
    found = []
    for i, group in program.groups:
        text = _gradient(program, i, group, scope)
        if group is None:
            found.append("None")
            continue
        comment = "\n".join(term.comment for term in group if term.comment)
        if comment or trace:
            lines += assignment(f"d{i.name}", text, comment)
            text = f"d{i.name}"
        if trace:
            shown = traces.terms(program, i.name, f"d{i.name}", scope)
            lines += [_shown(program, values, scope.page) for values in shown]
        found.append(text)
    return [*lines, f"return {', '.join(found)}"]


def _gradient(
    program: Program, i: Input, group: tuple[Term, ...] | None, scope: Scope
) -> str:
    if group is None:
        return "None"
    if not group:
        return f"tf.zeros_like({i.name})"
    if len(group) == 1:
        return _term(program, group[0], scope)
    shapes = {frozenset(term.spans) for term in group}
    if len(shapes) == 1 and not any(_needs_shape(program, term) for term in group):
        total = group[0].value
        for term in group[1:]:
            total = Op("add", (total, term.value))
        return render(total, scope)
    reduce = scope.page.core("sum_to")
    return " + ".join(
        f"{reduce}({_term(program, term, scope)}, {i.name})" for term in group
    )


def _term(program: Program, term: Term, scope: Scope) -> str:
    """A term of a gradient; one without a cotangent has the shape of the outputs."""
    text = render(term.value, scope)
    if not _needs_shape(program, term):
        return text
    return f"{scope.page.core('filled')}({text}, {', '.join(program.cotangents)})"
