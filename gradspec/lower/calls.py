"""Calls: a built-in is applied, a def is put in place, an elementwise rule is kept as a
`Call`; the values of a rule with axes are values of the caller (`lower.arrays`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from gradspec.diagnostics import Fix
from gradspec.ir.expr import Apply, Call, Const, Expr, Ref, spoken
from gradspec.ir.rule import Input, Kind, Rule
from gradspec.ir.walk import nodes as expr_nodes
from gradspec.ir.walk import transform
from gradspec.lower.arrays import Array, fit
from gradspec.lower.context import (
    UNKNOWN,
    Binding,
    Context,
    NameRole,
    Variable,
    near,
    near_names,
)
from gradspec.lower.habits import (
    call_help,
    importing,
    is_of_arrays,
    reduction_text,
    rewritten_calls,
)
from gradspec.lower.module import (
    DEEPEST,
    LARGEST,
    Callee,
    Failed,
    Function,
    FunctionParameter,
    Type,
    Value,
    applied_type,
    combine,
    is_fixed,
    is_too_large,
    type_of,
    type_of_kind,
)
from gradspec.primitives.row import Primitive
from gradspec.source import Span
from gradspec.syntax import nodes
from gradspec.syntax.grammar import REDUCTIONS

Arguments = Mapping[str, nodes.Expr]
_Callable = Rule | Function | Primitive


def lower_call(node: nodes.Call, cx: Context) -> Value | None:
    """The value of a call; faults in its arguments are reported even if it is wrong."""
    callee = cx.library.find(node.function)
    if isinstance(callee, Primitive | None) and _is_reduction(node):
        arguments = [cx.findings.text(arg.span) for arg in node.args]
        help = reduction_text(node.function, node, arguments, cx)
        headline = (
            f"`{node.function}` of one argument is a reduction, and names its indices"
        )
        cx.findings.error("GS202", headline, node.function_span, help=help)
        return None
    if callee is None or isinstance(callee, Failed):
        _report_absent(node, callee, cx)
        return None
    is_ranked = isinstance(callee, Rule) and is_placed(callee)
    if not isinstance(callee, Rule) and node.output is not None:
        _no_outputs(node, cx)
        return None
    if node.indices is not None and not is_ranked:
        _no_indices(node, cx)
        return None
    bound = _bind(node, callee, cx)
    if bound is None:
        _read_arguments(node, cx)
        return None
    match callee:
        case Primitive():
            return _apply(node, callee, bound, cx)
        case Function():
            return _inline(node, callee, bound, cx)
        case Rule():
            called = _element_of_result if is_ranked else _call
            return called(node, callee, bound, cx)
        case _:
            assert_never(callee)


def _is_reduction(node: nodes.Call) -> bool:
    """``max(x)``, ``max(x, dim=1)``: of two arguments it is a function."""
    words = {word.name for word in node.keywords}
    is_one = len(node.args) == 1 and words <= _OF_REDUCTIONS
    return node.output is None and node.function in REDUCTIONS and is_one


_OF_REDUCTIONS = frozenset(("axis", "dim", "keepdim", "keepdims"))


def _read_arguments(node: nodes.Call, cx: Context) -> None:
    """Read the arguments only for the diagnostics inside them."""
    for arg in (*node.args, *(k.value for k in node.keywords)):
        array_of(arg, cx)


def _report_absent(node: nodes.Call, callee: Callee | None, cx: Context) -> None:
    name, span = node.function, node.function_span
    if not is_of_arrays(node):
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
    help, fixes = call_help(node, cx), rewritten_calls(node, cx)
    if not help:
        help, fixes = _offer(node.output or name, span, cx)
    if not help and name in cx.scope.variables:
        help = f"`{name}` is a value: to multiply write `{name} * (…)`"
    help = help or (
        f"define it, `def {name}(t) = …`, or import it; a rule calls built-ins, defs and"
        " rules only"
    )
    cx.findings.error(
        "GS202", f"unknown function `{shown}`", span, help=help, fixes=fixes
    )


def _offer(name: str, span: Span, cx: Context) -> tuple[str, tuple[Fix, ...]]:
    """A rule that comes with gradspec, or what else has a name like this."""
    library = cx.library
    offered = {n: path for n, path in library.offered.items() if n != library.current}
    known = (name,) if name in offered else (*library.names(), *offered)
    like, meant = near(name, known), next(iter(near_names(name, known)), "")
    if meant not in offered or library.find(meant) is not None:
        names = (n for n in near_names(name, known) if library.find(n) is not None)
        return like, tuple(Fix(f"write `{n}`", span, n) for n in names)
    fix = importing(meant, offered[meant], cx)
    place = f"{fix.words} at the top of the file"
    if meant == name:
        return f"`{name}` comes with gradspec: {place}", (fix,)
    return f"{like} For `{meant}` {place}", ()


def _no_outputs(node: nodes.Call, cx: Context) -> None:
    _read_arguments(node, cx)
    cx.findings.error(
        "GS218",
        f"`{node.function}` has no outputs to choose from: only rules have",
        node.function_span,
        help=f"write `{node.function}(…)` without `.{node.output}`",
    )


def _no_indices(node: nodes.Call, cx: Context) -> None:
    _read_arguments(node, cx)
    cx.findings.error(
        "GS232",
        f"`{node.function}(…)` is a number, and has no indices",
        node.span,
        help="only the result of a rule with axes has elements; the indices of an array"
        f" stand behind its name: `{node.function}(x[i])`",
    )


# --- arguments -----------------------------------------------------------------------


def _bind(node: nodes.Call, callee: _Callable, cx: Context) -> Arguments | None:
    """Parameter name → argument; None if they do not fit (which has been reported)."""
    positional, by_keyword, optional = _parameters(callee)
    names = positional + by_keyword
    bound = dict(zip(positional, node.args, strict=False))
    extra = node.args[len(positional) :]
    if extra:
        _too_many(node, callee, len(positional), by_keyword[: len(extra)], cx)
        return None
    for word in node.keywords:
        if word.name not in names:
            headline = f"`{spoken(callee.name)}` has no argument `{word.name}`"
            is_built_in = isinstance(callee, Primitive)
            like = near(word.name, names) or (
                call_help(node, cx) if is_built_in else ""
            )
            _misfit(headline, word.span, callee, cx, like)
            return None
        if word.name in bound:
            headline = (
                f"argument `{word.name}` of `{spoken(callee.name)}` is given twice"
            )
            _misfit(headline, word.span, callee, cx)
            return None
        bound[word.name] = word.value
    missing = [name for name in names if name not in bound and name not in optional]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        headline = (
            f"`{spoken(callee.name)}` takes {_arguments(len(positional))}, and {listed}"
        )
        headline += " is missing" if len(missing) == 1 else " are missing"
        static = [f"pass it by keyword: `{n}=…`" for n in missing if n in by_keyword]
        _misfit(headline, node.span, callee, cx, *static[:1])
        return None
    return _left_out(node, callee) | bound


def _parameters(
    callee: _Callable,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The positional ones, those that are passed by keyword (statics of a rule), and
    those that may be left out."""
    match callee:
        case Primitive(params=params, least_arity=least):
            return params, (), params[least:]
        case Function(parameters=parameters):
            return tuple(p.name for p in parameters), (), ()
        case Rule(tensor_inputs=tensors, static_inputs=statics):
            optional = tuple(i.name for i in statics if i.default is not None)
            return (
                tuple(i.name for i in tensors),
                tuple(i.name for i in statics),
                optional,
            )


