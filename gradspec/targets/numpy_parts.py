"""The functions of one rule in shared statements, and the parts that they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradspec.ir.rule import Input, Kind, Shape
from gradspec.plan.array import Expr, names
from gradspec.plan.plan import Backward, Block, RulePlan
from gradspec.targets.lines import Lines, assignments
from gradspec.targets.numpy_outputs import bound_outputs, viewed
from gradspec.targets.numpy_texts import DIALECT, UNTYPED
from gradspec.targets.python import Scope, positions, render, render_atom
from gradspec.targets.quiet import warns_needlessly
from gradspec.targets.signature import scalars, whole_statics

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)
ARRAY, LIKE = "np.ndarray", "npt.ArrayLike"
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
    double: Functions | None = None
    """The same rule in forms for float64, if narrower types take less time so."""
    narrow: Block | None = None
    """The outputs of narrower types, if float64 is taken and has a shorter form for them."""

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
    def pulled(self) -> tuple[Expr, ...]:
        """All that the pullback computes."""
        steps = (step.value for step in self.backward.statements)
        return (*steps, *(t.value for g in self.backward.gradients for t in g or ()))

    @property
    def values(self) -> tuple[Expr, ...]:
        """All that is printed."""
        blocks = [b for b in (self.value, self.forward, self.tangents) if b]
        return (*(v for block in blocks for v in values_of(block)), *self.pulled)


# --- parts -----------------------------------------------------------------------------


def statements_of(functions: Functions, block: Block) -> Lines:
    lines = assignments(block.statements, functions.scope)
    return [*lines, *bound_outputs(functions, block)]


def values_of(block: Block) -> list[Expr]:
    return [*(statement.value for statement in block.statements), *block.results]


def not_given(functions: Functions, value: Expr) -> str:
    """A value that is not the caller's own array."""
    given = (*(i.name for i in functions.plan.tensors), *functions.plan.upstream)
    made = {step.name: step.value for step in functions.backward.statements}
    name = viewed(value)
    while name in made and (below := viewed(made[name])) != name:
        name = below
    if name in given:
        return f"{render_atom(value, functions.scope)}.copy()"
    return render(value, functions.scope)


def quiet(values: Iterable[Expr]) -> Lines:
    return [_QUIET] if warns_needlessly(values) else []


def returned(plan: RulePlan) -> str:
    if len(plan.outputs) == 1:
        return ARRAY
    return tuple_type([ARRAY] * len(plan.outputs))


def tuple_type(parts: Iterable[str]) -> str:
    return f"tuple[{', '.join(parts) or '()'}]"


def conversions(plan: RulePlan) -> Lines:
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


def sizes(functions: Functions, *values: Expr) -> Lines:
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
