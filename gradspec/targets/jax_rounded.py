"""Operations whose results are rounded before the next one, where XLA would join the two.

Of ``a / b / c`` it makes ``a / (b * c)``, whose product may overflow or vanish (the gradient
of ``atan2``, ``x / r / r``, is 0 from 1e19 on), and of ``exp(a) * exp(b)`` the exponential of
a sum, whose rounding is magnified. Of ``a / exp(b)`` and ``a / b**c`` it makes products with
``exp(-b)`` and ``b**-c``, which vanish where they are subnormal. It does not look through `jax.lax.reduce_precision`, and
loops are fused as before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gradspec.plan.array import Expr, Name, Op, names, transform
from gradspec.plan.plan import Assign, Step
from gradspec.plan.pushing import Push
from gradspec.primitives.table_fence import FENCE
from gradspec.targets.jax_parts import Core
from gradspec.targets.signature import scalars

_Statement = TypeVar("_Statement", Assign, Push, Step)


def rounded(core: Core) -> Core:
    """The core with such results behind a fence. Of rules over named axes none."""
    if core.plan.is_ranked:
        return core
    known = _Known(scalars(core.plan))
    forward, push, backward = core.forward, core.push, core.backward
    statements = known.assigned(forward.statements)
    results = tuple(map(known.fenced, forward.results))
    for output, result in zip(core.outputs, results, strict=True):
        known.learn(output.name, result)
    pushed = known.assigned(push.statements)
    summands = tuple(replace(s, value=known.fenced(s.value)) for s in push.summands)
    steps = known.assigned(backward.statements)
    gradients = tuple(
        terms and tuple(replace(t, value=known.fenced(t.value)) for t in terms)
        for terms in backward.gradients
    )
    return replace(
        core,
        forward=replace(forward, statements=statements, results=results),
        push=replace(push, statements=pushed, summands=summands),
        backward=replace(backward, statements=steps, gradients=gradients),
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """The operations that named values come from. ``fixed`` are Python numbers."""

    fixed: frozenset[str]
    made: dict[str, str] = field(default_factory=dict)

    def learn(self, name: str, value: Expr) -> None:
        self.made.pop(name, None)
        for operation in ("div", "exp", "pow"):
            if self._is(value, operation):
                self.made[name] = operation

    def assigned(self, statements: Iterable[_Statement]) -> tuple[_Statement, ...]:
        done: list[_Statement] = []
        for s in statements:
            done.append(replace(s, value=self.fenced(s.value)))
            self.learn(s.name, done[-1].value)
        return tuple(done)

    def fenced(self, value: Expr) -> Expr:
        return transform(value, self._apart)

    def _apart(self, node: Expr) -> Expr:
        match node:
            case Op("div", (above, below)):
                for operation in ("div", "exp", "pow"):
                    below = self._behind(below, operation)
                return Op("div", (self._behind(above, "div"), below))
            case Op("mul", (one, other)) if self._is(one, "exp"):
                return Op("mul", (one, self._behind(other, "exp")))
            case _:
                return node

    def _behind(self, value: Expr, operation: str) -> Expr:
        return Op(FENCE, (value,)) if self._is(value, operation) else value

    def _is(self, value: Expr, operation: str) -> bool:
        """Whether it is an array that ``operation`` has made."""
        match value:
            case Op("neg", (inner,)):
                return self._is(inner, operation)
            case Op(primitive=made):
                return made == operation and not {*names(value)} <= self.fixed
            case Name(id=name):
                return self.made.get(name) == operation
            case _:
                return False
