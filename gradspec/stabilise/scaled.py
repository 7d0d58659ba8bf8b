"""What is subnormal on the way is made larger first, where a target takes it for 0.

``x * sigmoid(x)`` at -88 is a normal number, its sigmoid is none. Far out a value is
proportional to the exponential in it: below -80, the exponential of ``u + 16`` and 1 / e**16
of the result are the same to 64 digits of base e, and ``u + 16`` is not rounded there:

    y = x * sigmoid(x + 16 if x < -80 else x)
    exp(-16) * y if x < -80 else y

In the same way a value is proportional to its inputs, or to a power of them, where all are
tiny: they are multiplied by 2**40. Nothing else changes, at no other point; whether the
value is right is measured where it was lost, and where it was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from gradspec.derive.build import negate
from gradspec.ir.expr import ONE, Apply, Const, Expr, Ref, Select, const
from gradspec.ir.rule import CheckedRule, Declared, Derived, Kind, Rewrite, Rule
from gradspec.ir.text import show
from gradspec.ir.walk import names, nodes, substitute, transform
from gradspec.stabilise.bounding import factors as factors_of
from gradspec.stabilise.bounding import linear, product
from gradspec.stabilise.brink import Brink, brinks
from gradspec.stabilise.choose import cost
from gradspec.stabilise.halved import BELLS, EXPONENTIALS, halved, taken_in
from gradspec.stabilise.names import Names
from gradspec.stabilise.raised import raised
from gradspec.stabilise.search import replaced

DEEP, _SHIFT = 80, 16
"""Exponentials below e**-80 are taken e**16 times as large: then that of -104, the least
that may have to do with a normal number of float32, is one; and the square of the largest
is 2**-92 of it, nothing in float64."""

_SHRUNK = Const(Fraction(float(np.exp(-16.0))))

TINY, _BITS = 2.0**-60, 28
"""Inputs that are all below this are multiplied by so many powers of two: differences of
the least that differ are normal numbers, and what is proportional to them is so still."""

_TINIER, _MORE = 2.0**-102, 50
"""The same where sums with 1 are to stay as they are in float64, too: ``p * (1 - p)``."""

_SEVERAL = 2  # inputs to be enlarged

_DEGREES = (0, 1, 2)
"""Of values in tiny inputs."""

_LEAVES = frozenset(
    [
        *("exp", "sigmoid", "softplus", "exp_sum", "exp_product"),
        *("sigmoid_sum", "softplus_sum", "logsigmoid"),
    ]
)
"""What is an exponential far out."""

_WHY = "parts that would be subnormal, here 0, are taken larger"
_PRICES = {"jax": inf, "tf": 3.0}
"""How much more a form may cost, on targets that flush: a graph of TensorFlow without XLA
takes a pass over memory for each choice."""

_LOSS = 2.0**-10
"""Of a value, what a form may be off by far out, flushed or not (`sigmoid(1.702 * x)`)."""

_ROUNDS = 2
_MOST = 12  # cores that are tried


def scaled(checked: CheckedRule, target: str) -> CheckedRule:
    """The rule with values that a target's flushing would lose evaluated larger."""
    if target not in _PRICES or not checked.rule.is_elementwise:
        return checked
    work = _Work(checked.rule, target)
    rule = checked.rule
    forward = tuple(replace(x, value=work.value(x.name, x.value)) for x in rule.forward)
    backward = tuple(
        replace(entry, value=work.value(f"d{variable.name}", entry.value))
        if isinstance(entry, Derived | Declared)
        else entry
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
    )
    if not work.told:
        return checked
    done = replace(rule, forward=forward, backward=backward)
    return replace(checked, rule=done, rewrites=(*_told(checked.rewrites, work.told),))


def _told(
    rewrites: tuple[Rewrite, ...], found: dict[str, Rewrite]
) -> Iterator[Rewrite]:
    """It stands with what else was done to a value."""
    left = dict(found)
    for rewrite in rewrites:
        mine = left.pop(rewrite.name, None)
        why = f"{rewrite.reason}; {_WHY}"
        yield replace(rewrite, after=mine.after, reason=why) if mine else rewrite
    yield from left.values()


