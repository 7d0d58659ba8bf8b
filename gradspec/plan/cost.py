"""The cost summary of a rule on one target: residuals, calls, and memory traffic.

Counted over the emitted statements. A call is an operation on arrays; arithmetic of
Python numbers and views are not counted. If each call is a kernel of its own, it reads
its array operands and writes its result; if a pass is one kernel (blocked, or
compiled), it reads its inputs and writes its outputs, once each.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.ir.walk import children, nodes
from gradspec.plan.arrays import (
    VIEWS,
    Expr,
    Literal,
    Op,
    names,
)
from gradspec.plan.extents import forward_extents, is_condition
from gradspec.plan.plan import RulePlan
from gradspec.plan.program import Program
from gradspec.primitives.lookup import primitive

_FROM = 8.0
"""The cost of the cheapest transcendental function, in multiplications."""

_ALGEBRAIC = frozenset(("mod", "hypot", "cbrt"))
"""As dear as one, and none."""


@dataclass(frozen=True, slots=True)
class Work:
    """One pass: calls, how many are transcendental, and array traffic, call by call and
    as one kernel.
    """

    calls: int = 0
    transcendental: int = 0
    arrays: int = 0
    fused: int = 0

    def __add__(self, other: Work) -> Work:
        """This pass after the other, in the same kernel: both have the same inputs."""
        return Work(
            self.calls + other.calls,
            self.transcendental + other.transcendental,
            self.arrays + other.arrays,
            self.fused,
        )


@dataclass(frozen=True, slots=True)
class CostSummary:
    """One rule. ``kept`` are the inputs and outputs among the residuals, ``beyond`` the
    other residuals, with bytes per element for a rule computed in float32; None where
    the framework decides. ``largest`` has the axes of the largest array between the
    inputs and the results of the backward pass, and the bytes of an element.
    """

    rule: str
    kept: tuple[str, ...]
    beyond: tuple[tuple[str, int], ...] | None
    forward: Work
    backward: Work
    largest: tuple[tuple[str, ...], int] | None = None


def cost_summary(program: Program, plan: RulePlan) -> CostSummary:
    """Calls, residuals, reads and writes of the program of a plan."""
    ends = {i.name for i in program.inputs} | {o.name for o in program.outputs}
    residuals = program.backward.residuals
    size = 8 if program.is_double else 4
    return CostSummary(
        program.name,
        tuple(name for name in residuals if name in ends),
        None
        if program.pushes is not None  # the framework transposes tangents
        else tuple((name, size) for name in residuals if name not in ends),
        _forward(program),
        _backward(program),
        _largest(plan, size),
    )


def _largest(plan: RulePlan, size: int) -> tuple[tuple[str, ...], int] | None:
    extents = forward_extents(plan)
    wholes = (g.whole for g in plan.gradients if g is not None)
    node = extents.largest(part for whole in wholes for part in children(whole))
    if node is None:
        return None
    return extents.of(node).axes, 1 if is_condition(node) else size


def _forward(program: Program) -> Work:
    block = program.forward
    bound = [s.name for s in block.statements]
    return _work(block.values, bound, len(program.outputs), program.numbers)


def _backward(program: Program) -> Work:
    backward = program.backward
    bound = [s.name for s in backward.statements]
    groups = [group for group in backward.gradients if group]
    added = sum(len(group) - 1 for group in groups)
    work = _work(backward.values, bound, len(groups), program.numbers)
    return Work(
        work.calls + added, work.transcendental, work.arrays + 3 * added, work.fused
    )


def _work(
    values: list[Expr], bound: list[str], given: int, numbers: frozenset[str]
) -> Work:
    calls = transcendental = arrays = 0
    for value in values:
        for node, times in _times(value):
            operands = [c for c in children(node) if _is_array(c, numbers)]
            if not operands or isinstance(node, VIEWS):
                continue
            calls += times
            arrays += times * (len(operands) + 1)
            transcendental += times * _is_transcendental(node)
    read = {n for n in names(*values) if n not in numbers and n not in bound}
    return Work(calls, transcendental, arrays, len(read) + given)


def _times(value: Expr) -> list[tuple[Expr, int]]:
    """Every node with the number of its occurrences in the text of the value."""
    order = list(nodes(value))
    counts = dict.fromkeys(order, 0)
    counts[value] = 1
    for node in reversed(order):
        for child in children(node):
            counts[child] += counts[node]
    return list(counts.items())


def _is_array(node: Expr, numbers: frozenset[str]) -> bool:
    if isinstance(node, Literal):
        return False
    return any(name not in numbers for name in names(node))


def _is_transcendental(node: Expr) -> bool:
    if not isinstance(node, Op) or node.primitive in _ALGEBRAIC:
        return False
    return primitive(node.primitive).cost >= _FROM
