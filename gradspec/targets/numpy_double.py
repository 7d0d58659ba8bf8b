"""Gradients in float64 for narrower arrays: every operation is a call and a pass through
the cache, so a short formula in float64, rounded once, takes less than a long one that
loses nothing in float32.

The pullback then asks one of two functions for its gradients, by the type of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr, Name, Op, nodes
from gradspec.plan.plan import Backward, RulePlan
from gradspec.plan.program import Vocabulary, joined_backward
from gradspec.primitives.table_slopes import MISH, SILU
from gradspec.targets.docstring import sentence
from gradspec.targets.expansion import expander
from gradspec.targets.lines import Lines, assignments, indented
from gradspec.targets.numpy_cheaper import cheaper
from gradspec.targets.numpy_costs import in_double, in_single
from gradspec.targets.numpy_opposites import with_shared_exponential
from gradspec.targets.numpy_parts import ARRAY, Functions, not_given, quiet, tuple_type
from gradspec.targets.python import render_atom
from gradspec.targets.signature import scalars, variables
from gradspec.targets.unasked import answered

_GAIN = 0.85
"""Of what a pullback costs in float32, what it may cost in float64."""

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
    given = _arguments(plan)
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
        *(f"    {name} = {name}.astype(np.float64)" for name in given),
        *indented(_short(functions.double)),
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


def _short(functions: Functions) -> Lines:
    scope = functions.scope
    results = (render_atom(value, scope) for value in _values(functions))
    rounded = (f"{result}.astype(np.float32)" for result in results)
    return [*_steps(functions), f"return {', '.join(rounded)}"]


def _steps(functions: Functions) -> Lines:
    return assignments(functions.backward.statements, functions.scope)


def _values(functions: Functions) -> list[Expr]:
    return [group[0].value for group in functions.backward.gradients if group]
