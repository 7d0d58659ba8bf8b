"""Two of the three functions of one rule: ``f`` and ``f_jvp``."""

from __future__ import annotations

from gradspec.plan.plan import RulePlan
from gradspec.targets.docstring import docstring, sentence
from gradspec.targets.lines import Lines, indented
from gradspec.targets.numpy_blocks import value_in_blocks
from gradspec.targets.numpy_direct import with_direct_output
from gradspec.targets.numpy_few import are_typed, takes_few, unless_few
from gradspec.targets.numpy_outputs import (
    grouped_outputs,
    returning,
    tangents_text,
)
from gradspec.targets.numpy_parts import (
    ARRAY,
    LIKE,
    Functions,
    conversions,
    quiet,
    returned,
    sizes,
    statements_of,
    tuple_type,
    values_of,
)
from gradspec.targets.numpy_trace import traced_forward
from gradspec.targets.signature import parameters


def value_lines(functions: Functions) -> Lines:
    """``f``."""
    plan = functions.plan
    return [
        *quiet(values_of(functions.value)),
        f"def {plan.name}({_with_out(plan)}) -> {returned(plan)}:",
        docstring(plan.docs),
        *indented(_taking(functions)),
        *indented(sizes(functions, *values_of(functions.value))),
        *indented(_computing(functions)),
        *indented(traced_forward(functions)),
        *indented(_returning(functions)),
    ]


def _computing(functions: Functions) -> Lines:
    """The statements; what may be called for a block fills that block of the result."""
    direct = value_in_blocks(functions) and with_direct_output(
        functions, functions.value
    )
    lines = direct or statements_of(functions, functions.value)
    if functions.narrow is None:
        return lines
    short = statements_of(functions, functions.narrow)
    return ["if dtype.itemsize < 8:", *indented(short), "else:", *indented(lines)]


def _returning(functions: Functions) -> Lines:
    """The last lines: results in the type of the arguments."""
    *typed, last = returning(functions)
    if typed and are_typed(functions):
        typed = [f"if dtype is not {functions.floats[0]}.dtype:", *indented(typed)]
    return [*typed, last]


def _taking(functions: Functions) -> Lines:
    """The arguments as arrays to compute with."""
    lines = [*value_in_blocks(functions), *conversions(functions.plan)]
    if not takes_few(functions):
        return lines
    return unless_few([i.name for i in functions.plan.tensors], lines)


def _with_out(plan: RulePlan) -> str:
    """The parameters, and where to put the results."""
    kind = ARRAY if len(plan.outputs) == 1 else "tuple[np.ndarray, ...]"
    star = "" if plan.statics else "*, "
    return f"{parameters(plan, LIKE)}, {star}out: {kind} | None = None"


# --- the pushforward -----------------------------------------------------------------------


def jvp_lines(functions: Functions) -> Lines:
    """``f_jvp``: the outputs and their tangents."""
    plan = functions.plan
    statics = parameters(plan, LIKE).partition("*, ")[2]
    params = [f"primals: Sequence[{LIKE}]", f"tangents: Sequence[{LIKE} | None]"]
    params += ["*", statics] if statics else []
    header = f"def {functions.jvp}({', '.join(params)})"
    if functions.tangents is None:
        return [f"{header} -> None:", *_refusal(plan)]
    kind = returned(plan)
    tangents = [o for o in plan.outputs if o.takes_gradient]
    moved = tuple_type([ARRAY] * len(tangents)) if len(plan.outputs) > 1 else ARRAY
    return [
        *quiet(values_of(functions.tangents)),
        f"{header} -> tuple[{kind}, {moved}]:",
        sentence(
            f"``{plan.name}`` at the primals, and its derivative along the tangents.", 1
        ),
        *indented(_unpacked(plan)),
        *indented(conversions(plan)),
        *indented(sizes(functions, *values_of(functions.tangents))),
        *indented(_shaped_tangents(plan)),
        *indented(statements_of(functions, functions.tangents)),
        f"    return {grouped_outputs(functions)}, {tangents_text(functions)}",
    ]


def _refusal(plan: RulePlan) -> Lines:
    return [
        sentence(f"Not available: {plan.no_tangents}.", 1),
        f'    raise NotImplementedError("{plan.name}_jvp: {plan.no_tangents}")',
    ]


def _unpacked(plan: RulePlan) -> Lines:
    names = [i.name for i in plan.tensors]
    dots = [f"{i.name}_dot" if i.takes_gradient else "_" for i in plan.tensors]
    tail = "," if len(names) == 1 else ""
    open_, close = ("(", ")") if tail else ("", "")
    lines = [f"{open_}{', '.join(names)}{tail}{close} = primals"]
    return [*lines, f"{open_}{', '.join(dots)}{tail}{close} = tangents"]


def _shaped_tangents(plan: RulePlan) -> Lines:
    return [
        f"{i.name}_dot = _tangent({i.name}_dot, {i.name})"
        for i in plan.tensors
        if i.takes_gradient
    ]
