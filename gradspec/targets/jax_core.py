"""The private functions of one rule: its forward pass, and what JAX differentiates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from gradspec.ir.rule import Kind, Output
from gradspec.plan.array import Expr
from gradspec.plan.plan import Nature
from gradspec.plan.pushing import Push
from gradspec.targets.jax_backward import backward_lines
from gradspec.targets.jax_parts import Core, Way
from gradspec.targets.jax_trace import traced_forward
from gradspec.targets.lines import Lines, assignment, assignments, indented, tightened
from gradspec.targets.python import is_scalar, render, render_filled
from gradspec.targets.signature import unreached

_CHAIN = 8
"""Names that are assigned None in one line."""


def core_lines(core: Core) -> list[Lines]:
    """The definitions, in the order of need."""
    match core.way:
        case Way.PLAIN:
            return [_core(core)]
        case Way.PUSHED:
            return [_core(core), _jvp(core, _pushing(core))]
        case Way.TRANSPOSED:
            return [_core(core), _jvp(core, _transposing(core))]
        case Way.PULLED:
            return [_core(core), _forward(core), _backward(core)]


# --- the forward pass --------------------------------------------------------------------


def _core(core: Core) -> Lines:
    params = ", ".join([*core.tensors, *core.statics])
    body = [*_sizes(core, _forward_values(core)), *_statements(core)]
    body.append(f"return {', '.join(_results(core))}")
    header = f"def {core.name}({params}):"
    return [*_decorator(core), header, *indented(tightened(body))]


def _decorator(core: Core) -> Lines:
    """What makes a rule of the core. JAX may put the bare core in the place of its rule
    (in `jax.lax.scan` it does), which is right where their derivatives are the same.
    """
    if core.way is Way.PLAIN:
        return []
    if core.way is not Way.PULLED and core.plan.nature is not Nature.EXACT:
        return [f"@_lasting({len(core.tensors)})"]
    name = "jax.custom_vjp" if core.way is Way.PULLED else "jax.custom_jvp"
    if not core.statics:
        return [f"@{name}"]
    first, count = len(core.tensors), len(core.statics)
    places = f"({first},)" if count == 1 else f"range({first}, {first + count})"
    return [f"@functools.partial({name}, nondiff_argnums={places})"]


def _forward_values(core: Core) -> tuple[Expr, ...]:
    return (*(s.value for s in core.forward.statements), *core.forward.results)


def _sizes(core: Core, values: tuple[Expr, ...]) -> Lines:
    lines = []
    for size in core.sizes(values):
        name, axis = next(place for place in size.places if place[0] in core.tensors)
        lines.append(f"{size.name} = {name}.shape[{axis}]")
    return lines


def _statements(core: Core) -> Lines:
    """Locals and outputs; those that depend on no array come last."""
    outputs = {output.name: output for output in core.outputs}
    lines: Lines = []
    for s in core.forward.statements:
        text = render(s.value, core.scope)
        if s.name in outputs:
            text = render_filled(s.value, core.scope, _fill(core, outputs[s.name]))
        lines += assignment(s.name, text, s.comment)
    for output, value in zip(core.outputs, core.forward.results, strict=True):
        if is_scalar(value, core.scope):
            text = render_filled(value, core.scope, _fill(core, output))
            lines += assignment(output.name, text)
    return lines


def _results(core: Core) -> Lines:
    found = []
    for output, value in zip(core.outputs, core.forward.results, strict=True):
        number = is_scalar(value, core.scope)
        text = output.name if number else render(value, core.scope)
        if others := _apart(core, output):
            text = f"_batched_with({', '.join((text, *others))})"
        found.append(f"{text}.astype(int)" if output.kind is Kind.INT else text)
    return found


def _apart(core: Core, output: Output) -> tuple[str, ...]:
    """The inputs that an output of a rule that JAX pulls does not depend on: its upstream
    gradient is another where they are in a batch and it is not.
    """
    if core.way is not Way.PULLED or not output.takes_gradient:
        return ()
    return unreached(core.plan, output)


def _fill(core: Core, output: Output) -> Callable[[str], str]:
    """A constant output has the shape to which the inputs broadcast."""
    shape = f"{core.tensors[0]}.shape"
    if len(core.tensors) > 1:
        shapes = ", ".join(f"{name}.shape" for name in core.tensors)
        shape = f"jnp.broadcast_shapes({shapes})"
    if output.kind in (Kind.INT, Kind.BOOL):
        return lambda value: f"jnp.full({shape}, {value})"
    dtype = f"{core.floats[0]}.dtype" if core.floats else "float"
    return lambda value: f"jnp.full({shape}, {value}, {dtype})"


# --- custom_jvp --------------------------------------------------------------------------


def _jvp(core: Core, body: Lines) -> Lines:
    """The function that pushes tangents, and its registration."""
    primals, tangents = core.local("primals"), core.local("tangents")
    dots = [f"{name}_dot" if name in core.moved else "_" for name in core.tensors]
    params = ", ".join([*core.statics, primals, tangents])
    (name,) = core.derived
    symbolic = ", symbolic_zeros=True" if core.tests_each else ""
    return [
        f"def {name}({params}):",
        *indented(_unpacked(core.tensors, primals, body)),
        *indented(_unpacked(dots, tangents, body)),
        *indented(body),
        "",
        "",
        f"{core.name}.defjvp({name}{symbolic})",
    ]


def _unpacked(names: Iterable[str], source: str, body: Lines) -> Lines:
    """``x, _ = source`` with the names that the body uses."""
    code = " ".join(line for line in body if not line.lstrip().startswith("#"))
    used = set(re.findall(r"\w+", code))
    targets = [name if name in used else "_" for name in names]
    if set(targets) <= {"_"}:
        return []
    left = f"({targets[0]},)" if len(targets) == 1 else ", ".join(targets)
    return [f"{left} = {source}"]


def _called(core: Core) -> str:
    """The rule's own values: differentiated again, they follow the rule again."""
    arguments = ", ".join([f"*{core.local('primals')}", *core.statics])
    return f"{core.name}({arguments})"


