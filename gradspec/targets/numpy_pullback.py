"""``f_vjp``: the outputs of a rule, and its pullback."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from gradspec.ir.rule import Input, Kind
from gradspec.plan.array import Expr, Name, names
from gradspec.plan.plan import RulePlan, Step, Term
from gradspec.targets.docstring import sentence
from gradspec.targets.lines import Lines, assignments, indented
from gradspec.targets.numpy_blocks import pullback_in_blocks, vjp_in_blocks
from gradspec.targets.numpy_double import asked, gradients_lines, named_gradients
from gradspec.targets.numpy_few import gives_few, sum_of, unless_few
from gradspec.targets.numpy_outputs import grouped_outputs, reach
from gradspec.targets.numpy_parts import (
    ARRAY,
    LIKE,
    Functions,
    conversions,
    not_given,
    quiet,
    returned,
    sizes,
    statements_of,
    tuple_type,
    values_of,
)
from gradspec.targets.numpy_rows import (
    backward_by_rows,
    forward_by_rows,
    goes_by_rows,
    pulled_by_rows,
)
from gradspec.targets.numpy_trace import traced_forward, traced_gradients
from gradspec.targets.python import render, render_atom
from gradspec.targets.signature import fresh, parameters, variables
from gradspec.targets.unasked import has_unasked, plain, uses_times


def vjp_lines(functions: Functions) -> Lines:
    """``f_vjp``: the outputs, and a function from their gradients to the inputs'. A
    pullback that needs only the inputs stands before it, by itself.
    """
    if _stands_alone(functions):
        return [*_alone_lines(functions), "", "", *_short_vjp_lines(functions)]
    if goes_by_rows(functions):
        return _vjp_by_rows(functions)
    plan = functions.plan
    return [
        *quiet(values_of(functions.forward)),
        *_header(functions),
        *indented(vjp_in_blocks(functions)),
        *indented(_likes(functions)),
        *indented(conversions(plan)),
        *indented(sizes(functions, *values_of(functions.forward), *functions.pulled)),
        *indented(statements_of(functions, functions.forward)),
        *indented(traced_forward(functions)),
        *("", *indented(_inner_pullback(functions)), ""),
        f"    return {grouped_outputs(functions)}, pullback",
    ]


def _header(functions: Functions) -> Lines:
    plan = functions.plan
    kind = f"tuple[{returned(plan)}, Callable[..., {_pulled_type(functions)}]]"
    return [
        f"def {functions.vjp}({parameters(plan, LIKE)}) -> {kind}:",
        sentence(_vjp_text(plan), 1),
    ]


def _pulled_type(functions: Functions) -> str:
    return tuple_type(_slot(group) for group in functions.backward.gradients)


def _vjp_by_rows(functions: Functions) -> Lines:
    plan = functions.plan
    params = ", ".join(f"{d}: {LIKE}" for d in plan.upstream)
    pairs = zip(plan.tensors, functions.backward.gradients, strict=True)
    results = _tuple(
        f"_gradient({like(plan, i.name)}, d{i.name})"
        if group
        else _gradient(functions, i, group)
        for i, group in pairs
    )
    return [
        *_header(functions),
        *indented(_likes(functions)),
        *indented(conversions(plan)),
        *indented(sizes(functions, *values_of(functions.forward), *functions.pulled)),
        *("", *indented(forward_by_rows(functions)), ""),
        *(*indented(backward_by_rows(functions)), ""),
        f"    def pullback({params}) -> {_pulled_type(functions)}:",
        *indented(indented(_shaped_upstream(functions))),
        *indented(indented(pulled_by_rows(functions))),
        f"        return {results}",
        "",
        f"    return {grouped_outputs(functions)}, pullback",
    ]


# --- a pullback by itself ------------------------------------------------------------------


def _stands_alone(functions: Functions) -> bool:
    """Whether the pullback needs nothing that the forward pass computes."""
    plan, backward = functions.plan, functions.backward
    if plan.is_ranked or functions.is_traced:
        return False
    inputs = {i.name for i in plan.inputs}
    terms = [term for group in backward.gradients for term in group or ()]
    return (
        inputs >= {*backward.residuals}
        and all(term.upstream for term in terms)
        and all(reach(functions, o) for o in plan.outputs if o.takes_gradient)
    )


def _short_vjp_lines(functions: Functions) -> Lines:
    plan = functions.plan
    statics = [f"{i.name}={i.name}" for i in plan.statics]
    given = ", ".join([*(i.name for i in plan.tensors), *statics])
    pullback = f"partial({_name(functions)}, {given})"
    return [*_header(functions), f"    return {plan.name}({given}), {pullback}"]


def _name(functions: Functions) -> str:
    return f"_{functions.vjp.removesuffix('_vjp')}_pullback"


def _alone_lines(functions: Functions) -> Lines:
    """The pullback; before it, where there are two, what it asks for gradients."""
    out = pullback_in_blocks(functions, _name(functions))
    if functions.double is None:
        steps = assignments(parted(functions)[0], functions.scope)
        lines = _pullback_lines(functions, out, steps)
        return [*quiet(functions.pulled), *lines]
    asking = replace(
        functions,
        plan=replace(functions.plan, wide=()),
        backward=named_gradients(functions),
    )
    return [
        *gradients_lines(functions),
        *_pullback_lines(asking, out, asked(functions)),
    ]


def _pullback_lines(functions: Functions, out: Lines, steps: Lines) -> Lines:
    """The pullback, ``out`` its way out and ``steps`` what it computes."""
    plan = functions.plan
    upstream = [f"{d}: {LIKE}" for d in plan.upstream]
    tensors = [f"{i.name}: {LIKE}" for i in plan.tensors]
    statics = [f"{i.name}: {_static_type(i)}" for i in plan.statics]
    params = ", ".join([*tensors, *upstream, *(["*", *statics] if statics else [])])
    return [
        f"def {_name(functions)}({params}) -> {_pulled_type(functions)}:",
        sentence(f"The pullback of ``{plan.name}``.", 1),
        *indented(_taking(functions, out)),
        *indented(steps),
        *indented(_of_few(functions)),
        *indented(_returning(functions)),
    ]


def _taking(functions: Functions, out: Lines) -> Lines:
    """The arguments as arrays to compute with."""
    lines = [
        *out,
        *_likes(functions),
        *_untyped(conversions(functions.plan)),
        *_shaped_upstream(functions),
    ]
    upstream = functions.plan.upstream
    given = [*(i.name for i in functions.plan.tensors), *upstream]
    asked = len(upstream) if has_unasked(functions.plan) else 0
    return unless_few(given, lines, asked) if gives_few(functions) else lines


def _of_few(functions: Functions) -> Lines:
    """Gradients that need no sum over axes."""
    steps = assignments(parted(functions)[1], functions.scope)
    if not gives_few(functions):
        return steps
    values = [sum_of(group) for group in functions.backward.gradients if group]
    texts = iter([_few_text(functions, plain(value)) for value in values])
    groups = functions.backward.gradients
    results = _tuple(next(texts) if group else "None" for group in groups)
    asked = (replace(s, value=plain(s.value)) for s in parted(functions)[1])
    few = [*assignments(asked, functions.scope), f"return {results}"]
    return ["if dtype is not None:", *indented(few), *steps]


def parted(functions: Functions) -> tuple[list[Step], list[Step]]:
    """The steps of a pullback, and those that differ where an output is not asked for:
    ``times``, and what is made of it.
    """
    ahead: list[Step] = []
    behind: list[Step] = []
    for step in functions.backward.statements:
        later = {s.name for s in behind}
        is_asked = uses_times(step.value) or not later.isdisjoint(names(step.value))
        (behind if is_asked else ahead).append(step)
    return ahead, behind


def _few_text(functions: Functions, value: Expr) -> str:
    """A static may be a number of another type, which the value then has."""
    text = not_given(functions, value)
    if not functions.plan.statics:
        return text
    if isinstance(value, Name) and text == value.id:
        return f"{text} if {text}.dtype is dtype else {text}.astype(dtype)"
    if text == render(value, functions.scope):
        text = render_atom(value, functions.scope)
    return f"{text}.astype(dtype, copy=False)"


def _static_type(i: Input) -> str:
    return "int" if i.kind is Kind.STATIC_INT else "float"


def _untyped(lines: Lines) -> Lines:
    """The type of the outputs is not needed."""
    return [re.sub(r"^dtype, ", "_, ", line) for line in lines]


# --- a pullback within ---------------------------------------------------------------------


def _vjp_text(plan: RulePlan) -> str:
    call = f"{plan.name}({', '.join(i.name for i in plan.tensors)})"
    takes = _listed(plan.upstream)
    gives = _listed(
        [f"d{i.name}" if i.takes_gradient else "None" for i in plan.tensors]
    )
    return f"``{call}``, and its pullback from {takes} to {gives}."


def _likes(functions: Functions) -> Lines:
    """The inputs as they were given: a gradient has the shape and type of its input."""
    names = [i.name for i in functions.plan.tensors if i.takes_gradient]
    if not names:
        return []
    left = ", ".join(like(functions.plan, name) for name in names)
    return [f"{left} = {', '.join(f'np.asarray({name})' for name in names)}"]


def like(plan: RulePlan, name: str) -> str:
    """The name of an input as it was given."""
    return fresh(f"like_{name}", variables(plan))


def _inner_pullback(functions: Functions) -> Lines:
    plan, scope = functions.plan, functions.scope
    params = ", ".join(f"{d}: {LIKE}" for d in plan.upstream)
    bound = {statement.name for statement in functions.forward.statements}
    constants = bound & {constant.name for constant in plan.constants}
    steps = [s for s in functions.backward.statements if s.name not in constants]
    terms = [t.value for g in functions.backward.gradients for t in g or ()]
    body = [
        *_shaped_upstream(functions),
        *assignments(steps, scope),
        *_returning(functions),
    ]
    return [
        *quiet([*(step.value for step in steps), *terms]),
        f"def pullback({params}) -> {_pulled_type(functions)}:",
        *indented(body),
    ]


def _shaped_upstream(functions: Functions) -> Lines:
    """Upstream gradients as arrays like their outputs, or like the inputs together."""
    used = {
        u for g in functions.backward.gradients for t in g or () for u in t.upstream
    }
    alone = _stands_alone(functions)
    return [
        f"{d} = _shaped({d}, {', '.join(reach(functions, o) if alone else [o.name])})"
        for o in functions.plan.outputs
        if o.takes_gradient and (d := f"d{o.name}") in used
    ]


def _returning(functions: Functions) -> Lines:
    pairs = zip(functions.plan.tensors, functions.backward.gradients, strict=True)
    found = {i.name: _gradient(functions, i, group) for i, group in pairs}
    if not functions.is_traced:
        return [f"return {_tuple(found.values())}"]
    named = {n: (f"d{n}" if text != "None" else text) for n, text in found.items()}
    lines = [f"{d} = {found[name]}" for name, d in named.items() if d != "None"]
    return [*lines, *traced_gradients(functions), f"return {_tuple(named.values())}"]


def _gradient(functions: Functions, i: Input, group: tuple[Term, ...] | None) -> str:
    if group is None:
        return "None"
    given = like(functions.plan, i.name)
    if not group:
        return f"np.zeros_like({given})"
    terms = ", ".join(_term(functions, term) for term in group)
    return f"_gradient({given}, {terms})"


def _term(functions: Functions, term: Term) -> str:
    value = not_given(functions, term.value)
    if term.upstream or any(i.shape.axes for i in functions.plan.inputs):
        return value  # of a ranked input it has its own axes in full
    outputs = [o.name for o in functions.plan.outputs if o.takes_gradient]
    shapes = ", ".join(f"{name}.shape" for name in outputs)
    shape = shapes if len(outputs) == 1 else f"np.broadcast_shapes({shapes})"
    return f"np.broadcast_to({value}, {shape})"


def _slot(group: tuple[Term, ...] | None) -> str:
    return "None" if group is None else ARRAY


def _tuple(parts: Iterable[str]) -> str:
    parts = tuple(parts)
    return f"({parts[0]},)" if len(parts) == 1 else ", ".join(parts)


def _listed(names: Iterable[str]) -> str:
    names = tuple(names)
    return names[0] if len(names) == 1 else f"({', '.join(names)})"
