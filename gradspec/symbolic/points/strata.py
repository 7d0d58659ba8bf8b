"""Points at which a rule is measured: all of a 16-bit format, else strata by bits.

"whole": exponents of the whole format are equally likely. "core": magnitudes between
2**-12 and 128. Added to these are simple numbers, both sides of every threshold,
numbers next to integers and to the ends of the domain, and, for several inputs, pairs
that are nearly equal, nearly opposite, nearly complements of 1, and of extreme ratio.
The same rule has the same points every time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.ir.rule import Rule
from gradspec.symbolic.enclose import program
from gradspec.symbolic.points.formats import (
    HALF,
    Array,
    are_moderate,
    by_exponent,
    every,
    exponents,
    largest,
    least_normal,
    numbers,
    ordinals,
    rounded,
)
from gradspec.symbolic.points.simple import sample

_CORE_EXPONENTS = (-12, 7)
_SIMPLE = 80
_ROUNDS = 24
_CHECK_BITS = 128
_SHIFTS = tuple(2**k for k in range(0, 24, 2))
"""Steps of the format at which neighbours of a special place are taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """``columns`` of the tensor inputs, one row a point; ``statics`` are fixed;
    ``core`` tells the rows that lie in the core.
    """

    columns: Mapping[str, Array]
    statics: Mapping[str, Fraction]
    core: Array

    def __len__(self) -> int:
        return len(self.core)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each point by name, statics included."""
        names = tuple(self.columns)
        lists = (column.tolist() for column in self.columns.values())
        for values in zip(*lists, strict=True):
            yield {**self.statics, **dict(zip(names, values, strict=True))}


def points(rule: Rule, dtype: str, count: int, simple: int = _SIMPLE) -> Sample:
    """About ``count`` points in each stratum and ``simple`` ones, with neighbours, all
    within the rule's assumptions."""
    statics = _statics(rule)
    drawn = _Draw(rule, dtype, statics, simple)
    if dtype in HALF and len(drawn.floats) == 1 and len(rule.tensor_inputs) == 1:
        chosen = drawn.inside({drawn.floats[0]: every(dtype)})
    else:
        parts = [drawn.specials(), drawn.stratum(count, _CORE_EXPONENTS)]
        parts.append(drawn.stratum(count, exponents(dtype)))
        chosen = {n: np.concatenate([p[n] for p in parts]) for n in parts[0]}
    return as_sample(rule, chosen, statics)


def as_sample(
    rule: Rule, columns: Mapping[str, Array], statics: Mapping[str, Fraction]
) -> Sample:
    """Columns with their core: every float is 0 or of a moderate size."""
    reals = (columns[name] for name in rule.real_inputs)
    core = are_moderate(reals, len(next(iter(columns.values()))))
    return Sample(columns, statics, core)


def beside(ordinal: int, dtype: str) -> Array:
    """A number, its neighbours and numbers at growing distances on both sides."""
    top = int(ordinals(np.array([largest(dtype)]), dtype)[0])
    near = [ordinal + s * k for k in (0, *_SHIFTS) for s in (1, -1)]
    values = numbers(np.unique([n for n in near if -top <= n <= top]), dtype)
    return values[(np.abs(values) >= least_normal(dtype)) | (values == 0)]


def is_inside(rule: Rule, statics: Mapping[str, Fraction]) -> Any:
    """A predicate: the assumptions hold at a point."""
    conditions = [a.condition for a in rule.assumes if not a.indices]
    compiled = program(*conditions)

    def holds(point: Mapping[str, Any]) -> bool:
        found = compiled.run({**statics, **point}, _CHECK_BITS)
        return all(value is True for value in found)

    return holds if conditions else lambda point: True


def _statics(rule: Rule) -> dict[str, Fraction]:
    """Statics as a caller passes them: the doubles nearest to the defaults."""
    known = sample(rule, _SIMPLE)
    first = known[0] if known else {}
    return {
        i.name: Fraction(float(first.get(i.name, i.default or 1)))
        for i in rule.static_inputs
    }