def _left_out(node: nodes.Call, callee: _Callable) -> dict[str, nodes.Expr]:
    """The values of a built-in's optional arguments."""
    if not isinstance(callee, Primitive):
        return {}
    optional = zip(callee.params[callee.least_arity :], callee.optional, strict=True)
    return {
        name: nodes.Number(Fraction(value), str(value), span=node.span)
        for name, value in optional
    }


def _arguments(number: int) -> str:
    return f"{number or 'no'} argument{'s' if number != 1 else ''}"


def _too_many(
    node: nodes.Call,
    callee: _Callable,
    most: int,
    statics: tuple[str, ...],
    cx: Context,
) -> None:
    given, extra = len(node.args), node.args[most].span
    if given - most <= len(statics):
        headline = f"`{statics[0]}` of `{spoken(callee.name)}` is static and is passed by keyword"
        _misfit(headline, extra, callee, cx, f"write `{statics[0]}=…`")
        return
    headline = (
        f"`{spoken(callee.name)}` takes {_arguments(most)}, and {given} are given"
    )
    help = ""
    if callee.name in ("min", "max"):
        nested = "a"
        for letter in "bcdefgh"[: given - 1]:
            nested = f"{callee.name}({nested}, {letter})"
        help = f"nest the calls: {nested}"
    elif callee.name == "log":
        help = "the logarithm to base b is `log(x) / log(b)`, or `log2(x)`, `log10(x)`"
    _misfit(headline, extra, callee, cx, help)


