"""Why a measurement of `benchmarks/accuracy.py` is not good, and who does better.

The points in question are those that are bad (all of them) and those of the core that are
off by more than 4 ULP (the worst, and others up to 150 in all). Two reasons count.
*Ill-conditioned*: at each of these points the neighbouring inputs, one unit in the last
place away, have results so different that what was computed is the exact result of inputs
within four units; digits that the inputs do not determine cannot be computed from rounded
ones either. *Not worse*: none of the functions of PyTorch, TensorFlow and JAX has fewer bad
points, nor as few and a smaller error. *Point by point*: each is the one or the other: the
function is ill-conditioned there, or all three are as far off at the very same point (a 0
by the truth itself: noise in its place, larger than the truth, is no better). What has none
of these is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gradspec.audit.cases import Finding
from gradspec.audit.measure import Spot
from gradspec.audit.quantities import Quantity, quantities
from gradspec.derive.complete import complete
from gradspec.driver.discover import Entry, read
from gradspec.driver.load import load
from gradspec.ir.rule import Kind, Rule
from gradspec.report.audit_rows import Row
from gradspec.symbolic.truth import FORMATS, nearest

GOOD = 4.0
FRAMEWORKS = ("torch", "tf", "jax")

CORE = (2.0**-12, 128.0)
_MOST = 150
"""Points of the core that are asked about."""

_SAME = 2.0**-10
"""What two errors differ by that count as the same."""

Places: TypeAlias = Any
"""Numbers of points, or a mask over them."""

Key = tuple[str, str, str, str]
"""File, rule, quantity, format."""


def bad(finding: Finding) -> int:
    """Points of the whole domain that are bad or lost."""
    return finding.whole.bad + finding.whole.lost


def is_good(finding: Finding) -> bool:
    return not bad(finding) and finding.core.worst <= GOOD


def key(finding: Finding) -> Key:
    return finding.display, finding.rule, finding.name, finding.dtype


@dataclass(frozen=True, slots=True)
class Reason:
    """For one measurement that is not good: the best native (or differentiated formula,
    where there is no native) and by how many ULP the truth changes with an ULP of the
    inputs where ours is worst."""

    ours: Finding
    best: Finding | None
    change: float
    is_ill: bool
    is_not_worse: bool
    is_either: bool

    @property
    def word(self) -> str:
        words = ["ill-conditioned"] if self.is_ill else []
        words += ["not worse"] if self.is_not_worse else []
        words = words or (["point by point"] if self.is_either else [])
        return ", ".join(words) or "**open**"


def reasons(found: Iterable[Row], entries: Iterable[Entry]) -> Iterator[Reason]:
    """One for each measurement that is not good."""
    found = tuple(found)
    rules = {name: rule for entry in entries for name, rule in _rules(entry)}
    others = _others(found)
    for row in found:
        if not is_good(row.emitted):
            ours = row.emitted
            theirs = others.get(key(ours), ())
            best = min(theirs, key=_order, default=None)
            places = _places(ours)
            change, ill = _conditioned(
                ours, rules.get((ours.display, ours.rule)), places
            )
            either = ill | _matched(ours, theirs, places)
            not_worse = best is not None and _order(ours) <= _order(best)
            yield Reason(
                ours, best, change, bool(ill.all()), not_worse, bool(either.all())
            )


def _order(finding: Finding) -> tuple[int, float]:
    return bad(finding), max(finding.core.worst, GOOD)


def _others(found: tuple[Row, ...]) -> Mapping[Key, tuple[Finding, ...]]:
    """The frameworks' own functions; where none has it, what they make of the formula as
    written."""
    sides: dict[str, dict[Key, tuple[Finding, ...]]] = {"native": {}, "written": {}}
    for row in found:
        for side, others in sides.items():
            other: Finding | None = getattr(row, side)
            if other is not None and other.target in FRAMEWORKS:
                others[key(other)] = (*others.get(key(other), ()), other)
    return {**sides["written"], **sides["native"]}


# --- the points in question ------------------------------------------------------------


def _places(finding: Finding) -> Places:
    """Those that are bad or lost, and those of the core that are far off."""
    off = np.where(_core(finding), finding.found.ulp, 0.0)
    far = np.flatnonzero(off > GOOD)
    far = far[np.argsort(-off[far], kind="stable")]
    if len(far) > _MOST:
        far = far[np.linspace(0, len(far) - 1, _MOST).astype(int)]
    bad_ones = np.flatnonzero(finding.found.bad | finding.found.lost)
    return np.unique(np.concatenate([bad_ones, far]))


def _core(finding: Finding) -> Places:
    inside = np.ones(len(finding.values), dtype=bool)
    floats = (
        c for c in finding.columns.values() if np.issubdtype(c.dtype, np.floating)
    )
    for column in floats:
        size = np.abs(column)
        inside &= (size >= CORE[0]) & (size <= CORE[1]) | (size == 0)
    return inside


def _matched(ours: Finding, theirs: tuple[Finding, ...], places: Places) -> Places:
    """Where each of the others is as far off, at the same points as ours."""
    if not theirs:
        return np.zeros(len(places), dtype=bool)
    own = (1 - _SAME) * _rank(ours)[places]
    return np.all([_rank(_same_points(ours, o))[places] >= own for o in theirs], axis=0)


def _same_points(ours: Finding, other: Finding) -> Finding:
    for name, column in ours.columns.items():
        if not np.array_equal(column, other.columns[name], equal_nan=True):
            raise AssertionError(f"{ours.rule}: measured at other points")
    return other


def _rank(finding: Finding) -> Places:
    """How far off each point is in ULP; what is not finite, or lost, beyond all others."""
    found, truth = finding.found, np.abs(finding.truth.high)
    with np.errstate(all="ignore"):
        units = np.abs(np.spacing(truth.astype(finding.dtype)).astype(np.float64))
        whole = np.where(finding.values == 0, truth / units, np.inf)
    return np.where(found.lost, np.inf, np.where(found.bad, whole, found.ulp))


# --- conditions ----------------------------------------------------------------------


def _rules(entry: Entry) -> Iterator[tuple[tuple[str, str], Rule]]:
    source = read(entry.display).value
    module = load(source).module if source else None
    for rule in module.rules if module else ():
        if rule.is_elementwise:
            done = complete(rule).value
            if done is not None:
                yield (rule.source.path, rule.name), done


def _conditioned(
    finding: Finding, rule: Rule | None, places: Places
) -> tuple[float, Places]:
    """The change of the truth at the worst place, and at which of the places it is the
    reason."""
    ill = np.zeros(len(places), dtype=bool)
    if rule is None:
        return 0.0, ill
    asked = {_place(q): q for q in quantities(rule, rule, finding.order)}
    quantity = asked.get((finding.order, finding.variable))
    if quantity is None:
        return 0.0, ill
    changes = np.zeros(len(places))
    for number, place in enumerate(places.tolist()):
        spot = _spot(finding, place)
        if np.isfinite(spot.truth) and not finding.found.lost[place]:
            changes[number] = _change(quantity, rule, spot, finding.dtype)
            off = _off(spot, finding.dtype)
            ill[number] = off <= GOOD * changes[number] + 0.5
    worst = int(np.argmax(_rank(finding)[places])) if len(places) else 0
    return (float(changes[worst]) if len(places) else 0.0), ill


def _spot(finding: Finding, place: int) -> Spot:
    inputs = tuple((n, float(c[place])) for n, c in finding.columns.items())
    return Spot(inputs, float(finding.values[place]), float(finding.truth.high[place]))


def _place(quantity: Quantity) -> tuple[int, str]:
    return quantity.order, quantity.input


def _off(spot: Spot, dtype: str) -> float:
    """The error in ULP; a result that is not finite is off by the truth itself at least."""
    off = abs(spot.got - spot.truth) if np.isfinite(spot.got) else abs(spot.truth)
    return off / _unit(spot.truth, dtype)


def _unit(value: float, dtype: str) -> float:
    form = np.dtype(dtype).type
    limited = min(
        max(abs(value), float(np.finfo(form).tiny)), float(np.finfo(form).max)
    )
    return float(np.spacing(form(limited)))


def _change(quantity: Quantity, rule: Rule, spot: Spot, dtype: str) -> float:
    """By how many ULP the truth changes with one ULP of each input, together."""
    statics = {i.name: _default(i.name, rule) for i in rule.static_inputs}
    row = {**statics, **dict(spot.inputs)}
    real = [i.name for i in rule.inputs if i.kind in (Kind.FLOAT, Kind.NOGRAD)]
    form = np.dtype(dtype).type
    total = 0.0
    for name in (n for n in real if n in row):
        x = form(row[name])
        beside = [float(np.nextafter(x, form(end))) for end in (-np.inf, np.inf)]
        values = _truths(quantity, [row | {name: value} for value in beside], dtype)
        known = [abs(v - spot.truth) for v in values if np.isfinite(v)]
        total += max(known, default=0.0) / _unit(spot.truth, dtype)
    return total


def _default(name: str, rule: Rule) -> float:
    default = next(i.default for i in rule.static_inputs if i.name == name)
    return float(default) if default is not None else 1.0


def _truths(
    quantity: Quantity, rows: list[dict[str, float]], dtype: str
) -> list[float]:
    """In a wider format than the one asked, if there is one."""
    wide = "float64" if FORMATS[dtype].bits < FORMATS["float64"].bits else dtype
    for form in quantity.forms:
        values = nearest(form, rows, wide)
        if all(np.isfinite(values)):
            return values
    return []


# --- the section of the page ---------------------------------------------------------


def totals(found: tuple[Reason, ...]) -> str:
    """What the reasons are, by number."""
    ill = sum(r.is_ill for r in found)
    not_worse = sum(r.is_not_worse and not r.is_ill for r in found)
    either = sum("point" in r.word for r in found)
    rest = len(found) - ill - not_worse - either
    return (
        f"* not good: {len(found)}; at {ill} the function is ill-conditioned,"
        f" {not_worse} others are not worse than the best of PyTorch, TensorFlow and JAX,"
        f" {either} are one or the other point by point, {rest} are open (last section)."
    )


def section(found: tuple[Reason, ...]) -> Iterator[str]:
    """What is not good, a line for each quantity and format."""
    yield "## What is not good, and why\n"
    yield "| rule | | format | targets | ours | best native | one ULP | why |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    groups: dict[Key, list[Reason]] = {}
    for reason in found:
        groups.setdefault(key(reason.ours), []).append(reason)
    for (_, rule, name, dtype), group in groups.items():
        worst = max(group, key=lambda reason: _order(reason.ours))
        cells = (
            *(rule, name, dtype[5:], ", ".join(r.ours.target for r in group)),
            *(summary(worst.ours), _best_said(worst.best)),
            f"{max(r.change for r in group):.2g}",
            "; ".join(dict.fromkeys(reason.word for reason in group)),
        )
        yield f"| {' | '.join(cells)} |"


def _best_said(best: Finding | None) -> str:
    if best is None:
        return "–"
    how = "" if best.side == "native" else ", as written"
    return f"{summary(best)} ({best.target}{how})"


def summary(finding: Finding) -> str:
    """A cell of the page."""
    text = ulp(finding.core.worst)
    if finding.whole.over4 > 0:
        text += f", {100 * finding.whole.over4:.2g} %"
    return f"✗{bad(finding)} {text}" if bad(finding) else text


def ulp(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0e}".replace("e+0", "e")
