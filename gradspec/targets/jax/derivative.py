"""Emission of the functions by which JAX differentiates a rule."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradspec.ir.rule import Input
from gradspec.plan.arrays import names
from gradspec.plan.plan import Term
from gradspec.targets import trace as traces
from gradspec.targets.jax.core import Core, Way
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    indented,
    tightened,
    unpacked,
)
from gradspec.targets.signature import listed, tupled

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def derivative(core: Core) -> list[Lines]:
    """One function that gives slopes or pulls cotangents back, or a forward and a
    backward pass.
    """
    match core.way:
        case Way.PLAIN:
            return []
        case Way.PUSHED:
            return [_slopes(core)]
        case Way.TRANSPOSED:
            return [_pullback(core)]
        case Way.PULLED:
            forward, backward = (
                core.page.fresh(f"{core.name}_{word}")
                for word in ("forward", "backward")
            )
            last = ["", "", f"{core.name}.defvjp({forward}, {backward})"]
            return [_forward(core, forward), [*_backward(core, backward), *last]]


# --- custom_jvp ------------------------------------------------------------------------


def _slopes(core: Core) -> Lines:
    """Slopes are multiplied out before tangents multiply them: one array is kept of
    each.
    """
    pushes = core.program.pushes
    assert pushes is not None
    comments = dict.fromkeys(s.comment for s in pushes.summands if s.comment)
    texts = {(s.output, s.input): core.text(s.slope) for s in pushes.summands}
    rows = [
        [texts.get((output, name), "None") for name in core.tensors]
        for output in core.outputs
    ]
    parts = [listed(row) if {*row} != {"None"} else "None" for row in rows]
    body = [
        *assignments(pushes.statements, core.scope),
        *(f"# {line}" for c in comments for line in c.splitlines()),
        f"return {', '.join(parts if len(rows) > 1 else rows[0])}",
    ]
    return _function(core, "slopes", "", (), body)


def _pullback(core: Core) -> Lines:
    """The backward pass, which is linear in the cotangents."""
    program = core.program
    steps, pulled = _gradients(
        core, [i.name for i, group in core.program.groups if group]
    )
    values = core.program.backward_values
    given = [*core.tensors, *core.outputs, *program.cotangents]
    gradients = [pulled.get(name, "None") for name in core.tensors]
    body = [*core.sizes(values, given), *steps, f"return {', '.join(gradients)}"]
    constant = ", ".join(map(str, program.constant))
    words = f", constant=({constant},)" if constant else ""
    return _function(core, "pullback", words, program.cotangents, body)


def _function(
    core: Core,
    word: str,
    keywords: str,
    more: Iterable[str],
    body: Lines,
) -> Lines:
    """A registered function of inputs, statics and outputs; parameters that its text
    does not contain begin with an underscore.
    """
    array, text = core.core("Array"), _words(body)
    given = core.inputs | dict.fromkeys([*core.outputs, *more], array)
    parameters = {n if n in text else f"_{n}": kind for n, kind in given.items()}
    name = core.page.fresh(f"{core.name}_{word}")
    return [
        f"@{core.core(word)}({core.name}{keywords})",
        core.header(name, parameters),
        *indented(tightened(body)),
    ]


def _words(lines: Iterable[str]) -> set[str]:
    """The identifiers in a text."""
    code = (line for line in lines if not line.startswith("#"))
    return {word for line in code for word in _IDENTIFIER.findall(line)}


# --- gradients -------------------------------------------------------------------------


def _gradients(core: Core, wanted: list[str]) -> tuple[Lines, dict[str, str]]:
    """The statements of a backward pass, and the text of each gradient: a name if there
    are several.
    """
    steps = core.program.backward.statements
    lines, taken = assignments(steps, core.scope), {step.name for step in steps}
    found: dict[str, str] = {}
    for i, group in core.program.groups:
        if i.name in wanted:
            name, text = f"d{i.name}", _gradient(core, i, group)
            words = dict.fromkeys(t.comment for t in group or () if t.comment)
            is_named = core.trace or (len(wanted) > 1 and bool(group))
            if is_named and name not in taken:
                lines += assignment(name, text, "\n".join(words))
                text = name
            else:
                lines += [f"# {line}" for c in words for line in c.splitlines()]
            found[i.name] = text
    return lines, found


def _gradient(core: Core, i: Input, group: tuple[Term, ...] | None) -> str:
    """The gradient of an input in the input's shape."""
    if not group:
        return f"jnp.zeros_like({i.name})"
    if _is_shaped(core, group):
        return core.text(group[0].value)
    sum_to = core.core("sum_to")
    return " + ".join(f"{sum_to}({_term(core, term)}, {i.name})" for term in group)


