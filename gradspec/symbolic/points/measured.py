"""Rules with the points at which their candidates are measured: elementwise rules in two
formats, indexed ones at a few small sizes. All points are inside the assumptions.

They are the simple points of the checks with both sides of every threshold, a ladder of
magnitudes up to where a square or an exponential leaves the range, and points drawn by
their bits, so that every power of two has its share. Several inputs are also nearly
equal, nearly opposite, and at extreme ratios.

The elements of a vector drawn one by one are never close to each other, nor all zero.
So for vectors these points are joined by some with a common offset and a small spread
(where a variance loses its digits), large and tiny ones (where a norm overflows or
vanishes), and the vector 0. Differences lose most where all elements of all inputs have
an offset in common, or are pairs in wide data: no candidate may lose more there than
the formula as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import compress, islice, permutations
from random import Random
from typing import Any

import numpy as np

from gradspec.ir import unroll
from gradspec.ir.elements import EVALUATED, Expansion, OutOfRange
from gradspec.ir.expr import Apply, Expr, Ref
from gradspec.ir.products import conjuncts
from gradspec.ir.rule import UNBOUNDED, Kind, Rule
from gradspec.ir.unroll import axis_names, count, expansion, index_inputs, unroll_by
from gradspec.ir.walk import closed_cotangents, closed_outputs, expand, nodes
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.borders.roots import coincidences
from gradspec.symbolic.borders.surfaces import surfaces
from gradspec.symbolic.enclose import is_defined, program
from gradspec.symbolic.points.domain import Signs, signs
from gradspec.symbolic.points.formats import are_moderate, by_exponent
from gradspec.symbolic.points.simple import survey, usual_count

_BITS = (64, 512, 4096)
"""Precisions at which a value is looked for: expm1(x) / x at 1e-30 takes 100 bits where
it is written with exp, at 1e-300 a thousand.
"""
_GAPS = 12
"""The largest number of sampled points at which the rule is undefined."""

_TURNS, _SPARE = 3, 4
"""Rounds of drawing while too few points are inside, and draws per missing point."""

_WIDEST = 40
"""Most drawn magnitudes lie in 2**-40 … 2**40, a quarter anywhere in the format."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The sampling of a format: every ``every``-th of the simple points of the checks
    (no more than ``simple`` of them), ``drawn`` points by bits, ``extreme`` ones at
    extreme ratios, and ``rungs`` of magnitudes, of which at most ``ladder`` points are
    made, the most telling ones first; ``hard``: also the hardest of many.
    """

    work: Any
    simple: int
    every: int
    drawn: int
    extreme: int
    ladder: int
    hard: bool
    rungs: tuple[float, ...]

    @property
    def digits(self) -> int:
        return _digits(self.work)

    @property
    def exponents(self) -> tuple[int, int]:
        """The least exponent, and the largest that leaves room for a cotangent."""
        limits = np.finfo(self.work)
        return int(limits.minexp), int(limits.maxexp) - 4


@cache
def _digits(work: Any) -> int:
    """Asked for several times for each number that is drawn."""
    return int(np.finfo(work).nmant)


SINGLE = Grid(
    *(np.float32, 48, 1, 140, 80, 96, True),
    (
        *(100.0, 20.0, 1e-6, 50.0, 10.0, 1e-3, 1e-10, 1e3, 0.1, 1e5, 1e10, 1e20),
        *(1e30, 6e37, 88.5, 1e-30, 1e25, 1e-20, 1e37, 1e-37, 1e15, 104.0),
        *(2.5e38, 11.3, 7.7, 5.3, 57.3),
    ),
)
"""exp leaves float32 at 88.7 and 103.9, squares at 1.8e19, cubes at 7e12. The square of
10 is exact: digits lost in exponentials of squares show only at numbers that are not
round.
"""

DOUBLE = Grid(
    *(np.float64, 48, 2, 50, 30, 64, False),
    (
        *(100.0, 1e-6, 1e160, 20.0, 1e-10, 709.0, 1e-3, 1e300, 40.0, 1e3, 1e-160),
        *(1e10, 3e307, 10.0, 1e-300, 1e20, 745.0, 1e-17, 88.5, 1e200, 1e5, 1e-200),
        *(1.5e308, 1e104, 1e155, 1e-155, 1e250, 31.3, 11.3, 17.7, 5.3, 257.3),
    ),
)
"""exp leaves float64 at 709.8 and 745.2, squares at 1.3e154, cubes at 5.6e102."""

ELEMENTS = replace(SINGLE, simple=12, drawn=60, extreme=40, ladder=64, hard=False)
"""For the elements of indexed rules, of which there are many."""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """``columns`` for arithmetic and ``rows`` for balls hold the same numbers.
    ``core``: the points with moderate inputs only; ``size``: the magnitude of the
    largest input; ``defined``: the points at which all outputs have values;
    ``alike``: those of elements that have an offset in common, all or in pairs;
    ``floating``: the inputs whose roundings count; ``upstream``: names of cotangents,
    of which each point has one at 1 and the others at 0; ``signs``: those assumed.
    """

    columns: Mapping[str, Any]
    rows: tuple[Mapping[str, float], ...]
    core: Any
    size: Any
    defined: Any
    alike: Any
    floating: frozenset[str]
    upstream: frozenset[str]
    signs: Signs

    def __len__(self) -> int:
        return len(self.rows)

    def subset(self, where: Any) -> Points:
        """The points at which the mask ``where`` is True."""
        return replace(
            self,
            columns={name: column[where] for name, column in self.columns.items()},
            rows=tuple(compress(self.rows, where)),
            core=self.core[where],
            size=self.size[where],
            defined=self.defined[where],
            alike=self.alike[where],
        )


@lru_cache(maxsize=8)
def points(rule: Rule, grid: Grid = SINGLE) -> Points:
    """The points for an elementwise rule, the same ones on every call."""
    known = survey(rule, min(usual_count(rule), grid.simple))
    gaps = known.undefined[:_GAPS]
    rows = [_round(row, grid) for row in (*gaps, *known.points[:: grid.every])]
    like = [_round(row, grid) for row in known.points]
    if like:
        random = Random(20)
        rows += _sound(rule, list(_ladder(rule, like, grid)), grid)
        rows += _draw_points(rule, random, like, grid)
        if len(rule.real_inputs) > 1:
            rows += _sound(rule, list(_extreme(rule, random, like, grid)), grid)
            if grid is not ELEMENTS:
                rows += _sound(rule, list(_ends(rule, like, grid)), grid)
        if grid.hard:
            rows += _sound(rule, list(_hardest(rule, like)), grid)
    return as_points(rule, rows, grid.work, len(gaps))


def as_points(
    rule: Rule, rows: list[dict[str, float]], work: Any, gaps: int = 0, alike: int = 0
) -> Points:
    """Rows of numbers of a format as points; cotangents are set here. At the first
    ``gaps`` of them some output has no value; the last ones are ``alike``.
    """
    upstream = [*rule.cotangents]
    for number, row in enumerate(rows):
        for place, name in enumerate(upstream):
            row[name] = 1.0 if number % len(upstream) == place else 0.0
    columns = _columns(rule, rows, work)
    reals = [columns[name] for name in rule.real_inputs if rows]
    core = are_moderate(reals, len(rows))
    largest = np.max([np.zeros(len(rows), dtype=work), *map(np.abs, reals)], axis=0)
    defined = np.arange(len(rows)) >= gaps
    floating = frozenset(rule.real_inputs) - _tied(rule)
    every = frozenset(output.cotangent for output in rule.outputs)
    close = np.arange(len(rows)) >= len(rows) - alike
    found = core, largest, defined, close, floating, every, signs(rule)
    return Points(columns, tuple(rows), *found)


def _tied(rule: Rule) -> frozenset[str]:
    """The names in equations that hold: their roundings would leave the domain."""
    parts = [part for one in rule.assumes for part in conjuncts(one.condition)]
    ties = [part for part in parts if isinstance(part, Apply) and part.op == "eq"]
    return frozenset(n.name for tie in ties for n in nodes(tie) if isinstance(n, Ref))


def _columns(rule: Rule, rows: list[dict[str, float]], work: Any) -> dict[str, Any]:
    bools = {variable.name for variable in rule.inputs if variable.kind is Kind.BOOL}
    with np.errstate(over="ignore"):
        found = {
            name: np.array(
                [row[name] for row in rows], np.bool_ if name in bools else work
            )
            for name in (rows[0] if rows else ())
        }
        for static in rule.static_inputs if rows else ():
            column = found[static.name]  # in float32 it is infinite already
            column[np.abs(column) == float(UNBOUNDED)] *= np.inf
    return found


def _round(row: Mapping[str, Any], grid: Grid) -> dict[str, float]:
    with np.errstate(over="ignore"):
        return {
            name: float(value if abs(value) == UNBOUNDED else grid.work(float(value)))
            for name, value in row.items()
        }


# --- inside the assumptions --------------------------------------------------------------


def _sound(
    rule: Rule, rows: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """The rows at which all assumptions hold and the outputs are defined."""
    if not rows:
        return
    machine = Machine(_columns(rule, rows, grid.work), grid.work)
    kept = inside(rule, machine)
    forms = tuple(closed_outputs(rule).values())
    finite = _are_finite(forms, machine.in_double())
    outputs = program(*forms)
    for row, keep, sure in zip(rows, kept.tolist(), finite.tolist(), strict=True):
        values = (outputs.run(row, bits) for bits in _BITS)
        if keep and (sure or any(all(map(is_defined, found)) for found in values)):
            yield row


def inside(rule: Rule, machine: Machine) -> Any:
    """The points at which all assumptions hold."""
    kept = np.ones(len(machine), dtype=bool)
    for assume in rule.assumes:
        if not assume.indices:
            kept &= np.asarray(machine.run(assume.condition), dtype=bool)
    return kept


def _are_finite(forms: tuple[Expr, ...], machine: Machine) -> Any:
    """Points at which all forms are finite in float64, so that balls are not needed."""
    finite = np.ones(len(machine), dtype=bool)
    for form in forms:
        if any(map(_is_slow, nodes(expand(form)))):
            return np.zeros(len(machine), dtype=bool)
        finite &= np.isfinite(machine.run(form))
    return finite


# --- kinds of points ---------------------------------------------------------------------


def _ladder(
    rule: Rule, like: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """Plain magnitudes for one input after the other: a fault is then reported at ``x =
    100`` rather than at some odd number.
    """
    floats = rule.real_inputs
    for size in grid.rungs[: grid.ladder // max(1, 2 * len(floats))]:
        for position, name in enumerate(floats):
            for turn, sign in enumerate((1.0, -1.0)):
                base = like[(3 * position + turn) % len(like)]
                yield base | {name: float(grid.work(sign * size))}


def _draw_points(
    rule: Rule, random: Random, like: list[dict[str, float]], grid: Grid
) -> list[dict[str, float]]:
    """Points by their bits."""
    found: list[dict[str, float]] = []
    for turn in range(_TURNS):
        missing = grid.drawn - len(found)
        many = min(_SPARE * missing if turn else missing, grid.drawn * (turn + 1))
        rows = [_draw(rule, random, like, grid) for _ in range(many)]
        found += islice(_sound(rule, rows, grid), missing)
        if len(found) == grid.drawn:
            break
    return found


def _draw(
    rule: Rule, random: Random, like: list[dict[str, float]], grid: Grid
) -> dict[str, float]:
    """Statics and conditions as sampled, floating inputs by their bits."""
    row = dict(like[random.randrange(len(like))])
    drawn: list[str] = []
    for name in rule.real_inputs:
        number = _number(random, grid)
        if drawn and random.randrange(4) == 0:
            number = _number_beside(row[random.choice(drawn)], random, grid)
        row[name] = number
        drawn.append(name)
    return row


def _number_beside(other: float, random: Random, grid: Grid) -> float:
    """A number close to another one, to its opposite, or to its complement to 1."""
    step = 2.0 ** random.randrange(-grid.digits - 2, 0)
    near = other * (1.0 + (step if random.getrandbits(1) else -step))
    number = random.choice((other, near, near, -near, 1.0 - other))
    return float(grid.work(number if abs(number) < 2.0 ** grid.exponents[1] else other))


def _number(random: Random, grid: Grid) -> float:
    """A number by its exponent; one in four is close to an integer."""
    sign = _sign(random)
    mantissa = 1.0 + random.getrandbits(grid.digits) / 2.0**grid.digits
    kind = random.randrange(8)
    if kind == 0:
        return sign * mantissa * 2.0 ** random.randrange(*grid.exponents)
    if kind < 3:
        return sign * mantissa * 2.0 ** random.randrange(-_WIDEST, _WIDEST)
    if kind < 6:
        return sign * mantissa * 2.0 ** random.randrange(-12, 7)
    near = sign * float(random.choice((1, 1, 1, 2, 3)))
    step = mantissa * 2.0 ** random.randrange(-grid.digits, -1)
    return float(grid.work(near + (step if random.getrandbits(1) else -step)))


def _sign(random: Random) -> float:
    return -1.0 if random.getrandbits(1) else 1.0


def _extreme(
    rule: Rule, random: Random, like: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """Several inputs of any exponent of the format, each its own; one in four has an
    input where an exponential leaves the range."""
    floats = rule.real_inputs
    for number in range(2 * grid.extreme):
        row = dict(like[number % len(like)])
        reach = grid.exponents[1] if number % 2 else _WIDEST
        for name in floats:
            mantissa = 1.0 + random.getrandbits(grid.digits) / 2.0**grid.digits
            row[name] = (
                _sign(random) * mantissa * 2.0 ** random.randrange(-reach, reach)
            )
        if number % 4 == 2:
            row[random.choice(floats)] = _sign(random) * random.randrange(80, 110)
        yield row


def _ends(
    rule: Rule, like: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """An input at 0 beside one far out: there a product may be 0 times infinity."""
    far = float(grid.work(max(grid.rungs)))
    for zero, large in permutations(rule.real_inputs[:_PAIRED], 2):
        for size in (far, -far):
            yield like[0] | {zero: 0.0, large: size}


_PAIRED = 4  # inputs of which one is 0 and another far out
_MANY, _WORST = 2000, 6
"""Points drawn in search of hard ones, and the number kept for each quantity."""

_UNITS = 3.0  # of the last place, beyond which a point is hard


def _hardest(rule: Rule, like: list[dict[str, float]]) -> Iterator[dict[str, float]]:
    """The points of the core, out of many, at which the written form in float32 is
    farthest from the same in float64: a loss at one point in a thousand is seldom in a
    sample.
    """
    forms = {**closed_outputs(rule), **closed_cotangents(rule)}
    random = np.random.Generator(np.random.PCG64(22))
    columns = {n: np.array([row[n] for row in like]) for n in like[0]}
    columns = {n: random.choice(column, _MANY) for n, column in columns.items()}
    for name in rule.real_inputs:
        columns[name] = by_exponent(random, _MANY, (-12, 7))
    for output in rule.outputs:
        columns[output.cotangent] = np.ones(_MANY)
    bools = {variable.name for variable in rule.inputs if variable.kind is Kind.BOOL}
    with np.errstate(over="ignore"):  # an unbounded static
        single = {
            n: c.astype(np.bool_ if n in bools else np.float32)
            for n, c in columns.items()
        }
    machine = Machine(single)
    kept = inside(rule, machine)
    found: dict[int, None] = {}
    for form in forms.values():
        if any(map(_is_slow, nodes(expand(form)))):
            continue
        with np.errstate(all="ignore"):
            narrow = machine.run(form).astype(np.float64)
            wide = machine.in_double().run(form)
            size = np.clip(np.abs(wide), np.finfo(np.float32).tiny, 2.0**127)
            off = np.abs(narrow - wide) / np.spacing(size.astype(np.float32))
        off = np.where(kept & np.isfinite(wide), np.nan_to_num(off, nan=np.inf), 0.0)
        worst = np.argsort(-off, kind="stable")[:_WORST]
        found |= dict.fromkeys(n for n in worst.tolist() if off[n] > _UNITS)
    for number in found:
        yield {name: float(column[number]) for name, column in single.items()}


def _is_slow(node: Expr) -> bool:
    return isinstance(node, Apply) and primitive(node.op).model is None


_BESIDE = 12  # points beside which inputs coincide
_SIZES = (3, 1)
_VISITED = 50_000  # nodes beyond which unrolling takes more than seconds
_LARGEST = 7
_MOST = 24
"""The largest number of elements of inputs and outputs; beyond it every axis but the
first is short.
"""

_ROWS = 80
_OFFSETS = (100.0, 1000.0, -1000.0, 10.0, 1e4, -0.5, 1e6)
_STEPS = (0.0, 1.0, -0.25)
_SCALES = (0.0, 1e-25, 1e20, 1e30, 1e-3, 50.0, 1e-40)
_PARTS = (1.0, -0.5, 0.75, 0.25)
_ALIKE = (100.0, 0.0, 1.0), (1000.0, 0.0, 1.0), (0.0, 90.0, 0.01)
"""An offset in common, the width of the data, and how far rows are apart in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A rule at one choice of sizes (none for an elementwise rule), with points for its
    elements in the format ``work``. ``exact`` expands its expressions as defined,
    ``evaluated`` as a target evaluates them.
    """

    sizes: Mapping[str, int]
    points: Points
    exact: Expansion
    evaluated: Expansion
    work: Any = np.float32

    def written_out(self, rule: Rule, by: Expansion) -> Rule:
        """``rule`` unrolled to an elementwise rule of its elements."""
        return unroll_by(rule, by).rule if rule.has_axes else rule


def samples(rule: Rule) -> tuple[Sample, ...]:
    """Samples with three elements an axis (more where indices reach further), and with
    one.
    """
    found = (sample for size in _SIZES if (sample := _sample(rule, size)) is not None)
    return tuple(found)


def scalar_sample(rule: Rule, chosen: Points, work: Any = np.float32) -> Sample:
    """An elementwise rule at points."""
    evaluated = expansion(rule, {}, None, EVALUATED)
    return Sample({}, chosen, expansion(rule, {}), evaluated, work)


def scalar_samples(rule: Rule) -> tuple[Sample, ...]:
    """An elementwise rule in float32 and in float64; none if no point is inside."""
    single = points(rule)
    if not len(single):
        return ()
    double = scalar_sample(rule, points(rule, DOUBLE), np.float64)
    return scalar_sample(rule, single), double


def coincident_samples(rule: Rule) -> Iterator[Sample]:
    """An elementwise rule beside points at which inputs coincide, in both formats: half
    of the digits of differences are left there."""
    names = tuple(rule.real_inputs)
    met = [s for form in closed_outputs(rule).values() for s in surfaces(expand(form))]
    bases = survey(rule, usual_count(rule)).points[:1] if len(names) > 1 else ()
    every = [one for base in bases for one in coincidences(base, names, met)]
    for grid in (SINGLE, DOUBLE):
        step = 2.0 ** -(grid.digits // 2)
        rows = [_round(one, grid) for one in every[:_BESIDE]]
        for row in rows:
            for number, name in enumerate(names):
                part = step * (0.618 * number % 1)
                row[name] = float(grid.work(row[name] * (1 + part) or part))
        rows = list(_sound(rule, rows, grid))
        if rows:
            yield scalar_sample(rule, as_points(rule, rows, grid.work), grid.work)


def _sample(rule: Rule, size: int) -> Sample | None:
    for length in range(size, _LARGEST):
        sizes = _short(rule, dict.fromkeys(axis_names(rule), length))
        if unroll.work(rule, sizes) > _VISITED:
            return None
        integers = _integers(rule, sizes)
        exact = expansion(rule, sizes, integers)
        try:
            written = unroll_by(rule, exact)
        except OutOfRange:
            continue
        chosen = _points(written.rule)
        evaluated = expansion(rule, sizes, integers, EVALUATED)
        return Sample(sizes, chosen, exact, evaluated) if len(chosen) else None
    return None


def _short(rule: Rule, sizes: dict[str, int]) -> dict[str, int]:
    if count(rule, sizes) <= _MOST:
        return sizes
    first, *others = sizes
    return {first: sizes[first], **{axis: min(2, sizes[axis]) for axis in others}}


def _integers(rule: Rule, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Distinct positions along the axis that each integer indexes."""
    reach = index_inputs(rule)
    shapes = {variable.name: variable.shape.axes for variable in rule.inputs}
    found: dict[str, Any] = {}
    for name, axis in reach.items():
        size = axis if isinstance(axis, int) else sizes[axis]
        shape = [a if isinstance(a, int) else sizes[a] for a in shapes[name]]
        found[name] = (np.arange(max(1, int(np.prod(shape)))) % size).reshape(shape)
        found[name] = found[name].tolist()
    return found


