"""One rule in JAX: its formulas in private functions, and the public function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.arrays import Expr, names
from gradspec.plan.plan import Nature, Term
from gradspec.plan.program import Program
from gradspec.targets import layers
from gradspec.targets import lines as traces
from gradspec.targets.expressions import Scope, render, scope_of
from gradspec.targets.jax.dialect import DIALECT, with_barriers
from gradspec.targets.layers import layer
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    checks,
    docstring,
    gradient,
    indent_lines,
    keywords,
    kinds_of,
    mark_unused,
    name_or_tuple,
    parameters,
    result_type,
    sentence,
    sizes,
    tighten,
    tuple_items,
    unpacking,
)
from gradspec.targets.target import Definition, Page


def definitions(program: Program, page: Page, *, trace: bool) -> list[Definition]:
    """``_f`` with its derivative, ``f``, and ``init_f`` if it has params."""
    program = with_barriers(program)
    name, way = page.fresh(f"_{program.name}"), way_of(program, trace)
    core = Core(program, page, scope_of(program, page, DIALECT), name, way, trace)
    return [
        *map(Definition, [function(core), *derivative(core)]),
        Definition(_public(core), (program.name,)),
        *_initial_values(program, page),
    ]


def _public(core: Core) -> Lines:
    """The documented function, which calls the rule."""
    program, array = core.program, core.core("Array")
    tensors = parameters(program, core.page.own("jax.typing", "ArrayLike"))
    arguments = ", ".join(program.arguments)
    results = [f"return {core.name}.call({arguments})"]
    if len(core.outputs) > 1:
        names = ", ".join(core.outputs)
        results = [f"{names} = {core.name}.calls({arguments})", f"return {names}"]
    return [
        f"def {program.name}({tensors}) -> {result_type(program, array)}:",
        docstring(program.docs),
        *indent_lines([*checks(program, core.page), *results]),
    ]


# --- the rule and its forward pass -------------------------------------------------------


class Way(Enum):
    """The JAX transformation that defines a rule's derivative.

    PLAIN       nothing takes a gradient
    PUSHED      a `custom_jvp`, slopes times tangents
    TRANSPOSED  a `custom_jvp`, tangents as the transpose of the backward pass: with named
                axes there are no slopes
    PULLED      a `custom_vjp`: a backward pass that is not linear in its cotangent, or one
                that prints what goes through it
    """

    PLAIN = "plain"
    PUSHED = "pushed"
    TRANSPOSED = "transposed"
    PULLED = "pulled"


def way_of(program: Program, trace: bool) -> Way:
    groups = [group for group in program.backward.gradients if group is not None]
    if not groups:
        return Way.PLAIN
    if trace or program.pushes is None:
        return Way.PULLED
    return Way.TRANSPOSED if program.has_axes and any(groups) else Way.PUSHED


@dataclass(frozen=True, slots=True)
class Core:
    """A rule during emission; ``name`` is that of its private function."""

    program: Program
    page: Page
    scope: Scope
    name: str
    way: Way
    trace: bool

    @property
    def tensors(self) -> list[str]:
        return [i.name for i in self.program.tensor_inputs]

    @property
    def statics(self) -> list[str]:
        return [i.name for i in self.program.static_inputs]

    @property
    def outputs(self) -> list[str]:
        return [o.name for o in self.program.outputs]

    @property
    def call(self) -> str:
        """The rule's own values: differentiated again, they follow the rule again."""
        return f"{self.name}({', '.join([*self.tensors, *self.statics])})"

    @property
    def is_joint(self) -> bool:
        """True if a `custom_vjp` has several arrays, some of which may be batched."""
        return self.way is Way.PULLED and len(self.tensors) > 1

    @property
    def inputs(self) -> dict[str, str]:
        """Tensors and statics, with their types."""
        array = self.page.core("Array")
        return dict.fromkeys(self.tensors, array) | self.numbers

    @property
    def numbers(self) -> dict[str, str]:
        """Statics with their types."""
        whole = {
            i.name for i in self.program.static_inputs if i.kind is Kind.STATIC_INT
        }
        return {name: "int" if name in whole else "float" for name in self.statics}

    def header(self, name: str, parameters: Mapping[str, str]) -> str:
        """The first line of a private function: its results, which the type checker
        does not know, go to the runtime.
        """
        typed = [
            f"{n}: {kind or self.page.own('typing', 'Any')}"
            for n, kind in parameters.items()
        ]
        return f"def {name}({', '.join(typed)}) -> object:"

    def core(self, name: str) -> str:
        """A function of the runtime."""
        return self.page.core(name)

    def text(self, value: Expr) -> str:
        return render(value, self.scope)


def function(core: Core) -> Lines:
    """The forward pass, decorated."""
    block = core.program.forward
    pairs = zip(core.program.outputs, block.results, strict=True)
    body = [
        *sizes(core.program, core.program.forward.values, core.tensors),
        *assignments(block.statements, core.scope),
        f"return {', '.join(_output(core, o, value) for o, value in pairs)}",
    ]
    return [
        _decorator(core),
        core.header(core.name, core.inputs),
        *indent_lines(tighten(body)),
    ]


def _decorator(core: Core) -> str:
    """JAX may replace the rule by its bare function (`lasting` says where), which is
    right if the rule is its derivative.
    """
    program = core.program
    words = [f'"{program.name}"']
    if core.way is Way.PLAIN:
        words.append(f"by={core.core('constant')}")
    elif core.way is Way.PULLED:
        words.append("by=jax.custom_vjp")
    elif program.kind is not Nature.EXACT:
        words.append(f"by={core.core('lasting')}")
    words += keywords(program, kinds_of(program))
    if program.is_double:
        words.append(f"least={core.core('WIDE')}")
    return f"@{core.core('rule')}({', '.join(words)})"