def _made(core: Core) -> str:
    return ", ".join(output.name for output in core.outputs)


def _returned(core: Core, tangents: Lines) -> str:
    if len(tangents) == 1:
        return f"return {_made(core)}, {tangents[0]}"
    return f"return ({_made(core)}), ({', '.join(tangents)})"


def _pushing(core: Core) -> Lines:
    outputs = [o.name for o in core.outputs if o.name in core.asked]
    return [
        f"{_made(core)} = {_called(core)}",
        *(f"{name} = {_kept_by_name(name, name)}" for name in outputs),
        *_sizes(core, core.pushed_values),
        *(_summed(core) if core.tests_each else _alone(core)),
        _returned(core, [_tangent(core, output) for output in core.outputs]),
    ]


def _steps(core: Core, steps: Sequence[Push]) -> Lines:
    """Statements; what the author saves is marked for `jax.checkpoint`."""
    lines: Lines = []
    for s in steps:
        text = render(s.value, core.scope)
        text = _kept_by_name(text, s.name) if s.name in core.asked else text
        lines += assignment(s.name, text, s.comment)
    return lines


def _kept_by_name(text: str, name: str) -> str:
    return f'checkpoint_name({text}, "{name}")'


def _alone(core: Core) -> Lines:
    """The tangents that the one input which moves gives the outputs."""
    lines = _steps(core, core.push.statements)
    for s in core.push.summands:
        lines += assignment(f"{s.output}_dot", render(s.value, core.scope), s.comment)
    return lines


def _summed(core: Core) -> Lines:
    """The tangents as far as the inputs move."""
    outputs = list(dict.fromkeys(s.output for s in core.push.summands))
    steps = core.push.statements
    lines = _steps(core, [s for s in steps if not s.tangent])
    lines += [
        f"{' = '.join(f'{name}_dot' for name in outputs[k : k + _CHAIN])} = None"
        for k in range(0, len(outputs), _CHAIN)
    ]
    started: set[str] = set()
    for name in core.moved:
        dot = f"{name}_dot"
        part = assignments((s for s in steps if s.tangent == dot), core.scope)
        for s in (s for s in core.push.summands if s.input == name):
            text, total = render(s.value, core.scope), f"{s.output}_dot"
            text = f"_plus({total}, {text})" if total in started else text
            started.add(total)
            part += assignment(total, text, s.comment)
        lines += [f"if not _is_absent({dot}):", *indented(part)]
    return lines