def _misfit(
    headline: str, span: Span, callee: _Callable, cx: Context, help: str = ""
) -> None:
    call = _signature(callee)
    notes = (f"its signature: {call}",) if help else ()
    help = help or f"call it as `{call}`"
    cx.findings.error("GS203", headline, span, help=help, notes=notes)


def _signature(callee: _Callable) -> str:
    """``clip(x, lo, hi)``, ``swish(x, beta: static = 1)``."""
    parts = [*_parameters(callee)[0]]
    if isinstance(callee, Rule):
        parts = [_parameter_text(input) for input in callee.inputs]
    return f"{spoken(callee.name)}({', '.join(parts)})"


def _parameter_text(input: Input) -> str:
    kind = input.kind
    text = input.name if kind is Kind.FLOAT else f"{input.name}: {kind.value}"
    return text if input.default is None else f"{text} = {input.default}"


# --- built-ins -----------------------------------------------------------------------


def _apply(
    node: nodes.Call, row: Primitive, bound: Arguments, cx: Context
) -> Value | None:
    args = [
        _value_of_type(
            bound[name], Type(type), f"argument `{name}` of `{spoken(row.name)}`", cx
        )
        for name, type in zip(row.params, row.argument_types, strict=True)
    ]
    sound = tuple(arg for arg in args if arg is not None)
    if len(sound) < len(args):
        return None
    expr = Apply(row.name, tuple(a.expr for a in sound), span=node.span)
    type = applied_type(row.name, expr.args, tuple(a.type for a in sound))
    return combine(expr, type, *sound)


def _value_of_type(
    node: nodes.Expr, type: Type, purpose: str, cx: Context
) -> Value | None:
    value = cx.lower(node)
    return value and _of_type(value, type, node.span, purpose, cx)


def _of_type(
    value: Value, type: Type, span: Span, purpose: str, cx: Context
) -> Value | None:
    if type is Type.BOOL:
        return cx.require_condition(value, span)
    number = cx.require_number(value, span)
    if number is None or type is Type.REAL:
        return number
    return cx.require_integer(number, span, purpose)


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
    expr = _instantiate(function.body, values, node.span)
    if is_too_large(expr, {}):
        _too_large(node, cx)
        return None
    return combine(expr, type_of(function.body, types.__getitem__), *sound)


def _instantiate(body: Expr, values: Mapping[str, Expr], span: Span) -> Expr:
    """``body`` with its parameters replaced; its nodes take the place of the call, for
    the def may stand in another file.
    """

    def visit(node: Expr) -> Expr:
        return values[node.name] if isinstance(node, Ref) else node.at(span)

    return transform(body, visit)


def _parameter(
    parameter: FunctionParameter, node: nodes.Expr, function: Function, cx: Context
) -> Value | None:
    purpose = f"argument `{parameter.name}` of `{function.name}`"
    value = _value_of_type(node, parameter.type, purpose, cx)
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


def _argument(
    node: nodes.Call, rule: Rule, input: Input, given: nodes.Expr | None, cx: Context
) -> Value | None:
    if given is None:
        return _default(rule, input, node.span, cx)
    purpose = f"argument `{input.name}` of `{rule.name}`"
    value = _value_of_type(given, type_of_kind(input.kind), purpose, cx)
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
    names = (n.name for n in expr_nodes(value.expr) if isinstance(n, Ref))
    guilty = next((n for n in names if cx.scope.variables[n].batch), "it")
    cx.findings.error(
        "GS219",
        f"{purpose} must be of rank 0, and `{guilty}` may have any shape",
        span,
        help=f"declare `{guilty}[]` if it is a single number, or leave out the `[]` in"
        " the called rule",
    )
    return None


# --- rules with axes ------------------------------------------------------------------


def is_placed(rule: Rule) -> bool:
    """True of a rule whose definitions become some of the rule that calls it: it has
    axes or equations."""
    return rule.has_axes or any(d.is_equation for d in rule.forward)


