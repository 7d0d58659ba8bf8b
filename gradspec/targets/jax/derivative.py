"""The functions by which JAX differentiates a rule, registered."""

from __future__ import annotations

from gradspec.ir.rule import Input, Output
from gradspec.plan.arrays import Name, names
from gradspec.plan.operations import operation
from gradspec.plan.plan import Term
from gradspec.targets.jax.core import Core, Way
from gradspec.targets.jax.trace import traced_backward, traced_forward
from gradspec.targets.lines import Lines, assignment, assignments, indented, unpacked
from gradspec.targets.signature import listed, tupled


def derivative(core: Core) -> list[Lines]:
    """One function that pushes tangents, or a forward and a backward pass."""
    match core.way:
        case Way.PLAIN:
            return []
        case Way.PUSHED:
            return [_jvp(core, _moved_by_slopes(core), _by_slopes(core))]
        case Way.TRANSPOSED:
            return [_jvp(core, _moved(core), _by_transpose(core))]
        case Way.PULLED:
            forward, backward = (
                core.page.fresh(f"{core.name}_{word}")
                for word in ("forward", "backward")
            )
            last = ["", "", f"{core.name}.defvjp({forward}, {backward})"]
            return [_forward(core, forward), [*_backward(core, backward), *last]]


# --- custom_jvp ------------------------------------------------------------------------


def _jvp(core: Core, moved: list[str], body: Lines) -> Lines:
    primals, tangents = map(core.program.local, ("primals", "tangents"))
    name = core.page.fresh(f"{core.name}_jvp")
    register = f"@{core.name}.defjvp"
    if len(moved) > 1:  # any of them may stand still
        core.page.use("import functools")
        register = f"@functools.partial({core.name}.defjvp, symbolic_zeros=True)"
    dots = [f"{n}_dot" if n in moved else "_" for n in core.tensors]
    if len(core.tensors) == 1 and moved:
        lines = [f"({core.tensors[0]},), ({dots[0]},) = {primals}, {tangents}"]
    else:
        lines = [*unpacked(core.tensors, primals), *unpacked(dots, tangents)]
    header = core.header(name, core.numbers | dict.fromkeys((primals, tangents), ""))
    return [register, header, *indented([*lines, *body])]


def _moved_by_slopes(core: Core) -> list[str]:
    assert core.program.pushes is not None
    there = {s.input for s in core.program.pushes.summands}
    return [name for name in core.tensors if name in there]


def _by_slopes(core: Core) -> Lines:
    """Slopes are multiplied out before they meet tangents: one array is kept of each."""
    pushes = core.program.pushes
    assert pushes is not None
    slopes = [s.slope for s in pushes.summands]
    used = names(*(s.value for s in pushes.statements), *slopes)
    comments = dict.fromkeys(s.comment for s in pushes.summands if s.comment)
    steps = [
        *assignments(pushes.statements, core.scope),
        *(f"# {line}" for c in comments for line in c.splitlines()),
    ]
    if len(core.outputs) == len(core.tensors) == 1 and core.outputs[0] not in used:
        dot = _tangent(core, core.program.outputs[0], core.call)
        return [*steps, f"return {core.call}, {dot}"]
    dots = [_tangent(core, output, output.name) for output in core.program.outputs]
    return [
        f"{', '.join(core.outputs)} = {core.call}",
        *steps,
        f"return {listed(core.outputs)}, {listed(dots)}",
    ]


def _tangent(core: Core, output: Output, value: str) -> str:
    pushes = core.program.pushes
    assert pushes is not None
    parts = [s for s in pushes.summands if s.output == output.name]
    if not parts:
        return f"{core.core('still')}({value})"
    if len(core.tensors) == 1:
        dot = Name(f"{parts[0].input}_dot")
        return core.text(operation("mul", (parts[0].slope, dot)))
    pairs = [f"({core.text(s.slope)}, {s.input}_dot)" for s in parts]
    return f"{core.core('tangent')}({', '.join([value, *pairs])})"


