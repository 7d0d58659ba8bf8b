"""The private core of a rule, over positional tensors: outputs, and the backward pass.

Statics are closed over, once for each value; the backward pass is plain operations, so
that it can be differentiated again; every term is reduced to its input's shape before
terms are added, because TensorFlow does not check the shape of a gradient.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gradspec.ir.rule import Kind, Output
from gradspec.plan.array import Expr, Name, names
from gradspec.plan.plan import Term
from gradspec.plan.pushing import is_linear
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    indented,
    tightened,
    unpacked,
)
from gradspec.targets.python import (
    is_scalar,
    may_be_number,
    render,
    render_atom,
    render_filled,
)
from gradspec.targets.signature import fresh, variables
from gradspec.targets.tf_blocks import is_in_blocks, is_in_parts
from gradspec.targets.tf_double import short_name
from gradspec.targets.tf_parts import Core
from gradspec.targets.tf_trace import traced_forward, traced_gradient


def core_lines(core: Core) -> Lines:
    """The core, or where there are statics the function that makes it for their values."""
    decorators = [_decorator(core), *(["@_in_blocks"] if is_in_blocks(core) else [])]
    decorators += ["@_in_parts"] if is_in_parts(core) else []
    short: Lines = []
    if core.short:
        decorators.append(f"@_or_double({short_name(core)})")
        short = _short_lines(core.short, short_name(core))
    params = ", ".join(core.tensors)
    inner = fresh(core.plan.name, variables(core.plan))
    if not core.statics:
        whole = [*decorators, f"def {core.name}({params}):", *indented(_body(core))]
        return [*short, *(["", ""] if short else []), *whole]
    return [
        "@functools.lru_cache",
        f"def {core.name}({', '.join(core.statics)}):",
        *indented([*short, *([""] if short else [])]),
        *indented(decorators),
        f"    def {inner}({params}):",
        *indented(indented(_body(core))),
        "",
        f"    return {inner}",
    ]


def _short_lines(core: Core, name: str) -> Lines:
    """The function in float64."""
    return [f"def {name}({', '.join(core.tensors)}):", *indented(_body(core))]


def decorating(core: Core) -> tuple[str, ...]:
    """The helper that makes a rule of the core, and what it is given beside."""
    helper = "_rule_keeping" if core.keeps else "_rule"
    helper = "_rule_of_results" if core.keeps_results else helper
    return (helper,) if is_linear(core.plan) else (helper, "_no_forward_mode")


def _decorator(core: Core) -> str:
    helper, *forward = decorating(core)
    if not forward:
        return f"@{helper}"
    return f"@functools.partial({helper}, forward={forward[0]})"


def _body(core: Core) -> Lines:
    """The passes. Arguments are widened within, so that what is kept of them is what
    came.
    """
    behind = _backward(core)
    kept = _kept(core, behind)
    ahead = [*_widened(core), *_statements(core), *traced_forward(core)]
    returned = [_returned(core, o, v) for o, v in core.results]
    if core.is_widened and set(kept) - set(core.tensors):
        ahead = _assigned(core, ahead)
        returned = [_returned(core, o, Name(o.name)) for o, _ in core.results]
    several = f"({', '.join(returned)})" if len(returned) > 1 else returned[0]
    statements = [*_sizes(core), *_before(core, kept), *ahead, *_after(core, kept)]
    return [
        *([*statements, ""] if statements else []),
        *_restored(core, behind, kept),
        "",
        f"return {several}, backward",
    ]


def _assigned(core: Core, ahead: Lines) -> Lines:
    """With every output under its name, not yet rounded: what is kept is exact."""
    lines = [*ahead]
    for output, value in core.results:
        text = render(value, core.scope)
        if text != output.name and output.kind is not Kind.INT:
            lines += assignment(output.name, text)
    return lines


def _returned(core: Core, output: Output, value: Expr) -> str:
    """A result in the type of the arguments."""
    is_named = output.kind is Kind.INT or is_scalar(value, core.scope)
    text = output.name if is_named else render(value, core.scope)
    if core.is_widened and output.kind in (Kind.FLOAT, Kind.NOGRAD):
        return f"{core.cast}({text}, {core.dtype})"
    return text


# --- what is kept ------------------------------------------------------------------------


def kept_names(core: Core) -> tuple[str, ...]:
    """What the backward function has of the forward pass."""
    return _kept(core, _backward(core))


def _kept(core: Core, behind: Lines) -> tuple[str, ...]:
    """The tensors of the forward pass that the backward pass uses."""
    code = [line for line in behind[1:] if not line.lstrip().startswith("#")]
    used = _used("\n".join(code))
    made = {m[1] for line in code if (m := re.match(r" {4}(\w+) = ", line))}
    ahead = [*core.tensors, *(s.name for s in core.forward.statements)]
    ahead += [output.name for output in core.plan.outputs]
    return tuple(name for name in dict.fromkeys(ahead) if name in used - made)


def _used(code: str) -> frozenset[str]:
    """The names in a text, attributes and keywords of calls excepted."""
    return frozenset(re.findall(r"(?<![.\w])[A-Za-z_]\w*\b(?!=)", code))


def _widened(core: Core) -> Lines:
    """``x, y = _widen(x, y)``"""
    if not core.is_widened:
        return []
    return unpacked([*core.floats], f"{core.widening}({', '.join(core.floats)})")


def _before(core: Core, kept: tuple[str, ...]) -> Lines:
    """The arguments as they came, before they are widened."""
    if not core.is_widened:
        return []
    given = [name for name in kept if name in core.tensors]
    lines = [f"{core.dtype} = {core.floats[0]}.dtype"]
    return [*lines, *([f"{core.kept} = {_tuple(given)}"] if given else [])]


def _after(core: Core, kept: tuple[str, ...]) -> Lines:
    """Outputs and locals that are kept as well, before they are rounded."""
    made = [name for name in kept if name not in core.tensors]
    if not core.is_widened or not made:
        return []
    word = "+=" if set(kept) & set(core.tensors) else "="
    return [f"{core.kept} {word} {_tuple(made)}"]


def _restored(core: Core, behind: Lines, kept: tuple[str, ...]) -> Lines:
    """The backward function, which begins by widening what it uses."""
    if not core.is_widened:
        return behind
    used = _used("\n".join(behind[1:]))
    upstream = [name for name in core.plan.upstream if name in used]
    parts = [*([f"*{core.kept}"] if kept else []), *upstream]
    first, *rest = behind
    if not parts:
        return behind
    wide = unpacked([*kept, *upstream], f"{core.widening}({', '.join(parts)})")
    return [first, *indented(wide), *rest]


def _tuple(parts: Sequence[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else ", ".join(parts)


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
    returned = [_gradient(core, name) for name in core.tensors]
    body.append(f"return {', '.join(returned)}")
    if core.is_widened and len(returned) == 1:
        body = _rounded_last(core, body)
    return [f"def backward({', '.join(params)}):", *indented(tightened(body))]


def _rounded_last(core: Core, body: Lines) -> Lines:
    """``return tf.cast(dy * x, dtype)``, if that is all."""
    (name,) = core.tensors
    *before, last, _ = ["", *body]
    if not last.startswith(f"d{name} = "):
        return body
    value = last.removeprefix(f"d{name} = ")
    return [*before[1:], f"return {core.cast}({value}, {core.dtype})"]


def _gradient(core: Core, name: str) -> str:
    if name not in core.gradients:
        return "None"
    return f"{core.cast}(d{name}, {core.dtype})" if core.is_widened else f"d{name}"


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