class _Work:
    def __init__(self, rule: Rule, target: str) -> None:
        self._rule, self._names = rule, Names(rule)
        self._price = _PRICES[target]
        found = zip(brinks(rule), (np.float32, np.float64), strict=True)
        self._brinks = tuple(Brink.of(p, t, target) for p, t in found if len(p))
        self._upstream = frozenset(f"d{o.name}" for o in rule.outputs)
        self._results = {o.name for o in rule.outputs}
        self._results |= {f"d{i.name}" for i in rule.inputs}
        self.told: dict[str, Rewrite] = {}

    def value(self, name: str, form: Expr) -> Expr:
        """A form of a result that is right at more points."""
        if name not in self._results or name in self._rule.exacts:
            return form
        try:
            done = self._mended(name, form)
        except NotImplementedError:  # a part that neither balls nor the model know
            return form
        if done != form:
            self._names.set(name, done)
            self.told[name] = Rewrite(name, show(form), show(done), _WHY)
        return done

    def _mended(self, name: str, form: Expr) -> Expr:
        for _ in range(_ROUNDS):
            closed = self._names.close(form)
            lost = self._lost(closed)
            if not any(map(len, lost)):
                break
            better = self._better(form, closed, lost)
            if better is None:
                break
            form = better
        return form

    def _lost(self, closed: Expr) -> list[_Lost]:
        meaning = self._names.close(closed)
        return [_Lost(b, closed, meaning) for b in self._brinks]

    def _better(self, form: Expr, closed: Expr, lost: list[_Lost]) -> Expr | None:
        """The form that mends most, if that is half of what is lost. What the author
        saves stays in use."""
        best, left = None, sum(map(len, lost)) // 2 + 1
        saved = self._saved(form)
        for others in self._starts(form, closed):
            for other in others:
                if not saved <= self._saved(other):
                    continue
                number = _left(self._names.close(other), lost)
                if number is not None and number < left:
                    best, left = other, number
            if best is not None:
                return best
        return best

    def _saved(self, form: Expr) -> frozenset[str]:
        """What of all that the author saves stands in the form."""
        if not self._rule.saves:
            return frozenset()
        parts = {*nodes(self._names.close(form))}
        values = {name: self._names.close(Ref(name)) for name in self._rule.saves}
        return frozenset(name for name, value in values.items() if value in parts)

    def _starts(self, form: Expr, closed: Expr) -> Iterator[Iterator[Expr]]:
        most = cost(closed)
        yield self._forms(form, most)
        if self._rule.saves:
            yield self._affordable(self._within(form), most, self._price)
        elif form != closed:
            yield self._forms(closed, most)

    def _affordable(
        self, others: Iterator[Expr], before: float, price: float
    ) -> Iterator[Expr]:
        for other in others:
            if cost(self._names.close(other)) <= price * before:
                yield other

    def _forms(self, form: Expr, before: float) -> Iterator[Expr]:
        straight = linear(form, self._upstream)
        yield from self._affordable(self._signs(form), before, self._price)
        yield from self._affordable(self._differences(straight), before, self._price)
        bells = self._halved(straight, BELLS)
        yield from self._affordable(bells, before, self._price)
        alone = chain(self._far(straight), self._enlarged(straight))
        yield from self._affordable(alone, before, self._price)

    def _signs(self, form: Expr) -> Iterator[Expr]:
        for node in nodes(form):
            match node:
                case Apply(op="sign", args=(Apply(op="sub", args=(a, b)),)):
                    yield replaced(form, node, _compared(node.args[0], a, b))

    def _far(self, straight: Expr) -> Iterator[Expr]:
        yield from taken_in(straight)
        yield from self._shifted(straight)
        yield from self._raised(straight)
        yield from self._halved(straight, EXPONENTIALS)

    # --- exponentials --------------------------------------------------------------------

    def _within(self, form: Expr) -> Iterator[Expr]:
        """``form`` as it is, with what the author saves; far out another."""
        ahead, others = self._apart(form)
        rest = product(others or [ONE])
        closed = self._names.close(rest)
        for core, condition in self._cores(closed):
            other = _in_leaves(closed, core, _moved(core, condition))
            if other != closed:
                far = Apply("mul", (_SHRUNK, other))
                yield product([*ahead, Select(condition, far, rest)])

    def _shifted(self, form: Expr) -> Iterator[Expr]:
        for core, condition in self._cores(form):
            moved = _moved(core, condition)
            other = _in_leaves(form, core, moved)
            if other != form:
                yield self._shrunk(other, condition, _SHRUNK)

    def _raised(self, form: Expr) -> Iterator[Expr]:
        for condition, other in raised(form):
            yield self._shrunk(other, condition, _SHRUNK)

    def _cores(self, form: Expr) -> Iterator[tuple[Expr, Expr]]:
        """Parts of the arguments of exponentials, and where they are far out."""
        seen: dict[tuple[Expr, Expr], None] = {}
        for node in nodes(form):
            if isinstance(node, Apply) and node.op in _LEAVES:
                for argument in node.args:
                    for core in _parts(_risen(node.op, argument)):
                        if names(core):
                            seen[core, _is_deep(core)] = None
        yield from list(seen)[:_MOST]

    def _shrunk(self, form: Expr, condition: Expr, factor: Expr) -> Expr:
        """``form`` times a factor where a condition holds, behind upstream gradients."""
        ahead, others = self._apart(form)
        rest = product(others or [ONE])
        chosen = Select(condition, Apply("mul", (factor, rest)), rest)
        return product([*ahead, chosen])

    def _halved(self, form: Expr, ops: frozenset[str]) -> Iterator[Expr]:
        ahead, rest = self._apart(form)
        for other in halved(product(rest or [ONE]), ops):
            yield product([*ahead, other])

    def _apart(self, form: Expr) -> tuple[list[Expr], list[Expr]]:
        """Factors with upstream gradients, and those without."""
        ahead = [f for f in factors_of(form) if self._upstream & names(f)]
        return ahead, [f for f in factors_of(form) if f not in ahead]

    # --- inputs --------------------------------------------------------------------------

    def _used(self, form: Expr) -> list[str]:
        kinds = (Kind.FLOAT, Kind.NOGRAD)
        floats = [v.name for v in self._rule.inputs if v.kind in kinds]
        used = [name for name in floats if name in names(form)]
        return used if len(used) <= _SEVERAL else []

    def _differences(self, form: Expr) -> Iterator[Expr]:
        used = self._used(form)
        if len(used) > 1:
            yield from self._times(form, used, used, (TINY, _BITS))
            yield from self._times(form, used, used, (_TINIER, _MORE))

    def _enlarged(self, form: Expr) -> Iterator[Expr]:
        used = self._used(form)
        if len(used) == 1:
            yield from self._times(form, used, used, (TINY, _BITS))
            yield from self._times(form, used, used, (_TINIER, _MORE))
        elif len(self._apart(form)[1]) > 1:  # a sum has other parts, and is seldom lost
            for name in used:
                yield from self._times(form, [name], [name], (_TINIER, _MORE))
                yield from self._times(form, [name], used, (_TINIER, _MORE))

    def _times(
        self, form: Expr, asked: list[str], used: list[str], sizes: tuple[float, int]
    ) -> Iterator[Expr]:
        """``form`` where those asked are tiny, with 2**bits times those used."""
        tiny, bits = sizes
        parts = [Apply("abs", (Ref(name),)) for name in asked]
        largest: Expr = reduce(lambda a, b: Apply("max", (a, b)), parts)
        condition = Apply("lt", (largest, Const(Fraction(tiny))))
        values = {name: _larger(Ref(name), condition, bits) for name in used}
        other = substitute(form, values)
        for degree in _DEGREES:
            if not degree:
                yield other
            else:
                shrunk = Const(Fraction(2) ** (-bits * degree))
                yield self._shrunk(other, condition, shrunk)


