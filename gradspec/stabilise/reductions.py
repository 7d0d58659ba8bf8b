"""Other evaluations of expressions with reductions: the same functions over the reals.

Candidates proposed here are used only where they measure better (`choice.py`). A value
is rewritten as it stands, then with locals inlined, and named again where the values of
locals remain; a cotangent also has candidates derived from the forward as selected, and
quotients without a divisor of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import TypeAlias

from gradspec.ir.expr import Apply, Expr, Reduce
from gradspec.ir.rule import Let, Rule
from gradspec.ir.unroll import axis_names
from gradspec.ir.walk import children, with_children
from gradspec.stabilise.matching import Search
from gradspec.stabilise.names import Quantity
from gradspec.stabilise.reductions_exponential import balanced, logarithm
from gradspec.stabilise.reductions_moments import (
    aligned,
    centred,
    norm,
    scaled,
    without_zero_divisors,
)
from gradspec.stabilise.scopes import Scope, inlined, named, weight

_LARGEST = 600  # nodes (locals put in) of an expression beyond which it is left alone


class IndexedProposals:
    """Candidates for the values of an indexed rule. ``near`` and ``far`` take a
    candidate, the quantity it evaluates, and the rule as selected so far.
    """

    def __init__(self, search: Search, written: Rule) -> None:
        self._search, self._written = search, written
        taken = [variable.name for variable in written.inputs]
        taken += [output.name for output in written.outputs]
        taken += [let.name for let in (*written.forward, *written.backward_locals)]
        self._scope = Scope((*taken, *axis_names(written)))
        self._statics = frozenset(static.name for static in written.static_inputs)

    def near(self, form: Expr, of: Quantity, chosen: Rule) -> Iterator[Expr]:
        """Rewrites of a form as it stands; for a derived one of all derivations."""
        if weight(form, {}) <= _LARGEST:
            yield from self._forms(form, of)
        if of.is_derived:
            yield from self._with_locals(form, of, chosen)
        yield from self._search.forms(form)[1:]

    def far(self, form: Expr, of: Quantity, chosen: Rule) -> Iterator[Expr]:
        """Rewrites with locals inlined."""
        if not of.is_derived:
            yield from self._with_locals(form, of, chosen)
        yield from self._search.forms(self._whole(form, of))[1:]

    def _with_locals(self, form: Expr, of: Quantity, chosen: Rule) -> Iterator[Expr]:
        before, whole = self._before(of), self._whole(form, of)
        selected = chosen.forward[: len(before)]
        for found in self._forms(whole, of) if whole != form else ():
            yield named(named(found, before), selected)
            if not of.is_gradient:
                yield named(found, selected)
        for other in of.others:
            yield other
            yield from self._forms(other, of)

    def _whole(self, form: Expr, of: Quantity) -> Expr:
        """A form with locals inlined, if that is not too large."""
        before, exacts = self._before(of), self._written.exacts
        values = {let.name: let for let in before if let.name not in exacts}
        if weight(form, values) > _LARGEST:
            return form
        return inlined(form, values, self._scope.union(of.indices))

    def _before(self, of: Quantity) -> tuple[Let, ...]:
        """The lets, as written, that a value may use."""
        return tuple(takewhile(lambda x: x.name != of.name, self._written.forward))

    def _forms(self, form: Expr, of: Quantity) -> Iterator[Expr]:
        scope = self._scope.union(of.indices)
        if not of.is_gradient:
            yield from forms(form, scope)
            return
        norms = _norms(self._before(of))
        statics = self._statics if of.is_derived else None
        for found in (form, *forms(form, scope)):
            others = without_zero_divisors(found, norms, statics)
            yield from (one for one in (found, *others) if one != form)


def forms(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """Forms of ``expr`` that differ from it. ``scope`` contains the names that no new
    index may have.
    """
    for steps in _STEPS:
        new = _rewritten(expr, steps, scope)
        if new != expr:
            yield new


def _rewritten(expr: Expr, steps: tuple[_Step, ...], scope: Scope) -> Expr:
    """Every node, inner ones first, rewritten by the first step that applies to it."""
    under = scope
    if isinstance(expr, Reduce):
        under = scope.union(b.index for b in expr.bounds)
    parts = (_rewritten(child, steps, under) for child in children(expr))
    node = with_children(expr, tuple(parts))
    return next((new for step in steps for new in step(node, scope)), node)


def _turned(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """Differences reversed: ``-(a - b)`` becomes ``b - a``."""
    match expr:
        case Apply(op="neg", args=(Apply(op="sub", args=(a, b)),)):
            yield Apply("sub", (b, a))


_Step: TypeAlias = Callable[[Expr, Scope], Iterator[Expr]]
"""The rewrites of one node; none where the step does not apply."""

_SUMS: tuple[_Step, ...] = (logarithm, balanced, centred, _turned)
_STEPS = (*_SUMS, aligned), (*_SUMS, scaled)


def _norms(lets: tuple[Let, ...]) -> frozenset[str]:
    """The lets whose value is the root of a sum of squares."""
    values = {let.name: let for let in lets}
    return frozenset(
        let.name
        for let in lets
        if norm(inlined(let.value, values, Scope(let.indices))) is not None
    )
