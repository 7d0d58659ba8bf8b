"""A second evaluation of what is dear in float32: short, in float64, rounded once.

A form that loses nothing in float32 may be long: silu's gradient about its zero takes an
`expm1`, two choices and ten operations more. In float64 the short formula
``sigmoid(x) * (1 + x * sigmoid(-x))`` loses half of the digits there, and as many are
left as float32 has. So each result has, beside the form that serves every format, the
cheapest form found that is right when it is computed in float64 from narrower arguments
and rounded once. A target that has float64 at little cost (a CPU, without a compiler that
fuses) may take it for them; all others take no notice.

Measured as all forms are: no more bad points and no larger error than the narrow form, or
at most one unit in the last place, at the usual points, at extreme ratios, and at
infinities; and the same as the narrow form in float64 at ten thousand points. Nothing is derived from such a form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.expr import ONE, Apply, Expr, Ref, const
from gradspec.ir.rule import CheckedRule, Kind, Rule
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, substitute
from gradspec.primitives import table_slopes
from gradspec.primitives.formula import formula
from gradspec.stabilise.agree import agree
from gradspec.stabilise.bounding import End
from gradspec.stabilise.choose import cost
from gradspec.stabilise.exponential import in_one_exponential
from gradspec.stabilise.further import Ground
from gradspec.stabilise.infinite import bounder, special, typical
from gradspec.stabilise.logistic import in_one_logistic
from gradspec.stabilise.measure import GOOD, Score, Trial
from gradspec.stabilise.names import Names
from gradspec.stabilise.taming import at_end
from gradspec.stabilise.tried import Tried

Doubled: TypeAlias = tuple[tuple[str, Expr], ...]
"""Outputs and cotangents with their forms in inputs, statics and upstream gradients."""

_DEAR = 24.0
"""What a form costs that is worth a second one: less is a few products."""

_TRIED = 24
"""Forms that are measured for one result, the cheapest first."""

_NUMBERS = (Kind.FLOAT, Kind.NOGRAD)
_UNIT = 1.0
_SATURATED = 40
"""From here on an exponential has left everything else behind, to 2^-57."""


def with_others(own: CheckedRule, chosen: Rule) -> CheckedRule:
    """``own``, in which some forms of ``chosen`` are longer for what a target takes for 0 in
    float32. In float64 nothing is: beside other results in it those forms stay."""
    if not own.doubles:
        return own
    now, names_of = Names(own.rule), Names(chosen)
    known = dict(own.doubles)
    outputs = [o.name for o in chosen.outputs]
    for name in (*outputs, *(f"d{i.name}" for i in chosen.inputs if i.takes_gradient)):
        shorter = names_of.close(Ref(name))
        if name not in known and now.close(Ref(name)) != shorter:
            known[name] = shorter
    return replace(own, doubles=tuple(known.items()))


@dataclass(frozen=True, slots=True)
class Quantity:
    """An output or cotangent: its points in float32, and what it was tried as (closed)."""

    name: str
    trials: tuple[Trial, ...]
    forms: tuple[Expr, ...]
    statics: frozenset[str]
    hard: tuple[Trial, ...] = ()
    """Points that were mended, at which no shorter form is to be wrong again."""

    def at(self, trials: Iterable[Trial]) -> Quantity:
        return replace(self, hard=tuple(t for t in trials if t not in self.trials))


def looked_at(
    rule: Rule,
    name: str,
    ground: Ground,
    heard: Iterable[Tried],
    close: Callable[[Expr], Expr],
) -> Quantity:
    """What was looked at for a result."""
    trials = tuple(trial for trial, _ in ground.single())
    forms = dict.fromkeys(
        form
        for tried in heard
        for form in (tried.taken, tried.written, *(form for form, _ in tried.others))
    )
    statics = frozenset(static.name for static in rule.static_inputs)
    return Quantity(name, trials, tuple(dict.fromkeys(map(close, forms))), statics)


def doubled(
    written: Rule, done: Rule, wide: Iterable[str], quantities: Iterable[Quantity]
) -> Doubled:
    """The second forms of the results of ``done``, the rule in the forms chosen; those
    that are ``wide`` are computed in float64 anyway."""
    chosen, found = Names(done), {}
    ended_of = bounder(written, done)
    for quantity in quantities:
        narrow = chosen.close(Ref(quantity.name))
        if cost(narrow) >= _DEAR and quantity.name not in written.exacts:
            is_wide = quantity.name in wide
            for form in _cheapest(done, quantity, narrow, is_wide):
                ended = ended_of(quantity.name, form)
                if not _loses_ends(done, narrow, ended):
                    found[quantity.name] = ended
                    break
    dear = {name for name in found if cost(found[name]) > cost(chosen.close(Ref(name)))}
    return tuple((name, form) for name, form in found.items() if name not in dear)


def _loses_ends(rule: Rule, before: Expr, after: Expr) -> bool:
    """Whether ``after``, computed in float64, is NaN at an end where ``before`` is none;
    both are of inputs, statics and upstream gradients alone."""
    used, points = names(before), (*typical(rule), *special(rule))
    for variable in rule.tensor_inputs:
        if variable.kind in _NUMBERS and variable.name in used and points:
            for sign in (1, -1):
                machine = at_end(End(variable.name, sign, points), np.float64)
                was, now = machine.run(before), machine.run(after)
                if (np.isnan(now) & ~np.isnan(was)).any():
                    return True
    return False


def _cheapest(
    rule: Rule, quantity: Quantity, narrow: Expr, is_wide: bool
) -> Iterator[Expr]:
    """The forms that are right in float64 and no dearer than ``narrow``, which is the
    last of them: the cheapest first."""
    forms = dict.fromkeys((*quantity.forms, *_further(quantity), narrow))
    ranked = sorted((f for f in forms if cost(f) <= cost(narrow)), key=_rank)
    every = [np.ones(len(trial.points), dtype=bool) for trial in quantity.trials]
    pairs = tuple(zip(quantity.trials, every, strict=True))
    ask = Trial.score_in_double if is_wide else Trial.score_at
    before = [ask(trial, narrow, where) for trial, where in pairs]
    for form in ranked[:_TRIED]:
        if form == narrow:
            yield form
            return
        is_right = _is_right(form, pairs, before) and agree(rule, form, narrow)
        if is_right and not any(_is_undone(t, form, narrow) for t in quantity.hard):
            yield form


def _is_undone(trial: Trial, form: Expr, narrow: Expr) -> bool:
    """Whether a form is wrong at more points, or loses digits, both in float64."""
    every = np.ones(len(trial.points), dtype=bool)
    short, long = (trial.score_in_double(f, every) for f in (form, narrow))
    if short.gaps > long.gaps or short.whole.bad > long.whole.bad:
        return True
    return short.whole.worst > max(GOOD, long.whole.worst)


def _rank(form: Expr) -> tuple[float, str]:
    return cost(form), show(form)


def _is_right(
    form: Expr, pairs: tuple[tuple[Trial, Any], ...], before: list[Score]
) -> bool:
    for (trial, where), narrow in zip(pairs, before, strict=True):
        try:
            wide = trial.score_in_double(form, where)
        except NotImplementedError:
            return False
        if wide.gaps > narrow.gaps or wide.whole.bad > narrow.whole.bad:
            return False
        if wide.core.bad > narrow.core.bad or wide.whole.share > narrow.whole.share:
            return False
        if wide.whole.worst > max(_UNIT, narrow.whole.worst):
            return False
    return True


def _further(quantity: Quantity) -> Iterator[Expr]:
    """A fraction of polynomials in an input and its exponential, which stops growing
    where everything else has been left behind. A static is asked to be a rate."""
    first = quantity.trials[0]
    upstream = names(first.meaning) & first.points.upstream
    variables = sorted(first.variables, key=lambda name: name in quantity.statics)
    if len(upstream) > 1 or not variables or variables[0] in quantity.statics:
        return
    name, *rates = variables
    if len(rates) > 1 or not quantity.statics.issuperset(rates):
        return
    alone = tidy(substitute(first.meaning, dict.fromkeys((*upstream, *rates), ONE)))
    found = in_one_exponential(alone, name)
    if found is None:
        fraction = None if rates else in_one_logistic(alone, name)
        if fraction is not None:
            yield reduce(_times, upstream, fraction)
        return
    x: Expr = Ref(name)
    for rate in rates:
        x = Apply("mul", (Ref(rate), x))
    ended = Apply("min", (x, const(_SATURATED)))
    placed = {name: x}
    straight = (substitute(form, placed) for form in (*_named(found, name), found))
    for form in (*straight, substitute(found, {name: ended})):
        yield reduce(_times, upstream, form)


def _times(form: Expr, name: str) -> Expr:
    return Apply("mul", (Ref(name), form))


def _named(fraction: Expr, name: str) -> Iterator[Expr]:
    """The slope that has a name, of ``x`` or a multiple of it."""
    exponents = (n for n in nodes(fraction) if isinstance(n, Apply) and n.op == "exp")
    inner = {exponent.args[0] for exponent in exponents}
    for row in table_slopes.ROWS if len(inner) == 1 else ():
        (x,) = inner
        assert row.meaning is not None
        meaning = substitute(formula(row.meaning), {"x": x})
        if in_one_exponential(meaning, name) == fraction:
            yield Apply(row.name, (x,))