def _larger(value: Expr, condition: Expr, bits: int) -> Expr:
    factor = Const(Fraction(2) ** bits)
    return Select(condition, Apply("mul", (factor, value)), value)


def _moved(core: Expr, condition: Expr) -> Expr:
    return Select(condition, Apply("add", (core, const(_SHIFT))), core)


def _risen(op: str, argument: Expr) -> Expr:
    """What the exponential is of; and the argument, of that."""
    return negate(argument) if op == "logsigmoid" else argument


def _parts(argument: Expr) -> Iterator[Expr]:
    """An argument, and what it is chosen from."""
    yield argument
    match argument:
        case Select(then=then, other=other):
            yield then
            yield other


def _is_deep(core: Expr) -> Expr:
    """Whether it is far out: the number itself is asked where it is bounded."""
    match core:
        case Apply(op="max" | "min" | "clip", args=(inner, *_)):
            return _is_deep(inner)
        case Apply(op="neg", args=(inner,)):
            return Apply("gt", (inner, const(DEEP)))
        case _:
            return Apply("lt", (core, const(-DEEP)))


def _in_leaves(form: Expr, core: Expr, moved: Expr) -> Expr:
    """``core`` moved in the arguments of all exponentials of it."""

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Apply) or node.op not in _LEAVES:
            return node
        for place, argument in enumerate(node.args):
            risen = _risen(node.op, argument)
            if core in _parts(risen):
                args = list(node.args)
                args[place] = _risen(node.op, replaced(risen, core, moved))
                return Apply(node.op, tuple(args))
        return node

    return transform(form, visit)


def _compared(difference: Expr, a: Expr, b: Expr) -> Expr:
    """The sign of a difference by comparisons; NaN stays NaN."""
    below = Select(Apply("lt", (a, b)), const(-1), difference)
    return Select(Apply("gt", (a, b)), ONE, below)


class _Lost:
    """A format's points at which a value is lost, and what it is everywhere."""

    def __init__(self, brink: Brink, closed: Expr, meaning: Expr) -> None:
        self.brink = brink
        differing = brink.differing(closed)
        self._places = np.flatnonzero(differing)
        self._was = np.float64(brink.flushing.run(closed))
        self._truths = brink.truths(meaning, differing) if len(self) else np.zeros(0)
        kept: Any = np.asarray(brink.keeping.run(closed), dtype=np.float64)
        self._error = np.abs(kept[self._places] - self._truths)

    def __len__(self) -> int:
        return len(self._places)

    def left(self, closed: Expr) -> int | None:
        """How many points are lost still; None if others are spoiled."""
        got = np.asarray(self.brink.flushing.run(closed), dtype=np.float64)
        same = self.brink.is_near(got, self._was)
        same[self._places] = True
        if not same.all():
            return None
        return int((~self._is_right(got[self._places])).sum())

    def _is_right(self, got: Any) -> Any:
        """As near to the truth as the form is where nothing is flushed."""
        error = np.abs(got - self._truths)
        as_near = error <= np.minimum(2 * self._error, _LOSS * np.abs(self._truths))
        return as_near | self.brink.is_near(got, self._truths)


def _left(closed: Expr, lost: list[_Lost]) -> int | None:
    total = 0
    for each in lost:
        left: Any = each.left(closed)
        if left is None:
            return None
        total += left
    return total
