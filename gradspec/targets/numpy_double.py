"""Evaluations in float64 for narrower arrays: every operation is a call and a pass through
the cache, so a short formula in float64, rounded once, takes less than a long one that
loses nothing in float32.

The pullback then asks one of two functions for its gradients, by the type of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr, Literal, Name, Op, names, nodes, substitute
from gradspec.plan.plan import Assign, Backward, Block, RulePlan, Step
from gradspec.plan.program import Vocabulary, forward, joined_backward
from gradspec.plan.translate import Types, translate
from gradspec.primitives.formula import formula
from gradspec.primitives.table_known import GELU_SLOPE
from gradspec.primitives.table_slopes import MISH, NUMPY_SLOPES, SILU
from gradspec.targets.docstring import sentence
from gradspec.targets.expansion import expander, then
from gradspec.targets.lines import Lines, assignments, indented
from gradspec.targets.numpy_cheaper import cheaper
from gradspec.targets.numpy_costs import in_double, in_single
from gradspec.targets.numpy_opposites import moderate_shares, with_shared_exponential
from gradspec.targets.numpy_parts import (
    ARRAY,
    Functions,
    not_given,
    quiet,
    tuple_type,
    values_of,
)
from gradspec.targets.python import render_atom
from gradspec.targets.signature import fresh, scalars, variables
from gradspec.targets.unasked import answered

_GAIN = 0.85
"""Of what a pullback costs in float32, what it may cost in float64."""

_MODERATE = 64
"""What `_is_moderate` tells of magnitudes."""

_EXP = "exp(clip(x, -10000, 40))"
_WHOLE = f"(1 + square(1 + {_EXP}))"
_FORMULAS: Mapping[str, str] = {
    SILU: "exp(min(x, 40)) * (1 + exp(min(x, 40)) + min(x, 40))"
    " / square(1 + exp(min(x, 40)))",
    MISH: f"{_EXP} * ({_WHOLE} + (1 + {_EXP}) * ({_WHOLE} + 4 * clip(x, -10000, 40)))"
    f" / square({_WHOLE})",
}
"""Slopes that cancel about their zeros, which float64 forgives; they are 0 and 1 beyond
the bounds."""


def doubled(functions: Functions, reserved: frozenset[str]) -> Functions | None:
    """The functions in the forms for float64, if its gradients cost less so."""
    plan = functions.plan.double
    if plan is None or not plan.is_wide_backward or not _is_plain(functions):
        return None
    numbers = scalars(plan)
    words = cheaper(expander("numpy", numbers, _FORMULAS), numbers)
    words = then(words, _with_normal_slope)
    plan = answered(plan)
    backward = joined_backward(plan, Vocabulary(words, reserved))
    backward = with_shared_exponential(backward, variables(plan))
    made = replace(functions, plan=plan, backward=backward)
    groups = [group for group in backward.gradients if group is not None]
    if not {*backward.residuals} <= {i.name for i in plan.inputs}:
        return None
    if any(len(g) != 1 or not g[0].upstream for g in groups):
        return None
    return made if _pays(functions, made) else None


def _with_normal_slope(node: Expr) -> Expr:
    """The slope of x * ndtr(x) by the function that is that, for narrower arrays."""
    match node:
        case Op("add", (Op("ndtr", (x,)), product)):
            is_slope = product in (substitute(b, {"x": x}) for b in _bells())
            return Op(GELU_SLOPE, (x,)) if is_slope else node
        case _:
            return node


@cache
def _bells() -> tuple[Expr, ...]:
    """x times the normal density, bounded where that is 0."""
    nothing: frozenset[str] = frozenset()
    bell = "exp(-0.5 * (x * x)) / sqrt(2 * pi)"
    texts = (f"x * ({bell})", f"clip(x, -10000, 10000) * ({bell})")
    return tuple(translate(formula(t), Types(nothing, nothing, nothing)) for t in texts)


def shorter_value(functions: Functions, reserved: frozenset[str]) -> Block | None:
    """The forward pass in float64 of what is rounded to a narrower type, if that has a
    form of its own which costs less."""
    plan, double = functions.plan, functions.plan.double
    is_one = len(plan.outputs) == 1 and not functions.is_traced
    is_wide = plan.is_wide_forward or plan.is_wide_backward
    if double is None or not is_wide or not is_one:
        return None
    numbers = scalars(plan)
    words = cheaper(expander("numpy", numbers, _FORMULAS), numbers)
    made = forward(double, Vocabulary(words, reserved))
    short = in_double(values_of(made), numbers, 0)
    return (
        made
        if short <= _GAIN * in_double(values_of(functions.value), numbers, 0)
        else None
    )


def _is_plain(functions: Functions) -> bool:
    """Whether all that it takes are floating arrays and numbers."""
    plan = functions.plan
    return (
        not plan.is_ranked
        and not functions.is_traced
        and all(i.kind in (Kind.FLOAT, Kind.NOGRAD) for i in plan.tensors)
        and all(i.shape.batch for i in plan.tensors)
        and not any(i.kind is Kind.STATIC_INT for i in plan.statics)
        and all(g is None or len(g) == 1 for g in functions.backward.gradients)
    )


def _pays(functions: Functions, made: Functions) -> bool:
    numbers = scalars(made.plan)
    converted = len(made.floats) + len(made.plan.upstream) + len(_given(made))
    short = in_double(made.pulled, numbers, converted)
    if functions.plan.is_wide_backward:
        return short <= _GAIN * in_double(functions.pulled, numbers, converted)
    return short <= _GAIN * in_single(functions.pulled, numbers)


def _given(functions: Functions) -> list[str]:
    """The inputs that have gradients."""
    pairs = zip(functions.plan.tensors, functions.backward.gradients, strict=True)
    return [i.name for i, group in pairs if group]


# --- text ----------------------------------------------------------------------------------


def named_gradients(functions: Functions) -> Backward:
    """The backward pass where each gradient is there by its name."""
    pairs = zip(functions.plan.tensors, functions.backward.gradients, strict=True)
    named = (g and (replace(g[0], value=Name(f"d{i.name}")),) for i, g in pairs)
    return replace(functions.backward, statements=(), gradients=tuple(named))


def asked(functions: Functions) -> Lines:
    """The gradients of one of the two functions: arguments are of float32, or all wider."""
    plan, (long, short) = functions.plan, _names(functions)
    statics = (f"{i.name}={i.name}" for i in plan.statics)
    call = ", ".join([*_arguments(plan), *statics])
    made = ", ".join(f"d{name}" for name in _given(functions))
    choice = f"{short} if {functions.floats[0]}.itemsize < 8 else {long}"
    return [f"{made} = ({choice})({call})"]


def gradients_lines(functions: Functions) -> Lines:
    """The two functions."""
    assert functions.double is not None
    plan, (long, short) = functions.plan, _names(functions)
    short_lines, late = _short(functions.double)
    given = [name for name in _arguments(plan) if name not in late]
    loud = quiet(functions.pulled)
    soft = quiet(functions.double.pulled)
    soft = soft or ([] if _is_calm(functions.double) else loud)
    return [
        *loud,
        *_header(functions, long),
        sentence(f"The gradients of ``{plan.name}``.", 1),
        *indented(_long(functions)),
        *("", ""),
        *soft,
        *_header(functions.double, short),
        sentence("The same of float32, rounded once: float64 takes less.", 1),
        *indented(_moderate(functions.double)),
        *indented(moderate_shares(functions.double.backward, functions.floats)),
        *(f"    {name} = {name}.astype(np.float64)" for name in given),
        *indented(short_lines),
        *("", ""),
    ]


def _is_calm(functions: Functions) -> bool:
    """Whether nothing warns: slopes of `_FORMULAS` have bounds, and no divisor is 0."""
    found = nodes(*(g.whole for g in functions.plan.gradients if g))
    used = {node.primitive for node in found if isinstance(node, Op)}
    return used <= {*_FORMULAS, "mul", "clip", "min", "max"}


def _names(functions: Functions) -> tuple[str, str]:
    name = functions.plan.name
    return f"_{name}_gradients", f"_{name}_in_double"


def _arguments(plan: RulePlan) -> list[str]:
    return [*(i.name for i in plan.tensors), *plan.upstream]


def _header(functions: Functions, name: str) -> Lines:
    plan = functions.plan
    arrays = [f"{one}: {ARRAY}" for one in _arguments(plan)]
    statics = [f"{i.name}: float" for i in plan.statics]
    params = ", ".join([*arrays, *(["*", *statics] if statics else [])])
    count = len(_given(functions))
    kind = ARRAY if count == 1 else tuple_type([ARRAY] * count)
    return [f"def {name}({params}) -> {kind}:"]


def _long(functions: Functions) -> Lines:
    """What is computed in the type of the arguments; none of them is given back."""
    results = (not_given(functions, value) for value in _values(functions))
    return [*_steps(functions), f"return {', '.join(results)}"]


def _short(functions: Functions) -> tuple[Lines, frozenset[str]]:
    """What is computed in float64 and rounded; and the upstream gradients that are but
    factors of what is rounded, which stay as they are.
    """
    scope, plan = functions.scope, functions.plan
    steps = {step.name: step for step in functions.backward.statements}
    values = _values(functions)
    factors = {value: _factors(value, steps, plan.upstream) for value in values}
    late = frozenset(u for found in factors.values() if found for u in (found[0],))
    used = [step.value for step in steps.values() if Name(step.name) not in factors]
    used += [found[1] if found else value for value, found in factors.items()]
    if not late.isdisjoint(names(*used)) or names(*used) & steps.keys() & {
        value.id for value in values if isinstance(value, Name)
    }:
        results = (render_atom(value, scope) for value in values)
        rounded = (f"{result}.astype(np.float32)" for result in results)
        return [*_steps(functions), f"return {', '.join(rounded)}"], frozenset()
    taken = {*variables(plan), *steps}
    slopes, ends = [], []
    for value, found in factors.items():
        if found is None:
            ends.append(f"{render_atom(value, scope)}.astype(np.float32)")
            continue
        step = steps.get(value.id) if isinstance(value, Name) else None
        name = fresh("slope", taken)
        taken.add(name)
        slopes.append(Assign(name, found[1], step.comment if step else ""))
        ends.append(f"{found[0]} * {name}.astype(np.float32)")
    kept = [s for s in steps.values() if not factors.get(Name(s.name))]
    lines = assignments([*kept, *slopes], scope)
    return [*lines, f"return {', '.join(ends)}"], late


def _factors(
    value: Expr, steps: Mapping[str, Step], upstream: tuple[str, ...]
) -> tuple[str, Expr] | None:
    """The upstream gradient and the slope whose product the value is."""
    if isinstance(value, Name) and value.id in steps:
        value = steps[value.id].value
    match value:
        case Op("mul", (Name(id=u), slope)) if u in upstream:
            is_slope = names(slope) and not isinstance(slope, Name)
            return (u, slope) if is_slope and u not in names(slope) else None
        case _:
            return None


def _moderate(functions: Functions) -> Lines:
    """The way out where there is much to do and all gradients are multiples of slopes that
    have functions for moderate numbers in float32.
    """
    plan = functions.plan
    expand = expander("numpy", scalars(plan))
    inputs = {i.name for i in plan.tensors}
    texts, taken = [], []
    for value in (expand(g.whole) for g in plan.gradients if g):
        match value:
            case Op("mul", (Name(id=u), Op(primitive=name, args=(arg,)))) if (
                u in plan.upstream and name in NUMPY_SLOPES
            ):
                x = _unbounded(arg)
                if not isinstance(x, Name) or x.id not in inputs:
                    return []
                texts.append(f"{u} * {NUMPY_SLOPES[name].name}({x.id})")
                taken.append(f"_is_moderate({x.id})")
            case _:
                return []
    return [
        f"if {' and '.join(dict.fromkeys(taken))}:",
        f"    return {', '.join(texts)}",
    ]


def _unbounded(value: Expr) -> Expr:
    """A moderate number without its bounds."""
    match value:
        case Op("clip" | "min" | "max", (x, *bounds)) if all(
            isinstance(bound, Literal) and abs(bound.value) >= _MODERATE
            for bound in bounds
        ):
            return _unbounded(x)
        case _:
            return value


def _steps(functions: Functions) -> Lines:
    return assignments(functions.backward.statements, functions.scope)


def _values(functions: Functions) -> list[Expr]:
    return [group[0].value for group in functions.backward.gradients if group]