def _output(core: Core, output: Output, value: Expr) -> str:
    """The text of an output; a number takes the shape to which its inputs broadcast."""
    text, is_number = core.text(value), core.program.may_be_number(value)
    if is_number:
        like = ", ".join(core.program.like(output))
        text = f"{core.core('broadcast_full')}({text}, {like})"
    if output.kind is Kind.INT:
        return f"{core.core('as_default_int')}({text})"
    if output.kind is Kind.BOOL and is_number:
        return f"{text}.astype(jnp.bool_)"
    if core.is_joint and output.takes_gradient:
        return f"{core.core('batched_with')}({text}, {', '.join(core.tensors)})"
    return text


# --- its derivative ----------------------------------------------------------------------


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
    pushes, slopes = core.program.pushes, core.program.slopes
    assert pushes is not None
    comments = dict.fromkeys(core.program.comments.get(f"d{i}", "") for i in slopes)
    places = [(i, d) for i, parts in slopes.items() for (d,), _ in parts]
    texts = dict(zip(places, map(core.text, pushes.results), strict=True))
    rows = [
        [texts.get((name, f"d{output}"), "None") for name in core.tensors]
        for output in core.outputs
    ]
    parts = [name_or_tuple(row) if {*row} != {"None"} else "None" for row in rows]
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
    values = core.program.backward.values
    given = [*core.tensors, *core.outputs, *program.cotangents]
    gradients = [pulled.get(name, "None") for name in core.tensors]
    body = [
        *sizes(core.program, values, given),
        *steps,
        f"return {', '.join(gradients)}",
    ]
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
    array = core.core("Array")
    given = core.inputs | dict.fromkeys([*core.outputs, *more], array)
    parameters = dict(zip(mark_unused(given, body), given.values(), strict=True))
    name = core.page.fresh(f"{core.name}_{word}")
    return [
        f"@{core.core(word)}({core.name}{keywords})",
        core.header(name, parameters),
        *indent_lines(tighten(body)),
    ]


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
            name, text = i.cotangent, _gradient(core, i, group)
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
    text = gradient(core.program, i, group or (), core.scope, "jnp.zeros_like")
    if not group or len(group) > 1 or _is_shaped(core, group):
        return text
    return f"{core.core('sum_to')}({text}, {i.name})"


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


# --- custom_vjp ------------------------------------------------------------------------


def _residual_names(core: Core) -> list[str]:
    """Inputs and outputs that the backward pass uses, in the order written."""
    program = core.program
    used = {*names(*core.program.backward.values)}
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
    residuals = tuple_items(kept) if len(kept) == 1 else f"({', '.join(kept)})"
    body = [
        f"{', '.join(core.outputs)} = {core.call}",
        *([_print_line(core, traces.ends(core.program))] if core.trace else []),
        f"return {name_or_tuple(core.outputs)}, {residuals}",
    ]
    return [core.header(name, core.inputs), *indent_lines(body)]


def _backward(core: Core, name: str) -> Lines:
    program, kept = core.program, _residual_names(core)
    residuals, cotangents = map(program.local, ("residuals", "cotangents"))
    given = [o.cotangent if o.takes_gradient else "_" for o in program.outputs]
    lines = unpacking(kept, residuals) if kept else []
    if len(given) > 1:
        lines += unpacking(given, cotangents)
    wanted = [i.name for i, group in core.program.groups if group is not None]
    steps, found = _gradients(core, wanted)
    body = [
        *lines,
        *sizes(
            core.program, core.program.backward.values, [*kept, *program.cotangents]
        ),
        *steps,
    ]
    if core.trace:
        for i in wanted:
            shown = traces.terms(program, i, found[i], core.scope)
            body += [_print_line(core, values) for values in shown]
    last = given[0] if len(given) == 1 else cotangents
    results = [found.get(name, "None") for name in core.tensors]
    body.append(f"return {tuple_items(results)}")
    header = core.header(name, core.numbers | dict.fromkeys((residuals, last), ""))
    return [header, *indent_lines(body)]


def _print_line(core: Core, values: traces.Shown) -> str:
    """A line that prints values, also under `jax.jit`."""
    return f"jax.debug.print({traces.template(core.program, values)})"


# --- initial values --------------------------------------------------------------------


def _initial_values(program: Program, page: Page) -> list[Definition]:
    """``init_f``, which returns the initial arrays of a rule's params, by name: JAX has no
    layers.
    """
    made = layer(program, "dtype shape", f"init_{program.name}")
    if made is None:
        return []
    start, rule = page.core("start"), program.name
    values = [
        f'"{i.name}": {start}({made.public(i.name)}, '
        f"{layers.shape(made, i, '', '')}, dtype)"
        for i in made.params
    ]
    statics = {i.name for i in program.static_inputs}
    axes = [axis for i in made.params for axis in i.shape.axes]
    sizes = [*made.sizes, *dict.fromkeys(str(axis) for axis in axes if axis in statics)]
    arguments = layers.arguments(made, sizes)
    arguments.append("dtype: jax.typing.DTypeLike | None = None")
    about = f"What `{rule}` starts from, as keywords: `{rule}(…, **{made.name}(…))`."
    lines = [
        f"def {made.name}({', '.join(arguments)}) -> dict[str, {page.core('Array')}]:",
        sentence(about, 1),
        f"    return {{{', '.join(values)}}}",
    ]
    return [Definition(lines, (made.name,))]
