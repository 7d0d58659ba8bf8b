"""Indices: where they are introduced, and the axes over which they range."""

from __future__ import annotations

from gradspec.lower.context import (
    UNKNOWN,
    Binding,
    Context,
    NameRole,
    near,
    report_unknown,
)
from gradspec.lower.module import Type
from gradspec.source import Span
from gradspec.syntax import nodes
from gradspec.syntax.grammar import MAX_SIZE


def make_bindings(names: tuple[nodes.Name, ...], cx: Context) -> tuple[Binding, ...]:
    """An index for each name; one that repeats or is taken by a variable is at
    fault."""
    made: dict[str, Binding] = {}
    for name in names:
        if name.id in made:
            _report_bad_index(name, "an index in the same place", cx)
        elif _is_variable(name.id, cx):
            _report_bad_index(name, "a variable or an axis of the rule", cx)
        made[name.id] = Binding(name.id, cx.scope.fresh(name.id), name.span)
        if isinstance(name, nodes.Ranged):
            made[name.id].axis = _range_axis(name, cx)
            made[name.id].place = name.range.span
            made[name.id].is_ranged = True
    return tuple(made.values())


# --- ranges ---------------------------------------------------------------------------


def _range_axis(node: nodes.Ranged, cx: Context) -> str | int:
    """The axis that the author gives an index: one of the rule, a number or a static
    integer; UNKNOWN if it is at fault."""
    range, text = node.range, cx.findings.text(node.range.span)
    if isinstance(range, nodes.Number):
        whole = range.value.denominator == 1
        if whole and 1 <= range.value <= MAX_SIZE:
            return int(range.value)
        what = "has no elements" if range.value == 0 else "is no number of elements"
    elif isinstance(range, nodes.Unary) and isinstance(range.operand, nodes.Number):
        what = "is no number of elements"
    elif not isinstance(range, nodes.Name):
        what = "is neither a number nor the name of a size"
    elif range.id in cx.scope.sizes or _is_static_integer(range.id, cx):
        return range.id
    elif cx.scope.index(range.id) is not None or range.id == node.id:
        what = f"is an index: a range is the same for all values of `{range.id}`"
    elif range.id in cx.scope.variables and cx.scope.variables[range.id].is_static:
        what = "need not be an integer"
    elif range.id in cx.scope.variables:
        what = "is no `static int`, so that the number of elements would depend on data"
    else:
        is_known = cx.is_function or range.id in cx.scope.hidden
        help = "" if is_known else _unknown_help(node.id, range.id, cx)
        report_unknown(range.id, range.span, cx, help=help)
        return UNKNOWN
    cx.findings.error(
        "GS238",
        f"`{text}` cannot be the range of `{node.id}`: it {what}",
        range.span,
        help=_range_help(node, cx),
    )
    return UNKNOWN


def _unknown_help(index: str, range: str, cx: Context) -> str:
    return near(range, cx.scope.known_names()) or (
        f"add `{range}: static int` to the inputs, or write `for {index}` alone: an index"
        " ranges over the axis on which it stands"
    )


def _range_help(node: nodes.Ranged, cx: Context) -> str:
    """How to say what the author may have meant."""
    match node.range:
        case nodes.Call(function="range", args=(size,)):
            return f"write `{node.id} in {cx.findings.text(size.span)}`"
        case nodes.Name(id=name) if cx.scope.index(name) is not None:
            return f"narrow the range by a condition: `for {node.id} if {node.id} < {name}`"
        case nodes.Name(id=name) if cx.is_function:
            return "the range of an index in a def is a number: write it in a rule"
        case nodes.Name(id=name) if name in cx.scope.variables:
            return f"declare `{name}: static int`, or use the name of an axis"
        case nodes.Number() | nodes.Unary(operand=nodes.Number()):
            return "a range is a whole number of at least 1, an axis or a `static int`"
        case _:
            return (
                "a range is a whole number of at least 1, an axis or a `static int`:"
                f" declare `m: static int`, and write `{node.id} in m`"
            )


def _is_static_integer(name: str, cx: Context) -> bool:
    variable = cx.scope.variables.get(name)
    return (
        variable is not None
        and variable.role is NameRole.INPUT
        and variable.is_static
        and variable.type is Type.INT
    )


def _is_variable(name: str, cx: Context) -> bool:
    variable = cx.scope.variables.get(name)
    return name in cx.scope.sizes or (
        variable is not None and variable.role is not NameRole.PARAMETER
    )


def _report_bad_index(name: nodes.Name, what: str, cx: Context) -> None:
    cx.findings.error(
        "GS236",
        f"`{name.id}` cannot be an index here: it is {what}",
        name.span,
        help="use another letter for the index",
    )


def solve(binding: Binding, cx: Context) -> str | int | None:
    """The axis of an index whose uses have all been seen."""
    if binding.solution is None:
        cx.findings.error(
            "GS233",
            f"index `{binding.name}` stands on no axis, so its range is unknown",
            binding.span,
            help=f"use it as an index of something, such as `x[{binding.name}]`, or give"
            f" it a range: `{binding.name} in n`, an axis or a `static int`",
        )
    return binding.solution


def stand(binding: Binding, axis: str | int, span: Span, cx: Context) -> None:
    """``binding`` stands on ``axis`` here; it must be the same axis everywhere."""
    if axis == UNKNOWN:
        return
    if binding.axis is None:
        binding.axis, binding.place = axis, span
    elif binding.axis != axis:
        first = binding.place or binding.span
        cx.findings.error(
            "GS230",
            f"index `{binding.name}` stands on axis `{axis}` here and on axis"
            f" `{binding.axis}` elsewhere",
            span,
            label=f"ranges over `{axis}`",
            also=(cx.findings.place(first, f"ranges over `{binding.axis}`"),),
            help="use another index here, or give the two axes the same name if they"
            " are always of the same size",
        )