def is_whole(node: nodes.Expr, cx: Context) -> bool:
    """True of a call of a rule with axes that names no element of the result."""
    if not isinstance(node, nodes.Call) or node.indices is not None:
        return False
    callee = cx.library.find(node.function)
    return isinstance(callee, Rule) and callee.has_axes


def array_of(node: nodes.Expr, cx: Context) -> Array | None:
    """A whole array: a name, a slice, or the result of a rule; an expression of another
    kind is one without axes."""
    if isinstance(node, nodes.Call) and is_whole(node, cx):
        callee = cx.library.find(node.function)
        assert isinstance(callee, Rule)
        bound = _bind(node, callee, cx)
        return _result(node, callee, bound, cx) if bound is not None else None
    variable = cx.scope.variables.get(node.id) if isinstance(node, nodes.Name) else None
    if variable is not None and cx.scope.index(variable.name) is None:
        whole = tuple(nodes.Whole(span=node.span) for _ in variable.axes)
        node = nodes.Indexed(variable.name, whole, span=node.span) if whole else node
    if not isinstance(node, nodes.Indexed):
        value = cx.lower(node)
        return None if value is None else Array(value)
    names = tuple(
        nodes.Name(f":{place}", span=index.span)
        if isinstance(index, nodes.Whole)
        else index
        for place, index in enumerate(node.indices)
    )
    holes = tuple(
        Binding(name.id, name.id, name.span)
        for name, index in zip(names, node.indices, strict=True)
        if isinstance(index, nodes.Whole) and isinstance(name, nodes.Name)
    )
    with cx.scope.bind(holes):
        value = cx.lower(replace(node, indices=names))
    axes = tuple(UNKNOWN if b.axis is None else b.axis for b in holes)
    return None if value is None else Array(value, tuple(b.id for b in holes), axes)


def _element_of_result(
    node: nodes.Call, rule: Rule, bound: Arguments, cx: Context
) -> Value | None:
    """An element of the result, which is read as if it had a name."""
    array = _result(node, rule, bound, cx)
    if array is None:
        return None
    if not array.axes and node.indices is None:
        return array.value
    name = f"{cx.findings.text(node.function_span)}(…)"
    batch, back = array.value.batch, array.value.is_backward
    cx.scope.variables[name] = Variable(
        name, NameRole.LOCAL, array.value.type, array.axes, batch, back
    )
    value = cx.lower(
        nodes.Name(name, span=node.span)
        if node.indices is None
        else nodes.Indexed(name, node.indices, span=node.span)
    )
    del cx.scope.variables[name]
    if value is None:
        return None
    assert isinstance(value.expr, Ref)
    around = tuple(binding.id for binding in cx.scope.indices)
    return replace(value, expr=array.at(value.expr.indices, around).at(node.span))


def _result(
    node: nodes.Call, rule: Rule, bound: Arguments, cx: Context
) -> Array | None:
    if cx.placed is None:
        what = f"`{rule.name}` has axes: it can be called in the body of a rule only"
        help = "give a rule the array, or write the formula of an element"
        cx.findings.error("GS219", what, node.function_span, help=help)
        return None
    if rule.overrides:
        name = next(iter(rule.overrides))
        what = f"`{rule.name}` overrides the gradient of `{name}`, and has axes"
        help = "put the override into an elementwise rule, and call that one in both"
        cx.findings.error("GS219", what, node.function_span, help=help)
        return None
    number = _output(node, rule, cx)
    arrays = {i.name: _array(node, rule, i, bound.get(i.name), cx) for i in rule.inputs}
    sound = {name: array for name, array in arrays.items() if array is not None}
    if number is None or len(sound) < len(arrays):
        return None
    called = fit(node, rule, sound, cx)
    return None if called is None else called.result(number, cx)


def _array(
    node: nodes.Call, rule: Rule, input: Input, given: nodes.Expr | None, cx: Context
) -> Array | None:
    if given is None:
        value = _default(rule, input, node.span, cx)
        return None if value is None else Array(value)
    array = array_of(given, cx)
    if array is None:
        return None
    purpose = f"argument `{input.name}` of `{rule.name}`"
    type = type_of_kind(input.kind)
    value = _of_type(array.value, type, given.span, purpose, cx)
    if value is not None and input.kind.is_static and not input.is_size:
        value = _static(value, given.span, purpose, cx)
    return None if value is None else replace(array, value=value)
