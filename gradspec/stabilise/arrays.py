"""Selection in rules over axes, each of which is unrolled at a few small sizes, and
each of whose values is measured at the first and the last element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from math import nan
from typing import Any

import numpy as np

from gradspec.derive.chain import Underivable
from gradspec.derive.indexed import indexed_cotangents
from gradspec.ir.elements import OutOfRange
from gradspec.ir.expr import Apply, Expr, Reduce
from gradspec.ir.rule import AccuracyLoss, Complete, Definition, Rule
from gradspec.ir.walk import children, names, nodes, size
from gradspec.stabilise.choice import Choice, Contest
from gradspec.stabilise.explanation import accuracy_loss
from gradspec.stabilise.guards import is_at_stake
from gradspec.stabilise.names import Names, Quantity
from gradspec.stabilise.overflow import with_vanishing_products
from gradspec.stabilise.reductions import IndexedProposals
from gradspec.stabilise.rewriting import Search
from gradspec.stabilise.selection import Selection
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.points.measured import Sample, samples

_RISKY = ("div", "pow", "rsqrt", "log")  # operations that may be 0 / 0
_PLAIN = 1e4
"""Beyond this, and below its inverse, products leave the range in between; that is
reported separately.
"""


class ArraySelection(Selection):
    """A rewrite whose condition depends on inputs is not made: it would be one condition
    for each index."""

    def __init__(
        self, rule: Complete, original: Rule, effort: Effort, hidden: tuple[str, ...]
    ) -> None:
        super().__init__(rule, original, effort, hidden)
        self._proposals = IndexedProposals(Search(lambda condition: False), rule)

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        return samples(self._written)

    def _derive(self) -> Mapping[str, Definition]:
        return _derived_from(self._written, self._rule)

    def _has_candidates(self, of: Quantity, written: Expr) -> bool:
        """False for most values, such as contractions."""
        if not children(written):
            return False
        values = (written, *(let.value for let in self._rule.forward))
        if of.is_derived and is_at_stake(*values):
            return True  # a product with a 0 of a condition may overflow
        near = self._proposals.near(written, of, self._rule)
        far = self._proposals.far(written, of, self._rule)
        return any(True for _ in near) or any(True for _ in far)

    def _mend(self, contest: Contest, of: Quantity, choice: Choice) -> Choice:
        """Products in an order that keeps a 0."""
        if not of.is_derived or not choice.selected.lost:
            return choice
        mended = with_vanishing_products(contest.trials, choice.selected)
        return contest.choose(self._count(mended), choice.selected)

    @cached_property
    def _finite(self) -> tuple[Sample, ...]:
        """The samples restricted to finite outputs, where gradients are measured."""
        found = (_where_finite(sample, self._rule) for sample in self.samples)
        return tuple(sample for sample in found if len(sample.points))

    def _places(self, of: Quantity) -> tuple[Sample, ...]:
        return self._finite if of.is_gradient else self.samples

    def _steps(self, meaning: Expr) -> int:
        return size(meaning)

    def _close(self, sample: Sample, env: Mapping[str, int], form: Expr) -> Expr:
        chosen = self._selected_values(sample, id(sample))
        closed = chosen.close(sample.evaluated.expand(form, env))
        for name in sorted(names(closed) - sample.points.columns.keys()):
            raise OutOfRange(name)
        return closed

    # --- what is reported ------------------------------------------------------------------

    def _note(self, of: Quantity, contest: Contest, choice: Choice, new: str) -> None:
        lost = accuracy_loss(of.owner, contest.trials, choice.selected)
        self.losses += filter(_is_reported, lost)

    def undefined_losses(self, done: Rule) -> Iterator[AccuracyLoss]:
        """The gradients of the finished rule that are NaN at ordinary inputs at
        which the outputs are numbers.
        """
        values = {
            entry.name: entry.value
            for entry in done.backward
            if not entry.is_override
            and any(isinstance(n, Apply) and n.op in _RISKY for n in nodes(entry.value))
        }
        for sample in self._finite if values else ():
            scalars = sample.written_out(done, sample.evaluated)
            columns = dict(sample.points.columns)
            for name in sample.points.upstream & {*columns}:
                columns[name] = np.ones_like(columns[name])  # not 0 times infinity
            close, machine = Names(scalars), Machine(columns)
            inputs = {variable.name for variable in scalars.inputs}
            plain = _is_plain(sample) & sample.points.defined
            for entry in scalars.backward:
                name = entry.name.partition("[")[0]
                if name in values:
                    form = close.close(entry.value)
                    lost = np.flatnonzero(np.isnan(machine.run(form)) & plain)
                    if len(lost):
                        row = sample.points.rows[int(lost[0])]
                        point = tuple((n, row[n]) for n in row if n in inputs)
                        each = (
                            (node, machine.run(node)[lost[0]]) for node in nodes(form)
                        )
                        culprit = next(node for node, value in each if np.isnan(value))
                        values.pop(name)
                        yield AccuracyLoss(name, "undefined", culprit, point, nan, nan)


def _derived_from(written: Rule, chosen: Rule) -> Mapping[str, Definition]:
    """The derivative of an indexed forward as selected. Where a maximum was factored
    out (of a norm, of exponents) it is that of the forward as written, since the
    maximum cancels.
    """
    forward = tuple(
        new if _maxima(new) <= _maxima(old) else old
        for old, new in zip(written.forward, chosen.forward, strict=True)
    )
    if forward == written.forward:
        return {}
    try:
        return indexed_cotangents(chosen.redefine(*forward))
    except Underivable:
        return {}


def _maxima(let: Definition) -> int:
    return sum(
        isinstance(node, Reduce | Apply) and node.op in ("max", "peak")
        for node in nodes(let.value)
    )


def _is_plain(sample: Sample) -> Any:
    """The points at which every floating input is 0 or of ordinary magnitude."""
    plain = np.ones(len(sample.points), dtype=bool)
    for name in sample.points.floating:
        size = np.abs(sample.points.columns[name])
        plain &= (size == 0) | (size >= 1 / _PLAIN) & (size <= _PLAIN)
    return plain


def _is_reported(loss: AccuracyLoss) -> bool:
    """True for lost digits of no small value: any softmax loses those of small ones."""
    error = abs(loss.value - loss.true)
    return loss.kind == "saturation" and error > 0.01 * abs(loss.true) > 1e-5


def _where_finite(sample: Sample, rule: Rule) -> Sample:
    """The points at which the outputs of ``rule`` are finite."""
    written = sample.written_out(rule, sample.evaluated)
    names = Names(written)
    machine = Machine(sample.points.columns)
    finite = np.ones(len(sample.points), dtype=bool)
    for let in written.forward:
        if let.name in {output.name for output in written.outputs}:
            finite &= np.isfinite(machine.run(names.close(let.value)))
    return replace(sample, points=sample.points.subset(finite))
