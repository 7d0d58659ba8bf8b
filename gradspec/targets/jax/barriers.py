"""Optimisation barriers after operations that XLA would fuse with the next one.

XLA rewrites ``a / b / c`` to ``a / (b * c)``, whose product may overflow or vanish (the
gradient of ``atan2``, ``x / r / r``, is 0 from 1e19 on), and ``exp(a) * exp(b)`` to the
exponential of a sum, whose rounding is magnified. ``a / exp(b)`` and ``a / b**c``
become products with ``exp(-b)`` and ``b**-c``, which vanish where they are subnormal.
XLA does not look through `jax.lax.reduce_precision`, and loops are fused as before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gradspec.plan.arrays import Expr, Name, Op, names, transform
from gradspec.plan.plan import Assign, Block
from gradspec.plan.program import Program
from gradspec.primitives.table_internal import FENCE


def with_barriers(program: Program) -> Program:
    """The program with such results behind a barrier; an indexed rule is unchanged."""
    if program.has_axes:
        return program
    known = _Known(program.numbers)
    forward, backward = program.forward, program.backward
    statements = known.assigned(forward.statements)
    results = tuple(map(known.parted, forward.results))
    for output, result in zip(program.outputs, results, strict=True):
        known.learn(output.name, result)
    pushes = program.pushes
    if pushes is not None:
        steps = known.assigned(pushes.statements)
        pushes = Block(steps, tuple(map(known.parted, pushes.results)))
    below = known.assigned(backward.statements)
    gradients = tuple(
        terms and tuple(replace(t, value=known.parted(t.value)) for t in terms)
        for terms in backward.gradients
    )
    return replace(
        program,
        forward=replace(forward, statements=statements, results=results),
        pushes=pushes,
        backward=replace(backward, statements=below, gradients=gradients),
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """The operations that define named values. ``numbers`` are Python numbers."""

    numbers: frozenset[str]
    made: dict[str, str] = field(default_factory=dict)

    def learn(self, name: str, value: Expr) -> None:
        self.made.pop(name, None)
        for operation in ("div", "exp", "pow"):
            if self._is(value, operation):
                self.made[name] = operation

    def assigned(self, statements: Iterable[Assign]) -> tuple[Assign, ...]:
        done: list[Assign] = []
        for s in statements:
            done.append(replace(s, value=self.parted(s.value)))
            self.learn(s.name, done[-1].value)
        return tuple(done)

    def parted(self, value: Expr) -> Expr:
        return transform(value, self._parted)

    def _parted(self, node: Expr) -> Expr:
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
        """True if the value is an array defined by ``operation``."""
        match value:
            case Op("neg", (inner,)):
                return self._is(inner, operation)
            case Op(primitive=made):
                return made == operation and not {*names(value)} <= self.numbers
            case Name(id=name):
                return self.made.get(name) == operation
            case _:
                return False
