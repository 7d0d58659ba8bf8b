"""Series put into a chosen form, wherever a part of it depends on one input alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import Any, TypeAlias

from gradspec.derive.build import times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import ONE, Apply, Expr, Ref, Select
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, names, nodes, size, substitute
from gradspec.stabilise.choose import Candidate, choose
from gradspec.stabilise.compensate import compensated
from gradspec.stabilise.exponential import in_range
from gradspec.stabilise.inner import INNER, is_root, of_one, put_back
from gradspec.stabilise.measure import SLACK, Trial, is_real
from gradspec.stabilise.products import is_product, reordered
from gradspec.stabilise.regimes import losses
from gradspec.stabilise.search import Search, replaced
from gradspec.stabilise.series import (
    Mended,
    is_fit,
    is_poor,
    series_beside,
    with_exponential,
    with_series,
    with_series_at_zero,
)

Close = Callable[[Expr], Expr]
"""An expression in the inputs alone."""

_Pairs: TypeAlias = tuple[tuple[Trial, Any], ...]
"""Trials, and at which of their points statics have their defaults."""

_LARGEST = 200  # nodes
_LUCK = 8.0
_MUCH, _GAIN = 40.0, 0.5
"""Bits lost that make another start worth its time, and what share may be left then."""


def anchored(
    form: Expr, close: Close, inputs: frozenset[str], upstream: frozenset[str]
) -> Iterator[tuple[Expr, str]]:
    """Ways to mend ``form``, the cheaper first, each with the reason."""
    if sum(1 for _ in nodes(close(form))) > _LARGEST:
        return
    for start in _starts(form, close, inputs, upstream):
        parts = tuple(_parts(start, close, inputs, upstream))
        for way in (with_exponential, with_series):
            tried = (_tried(way, *part) for part in parts)
            found = [one for one in tried if one is not None]
            found.sort(key=lambda one: -size(one.old))  # a part may stand in another
            if found:
                whys = dict.fromkeys(one.why for one in found)
                yield reduce(_with, found, start), "; ".join(whys)


_Way = Callable[[Expr, Expr, str, bool], Mended | None]


def _tried(way: _Way, part: Expr, closed: Expr, is_factor: bool) -> Mended | None:
    """A part mended, itself or as a function of one inner expression: of a root first, but
    about 0 alone, where there is no series of the input itself. (Elsewhere ``x - 1`` is
    exact and ``s * s - 1`` is not.)"""
    used, known = names(closed), of_one(closed)
    ways: list[Callable[[], Mended | None]] = []
    if len(used) == 1:
        ways.append(partial(way, part, closed, next(iter(used)), is_factor))
    if known is not None and not is_root(known[1]):
        ways.append(partial(_within, way, part, *known, is_factor))
    if known is not None and is_root(known[1]) and way is with_series:
        ways.insert(0, partial(_within, with_series_at_zero, part, *known, is_factor))
    found = (one() for one in ways)
    return next((one for one in found if one is not None), None)


def _within(
    way: _Way, part: Expr, alone: Expr, inner: Expr, is_factor: bool
) -> Mended | None:
    found = way(alone, alone, INNER, is_factor)
    if found is None:
        return None
    new = put_back(found.new, inner)
    return Mended(part, new, new, found.why.replace(INNER, show(inner)))


def _with(form: Expr, one: Mended) -> Expr:
    return replaced(form, one.old, one.new)


@dataclass(frozen=True, slots=True)
class Mender:
    """Puts series into the forms of one rule. ``usual``: for each trial, the points at
    which statics have their defaults."""

    close: Close
    inputs: frozenset[str]
    upstream: frozenset[str]
    search: Search
    usual: tuple[Any, ...]

    @staticmethod
    def of(rule: Rule, close: Close, search: Search, usual: tuple[Any, ...]) -> Mender:
        floats = (i.name for i in rule.inputs if i.kind in (Kind.FLOAT, Kind.NOGRAD))
        upstream = (f"d{o.name}" for o in rule.outputs if o.takes_gradient)
        return Mender(close, frozenset(floats), frozenset(upstream), search, usual)

    def best(
        self,
        starts: tuple[Expr, ...],
        chosen: Expr,
        written: Expr,
        trials: tuple[Trial, Trial],
    ) -> tuple[Expr, str] | None:
        """The first of the forms that can be mended; where that, too, is poor somewhere,
        through an exponential that does not overflow, if it loses much less."""
        work = chosen, written, trials
        found = self._first(starts, *work)
        before = self._lost(chosen if found is None else found[0], trials)
        if before < _MUCH:
            return found
        other = self._admitted(through(trials[0]), chosen, trials)
        if other is None or self._lost(other[0], trials) > _GAIN * before:
            return found
        return other

    def _first(
        self,
        starts: Iterable[Expr],
        chosen: Expr,
        written: Expr,
        trials: tuple[Trial, Trial],
    ) -> tuple[Expr, str] | None:
        """The first, unless much is lost with it still and half of that with another."""
        held: tuple[Expr, str] | None = None
        least = math.inf
        for start in dict.fromkeys(starts):
            one = self.mended(start, chosen, written, trials)
            lost = math.inf if one is None else self._lost(one[0], trials)
            if one is not None and (held is None or lost < _GAIN * least):
                held, least = one, lost
            if least < _MUCH:
                break
        return held

    def _lost(self, form: Expr, trials: tuple[Trial, Trial]) -> float:
        closed = self.close(form)
        return sum(float(losses(t.suspicion(closed)).sum()) for t in trials)

    def mended(
        self,
        plain: Expr,
        chosen: Expr,
        written: Expr,
        trials: tuple[Trial, Trial],
    ) -> tuple[Expr, str] | None:
        """A better form than ``chosen`` and why; ``plain`` is that without polish. What is
        written, if it is good about its zeros and no worse elsewhere: what is stabilised
        stays."""
        ways = anchored(plain, self.close, self.inputs, self.upstream)
        if written == chosen:
            return self._admitted(ways, chosen, trials)
        first = next(ways, None)
        if first is None:
            return None
        if self._is_sound(written) and self._stands(written, chosen, trials):
            return written, ""
        return self._admitted(chain((first,), ways), chosen, trials)

    def _admitted(
        self,
        ways: Iterable[tuple[Expr, str]],
        chosen: Expr,
        trials: tuple[Trial, Trial],
    ) -> tuple[Expr, str] | None:
        """The first that is admitted; or, where much is lost with it still, one that
        loses half of that at most."""
        old = self.close(chosen)
        pairs = tuple(zip(trials, self.usual, strict=True))
        held: tuple[Expr, str] | None = None
        least = math.inf
        for form, why in ways:
            best = self._best_order(self._elsewhere(form, trials), old, pairs)
            if best is None:
                continue
            lost = self._lost(best, trials)
            if lost < _GAIN * least:
                held, least = (best, why), lost
            if least < _MUCH:
                break
        return held

    def _best_order(self, form: Expr, old: Expr, pairs: _Pairs) -> Expr | None:
        """What is admitted in place of ``old``: the form, or, if it mends most of what is
        bad, its product in an order that stays inside the range."""
        for other in self._orders(form, old, pairs):
            new = self.close(other)
            if all(is_admitted(trial, new, old, usual) for trial, usual in pairs):
                return other
        return None

    def _orders(self, form: Expr, old: Expr, pairs: _Pairs) -> Iterator[Expr]:
        yield form
        trial = pairs[0][0]
        left, before = (trial.score(f).whole.bad for f in (self.close(form), old))
        if 2 * left < before and is_product(form) and self.close(form) == form:
            yield from reordered(form, tuple(trial for trial, _ in pairs))

    def _stands(self, form: Expr, chosen: Expr, trials: tuple[Trial, Trial]) -> bool:
        """Whether it has no more bad points than what is chosen."""
        one, other = self.close(form), self.close(chosen)
        return all(t.score(one).whole.bad <= t.score(other).whole.bad for t in trials)

    def _is_sound(self, form: Expr) -> bool:
        """Whether no part of it loses digits about a zero or a removable point."""
        for _, closed, _ in _parts(form, self.close, self.inputs, self.upstream):
            used = names(closed)
            if len(used) == 1 and is_poor(closed, next(iter(used))):
                return False
            known = of_one(closed) if len(used) > 1 else None
            if known is not None and is_poor(known[0], INNER):
                return False
        return True

    def _elsewhere(self, form: Expr, trials: tuple[Trial, Trial]) -> Expr:
        """The best form beside the series: what is lost at a zero hid what is lost
        there."""
        near = map(self._candidate, self.search.forms(form))
        far = map(self._candidate, compensated(form))
        first = self._candidate(form)
        return choose(trials[0], first, near, far, trials[1]).form

    def _candidate(self, form: Expr) -> Candidate:
        return Candidate(form, self.close(form))


def through(trial: Trial) -> Iterator[tuple[Expr, str]]:
    """A function of one input through ``exp(-|x|)``, which never overflows, with series
    about the places where that cancels."""
    upstream = trial.points.upstream & names(trial.meaning)
    if len(trial.variables) != 1 or len(upstream) > 1:
        return
    (name,) = trial.variables
    meaning = tidy(substitute(trial.meaning, dict.fromkeys(upstream, ONE)))
    found = in_range(meaning, name) if is_fit(meaning) else None
    if found is None:
        return
    mended = series_beside(found, found, meaning, name, is_factor=True)
    if mended is not None:
        yield _product_of(upstream, mended.new), f"through exp(-|{name}|); {mended.why}"
    why = f"through exp(-|{name}|), which does not overflow"
    yield _product_of(upstream, found), why


def _product_of(upstream: frozenset[str], factor: Expr) -> Expr:
    return reduce(_product, [*map(Ref, sorted(upstream)), factor])


def is_admitted(trial: Trial, new: Expr, old: Expr, usual: Any) -> bool:
    """Not worse where statics have their defaults; elsewhere they bring rounding errors of
    their own (``beta * x`` near a zero), and how large those are is luck."""
    at_defaults = trial.score_at(new, usual), trial.score_at(old, usual)
    anywhere = trial.score(new), trial.score(old)
    return not (
        at_defaults[0].is_worse_than(at_defaults[1], SLACK)
        or anywhere[0].is_worse_than(anywhere[1], _LUCK)
    )


def _starts(
    form: Expr, close: Close, inputs: frozenset[str], upstream: frozenset[str]
) -> Iterator[Expr]:
    """The form as it is, or as a product if it is one of functions of one input each;
    last with all that is not the upstream gradient as one factor: in ``dy * p / x / x``
    a series of ``p`` alone may underflow where the whole does not."""
    used = [name for name in sorted(upstream) if name in names(form)]
    found = [form]
    if len(used) == 1 and is_linear(form, upstream):
        factor = coefficient(form, used[0], upstream)
        product = _product(Ref(used[0]), _separated(factor, close, inputs))
        found = [product, form] if isinstance(form, Select) else [form, product]
        found.append(Apply("mul", (Ref(used[0]), factor)))
    yield from dict.fromkeys(found)


def _product(left: Expr, right: Expr) -> Expr:
    """A conditional stays one factor."""
    if isinstance(right, Select):
        return Apply("mul", (left, right))
    return times(left, right)


def _separated(factor: Expr, close: Close, inputs: frozenset[str]) -> Expr:
    """An input that a factor is linear in stands outside of it."""
    for name in sorted(names(factor) & inputs):
        alone = frozenset((name,))
        is_other = names(close(factor)) & inputs != alone
        if is_other and is_linear(factor, alone):
            rest = _separated(coefficient(factor, name, alone), close, inputs)
            return _product(Ref(name), rest)
    return factor


def _parts(
    form: Expr, close: Close, inputs: frozenset[str], upstream: frozenset[str]
) -> Iterator[tuple[Expr, Expr, bool]]:
    """The largest parts of one input each, or of one inner expression, as they stand and
    in the inputs, and whether the form is 0 where the part is: beside other terms of a
    sum the last digits of what is nearly 0 do not matter."""
    todo, seen = [(form, True)], {form}
    while todo:
        node, is_factor = todo.pop()
        closed = close(node)
        if not names(closed) & upstream and _is_part(node, closed, inputs):
            yield node, closed, is_factor
            continue
        keeps = is_factor and _keeps_zeros(node)
        fresh = [child for child in children(node) if child not in seen]
        seen.update(fresh)
        todo += ((child, keeps) for child in reversed(fresh))


def _keeps_zeros(node: Expr) -> bool:
    match node:
        case Apply(op="mul" | "div" | "neg" | "abs" | "square" | "sqrt") | Select():
            return True
        case _:
            return False


def _is_part(node: Expr, closed: Expr, inputs: frozenset[str]) -> bool:
    used = names(closed)
    if not used & inputs or not is_real(node) or not is_fit(closed):
        return False
    return used <= inputs if len(used) == 1 else of_one(closed) is not None