def _is_shaped(core: Core, group: tuple[Term, ...]) -> bool:
    """True if the terms have the input's shape already, or the runtime gives it to
    them.
    """
    alone = len(core.tensors) == 1 and not core.program.has_axes
    return (
        (alone or core.way is Way.TRANSPOSED)
        and len(group) == 1
        and not core.program.takes_shape(group[0])
    )


def _term(core: Core, term: Term) -> str:
    """A term of a gradient; one without a cotangent has the shape of the outputs."""
    text = core.text(term.value)
    if not core.program.takes_shape(term):
        return text
    return f"{core.core('filled')}({text}, {', '.join(core.program.cotangents)})"


# --- custom_vjp ------------------------------------------------------------------------


def _residual_names(core: Core) -> list[str]:
    """Inputs and outputs that the backward pass uses, in the order written."""
    program = core.program
    used = {*names(*core.program.backward_values)}
    for i, group in core.program.groups:
        if group is not None and not (group and _is_shaped(core, group)):
            used.add(i.name)
    if core.trace:
        used |= {*program.slopes, *names(*program.shown_values)}
    for size in program.sizes:
        places = [place for place, _ in size.places]
        if size.name in used and not {*used, *program.cotangents} & {*places}:
            used.add(places[0])
    return [n for n in (*core.tensors, *core.outputs) if n in used]


def _forward(core: Core, name: str) -> Lines:
    """The outputs and the residuals."""
    kept = [
        f"{core.core('residual')}({n})" if n in core.tensors else n
        for n in _residual_names(core)
    ]
    residuals = tupled(kept) if len(kept) == 1 else f"({', '.join(kept)})"
    body = [
        f"{', '.join(core.outputs)} = {core.call}",
        *([_shown(core, traces.ends(core.program))] if core.trace else []),
        f"return {listed(core.outputs)}, {residuals}",
    ]
    return [core.header(name, core.inputs), *indented(body)]


def _backward(core: Core, name: str) -> Lines:
    program, kept = core.program, _residual_names(core)
    residuals, cotangents = map(program.local, ("residuals", "cotangents"))
    given = [f"d{o.name}" if o.takes_gradient else "_" for o in program.outputs]
    lines = unpacked(kept, residuals) if kept else []
    if len(given) > 1:
        lines += unpacked(given, cotangents)
    wanted = [i.name for i, group in core.program.groups if group is not None]
    steps, found = _gradients(core, wanted)
    body = [
        *lines,
        *core.sizes(core.program.backward_values, [*kept, *program.cotangents]),
        *steps,
    ]
    if core.trace:
        for i in wanted:
            shown = traces.terms(program, i, found[i], core.scope)
            body += [_shown(core, values) for values in shown]
    last = given[0] if len(given) == 1 else cotangents
    results = [found.get(name, "None") for name in core.tensors]
    body.append(f"return {tupled(results)}")
    header = core.header(name, core.numbers | dict.fromkeys((residuals, last), ""))
    return [header, *indented(body)]


def _shown(core: Core, values: traces.Shown) -> str:
    """A line that prints values, also under `jax.jit`."""
    return f"jax.debug.print({traces.template(core.program, values)})"
