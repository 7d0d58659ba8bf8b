"""Gradients of one exponential through a logistic function of it, where compilers fuse.

What `exponential.py` made exact about a zero of a gradient has an exponential, a quotient
and an `expm1`; the forward pass has a logistic function, which is an exponential and a
quotient again. A fraction over a power of ``1 + exp(x)`` is a polynomial in ``x``, ``s =
sigmoid(x)`` and ``c = sigmoid(-x)``: the gradient of silu is ``s * (s + c * (1 + x))``. Of the
smaller of the two, ``t = sigmoid(-|x|)``, the other is ``1 - t``; both passes have that one
expensive function between them, and XLA keeps it in memory for both. About its zero the
gradient is a series.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.derive.build import times
from gradspec.derive.partials import Underivable
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select, const
from gradspec.ir.rule import CheckedRule, Declared, Derived, Kind, Let, Rewrite, Rule
from gradspec.ir.text import show
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes
from gradspec.primitives.table_known import EXPM1
from gradspec.stabilise.around import WIDTHS, Around
from gradspec.stabilise.bounding import factors, linear, product
from gradspec.stabilise.measure import SLACK, Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names
from gradspec.stabilise.points import DOUBLE, points
from gradspec.stabilise.search import replaced
from gradspec.stabilise.series import points_of, series_about, told

_TARGETS = ("jax", "tf")
_WIDER = 2
"""Windows are measured with functions that are rounded correctly; those of these targets
are off by one unit or two, which counts at twice the distance from a zero as much."""

_SINGLE, _DOUBLE = np.float32, np.float64


def logistic(checked: CheckedRule, target: str) -> CheckedRule:
    """The rule with such gradients in that form, and its logistic functions in the same."""
    rule = checked.rule
    floats = [v.name for v in rule.inputs if v.kind in (Kind.FLOAT, Kind.NOGRAD)]
    if target not in _TARGETS or not rule.is_elementwise or len(floats) != 1:
        return checked
    work = _Work(checked, floats[0])
    backward = tuple(
        (
            replace(entry, value=work.gradient(f"d{variable.name}", entry.value))
            if isinstance(entry, Derived | Declared)
            else entry
        )
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
    )
    if backward == rule.backward:
        return checked
    forward = tuple(replace(x, value=work.forward(x)) for x in rule.forward)
    done = replace(rule, forward=forward, backward=backward)
    told = tuple(work.told.get(r.name, r) for r in checked.rewrites)
    return replace(checked, rule=done, rewrites=told)


@dataclass(frozen=True, slots=True)
class _Pair:
    """``sigmoid(x)`` and ``sigmoid(-x)``, through the smaller."""

    name: str

    @property
    def less(self) -> Expr:
        """A conditional says ``-|x|``: at 0 it has the slope of one side."""
        x = Ref(self.name)
        return Apply("sigmoid", (Select(self._left, x, Apply("neg", (x,))),))

    @property
    def _left(self) -> Expr:
        return Apply("lt", (Ref(self.name), ZERO))

    @property
    def _more(self) -> Expr:
        return Apply("sub", (ONE, self.less))

    @property
    def rising(self) -> Expr:
        return Select(self._left, self.less, self._more)

    @property
    def falling(self) -> Expr:
        return Select(self._left, self._more, self.less)


class _Work:
    def __init__(self, checked: CheckedRule, name: str) -> None:
        self._rule, self._name = checked.rule, name
        self._names = Names(checked.rule)
        self._upstream = frozenset(f"d{o.name}" for o in checked.rule.outputs)
        self._rewrites = {r.name: r for r in checked.rewrites}
        self._pair = _Pair(name)
        self._slopes = _slopes(checked.rule, name)
        self.told: dict[str, Rewrite] = {}

    def gradient(self, name: str, form: Expr) -> Expr:
        """A gradient that has an `expm1` of an exponential at hand, without it."""
        is_ours = any(isinstance(n, Apply) and n.op == EXPM1 for n in nodes(form))
        if not is_ours or name in self._rule.exacts or name not in self._rewrites:
            return form
        parts = factors(linear(form, self._upstream))
        ahead = [part for part in parts if names(part) & self._upstream]
        rest = [part for part in parts if part not in ahead]
        closed = self._names.close(product(rest)) if rest else ONE
        meaning = self._slopes.get(name.removeprefix("d"), ONE)
        if names(closed) != {self._name} or names(meaning) != {self._name}:
            return form
        found = self._mended(name, closed, meaning)
        return form if found is None else product([*ahead, found])

    def _mended(self, name: str, closed: Expr, meaning: Expr) -> Expr | None:
        plain = through(meaning, self._pair)
        if plain is None:
            return None
        mended = _with_series(plain, meaning, self._name)
        if mended is None:
            return None
        new, said = mended
        if not self._is_as_good(meaning, closed, new):
            return None
        before = self._rewrites[name]
        why = f"through sigmoid(-abs({self._name})), which both passes have"
        limit = "".join(before.reason.partition("; at ")[1:])
        reason = "; ".join([why, *said]) + limit
        self.told[name] = replace(before, after=show(new), reason=reason)
        return new

    def _is_as_good(self, meaning: Expr, closed: Expr, new: Expr) -> bool:
        """Measured where all forms are, in both formats."""
        for sample, work in self._samples():
            trial = Trial(meaning, sample, Machine(sample.columns, work))
            score, was = trial.score(new), trial.score(closed)
            if score.is_worse_than(was, SLACK) and not score.is_good:
                return False
        return True

    def _samples(self) -> Iterator[tuple[Any, Any]]:
        yield points(self._rule), _SINGLE
        yield points(self._rule, DOUBLE), _DOUBLE

    def forward(self, let: Let) -> Expr:
        own = Apply("sigmoid", (Ref(self._name),))
        return replaced(let.value, own, self._pair.rising)


def _slopes(rule: Rule, name: str) -> dict[str, Expr]:
    """The derivative of the output, upstream gradient 1, by input."""
    outputs = [o.name for o in rule.outputs if o.takes_gradient]
    if len(outputs) != 1 or rule.surrogates:
        return {}
    try:
        found = vjps(rule.forward, (), {outputs[0]: ONE}, (name,))
    except Underivable:
        return {}
    written = Names(rule)
    return {variable: tidy(written.close(value)) for variable, value in found.items()}


def _with_series(
    plain: Expr, meaning: Expr, name: str
) -> tuple[Expr, tuple[str, ...]] | None:
    """``plain`` with a series about each of its zeros at which it is poor, and why; None
    if there is none for a window wide enough."""
    form, said = plain, []
    for point in points_of(meaning, name):
        around = Around(meaning, name, point.near)
        if not around.is_poor(form):
            continue
        was = around.profile(form)
        least = _WIDER * next(iter(was.windows), WIDTHS[-1])
        width = next((w for w in WIDTHS if w >= least), None)
        found = width and series_about(meaning, name, point, width)
        if not found:
            return None
        form = Select(*found, form)
        said.append(told(name, point, was, around.profile(form)))
    return form, tuple(said)


def through(closed: Expr, pair: _Pair) -> Expr | None:
    """The polynomial in x, s and c that a fraction over a power of 1 + exp(x) is."""
    from gradspec.symbolic.exponentials import NoFraction, factored

    try:
        found = factored(closed, pair.name)
    except (NoFraction, NotImplementedError, KeyError):
        return None
    below = sum(-power for terms, power in found.factors if power < 0)
    others = [(terms, power) for terms, power in found.factors if power > 0]
    if found.unit != 1 or any(
        terms != _ONE_MORE for terms, power in found.factors if power < 0
    ):
        return None
    high = sum(power * degree(terms) for terms, power in others)
    rest = below - found.shift - high
    if found.shift < 0 or rest < 0:
        return None
    made = [_homogeneous(terms, pair) for terms, power in others for _ in range(power)]
    made = [*[pair.rising] * found.shift, *[pair.falling] * rest, *made]
    return times(Const(found.number), product(made or [ONE]))


_ONE_MORE = (((0, 0), Fraction(1)), ((0, 1), Fraction(1)))
"""1 + E"""

_FAR = 10_000
"""Where an exponential has come to its limit in every format; powers have not overflowed."""


def degree(terms: Any) -> int:
    """In the exponential."""
    found: int = max(j for (_, j), _ in terms)
    return found


def _homogeneous(terms: Any, pair: _Pair) -> Expr:
    """A polynomial in x and E over the power of 1 + E that its degree in E is."""
    x = Apply("clip", (Ref(pair.name), const(-_FAR), const(_FAR)))
    total: Expr = ZERO
    high = degree(terms)
    for power in range(high, -1, -1):
        inner = {i: c for (i, j), c in terms if j == power}
        logistic = [pair.rising] * power + [pair.falling] * (high - power)
        part = fold(Apply("mul", (product(logistic or [ONE]), _in_one(inner, x))))
        total = fold(Apply("add", (total, part)))
    return total


def _in_one(inner: dict[int, Fraction], x: Expr) -> Expr:
    total: Expr = ZERO
    for power in range(max(inner, default=0), -1, -1):
        here = Const(inner.get(power, Fraction(0)))
        total = fold(Apply("add", (here, fold(Apply("mul", (total, x))))))
    return total
