"""Calls: a built-in is applied, a def is put in place, a rule is kept as a `Call`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from gradspec.ir.expr import Apply, Call, Const, Expr, Ref
from gradspec.ir.rule import Input, Kind, Output, Rule
from gradspec.ir.walk import nodes as expr_nodes
from gradspec.lower import habits
from gradspec.lower.arguments import bind
from gradspec.lower.context import Context
from gradspec.lower.findings import near
from gradspec.lower.growth import DEEPEST, LARGEST, is_too_large
from gradspec.lower.instance import instantiate
from gradspec.lower.library import Callee, Failed
from gradspec.lower.module import Function, FunctionParameter, Type
from gradspec.lower.values import (
    Value,
    applied_type,
    combine,
    is_fixed,
    type_of,
    type_of_kind,
)
from gradspec.primitives.row import Primitive
from gradspec.source import Span
from gradspec.syntax import nodes

Arguments = Mapping[str, nodes.Expr]


def lower_call(node: nodes.Call, cx: Context) -> Value | None:
    """The value of a call; faults in its arguments are reported even if it is wrong."""
    callee = cx.library.find(node.function)
    if isinstance(callee, Primitive) and _is_reduction(node):
        help = habits.reduction_help(node, cx)
        headline = (
            f"`{node.function}` of one argument is a reduction, and names its indices"
        )
        cx.findings.error("GS202", headline, node.function_span, help=help)
        return None
    if callee is None or isinstance(callee, Failed):
        _report_absent(node, callee, cx)
        return None
    if not isinstance(callee, Rule) and node.output is not None:
        _no_outputs(node, cx)
        return None
    bound = bind(node, callee, cx)
    if bound is None:
        _read_arguments(node, cx)
        return None
    match callee:
        case Primitive():
            return _apply(node, callee, bound, cx)
        case Function():
            return _inline(node, callee, bound, cx)
        case Rule():
            return _call(node, callee, bound, cx)
        case _:
            assert_never(callee)


def _is_reduction(node: nodes.Call) -> bool:
    """``max(x)``: of two arguments it is a function."""
    return (
        node.function in habits.REDUCTIONS and len(node.args) == 1 and not node.keywords
    )


def _read_arguments(node: nodes.Call, cx: Context) -> None:
    """Read the arguments only for the diagnostics inside them."""
    for arg in (*node.args, *(k.value for k in node.keywords)):
        cx.lower(arg)


def _report_absent(node: nodes.Call, callee: Callee | None, cx: Context) -> None:
    name, span = node.function, node.function_span
    if not habits.is_of_arrays(node):
        _read_arguments(node, cx)
    if callee is not None:
        cx.findings.note(
            "GS222",
            f"`{cx.library.current}` is left out: `{name}`, which it calls, has errors",
            span,
            "mend this one first",
        )
        return
    shown = name if node.output is None else f"{name}.{node.output}"
    help = habits.call_help(node, cx) or near(name, cx.library.names())
    if not help and name in cx.scope.variables:
        help = f"`{name}` is a value: to multiply write `{name} * (…)`"
    help = help or (
        f"define it, `def {name}(t) = …`, or import it; a rule calls built-ins, defs and"
        " rules only"
    )
    cx.findings.error("GS202", f"unknown function `{shown}`", span, help=help)


def _no_outputs(node: nodes.Call, cx: Context) -> None:
    _read_arguments(node, cx)
    cx.findings.error(
        "GS218",
        f"`{node.function}` has no outputs to choose from: only rules have",
        node.function_span,
        help=f"write `{node.function}(…)` without `.{node.output}`",
    )


# --- built-ins -----------------------------------------------------------------------


def _apply(
    node: nodes.Call, row: Primitive, bound: Arguments, cx: Context
) -> Value | None:
    types = row.types or ("real",) * row.arity
    args = [
        _typed(bound[name], type, f"argument `{name}` of `{row.name}`", cx)
        for name, type in zip(row.params, types, strict=True)
    ]
    sound = tuple(arg for arg in args if arg is not None)
    if len(sound) < len(args):
        return None
    expr = Apply(row.name, tuple(a.expr for a in sound), span=node.span)
    type = applied_type(row.name, expr.args, tuple(a.type for a in sound))
    return combine(expr, type, *sound)


def _typed(node: nodes.Expr, type: str, purpose: str, cx: Context) -> Value | None:
    match type:
        case "bool":
            return cx.condition(node)
        case "int":
            return cx.integer(node, purpose)
        case _:
            return cx.number(node)


# --- defs ----------------------------------------------------------------------------


def _inline(
    node: nodes.Call, function: Function, bound: Arguments, cx: Context
) -> Value | None:
    args = [_parameter(p, bound[p.name], function, cx) for p in function.parameters]
    sound = tuple(arg for arg in args if arg is not None)
    if len(sound) < len(args):
        return None
    names = tuple(p.name for p in function.parameters)
    types = dict(zip(names, (a.type for a in sound), strict=True))
    values = dict(zip(names, (a.expr for a in sound), strict=True))
    expr = instantiate(function.body, values, node.span)
    if is_too_large(expr, {}):
        _too_large(node, cx)
        return None
    return combine(expr, type_of(function.body, types.__getitem__), *sound)


def _parameter(
    parameter: FunctionParameter, node: nodes.Expr, function: Function, cx: Context
) -> Value | None:
    purpose = f"argument `{parameter.name}` of `{function.name}`"
    word = {Type.BOOL: "bool", Type.INT: "int", Type.REAL: "real"}[parameter.type]
    value = _typed(node, word, purpose, cx)
    if value is not None and parameter.is_static:
        return _static(value, node.span, purpose, cx)
    if value is not None and parameter.is_rank_0:
        return _rank_0(value, node.span, purpose, cx)
    return value


def _too_large(node: nodes.Call, cx: Context) -> None:
    cx.findings.error(
        "GS224",
        f"with `{node.function}` put in place the expression becomes too large",
        node.span,
        notes=(f"at most {LARGEST} operations, at most {DEEPEST} inside one another",),
        help="call fewer defs from defs, or make one of them a rule",
    )


# --- rules ---------------------------------------------------------------------------


def _call(node: nodes.Call, rule: Rule, bound: Arguments, cx: Context) -> Value | None:
    if not rule.is_elementwise:
        _ranked_callee(node, rule, cx)
        _read_arguments(node, cx)
        return None
    number = _output(node, rule, cx)
    args = [_argument(node, rule, i, bound.get(i.name), cx) for i in rule.inputs]
    sound = tuple(arg for arg in args if arg is not None)
    if number is None or len(sound) < len(args):
        return None
    expr: Expr = Call(rule, number, tuple(a.expr for a in sound), span=node.span)
    return combine(expr, type_of_kind(rule.outputs[number].kind), *sound)


def _output(node: nodes.Call, rule: Rule, cx: Context) -> int | None:
    outputs = tuple(o.name for o in rule.outputs)
    if node.output in outputs:
        return outputs.index(node.output)
    if node.output is None and len(outputs) == 1:
        return 0
    listed = " or ".join(f"`{rule.name}.{name}(…)`" for name in outputs)
    if node.output is None:
        headline = f"`{rule.name}` has {len(outputs)} outputs: say which one"
        help = f"write {listed}"
    else:
        headline = f"`{rule.name}` has no output `{node.output}`"
        help = near(node.output, outputs) or f"write {listed}"
    cx.findings.error("GS218", headline, node.function_span, help=help)
    return None


def _ranked_callee(node: nodes.Call, rule: Rule, cx: Context) -> None:
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    ranked = next(v.name for v in variables if v.shape.axes)
    cx.findings.error(
        "GS219",
        f"`{rule.name}` cannot be called in an expression: its `{ranked}` has axes",
        node.function_span,
        help="only elementwise rules can be called; write its formula out here",
    )


def _argument(
    node: nodes.Call, rule: Rule, input: Input, given: nodes.Expr | None, cx: Context
) -> Value | None:
    if given is None:
        return _default(rule, input, node.span, cx)
    purpose = f"argument `{input.name}` of `{rule.name}`"
    word = {Type.BOOL: "bool", Type.INT: "int", Type.REAL: "real"}
    value = _typed(given, word[type_of_kind(input.kind)], purpose, cx)
    if value is None:
        return None
    if input.kind.is_static:
        return _static(value, given.span, purpose, cx)
    return value if input.shape.batch else _rank_0(value, given.span, purpose, cx)


def _default(rule: Rule, input: Input, span: Span, cx: Context) -> Value | None:
    assert input.default is not None, "bind has seen to it"
    type = Type.INT if input.kind is Kind.STATIC_INT else Type.REAL
    return Value(Const(input.default, span=span), type, is_static=True)


def _static(value: Value, span: Span, purpose: str, cx: Context) -> Value | None:
    if cx.require_static(value) and is_fixed(value.expr):
        return value
    cx.findings.error(
        "GS223",
        f"{purpose} is static: it can be a number or made of static inputs",
        span,
        label="this varies with the data",
        help="pass a constant, or an input that is itself declared `: static`",
    )
    return None


def _rank_0(value: Value, span: Span, purpose: str, cx: Context) -> Value | None:
    if cx.require_rank_0(value):
        return value
    names = (n.name for n in _references(value.expr))
    guilty = next((n for n in names if cx.scope.variables[n].batch), "it")
    cx.findings.error(
        "GS219",
        f"{purpose} must be of rank 0, and `{guilty}` may have any shape",
        span,
        help=f"declare `{guilty}[]` if it is a single number, or leave out the `[]` in"
        " the called rule",
    )
    return None


def _references(expr: Expr) -> tuple[Ref, ...]:
    return tuple(n for n in expr_nodes(expr) if isinstance(n, Ref))
