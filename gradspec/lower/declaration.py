"""The header of a rule: inputs, outputs, their kinds, shapes and names."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gradspec.ir.rule import Input, Kind, Output, Shape
from gradspec.lower.constants import NotConstant, evaluate
from gradspec.lower.findings import Findings
from gradspec.source import Span
from gradspec.syntax import nodes

_KINDS = {kind.value: kind for kind in Kind} | {"": Kind.FLOAT}


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the header says; ``sizes`` maps the names of axes to their first place."""

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    sizes: dict[str, Span]

    @property
    def variables(self) -> tuple[Input | Output, ...]:
        return (*self.inputs, *self.outputs)


def declare(node: nodes.RuleDef, findings: Findings) -> Declaration:
    """The header, with its faults reported; a name declared again is left out."""
    inputs, outputs = _once(node, findings)
    parameters = (*inputs, *outputs)
    made = tuple(_input(p, findings) for p in inputs)
    results = tuple(_output(p) for p in outputs)
    sizes = _sizes(parameters)
    declaration = Declaration(made, results, sizes)
    _check_axes(parameters, declaration, findings)
    _check_output_axes(inputs, outputs, declaration, findings)
    _check_cotangents(declaration, findings)
    return declaration


def _once(
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
    findings.error(
        "GS205",
        f"`{parameter.name}` is an input and an output"
        if is_both
        else f"`{parameter.name}` is declared twice",
        parameter.name_span,
        label="declared here again",
        also=(findings.place(first.name_span, "first declared here"),),
        help=f"give one of them another name, such as `{parameter.name}2`",
    )
    return False


def _input(parameter: nodes.Parameter, findings: Findings) -> Input:
    kind = _KINDS[parameter.kind]
    default = None
    if parameter.default is not None:
        default = _default(parameter, parameter.default, kind, findings)
    if kind.is_static and parameter.axes is not None:
        findings.error(
            "GS223",
            f"static input `{parameter.name}` cannot have axes: it is one number",
            parameter.axes.span,
            help=f"leave the brackets out, or declare `{parameter.name}` as a `nograd`"
            " tensor",
        )
    shape = Shape() if kind.is_static else _shape(parameter)
    return Input(parameter.name, kind, shape, default, parameter.name_span)


def _output(parameter: nodes.Parameter) -> Output:
    kind = _KINDS[parameter.kind]
    return Output(parameter.name, kind, _shape(parameter), parameter.name_span)


def _shape(parameter: nodes.Parameter) -> Shape:
    """``x`` has any axes, as a batch; ``x[]`` none; ``x[..., n]`` some and ``n``."""
    if parameter.axes is None:
        return Shape()
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
            help=f"declare it `{parameter.name}: static = …`, or leave the default out",
        )
        return None
    try:
        value = evaluate(node)
    except NotConstant as fault:
        findings.error(
            "GS223",
            f"the default of `{parameter.name}` {fault}",
            node.span,
            help="a default is a finite number, such as 1.0, -3 or 1 / 3",
        )
        return None
    if kind is Kind.STATIC_INT and value.denominator != 1:
        findings.error(
            "GS223",
            f"the default of `{parameter.name}` is not an integer",
            node.span,
            help="give an integer, or declare it `: static`",
        )
    return value


# --- axes ----------------------------------------------------------------------------


def _sizes(parameters: tuple[nodes.Parameter, ...]) -> dict[str, Span]:
    sizes: dict[str, Span] = {}
    for parameter in parameters:
        for axis in _axes(parameter):
            if isinstance(axis, str):
                sizes.setdefault(axis, _axes_span(parameter))
    return sizes


def _axes(parameter: nodes.Parameter) -> tuple[str | int, ...]:
    return () if parameter.axes is None else parameter.axes.axes


def _axes_span(parameter: nodes.Parameter) -> Span:
    return parameter.name_span if parameter.axes is None else parameter.axes.span


def _check_axes(
    parameters: tuple[nodes.Parameter, ...], made: Declaration, findings: Findings
) -> None:
    taken = tuple(v.name for v in made.variables if v.kind is not Kind.STATIC_INT)
    for parameter in parameters:
        for axis in _axes(parameter):
            if isinstance(axis, int):
                if axis < 1:
                    _bad_axis(parameter, f"of size {axis} has no elements", findings)
            elif axis in taken:
                _bad_axis(parameter, f"`{axis}` has the name of a variable", findings)


def _bad_axis(parameter: nodes.Parameter, what: str, findings: Findings) -> None:
    findings.error(
        "GS242",
        f"an axis {what}",
        _axes_span(parameter),
        help="an axis is a name of its own, such as `n`, or a fixed size, such as `3`",
    )


def _check_output_axes(
    inputs: tuple[nodes.Parameter, ...],
    outputs: tuple[nodes.Parameter, ...],
    made: Declaration,
    findings: Findings,
) -> None:
    """The size of every axis of an output is known from an input, or is a static."""
    known = [axis for parameter in inputs for axis in _axes(parameter)]
    known += [i.name for i in made.inputs if i.kind is Kind.STATIC_INT]
    for parameter in outputs:
        for axis in _axes(parameter):
            if isinstance(axis, str) and axis not in known:
                findings.error(
                    "GS243",
                    f"the size of axis `{axis}` of output `{parameter.name}` is unknown:"
                    " no input has it",
                    _axes_span(parameter),
                    help=f"use an axis of an input, or add `{axis}: static int` to them",
                )


# --- cotangents ----------------------------------------------------------------------


def _check_cotangents(made: Declaration, findings: Findings) -> None:
    """No name may be that of another variable's gradient."""
    gradients = {f"d{v.name}": v for v in made.variables if v.takes_gradient}
    places = [(v.name, v.span) for v in made.variables]
    places += [(n, s) for n, s in made.sizes.items() if n not in dict(places)]
    for name, span in places:
        if name in gradients:
            owner = gradients[name]
            findings.error(
                "GS210",
                f"`{name}` is also the name of the gradient of `{owner.name}`",
                span,
                label="this name is taken",
                also=(findings.place(owner.span, f"its gradient is called `{name}`"),),
                help=f"rename one of the two, `{name}` to `delta_{owner.name}` say",
            )