def _moved(core: Core) -> list[str]:
    """The inputs whose gradients have terms."""
    return [i.name for i, group in core.groups if group]


def _by_transpose(core: Core) -> Lines:
    program, moved = core.program, _moved(core)
    backward = program.local("backward")
    steps, pulled = _gradients(core, moved)
    dots = tupled(f"{name}_dot" for name in moved)
    dots = dots if len(moved) == 1 else f"({dots})"
    upstream = [o.name for o in program.outputs if o.takes_gradient]
    call = f"{core.core('pushed')}({', '.join([backward, dots, *upstream])})"
    lines = [
        f"{', '.join(core.outputs)} = {core.call}",
        *core.sizes(core.pulled_values, [*core.tensors, *core.outputs]),
        "",
        core.header(backward, dict.fromkeys(program.cotangents, core.core("Array"))),
        *indented(steps),
        f"    return {tupled(pulled.values())}",
        "",
    ]
    if upstream == core.outputs:
        made = call if len(upstream) > 1 else f"*{call}"
        return [*lines, f"return {listed(core.outputs)}, {made}"]
    still = core.core("still")
    dotted = [f"{n}_dot" if n in upstream else f"{still}({n})" for n in core.outputs]
    return [
        *lines,
        *unpacked([f"{name}_dot" for name in upstream], call),
        f"return {listed(core.outputs)}, {listed(dotted)}",
    ]


# --- gradients -------------------------------------------------------------------------


def _gradients(core: Core, wanted: list[str]) -> tuple[Lines, dict[str, str]]:
    """The statements of a backward pass, and what each gradient is; those of several have
    names.
    """
    steps = core.program.backward.statements
    lines, taken = assignments(steps, core.scope), {step.name for step in steps}
    found: dict[str, str] = {}
    for i, group in core.groups:
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
    """The gradient of an input in its shape."""
    if not group:
        return f"jnp.zeros_like({i.name})"
    if _is_shaped(core, group):
        return core.text(group[0].value)
    sum_to = core.core("sum_to")
    return " + ".join(f"{sum_to}({_term(core, term)}, {i.name})" for term in group)


def _is_shaped(core: Core, group: tuple[Term, ...]) -> bool:
    """Whether the terms have the input's shape as they are."""
    alone = len(core.tensors) == 1 and not core.program.has_axes
    return alone and len(group) == 1 and not core.program.takes_shape(group[0])


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
    used = {*names(*core.pulled_values)}
    for i, group in core.groups:
        if group is not None and not (group and _is_shaped(core, group)):
            used.add(i.name)
    if core.trace:
        slopes = [slope for parts in program.slopes.values() for _, slope in parts]
        used |= {*program.slopes, *names(*(s for s in slopes if s is not None))}
    for size in program.sizes:
        places = [place for place, _ in size.places]
        if size.name in used and not {*used, *program.cotangents} & {*places}:
            used.add(places[0])
    return [n for n in (*core.tensors, *core.outputs) if n in used]


def _forward(core: Core, name: str) -> Lines:
    """The outputs, and what the backward pass is given."""
    kept = [
        f"{core.core('residual')}({n})" if n in core.tensors else n
        for n in _residual_names(core)
    ]
    residuals = tupled(kept) if len(kept) == 1 else f"({', '.join(kept)})"
    body = [
        f"{', '.join(core.outputs)} = {core.call}",
        *(traced_forward(core.program) if core.trace else []),
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
    wanted = [i.name for i, group in core.groups if group is not None]
    steps, found = _gradients(core, wanted)
    body = [
        *lines,
        *core.sizes(core.pulled_values, [*kept, *program.cotangents]),
        *steps,
    ]
    if core.trace:
        for i in wanted:
            body += traced_backward(program, i, found[i], core.scope)
    last = given[0] if len(given) == 1 else cotangents
    results = [found.get(name, "None") for name in core.tensors]
    body.append(f"return {tupled(results)}")
    header = core.header(name, core.numbers | dict.fromkeys((residuals, last), ""))
    return [header, *indented(body)]