def _tangent(core: Core, output: Output) -> str:
    summands = core.summands(output.name)
    if not summands:
        return f"_tangent(None, {output.name})"
    if not core.tests_each and all(map(core.is_in_full, summands)):
        return f"{output.name}_dot"
    return f"_tangent({output.name}_dot, {output.name})"


def _transposing(core: Core) -> Lines:
    made = ", ".join(f"{name}_dot" for name in core.upstream)
    left = f"({made},)" if len(core.upstream) == 1 else made
    moved = ", ".join(f"{name}_dot" for name in core.moved)
    backward = core.local("backward")
    given = ", ".join(
        [f"({moved}{',' if len(core.moved) == 1 else ''})", *core.upstream]
    )
    tangents = [
        f"{o.name}_dot" if o.takes_gradient else f"_tangent(None, {o.name})"
        for o in core.outputs
    ]
    returned = ", ".join(f"d{name}" for name in core.moved)
    comma = "," if len(core.moved) == 1 else ""
    params = ", ".join(f"d{name}" for name in core.upstream)
    inner = backward_lines(core, core.moved)
    return [
        f"{_made(core)} = {_called(core)}",
        *_sizes(core, core.backward_values),
        "",
        f"def {backward}({params}):",
        *indented(inner),
        f"    return {f'({returned}{comma})' if comma else returned}",
        "",
        f"{left} = _pushed({backward}, {given})",
        _returned(core, tangents),
    ]


# --- custom_vjp --------------------------------------------------------------------------


def _forward(core: Core) -> Lines:
    """The outputs, and what the backward pass is given."""
    arguments = ", ".join([*core.tensors, *core.statics])
    made = _made(core)
    kept = _kept(core)
    comma = "," if len(kept) == 1 else ""
    returned = made if len(core.outputs) == 1 else f"({made})"

    def own(name: str) -> str:
        return f"_residual({name})" if name in core.tensors else name

    return [
        f"def {core.derived[0]}({arguments}):",
        *indented(
            [
                f"{made} = {core.name}({arguments})",
                *traced_forward(core),
                f"return {returned}, ({', '.join(map(own, kept))}{comma})",
            ]
        ),
    ]


def _kept(core: Core) -> Lines:
    """Inputs and outputs that the backward pass uses."""
    code = " ".join(_pulling(core))
    used = set(re.findall(r"\w+", code))
    return [n for n in (*core.tensors, *(o.name for o in core.outputs)) if n in used]


def _pulling(core: Core) -> Lines:
    returned = [
        f"d{name}" if name in core.gradients else "None" for name in core.tensors
    ]
    comma = "," if len(returned) == 1 else ""
    text = ", ".join(returned)
    return [
        *_sizes(core, core.backward_values),
        *backward_lines(core, tuple(core.gradients)),
        f"return ({text}{comma})" if comma else f"return {text}",
    ]


def _backward(core: Core) -> Lines:
    """The backward pass, and its registration."""
    residuals, upstream = core.local("residuals"), core.local("upstream")
    body, kept = _pulling(core), _kept(core)
    given = [f"d{o.name}" if o.takes_gradient else "_" for o in core.outputs]
    lines = _unpacked(kept, residuals, body)
    if len(given) > 1:
        lines += _unpacked(given, upstream, body)
    last = upstream if len(given) > 1 else given[0]
    params = ", ".join([*core.statics, residuals, last])
    forward, backward = core.derived
    return [
        f"def {backward}({params}):",
        *indented([*lines, *body]),
        "",
        "",
        f"{core.name}.defvjp({forward}, {backward})",
    ]
