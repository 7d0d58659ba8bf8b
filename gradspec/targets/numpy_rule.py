"""The three functions of one rule: ``f``, ``f_vjp`` and ``f_jvp``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradspec.ir.rule import Input, Kind, Shape
from gradspec.plan.array import Expr, names
from gradspec.plan.plan import Backward, Block, RulePlan, Term
from gradspec.targets.docstring import docstring, sentence
from gradspec.targets.lines import Lines, assignments, indented
from gradspec.targets.numpy_blocks import value_in_blocks, vjp_in_blocks
from gradspec.targets.numpy_outputs import (
    bound_outputs,
    grouped_outputs,
    outputs_text,
    tangents_text,
    viewed,
)
from gradspec.targets.numpy_texts import DIALECT, UNTYPED
from gradspec.targets.numpy_trace import traced_forward, traced_gradients
from gradspec.targets.python import Scope, positions, render, render_atom
from gradspec.targets.quiet import warns_needlessly
from gradspec.targets.signature import (
    fresh,
    parameters,
    scalars,
    variables,
    whole_statics,
)

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)
_ARRAY, _LIKE = "np.ndarray", "npt.ArrayLike"
_QUIET = '@np.errstate(all="ignore")'


@dataclass(frozen=True, slots=True)
class Functions:
    """One rule in shared statements. ``forward`` keeps what the backward pass is given;
    ``tangents`` is None where there are none; ``vjp`` and ``jvp`` are the names of the
    companions.
    """

    plan: RulePlan
    value: Block
    forward: Block
    backward: Backward
    tangents: Block | None
    vjp: str
    jvp: str
    is_traced: bool

    @property
    def floats(self) -> tuple[str, ...]:
        return tuple(i.name for i in self.plan.tensors if i.kind in _FLOATS)

    @property
    def scope(self) -> Scope:
        integers = (Kind.INT, Kind.STATIC_INT)
        return Scope(
            DIALECT if self.floats else UNTYPED,
            scalars(self.plan),
            frozenset(i.name for i in self.plan.inputs if i.kind in integers)
            | {size.name for size in self.plan.sizes},
            self.floats[0] if self.floats else "",
            positions([*self.value.statements, *self.forward.statements])
            | positions(self.backward.statements)
            | positions(self.tangents.statements if self.tangents else ()),
        )

    @property
    def values(self) -> tuple[Expr, ...]:
        """All that is printed."""
        blocks = [b for b in (self.value, self.forward, self.tangents) if b]
        groups = [group for group in self.backward.gradients if group]
        return (
            *(value for block in blocks for value in _values(block)),
            *(step.value for step in self.backward.statements),
            *(term.value for group in groups for term in group),
        )


def value_lines(functions: Functions) -> Lines:
    """``f``."""
    plan = functions.plan
    return [
        *_quiet(_values(functions.value)),
        f"def {plan.name}({parameters(plan, _LIKE)}) -> {_returned(plan)}:",
        docstring(plan.docs),
        *indented(value_in_blocks(functions)),
        *indented(_conversions(plan)),
        *indented(_sizes(functions, *_values(functions.value))),
        *indented(_statements(functions, functions.value)),
        *indented(traced_forward(functions)),
        f"    return {outputs_text(functions)}",
    ]


# --- the pullback ------------------------------------------------------------------------


def vjp_lines(functions: Functions) -> Lines:
    """``f_vjp``: the outputs, and a function from their gradients to the inputs'."""
    plan = functions.plan
    pulled = _tuple_type(_slot(group) for group in functions.backward.gradients)
    kind = f"tuple[{_returned(plan)}, Callable[..., {pulled}]]"
    pullback = _pullback(functions, pulled)
    pulled_values = [
        *(step.value for step in functions.backward.statements),
        *(t.value for g in functions.backward.gradients for t in g or ()),
    ]
    return [
        *_quiet(_values(functions.forward)),
        f"def {functions.vjp}({parameters(plan, _LIKE)}) -> {kind}:",
        sentence(_vjp_text(plan), 1),
        *indented(vjp_in_blocks(functions)),
        *indented(_likes(functions)),
        *indented(_conversions(plan)),
        *indented(_sizes(functions, *_values(functions.forward), *pulled_values)),
        *indented(_statements(functions, functions.forward)),
        *indented(traced_forward(functions)),
        *("", *indented(pullback), ""),
        f"    return {grouped_outputs(functions)}, pullback",
    ]


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


def _pullback(functions: Functions, kind: str) -> Lines:
    plan, scope = functions.plan, functions.scope
    params = ", ".join(f"{d}: {_LIKE}" for d in plan.upstream)
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
        *_quiet([*(step.value for step in steps), *terms]),
        f"def pullback({params}) -> {kind}:",
        *indented(body),
    ]