def _points(rule: Rule) -> Points:
    """The points of the scalars, thinned, and patterned vectors."""
    drawn = points(rule, ELEMENTS)
    if not len(drawn):
        return drawn
    step = max(1, len(drawn) // _ROWS)
    rows = [dict(row) for row in drawn.rows[::step]]
    patterned = list(_pattern_points(rule, rows))
    if patterned:
        columns = as_points(rule, patterned, np.float32).columns
        kept = inside(rule, Machine(columns)).tolist()
        rows += compress(patterned, kept)
        alike = sum(kept[-len(_ALIKE) :])
    return as_points(rule, rows, np.float32, alike=alike if patterned else 0)


def _pattern_points(
    rule: Rule, like: list[dict[str, float]]
) -> Iterator[dict[str, float]]:
    """Each input in turn, then all at once, as a patterned vector; then all with
    elements that are alike.
    """
    groups: dict[str, list[str]] = {}
    for variable in rule.inputs:
        if variable.kind.is_real and "[" in variable.name:
            groups.setdefault(variable.name.split("[")[0], []).append(variable.name)
    every = [name for names in groups.values() for name in names]
    for names in (*groups.values(), *((every,) if len(groups) > 1 else ())):
        for turn, values in enumerate(_patterns(len(names))):
            base = like[(7 * turn) % len(like)]
            yield base | dict(zip(names, values, strict=True))
    for offset, width, spread in _ALIKE if every else ():
        row = dict(like[0])
        for number, name in enumerate(every):
            first, *others = map(int, name[name.index("[") + 1 : -1].split(","))
            wide = width * _PARTS[(first // 2 + sum(others)) % len(_PARTS)]
            row[name] = float(np.float32(offset + wide + spread * (0.618 * number % 1)))
        yield row


def _patterns(length: int) -> Iterator[list[float]]:
    for offset in _OFFSETS:
        spread = [offset + _STEPS[k % len(_STEPS)] for k in range(length)]
        yield [float(np.float32(value)) for value in spread]
    for scale in _SCALES:
        parts = [scale * _PARTS[k % len(_PARTS)] for k in range(length)]
        yield [float(np.float32(value)) for value in parts]
