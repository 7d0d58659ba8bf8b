"""The header of a rule: inputs, outputs, their kinds, shapes and names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from gradspec.ir.expr import Const
from gradspec.ir.rule import UNBOUNDED, Input, Kind, Output, Shape
from gradspec.ir.tidy import tidy
from gradspec.lower.context import Findings
from gradspec.primitives.lookup import resolve
from gradspec.source import Span
from gradspec.syntax import nodes

Axis = str | int
Parameters = Iterable[nodes.Parameter]

_PARAM = "param"
_KINDS = {kind.value: kind for kind in Kind} | {"": Kind.FLOAT, _PARAM: Kind.FLOAT}
_STATICS = (Kind.STATIC.value, Kind.STATIC_INT.value)


@dataclass(frozen=True, slots=True)
class Declaration:
    """The contents of the header; ``sizes`` maps the names of axes to their first
    position.

    ``ambiguous`` are names of an input and an output, or of a variable and a gradient:
    an assignment to one causes no further diagnostic.
    """

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    sizes: dict[str, Span]
    ambiguous: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[Input | Output, ...]:
        return (*self.inputs, *self.outputs)


def declare(node: nodes.RuleDef, findings: Findings) -> Declaration:
    """The header, with its faults reported; a name declared again is left out."""
    inputs, outputs = _distinct_parameters(node, findings)
    _check_tensors(node, findings)
    parameters = (*inputs, *outputs)
    bare = Shape(batch=not _is_over_axes_alone(node))
    made = tuple(_input(p, bare, findings) for p in inputs)
    results = tuple(_output(p) for p in outputs)
    declaration = Declaration(made, results, _sizes(parameters))
    _check_params(node, made, findings)
    _check_axes(parameters, declaration.variables, declaration.sizes, findings)
    _check_output_axes(inputs, outputs, made, findings)
    given = [p.name for p in node.inputs]
    repeated = tuple(p.name for p in node.outputs if p.name in given)
    collided = _check_cotangents(declaration, findings)
    return replace(declaration, ambiguous=repeated + collided)


def _is_over_axes_alone(node: nodes.RuleDef) -> bool:
    """True if no output has batch axes, and an input has axes: a bare input beside it
    can only be a scalar, as `ls` in ``rbf(x[n, d], z[m, d], ls) -> k[n, m]``."""
    if any(p.axes is None or p.axes.batch for p in node.outputs):
        return False
    return any(p.axes is not None and p.axes.axes for p in node.inputs)


def _check_tensors(node: nodes.RuleDef, findings: Findings) -> None:
    """Shape and type of the outputs are those of the inputs: there must be one."""
    if all(p.kind in _STATICS for p in node.inputs):
        findings.error(
            "GS226",
            f"`{node.name}` has no input that is a tensor",
            node.name_span,
            label="its outputs would have no shape and no type",
            help=f"add an input, `rule {node.name}(x) -> …`, or write a `def`",
        )


def _distinct_parameters(
    node: nodes.RuleDef, findings: Findings
) -> tuple[tuple[nodes.Parameter, ...], tuple[nodes.Parameter, ...]]:
    seen: dict[str, nodes.Parameter] = {}
    inputs = tuple(p for p in node.inputs if _is_new(p, node, seen, findings))
    outputs = tuple(p for p in node.outputs if _is_new(p, node, seen, findings))
    return inputs, outputs


def _is_new(
    parameter: nodes.Parameter,
    node: nodes.RuleDef,
    seen: dict[str, nodes.Parameter],
    findings: Findings,
) -> bool:
    first = seen.setdefault(parameter.name, parameter)
    if first is parameter:
        return True
    is_both = parameter in node.outputs and first in node.inputs
    headline = f"`{parameter.name}` is an input and an output" if is_both else ""
    help = f"give one of them another name, such as `{parameter.name}2`"
    findings.twice("GS205", parameter, first.name_span, "declared", help, headline)
    return False


def _input(parameter: nodes.Parameter, bare: Shape, findings: Findings) -> Input:
    kind = _KINDS[parameter.kind]
    default = None
    if parameter.default is not None and parameter.kind != _PARAM:
        default = _default(parameter, parameter.default, kind, findings)
    if kind.is_static and parameter.axes is not None:
        findings.error(
            "GS223",
            f"static input `{parameter.name}` cannot have axes: it is one number",
            parameter.axes.span,
            help=f"leave the brackets out, or declare `{parameter.name}` as a `nograd`"
            " tensor",
        )
    shape = Shape() if kind.is_static else _shape(parameter, bare)
    initial = _initial_value(parameter, findings)
    return Input(parameter.name, kind, shape, default, parameter.name_span, initial)


def _output(parameter: nodes.Parameter) -> Output:
    kind = _KINDS[parameter.kind]
    return Output(parameter.name, kind, _shape(parameter, Shape()), parameter.name_span)


def _shape(parameter: nodes.Parameter, bare: Shape) -> Shape:
    """``x`` is ``bare``, mostly any axes, as a batch; ``x[]`` has none; ``x[..., n]``
    some and ``n``."""
    if parameter.axes is None:
        return bare
    return Shape(parameter.axes.batch, parameter.axes.axes)


# --- defaults ------------------------------------------------------------------------


def _default(
    parameter: nodes.Parameter, node: nodes.Expr, kind: Kind, findings: Findings
) -> Fraction | None:
    if not kind.is_static:
        findings.error(
            "GS223",
            f"only a static input can have a default, and `{parameter.name}` is a tensor",
            node.span,
            help=f"declare it `{parameter.name}: static = …`, or `{parameter.name}: param"
            " = …` if it is learned, or leave the default out",
        )
        return None
    value = _constant(node)
    if value is None and kind is Kind.STATIC:
        value = _infinity(node)
    if value is None:
        findings.error(
            "GS223",
            f"the default of `{parameter.name}` is not an exact number",
            node.span,
            help="a default is a number such as 1.0, -3 or 1 / 3, or of a static that is"
            " no integer inf or -inf; write pi in the body",
        )
    elif kind is Kind.STATIC_INT and value.denominator != 1:
        findings.error(
            "GS223",
            f"the default of `{parameter.name}` is not an integer",
            node.span,
            help="give an integer, or declare it `: static`",
        )
    return value


def _constant(node: nodes.Expr) -> Fraction | None:
    """The exact value of an expression without names; None if it has none."""
    try:
        value = tidy(resolve(node))
    except ValueError:
        return None
    return value.value if isinstance(value, Const) else None


def _infinity(node: nodes.Expr) -> Fraction | None:
    """The number that stands for ``inf`` or ``-inf``; None for another expression."""
    match node:
        case nodes.Name(id="inf"):
            return UNBOUNDED
        case nodes.Unary(op="-", operand=nodes.Name(id="inf")):
            return -UNBOUNDED
        case _:
            return None


# --- learned inputs ------------------------------------------------------------------


def _initial_value(parameter: nodes.Parameter, findings: Findings) -> Fraction | None:
    """The number that every element of a `param` starts from; None of other inputs."""
    if parameter.kind != _PARAM:
        return None
    if parameter.default is None:
        findings.error(
            "GS260",
            f"the param `{parameter.name}` has no initial value",
            Span(parameter.name_span.start, parameter.span.end),
            label="what does a layer start from?",
            help=f"give it one: `{_param_text(parameter)} = 1.0`",
        )
        return Fraction(0)
    value = _constant(parameter.default)
    if value is None:
        findings.error(
            "GS261",
            f"the initial value of `{parameter.name}` is not a finite exact number",
            parameter.default.span,
            help="an initial value is one finite number, such as 1.0 or 1 / 3, from"
            " which every element starts",
        )
    return value or Fraction(0)


def _param_text(parameter: nodes.Parameter) -> str:
    axes = parameter.axes
    parts = ", ".join(str(axis) for axis in axes.axes) if axes is not None else ""
    return f"{parameter.name}{f'[{parts}]' if parts else ''}: param"


def _check_params(
    node: nodes.RuleDef, made: tuple[Input, ...], findings: Findings
) -> None:
    """A param has a size of its own, and a rule with params takes data as well."""
    for parameter in node.inputs:
        if parameter.kind == _PARAM and parameter.axes and parameter.axes.batch:
            findings.error(
                "GS262",
                f"the param `{parameter.name}` has batch axes",
                parameter.axes.span,
                label="`...` comes with the data, and differs from call to call",
                help=f"leave the dots out, `{_param_text(parameter)} = …`: it broadcasts"
                " over the batch",
            )
    tensors = [i for i in made if not i.kind.is_static]
    if tensors and all(i.is_param for i in tensors):
        findings.error(
            "GS263",
            f"every tensor that `{node.name}` takes is a param",
            node.name_span,
            label="a layer would have nothing to be called with",
            help=f"add an input for the data, `rule {node.name}(x, …) -> …`",
        )


# --- axes ----------------------------------------------------------------------------


def _placed_axes(
    parameters: Parameters,
) -> Iterator[tuple[nodes.Parameter, Axis, Span]]:
    """The axes of parameters, with their places."""
    for parameter in parameters:
        if parameter.axes is not None:
            pairs = zip(parameter.axes.axes, parameter.axes.places, strict=True)
            yield from ((parameter, axis, place) for axis, place in pairs)


def _sizes(parameters: Parameters) -> dict[str, Span]:
    """The named axes and their first places."""
    found: dict[str, Span] = {}
    for _, axis, place in _placed_axes(parameters):
        if isinstance(axis, str):
            found.setdefault(axis, place)
    return found


def _check_axes(
    parameters: Parameters,
    variables: tuple[Input | Output, ...],
    named: dict[str, Span],
    findings: Findings,
) -> None:
    """An axis has a name of its own, or a size of at least 1."""
    for variable in variables:
        if variable.name in named and variable.kind is not Kind.STATIC_INT:
            what = f"an axis has the name of the variable `{variable.name}`"
            _bad_axis(what, named[variable.name], findings)
    for _, axis, place in _placed_axes(parameters):
        if isinstance(axis, int) and axis < 1:
            _bad_axis(f"an axis of size {axis} has no elements", place, findings)


def _bad_axis(headline: str, place: Span, findings: Findings) -> None:
    findings.error(
        "GS242",
        headline,
        place,
        help="an axis is a name of its own, such as `n`, or a fixed size, such as `3`",
    )


def _check_output_axes(
    inputs: Parameters,
    outputs: Parameters,
    made: tuple[Input, ...],
    findings: Findings,
) -> None:
    """The size of every axis of an output is known from an input, or is a static."""
    known = [axis for _, axis, _ in _placed_axes(inputs)]
    known += [i.name for i in made if i.kind is Kind.STATIC_INT]
    for parameter, axis, place in _placed_axes(outputs):
        if isinstance(axis, str) and axis not in known:
            findings.error(
                "GS243",
                f"the size of axis `{axis}` of output `{parameter.name}` is unknown: no"
                " input has it",
                place,
                help=f"use an axis of an input, or add `{axis}: static int` to them",
            )


# --- cotangents ----------------------------------------------------------------------


def _check_cotangents(made: Declaration, findings: Findings) -> tuple[str, ...]:
    """No name may be that of another variable's gradient; gives those that are."""
    gradients = {v.cotangent: v for v in made.variables if v.takes_gradient}
    places = [(v.name, v.span) for v in made.variables]
    places += [(n, s) for n, s in made.sizes.items() if n not in dict(places)]
    collided = tuple((name, span) for name, span in places if name in gradients)
    for name, span in collided:
        owner = gradients[name]
        findings.error(
            "GS210",
            f"`{name}` is also the name of the gradient of `{owner.name}`",
            span,
            label="this name is taken",
            also=(findings.place(owner.span, f"its gradient is called `{name}`"),),
            help=f"rename one of the two, `{name}` to `delta_{owner.name}` say",
        )
    return tuple(name for name, _ in collided)
