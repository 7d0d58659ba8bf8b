"""What the text of one rule is made from, and which of JAX's ways it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.array import Expr, names, substitute
from gradspec.plan.beside import reach_of
from gradspec.plan.plan import (
    Assign,
    AxisSize,
    Backward,
    Block,
    RulePlan,
    Step,
    Term,
)
from gradspec.plan.pushing import Pushforward, Summand
from gradspec.targets.half import is_exact_in_half
from gradspec.targets.jax_ranked import ranked
from gradspec.targets.jax_texts import DIALECT
from gradspec.targets.python import Dialect, Scope
from gradspec.targets.signature import fresh, scalars, variables
from gradspec.targets.whole import positions

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)


class Way(Enum):
    """How the rule reaches JAX.

    PLAIN       nothing takes a gradient: no decorator
    PUSHED      `custom_jvp`, tangents written out
    TRANSPOSED  `custom_jvp`, tangents as the transpose of the backward pass
    PULLED      `custom_vjp`: a backward pass that is not linear in its upstream gradient,
                or one that prints what goes through it
    """

    PLAIN = "plain"
    PUSHED = "pushed"
    TRANSPOSED = "transposed"
    PULLED = "pulled"


@dataclass(frozen=True, slots=True)
class Core:
    """One rule, its passes in shared statements, and the names of its functions.

    ``derived`` are the names of the functions that go with the core: one that pushes
    tangents, or two: forward and backward.
    """

    name: str
    derived: tuple[str, ...]
    way: Way
    plan: RulePlan
    forward: Block
    push: Pushforward
    backward: Backward
    is_traced: bool
    again: str = ""
    """The name of the function that computes again what the backward pass needs."""

    @property
    def is_frugal(self) -> bool:
        """Whether the backward pass is given nothing but the arguments."""
        ends = {*self.tensors, *(o.name for o in self.outputs)}
        return self.way is Way.PUSHED and bool(ends & {*names(*self.pushed_values)})

    @property
    def asked(self) -> tuple[str, ...]:
        """What the author saves, as far as tangents use it."""
        steps = {s.name for s in self.push.statements}
        outputs = {o.name for o in self.outputs} & {*names(*self.pushed_values)}
        return tuple(name for name in self.plan.asked if name in steps | outputs)

    def local(self, name: str) -> str:
        """``name`` for a value of the text's own, or what comes nearest to it."""
        return fresh(name, variables(self.plan))

    # --- inputs and outputs

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(i.name for i in self.plan.tensors)

    @property
    def floats(self) -> tuple[str, ...]:
        """Floating inputs."""
        return tuple(i.name for i in self.plan.inputs if i.kind in _FLOATS)

    @property
    def statics(self) -> tuple[str, ...]:
        return tuple(i.name for i in self.plan.statics)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.plan.outputs

    @property
    def upstream(self) -> tuple[str, ...]:
        """The outputs that take an upstream gradient."""
        return tuple(o.name for o in self.outputs if o.takes_gradient)

    # --- gradients

    @property
    def gradients(self) -> dict[str, tuple[Term, ...]]:
        """The terms of each input that takes a gradient, in rule order."""
        pairs = zip(self.plan.tensors, self.backward.gradients, strict=True)
        return {i.name: terms for i, terms in pairs if terms is not None}

    @property
    def moved(self) -> tuple[str, ...]:
        """The inputs whose tangents matter."""
        if self.way is Way.PUSHED:
            return tuple(dict.fromkeys(s.input for s in self.push.summands))
        return tuple(name for name, terms in self.gradients.items() if terms)

    @property
    def tests_each(self) -> bool:
        """Several inputs, any of which may stand still: then it costs nothing, and an
        infinite slope does not meet a tangent of zero.
        """
        return len(self.moved) > 1

    def summands(self, output: str) -> tuple[Summand, ...]:
        """What the tangent of an output is the sum of."""
        return tuple(s for s in self.push.summands if s.output == output)

    def is_in_full(self, summand: Summand) -> bool:
        """Whether the summand has all axes of its output."""
        values = {a.name: a.value for a in self.plan.forward}
        there = names(self._closed(summand.value))
        used = reach_of(values[summand.output], self.plan.tensors)
        moved = f"{summand.input}_dot" in there
        return all(n in there or (moved and n == summand.input) for n in used)

    def _closed(self, value: Expr) -> Expr:
        """With shared statements put back, so that the inputs show."""
        known: dict[str, Expr] = {}
        for s in self.push.statements:
            known[s.name] = substitute(s.value, known)
        forward = {a.name: a.value for a in self.plan.forward}
        return substitute(substitute(value, known), forward)

    # --- printing

    @property
    def values(self) -> tuple[Expr, ...]:
        """All that is printed."""
        ahead = tuple(s.value for s in self.forward.statements)
        if self.way is Way.PUSHED:
            return (*ahead, *self.forward.results, *self.pushed_values)
        return (*ahead, *self.forward.results, *self.backward_values)

    @property
    def pushed_values(self) -> tuple[Expr, ...]:
        """All that the tangents are computed from."""
        steps = tuple(s.value for s in self.push.statements)
        return (*steps, *(s.value for s in self.push.summands))

    @property
    def backward_values(self) -> tuple[Expr, ...]:
        """All that a backward pass computes."""
        terms = tuple(t.value for group in self.gradients.values() for t in group)
        return (*(s.value for s in self.backward.statements), *terms)

    @property
    def backward_uses(self) -> frozenset[str]:
        """The inputs that a backward pass needs, also to compute outputs again."""
        used = {*names(*self.backward_values)}
        lets = {a.name: a.value for a in self.plan.forward}
        for output in self.outputs:
            if output.name in used:
                used |= {*names(lets[output.name])}
        return frozenset(used)

    @property
    def scope(self) -> Scope:
        """Where expressions are printed: a floating input tells the working type."""
        integers = frozenset(i.name for i in self.plan.inputs if _is_whole(i))
        dialect = DIALECT if self.floats else _untyped()
        like = self.floats[0] if self.floats else ""
        if self.plan.is_ranked:
            dialect = replace(dialect, ranked=ranked(like or self.tensors[0]))
            steps: list[Assign | Step] = [*self.forward.statements]
            steps += self.backward.statements
            at = positions(steps, integers)
            return Scope(dialect, scalars(self.plan), integers, like, at)
        return Scope(dialect, scalars(self.plan), integers, like)

    @property
    def is_widened(self) -> bool:
        """Whether half precision must be computed in float32 to be rounded once."""
        adds = any(len(terms) > 1 for terms in self.gradients.values())
        exact = is_exact_in_half(self.values, scalars(self.plan))
        return bool(self.floats) and (adds or not exact or self.is_double)

    @property
    def is_double(self) -> bool:
        """Whether values and tangents, which share the arguments, are in float64."""
        return self.plan.is_wide_forward or self.plan.is_wide_backward

    def sizes(self, values: tuple[Expr, ...]) -> tuple[AxisSize, ...]:
        """The sizes of axes that the values use."""
        used = names(*values)
        return tuple(size for size in self.plan.sizes if size.name in used)


def _is_whole(i: Input) -> bool:
    return i.kind in (Kind.INT, Kind.STATIC_INT)


def _untyped() -> Dialect:
    return replace(
        DIALECT, to_float="{x}.astype(float)", lift="jnp.asarray({x}, float)"
    )
