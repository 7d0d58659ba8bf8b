"""Many more points than forms compete on: some thousand of a rule, drawn at random.

The sample on which forms compete has some hundred points, for each of which balls give
the truth. Where several inputs nearly cancel, or roundings happen to add up, is seldom
among them. Here a form is computed at some thousand points in float32 and in float64, which
takes milliseconds. Two questions are asked of them: at which is a form hard (`hard.py`), and do
two forms agree (`agree.py`).
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from gradspec.ir.rule import Input, Kind, Rule
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import CORE
from gradspec.symbolic.sampling import sample

_COUNT = 5000
"""Points of each stratum."""

_TURNS = 8

_SCARCE = 500
"""Fewer are drawn once more, between points that are known to be inside."""

_SPANS = ((-12, 7), (-120, 120))
"""Exponents: of the core (see `points.CORE`), and nearly all that the format has."""

_SIMPLE = 80

_SIMPLEST = (1.0, -1.0, 0.5, 2.0)

_KINDS = 12
"""One row in so many has two equal inputs; as many have nearly equal ones, nearly
opposite ones, and complements of 1."""

_SEED = 22

RARE = 0.001
"""Share of the points at which a result may be bad far out: every product of three
factors overflows on the way somewhere."""


@lru_cache(maxsize=8)
def columns(rule: Rule) -> tuple[dict[str, Any], Any]:
    """The points at which all that is assumed holds, and which lie in the core."""
    random = np.random.Generator(np.random.PCG64(_SEED))
    strata = [_inside(rule, random, span) for span in _SPANS]
    drawn = {n: np.concatenate([s[n] for s in strata]) for n in strata[0]}
    return drawn, core_of(rule, drawn)


def core_of(rule: Rule, drawn: dict[str, Any]) -> Any:
    """Where all numbers are of moderate size, or 0."""
    core = np.ones(len(next(iter(drawn.values()))), dtype=bool)
    for variable in rule.inputs:
        if variable.kind in (Kind.FLOAT, Kind.NOGRAD):
            size = np.abs(drawn[variable.name])
            core &= (size >= CORE[0]) & (size <= CORE[1]) | (size == 0)
    return core


@lru_cache(maxsize=8)
def pointed(rule: Rule) -> tuple[dict[str, Any], Any]:
    """The same, and as many rows in which inputs are simple numbers exactly: ``log(a)`` is 0
    at 1, whatever stands beside it."""
    drawn, core = columns(rule)
    random = np.random.Generator(np.random.PCG64(_SEED + 1))
    floats = [v.name for v in rule.inputs if v.kind in (Kind.FLOAT, Kind.NOGRAD)]
    found = dict(drawn)
    for name in floats:
        simple = np.float32(random.choice(_SIMPLEST, len(core)))
        taken = random.random(len(core)) < 1 / len(floats)
        found[name] = np.where(taken, simple, drawn[name])
    where = inside(rule, found)
    every = {n: np.concatenate([drawn[n], c[where]]) for n, c in found.items()}
    return every, core_of(rule, every)


def _inside(rule: Rule, random: Any, span: tuple[int, int]) -> dict[str, Any]:
    """Drawing goes on, while few are inside."""
    parts: list[dict[str, Any]] = []
    for _ in range(_TURNS):
        drawn = _drawn(rule, random, span)
        where = inside(rule, drawn)
        parts.append({name: column[where] for name, column in drawn.items()})
        if 2 * sum(len(p[rule.inputs[0].name]) for p in parts) > _COUNT:
            break
    if sum(len(p[rule.inputs[0].name]) for p in parts) < _SCARCE:
        drawn = _drawn(rule, random, None)
        where = inside(rule, drawn)
        parts.append({name: column[where] for name, column in drawn.items()})
    return {n: np.concatenate([p[n] for p in parts]) for n in parts[0]}


def inside(rule: Rule, drawn: dict[str, Any]) -> Any:
    """Where all that is assumed holds."""
    machine = Machine(drawn, np.float32).in_double()  # the assumption, unrounded
    found = np.ones(len(drawn[rule.inputs[0].name]), dtype=bool)
    for assume in rule.assumes:
        if not assume.indices:
            found &= np.asarray(machine.run(assume.condition), dtype=bool)
    return found


def _drawn(rule: Rule, random: Any, span: tuple[int, int] | None) -> dict[str, Any]:
    """By exponents, or, without a span, between what are simple points of the rule."""
    known = sample(rule, _SIMPLE)
    found: dict[str, Any] = {}
    floats: list[str] = []
    for variable in rule.inputs:
        simple = [float(p[variable.name]) for p in known] or [1.0]
        if variable.kind in (Kind.FLOAT, Kind.NOGRAD):
            column = _between if span is None else partial(_column, span=span)
            found[variable.name] = column(random, np.array(simple))
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
    with np.errstate(over="ignore"):  # a rule may know numbers that float32 has not
        near = places * (1.0 + _by_exponent(random, (-24, -1)))
        return np.float32(np.where(random.random(_COUNT) < 1 / 8, near, bits))


def _between(random: Any, simple: Any) -> Any:
    one, other = random.choice(simple, (2, _COUNT))
    with np.errstate(over="ignore"):
        return np.float32(one + (other - one) * random.random(_COUNT))


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
