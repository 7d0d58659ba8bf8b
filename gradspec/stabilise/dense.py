"""Many more points for one question: is a gradient that is derived good in float32?

The sample on which forms compete has some hundred points, for each of which balls give
the truth. Where several inputs nearly cancel, or roundings happen to add up, is seldom
among them. Here a form is computed at some thousand points in float32 and in float64, which
takes milliseconds; the points at which the two differ most are the hard ones, and only
of those the truth is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr, Select
from gradspec.ir.rule import Input, Kind, Rule
from gradspec.ir.walk import names, nodes
from gradspec.stabilise.measure import GOOD
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import CORE, Points
from gradspec.stabilise.quick import QuickMachine, is_slow
from gradspec.symbolic.sampling import sample

_COUNT = 5000
"""Points of each stratum."""

_TURNS = 8

_SPANS = ((-12, 7), (-120, 120))
"""Exponents: of the core (see `points.CORE`), and nearly all that the format has."""

_HARD = 16
"""How many hard points of each stratum are looked at."""

_OFF = GOOD
"""ULP beyond which a point of the core is hard, of several inputs."""

_ALONE = 2 * GOOD
"""The same of one input: the sample is dense there, and a little more once in a thousand
points is no reason to make an activation twice as slow."""

_RARE = 0.001
"""Share of the points at which a result may be bad far out: every product of three
factors overflows on the way somewhere."""

_FORGIVEN = 4.0
"""Times what one unit in the last place of the inputs changes: an error of that size is
in what was given. A sum that nearly cancels would be right to the last digit in float64,
and be no better known; twice the bytes are too much for that."""

_ILL = 3.0
"""ULP that the last places of the inputs change at least where that counts."""

_FULL = 2.0**24
"""Times the least normal number: below, a part of a result may lack digits because it is
subnormal, and a few lost so are no reason to be slow."""

_AGREEING = 2.0
"""ULP of float32 by which two evaluations in float64 may differ."""

_SIMPLE = 80
_KINDS = 12
"""One row in so many has two equal inputs; as many have nearly equal ones, nearly
opposite ones, and complements of 1."""

_SEED = 22


def hard(rule: Rule, closed: Expr, target: str) -> Points | None:
    """The points at which ``closed`` loses most; None if there are none, or if a part of
    it is known to balls alone."""
    if any(map(is_slow, nodes(expand(closed)))):
        return None
    drawn, core = _columns(rule)
    machine = QuickMachine(drawn, np.float32, target)
    off = np.where(_turns(machine, closed), 0.0, _off(machine, closed))
    least = _OFF if len(names(closed) & {i.name for i in rule.inputs}) > 1 else _ALONE
    if (off > least).any():
        off = np.where(_given_so(rule, machine, closed), 0.0, off)
    chosen = [*_worst(np.where(core, off, 0.0), least)]
    lost = np.isinf(off) & ~core
    if lost.sum() > _RARE * len(lost):
        chosen += _worst(np.where(lost, off, 0.0), least)
    return _points(rule, drawn, core, sorted(chosen)) if chosen else None


def excused(rule: Rule, columns: Mapping[str, Any], closed: Expr, target: str) -> Any:
    """At which points of the columns an error is in what was given."""
    if any(map(is_slow, nodes(expand(closed)))):
        return np.zeros(len(next(iter(columns.values()))), dtype=bool)
    return _given_so(rule, QuickMachine(columns, np.float32, target), closed)


def _given_so(rule: Rule, machine: QuickMachine, closed: Expr) -> Any:
    """Where the error is no more than the last places of the inputs change. (A 0 is an
    error as any other: what cancels wholly nearly cancelled.)"""
    value, truth = _both(machine, closed)
    felt = _felt(rule, machine, closed)
    with np.errstate(all="ignore"):
        off = np.abs(value - truth) / _unit(truth)
        return (felt > _ILL) & (off <= _FORGIVEN * felt)


def _turns(machine: Machine, closed: Expr) -> Any:
    """Where float64 takes another branch: there the function has a step or a seam, and
    which side of it a rounded operand is on is no error of the form."""
    found = np.zeros(len(machine), dtype=bool)
    for node in nodes(expand(closed)):
        if isinstance(node, Select):
            narrow, wide = machine.run(node.condition), machine.in_double()
            found |= np.asarray(narrow) != np.asarray(wide.run(node.condition))
    return found


def agree(rule: Rule, short: Expr, usual: Expr) -> bool:
    """Whether ``short`` in float64, rounded once, is in nearly all points what ``usual`` is
    there: where the sample is thin, much may be lost unseen."""
    if any(is_slow(n) for form in (short, usual) for n in nodes(expand(form))):
        return True
    drawn, core = _columns(rule)
    machine = QuickMachine(drawn, np.float32).in_double()
    with np.errstate(all="ignore"):
        value = np.float64(np.float32(machine.run(short)))
    off = _ulp(value, np.float64(machine.run(usual))) > _AGREEING
    return all(off[part].mean() <= _RARE for part in (core, ~core) if part.any())


def _off(machine: Machine, closed: Expr) -> Any:
    """How far float32 is off float64, in ULP; infinitely where it is not finite or 0 and
    float64 a normal number."""
    return _ulp(*_both(machine, closed))


def _ulp(value: Any, truth: Any) -> Any:
    limits, size = np.finfo(np.float32), np.abs(truth)
    with np.errstate(all="ignore"):
        off = np.abs(value - truth) / _unit(truth)
    off = np.where(size >= _FULL * limits.tiny, off, 0.0)
    off = np.where(~np.isfinite(value) | (value == 0), np.inf, off)
    return np.where((size >= limits.tiny) & (size <= limits.max), off, 0.0)


def _both(machine: Machine, closed: Expr) -> tuple[Any, Any]:
    """In float32 and in float64."""
    with np.errstate(all="ignore"):
        value = np.float64(machine.run(closed))
        return value, np.float64(machine.in_double().run(closed))


def _unit(truth: Any) -> Any:
    """The last place in float32."""
    size = np.maximum(np.abs(truth), np.finfo(np.float32).tiny)
    return np.float64(np.spacing(np.float32(size)))


def _felt(rule: Rule, machine: QuickMachine, closed: Expr) -> Any:
    """What the last places of the floating inputs change, in ULP, all together."""
    truth = _both(machine, closed)[1]
    total = np.zeros(len(machine))
    used = names(closed)
    with np.errstate(all="ignore"):
        for variable in rule.inputs:
            if variable.name in used and variable.kind in (Kind.FLOAT, Kind.NOGRAD):
                moved = machine.moved(variable.name).in_double().run(closed)
                total += np.nan_to_num(np.abs(np.float64(moved) - truth) / _unit(truth))
    return total


def _worst(off: Any, least: float) -> list[int]:
    order = np.argsort(-off, kind="stable")[:_HARD]
    return [int(n) for n in order if off[n] > least]


def _points(rule: Rule, drawn: dict[str, Any], core: Any, chosen: list[int]) -> Points:
    """The chosen rows. Where the function is not defined the truth will say so."""
    columns = {n: c[chosen] for n, c in drawn.items()}
    rows = tuple({n: float(c[k]) for n, c in drawn.items()} for k in chosen)
    upstream = frozenset(f"d{output.name}" for output in rule.outputs)
    floats = [v.name for v in rule.inputs if v.kind in (Kind.FLOAT, Kind.NOGRAD)]
    size = np.max([np.abs(columns[n]) for n in floats], axis=0)
    return Points(columns, rows, core[chosen], upstream, size)


@lru_cache(maxsize=8)
def _columns(rule: Rule) -> tuple[dict[str, Any], Any]:
    """The points at which all that is assumed holds, and which lie in the core."""
    random = np.random.Generator(np.random.PCG64(_SEED))
    strata = [_inside(rule, random, span) for span in _SPANS]
    drawn = {n: np.concatenate([s[n] for s in strata]) for n in strata[0]}
    core = np.ones(len(next(iter(drawn.values()))), dtype=bool)
    for variable in rule.inputs:
        if variable.kind in (Kind.FLOAT, Kind.NOGRAD):
            size = np.abs(drawn[variable.name])
            core &= (size >= CORE[0]) & (size <= CORE[1]) | (size == 0)
    return drawn, core


def _inside(rule: Rule, random: Any, span: tuple[int, int]) -> dict[str, Any]:
    """Drawing goes on, while few are inside."""
    parts: list[dict[str, Any]] = []
    for _ in range(_TURNS):
        drawn = _drawn(rule, random, span)
        machine = Machine(drawn, np.float32)
        inside = np.ones(_COUNT, dtype=bool)
        for assume in rule.assumes:
            if not assume.indices:
                inside &= np.asarray(machine.run(assume.condition), dtype=bool)
        parts.append({name: column[inside] for name, column in drawn.items()})
        if 2 * sum(len(p[rule.inputs[0].name]) for p in parts) > _COUNT:
            break
    return {n: np.concatenate([p[n] for p in parts]) for n in parts[0]}


def _drawn(rule: Rule, random: Any, span: tuple[int, int]) -> dict[str, Any]:
    known = sample(rule, _SIMPLE)
    found: dict[str, Any] = {}
    floats: list[str] = []
    for variable in rule.inputs:
        simple = [float(p[variable.name]) for p in known] or [1.0]
        if variable.kind in (Kind.FLOAT, Kind.NOGRAD):
            found[variable.name] = _column(random, np.array(simple), span)
            floats.append(variable.name)
        else:
            found[variable.name] = _given(random, variable, simple)
    _relate(random, found, floats)
    for output in rule.outputs:
        found[f"d{output.name}"] = np.ones(_COUNT, dtype=np.float32)
    return found


def _given(random: Any, variable: Input, simple: list[float]) -> Any:
    """Conditions, whole numbers, and statics with their defaults."""
    if variable.default is not None:
        simple = [float(variable.default)]
    dtype = np.bool_ if variable.kind is Kind.BOOL else np.float32
    return random.choice(simple, _COUNT).astype(dtype)


def _column(random: Any, simple: Any, span: tuple[int, int]) -> Any:
    """Most by their exponents, the rest beside numbers that the rule knows."""
    bits = _by_exponent(random, span)
    places = random.choice(np.append(simple, [1.0, -1.0, 2.0]), _COUNT)
    near = places * (1.0 + _by_exponent(random, (-24, -1)))
    return np.float32(np.where(random.random(_COUNT) < 1 / 8, near, bits))


def _by_exponent(random: Any, span: tuple[int, int]) -> Any:
    sign = random.choice([-1.0, 1.0], _COUNT)
    return sign * np.ldexp(1.0 + random.random(_COUNT), random.integers(*span, _COUNT))


def _relate(random: Any, found: dict[str, Any], floats: list[str]) -> None:
    for name in floats[1:]:
        others = [f for f in floats if f != name]
        source = found[others[int(random.integers(len(others)))]]
        slack = np.float32(1.0 + _by_exponent(random, (-26, -1)))
        kind = random.integers(0, _KINDS, _COUNT)
        ways = (source, source * slack, -source * slack, np.float32(1.0) - source)
        found[name] = np.select([kind == n for n in range(4)], ways, found[name])