class _Draw:
    """Draws rows of a rule in a format."""

    def __init__(
        self, rule: Rule, dtype: str, statics: Mapping[str, Fraction], simple: int
    ) -> None:
        self.dtype = dtype
        self._rule, self._statics = rule, statics
        self._random = np.random.Generator(np.random.PCG64(20260101))
        self._holds = is_inside(rule, statics)
        self.floats = rule.real_inputs
        known = sample(rule, simple)
        self._known = {
            i.name: rounded([float(p[i.name]) for p in known] or [1.0], dtype)
            for i in rule.tensor_inputs
        }

    def inside(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        """The rows at which the assumptions hold."""
        names = tuple(columns)
        lists = (columns[name].tolist() for name in names)
        rows = (dict(zip(names, r, strict=True)) for r in zip(*lists, strict=True))
        keep = np.fromiter((self._holds(row) for row in rows), dtype=bool)
        return {name: column[keep] for name, column in columns.items()}

    def specials(self) -> dict[str, Array]:
        """The simple points of the checks, and steps of the format beside them."""
        columns = dict(self._known)
        parts = [columns]
        for name in self.floats:
            for shift in (-2, -1, 1, 2):
                moved = numbers(ordinals(columns[name], self.dtype) + shift, self.dtype)
                parts.append({**columns, name: moved})
        joined = {n: np.concatenate([p[n] for p in parts]) for n in columns}
        return self.inside(_ordinary(joined, self.dtype))

    def stratum(self, count: int, span: tuple[int, int]) -> dict[str, Array]:
        """Rows by their exponents; drawing goes on while too few are inside."""
        found: list[dict[str, Array]] = []
        total = 0
        for _ in range(_ROUNDS):
            rows = self.inside(_ordinary(self._rows(count, span), self.dtype))
            found.append(rows)
            total += len(next(iter(rows.values())))
            if total >= count:
                break
        return {n: np.concatenate([f[n] for f in found])[:count] for n in found[0]}

    def _rows(self, count: int, span: tuple[int, int]) -> dict[str, Array]:
        columns = {}
        for variable in self._rule.tensor_inputs:
            known = self._known[variable.name]
            if variable.name in self.floats:
                columns[variable.name] = self._column(count, span, known)
            else:
                columns[variable.name] = self._random.choice(known, count)
        if len(self.floats) > 1:
            self._relate(columns, count)
        return {n: rounded(c, self.dtype) for n, c in columns.items()}

    def _column(self, count: int, span: tuple[int, int], known: Array) -> Array:
        """Numbers, seven in eight by exponent, the others near constants of the
        rule."""
        bits = by_exponent(self._random, count, span)
        places = self._random.choice(np.append(known, [1.0, -1.0, 2.0]), count)
        near = places * (1.0 + by_exponent(self._random, count, (-24, -1)))
        return np.where(self._random.random(count) < 0.125, near, bits)

    def _relate(self, columns: dict[str, Array], count: int) -> None:
        """Relate a third of the rows: one input near another one, or near its
        opposite."""
        kind = self._random.integers(0, 12, count)
        one, other = self._random.permuted(np.tile(self.floats, (count, 1)), axis=1).T[
            :2
        ]
        slack = 1.0 + by_exponent(self._random, count, (-26, -1))
        for name in self.floats:
            for source in self.floats:
                mine = (one == name) & (other == source)
                value = columns[source]
                columns[name] = np.where(mine & (kind == 0), value, columns[name])
                columns[name] = np.where(
                    mine & (kind == 1), value * slack, columns[name]
                )
                columns[name] = np.where(
                    mine & (kind == 2), -value * slack, columns[name]
                )
                columns[name] = np.where(mine & (kind == 3), 1.0 - value, columns[name])


def _ordinary(columns: Mapping[str, Array], dtype: str) -> dict[str, Array]:
    """The rows of zeros and normal numbers: processors may flush subnormal ones."""
    keep = np.ones(len(next(iter(columns.values()))), dtype=bool)
    for column in columns.values():
        size = np.abs(column)
        keep &= (size >= least_normal(dtype)) & (size <= largest(dtype)) | (size == 0)
    return {name: column[keep] for name, column in columns.items()}
