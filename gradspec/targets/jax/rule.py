"""One rule in JAX: its formulas in private functions, and the public function."""

from __future__ import annotations

from gradspec.ir.rule import Input, Kind
from gradspec.plan.program import Program
from gradspec.targets.docstring import docstring
from gradspec.targets.jax.barriers import with_barriers
from gradspec.targets.jax.core import Core, Way, function, way_of
from gradspec.targets.jax.derivative import derivative
from gradspec.targets.jax.dialect import scope_of
from gradspec.targets.jax.layer import starts
from gradspec.targets.lines import Lines, indented
from gradspec.targets.page import Page
from gradspec.targets.signature import parameters, pattern, returned, shaped
from gradspec.targets.target import Definition

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)
_DISCRETE = {Kind.INT: "integers", Kind.BOOL: "booleans"}
_NUMBERS = {Kind.STATIC: "number", Kind.STATIC_INT: "whole"}


def definitions(program: Program, page: Page, *, trace: bool) -> list[Definition]:
    """``_f`` with its derivative, ``f``, and ``init_f`` if it has params."""
    program = with_barriers(program)
    name, way = page.fresh(f"_{program.name}"), way_of(program, trace)
    core = Core(program, page, scope_of(program, page), name, way, trace)
    found = [
        *map(Definition, [function(core), *derivative(core)]),
        Definition(_public(core), (program.name,)),
        *starts(program, page),
    ]
    lines = [line for definition in found for line in definition.lines]
    if any("jnp." in line for line in lines):
        page.use("import jax.numpy as jnp")
    if any("jax." in line for line in lines):
        page.use("import jax")
    return found


def _public(core: Core) -> Lines:
    """Arguments converted, the rule applied, results rounded."""
    program = core.program
    tensors = parameters(program, core.page.own("jax.typing", "ArrayLike"))
    body = [*_converted(core), *_checked(core)]
    if core.is_joint:
        names = ", ".join(core.tensors)
        body.append(f"{names} = {core.core('in_step')}({names})")
    return [
        f"def {program.name}({tensors}) -> {returned(program, core.core('Array'))}:",
        docstring(program.docs),
        *indented([*body, *_applied(core)]),
    ]


def _dtype(core: Core) -> str:
    """The name of the dtype of the results, if there is a floating one."""
    is_floating = any(o.kind in _FLOATS for o in core.program.outputs)
    return core.program.local("dtype") if is_floating and core.program.floats else "_"


def _converted(core: Core) -> Lines:
    program, lines = core.program, []
    if program.floats:
        least = [core.core("WIDE")] if program.is_double else []
        keywords = [f"{name}={name}" for name in program.floats]
        given = ", ".join([f'"{program.name}"', *least, *keywords])
        left = ", ".join([_dtype(core), *program.floats])
        lines.append(f"{left} = {core.core('floats')}({given})")
    for i in program.tensors:
        if i.kind in _DISCRETE:
            convert = core.core(_DISCRETE[i.kind])
            lines.append(
                f'{i.name} = {convert}("{program.name}", "{i.name}", {i.name})'
            )
    sized = {axis for i in program.tensors for axis in i.shape.axes}
    for i in program.statics:
        if i.name in sized:
            lines.append(f"{i.name} = {_number(core, i)}")
    return lines


def _number(core: Core, i: Input) -> str:
    """A static as a Python number."""
    return f"{core.core(_NUMBERS[i.kind])}({i.name})"


def _checked(core: Core) -> Lines:
    """Checks of declared shapes. Sizes given by statics are passed along."""
    inputs = shaped(core.program)
    if not inputs:
        return []
    axes = {axis for i in inputs for axis in i.shape.axes}
    given = [f'{i.name}=({i.name}, "{pattern(i)}")' for i in inputs]
    given += [f"{name}={name}" for name in core.statics if name in axes]
    check = core.page.axes("check_shapes")
    return [f'{check}("{core.program.name}", {", ".join(given)})']


def _applied(core: Core) -> Lines:
    sized = {axis for i in core.program.tensors for axis in i.shape.axes}
    given = [_argument(core, i) for i in core.program.tensors]
    given += [
        i.name if i.name in sized else _number(core, i) for i in core.program.statics
    ]
    call, dtype = f"{core.name}({', '.join(given)})", _dtype(core)
    if dtype == "_":
        return [f"return {call}"]
    round_to = core.core("round_to")
    if len(core.outputs) == 1:
        return [f"return {round_to}({dtype}, {call})"]
    results = [
        f"{round_to}({dtype}, {o.name})" if o.kind in _FLOATS else o.name
        for o in core.program.outputs
    ]
    return [f"{', '.join(core.outputs)} = {call}", f"return {', '.join(results)}"]


def _argument(core: Core, i: Input) -> str:
    is_plain = core.way is Way.PLAIN and i.kind in _FLOATS
    return f"jax.lax.stop_gradient({i.name})" if is_plain else i.name