def _shaped_upstream(functions: Functions) -> Lines:
    used = {
        u for g in functions.backward.gradients for t in g or () for u in t.upstream
    }
    return [
        f"{d} = _shaped({d}, {o.name})"
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
    value = _fresh(functions, term.value)
    if term.upstream or any(i.shape.axes for i in functions.plan.inputs):
        return value  # of a ranked input it has its own axes in full
    outputs = [o.name for o in functions.plan.outputs if o.takes_gradient]
    shapes = ", ".join(f"{name}.shape" for name in outputs)
    shape = shapes if len(outputs) == 1 else f"np.broadcast_shapes({shapes})"
    return f"np.broadcast_to({value}, {shape})"


# --- the pushforward -----------------------------------------------------------------------


def jvp_lines(functions: Functions) -> Lines:
    """``f_jvp``: the outputs and their tangents."""
    plan = functions.plan
    statics = parameters(plan, _LIKE).partition("*, ")[2]
    params = [f"primals: Sequence[{_LIKE}]", f"tangents: Sequence[{_LIKE} | None]"]
    params += ["*", statics] if statics else []
    header = f"def {functions.jvp}({', '.join(params)})"
    if functions.tangents is None:
        return [f"{header} -> None:", *_refusal(plan)]
    kind = _returned(plan)
    tangents = [o for o in plan.outputs if o.takes_gradient]
    moved = _tuple_type([_ARRAY] * len(tangents)) if len(plan.outputs) > 1 else _ARRAY
    return [
        *_quiet(_values(functions.tangents)),
        f"{header} -> tuple[{kind}, {moved}]:",
        sentence(
            f"``{plan.name}`` at the primals, and its derivative along the tangents.", 1
        ),
        *indented(_unpacked(plan)),
        *indented(_conversions(plan)),
        *indented(_sizes(functions, *_values(functions.tangents))),
        *indented(_shaped_tangents(plan)),
        *indented(_statements(functions, functions.tangents)),
        f"    return {grouped_outputs(functions)}, {tangents_text(functions)}",
    ]


def _jvp_text(plan: RulePlan) -> str:
    return f"``{plan.name}`` at the primals, and its derivative along the tangents."


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


# --- parts -----------------------------------------------------------------------------


def _statements(functions: Functions, block: Block) -> Lines:
    lines = assignments(block.statements, functions.scope)
    return [*lines, *bound_outputs(functions, block)]


def _values(block: Block) -> list[Expr]:
    return [*(statement.value for statement in block.statements), *block.results]


def _quiet(values: Iterable[Expr]) -> Lines:
    return [_QUIET] if warns_needlessly(values) else []


def _returned(plan: RulePlan) -> str:
    if len(plan.outputs) == 1:
        return _ARRAY
    return _tuple_type([_ARRAY] * len(plan.outputs))


def _tuple_type(parts: Iterable[str]) -> str:
    return f"tuple[{', '.join(parts)}]"


def _slot(group: tuple[Term, ...] | None) -> str:
    return "None" if group is None else _ARRAY


def _tuple(parts: Iterable[str]) -> str:
    parts = tuple(parts)
    return f"({parts[0]},)" if len(parts) == 1 else ", ".join(parts)


def _listed(names: Iterable[str]) -> str:
    names = tuple(names)
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _given(functions: Functions) -> tuple[str, ...]:
    tensors = [i.name for i in functions.plan.tensors]
    return (*tensors, *functions.plan.upstream)


def _fresh(functions: Functions, value: Expr) -> str:
    """A value that is not the caller's own array."""
    text = render(value, functions.scope)
    given = viewed(value)
    is_given = given is not None and given in _given(functions)
    return f"{render_atom(value, functions.scope)}.copy()" if is_given else text


def _conversions(plan: RulePlan) -> Lines:
    floats = [i.name for i in plan.tensors if i.kind in _FLOATS]
    lines = [_discrete(plan, i) for i in plan.tensors if i.name not in floats]
    if floats:
        named = ", ".join(f"{name}={name}" for name in floats)
        double = plan.is_wide_forward or plan.is_wide_backward
        helper = "_in_double" if double else "_floating"
        lines.append(f'dtype, {", ".join(floats)} = {helper}("{plan.name}", {named})')
    rank0 = [f"{i.name}={i.name}" for i in plan.tensors if not i.shape.batch]
    if plan.is_ranked:
        return [*lines, *whole_statics(plan), _shape_check(plan)]
    if rank0:
        lines.append(f'_check_rank0("{plan.name}", {", ".join(rank0)})')
    return lines + whole_statics(plan)


def _shape_check(plan: RulePlan) -> str:
    """Ranks and sizes are checked at once; those that statics tell are known before."""
    axes = {axis for i in plan.tensors for axis in i.shape.axes}
    known = [f'"{i.name}": {i.name}' for i in plan.statics if i.name in axes]
    values = [
        f'{i.name}=({i.name}, "{_pattern(i.shape)}")'
        for i in plan.tensors
        if i.shape.axes or not i.shape.batch
    ]
    arguments = [f'"{plan.name}"', f"{{{', '.join(known)}}}", *values]
    return f"_check_shapes({', '.join(arguments)})"


def _pattern(shape: Shape) -> str:
    return f"[{', '.join(['...'] * shape.batch + [str(a) for a in shape.axes])}]"


def _sizes(functions: Functions, *values: Expr) -> Lines:
    """The sizes that the statements use, read where they are first found."""
    constants = (constant.value for constant in functions.plan.constants)
    used = names(*values, *constants)
    return [
        f"{size.name} = {size.places[0][0]}.shape[{size.places[0][1]}]"
        for size in functions.plan.sizes
        if size.name in used
    ]


def _discrete(plan: RulePlan, i: Input) -> str:
    helper = "_integer" if i.kind is Kind.INT else "_boolean"
    return f'{i.name} = {helper}("{plan.name}", "{i.name}", {i.name})'
