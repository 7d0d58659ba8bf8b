"""The header of a rule: inputs, outputs, their kinds, shapes and names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from gradspec.ir.rule import Input, Kind, Output, Shape
from gradspec.lower.axes import check_axes, check_output_axes, sizes
from gradspec.lower.constants import NotConstant, evaluate
from gradspec.lower.findings import Findings
from gradspec.lower.learnable import PARAM, check_params, initial_value
from gradspec.source import Span
from gradspec.syntax import nodes

_KINDS = {kind.value: kind for kind in Kind} | {"": Kind.FLOAT, PARAM: Kind.FLOAT}
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
    inputs, outputs = _once(node, findings)
    _check_tensors(node, findings)
    parameters = (*inputs, *outputs)
    bare = Shape(batch=not _is_over_axes_alone(node))
    made = tuple(_input(p, bare, findings) for p in inputs)
    results = tuple(_output(p) for p in outputs)
    declaration = Declaration(made, results, sizes(parameters, findings))
    check_params(node, made, findings)
    check_axes(parameters, declaration.variables, declaration.sizes, findings)
    check_output_axes(inputs, outputs, made, findings)
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


def _input(parameter: nodes.Parameter, bare: Shape, findings: Findings) -> Input:
    kind = _KINDS[parameter.kind]
    default = None
    if parameter.default is not None and parameter.kind != PARAM:
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
    initial = initial_value(parameter, findings)
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


# --- cotangents ----------------------------------------------------------------------


def _check_cotangents(made: Declaration, findings: Findings) -> tuple[str, ...]:
    """No name may be that of another variable's gradient; gives those that are."""
    gradients = {f"d{v.name}": v for v in made.variables if v.takes_gradient}
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
