"""Why a measurement of `benchmarks/accuracy.py` is not good, and who does better.

Two reasons count. *Ill-conditioned*: at the points in question the neighbouring inputs,
one unit in the last place away, have results so different that what was computed is the
exact result of inputs within four units; digits that the inputs do not determine cannot be
computed from rounded ones either. *Not worse*: none of the functions of PyTorch, TensorFlow
and JAX has fewer bad points, nor as few and a smaller error. What has neither is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

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

    @property
    def word(self) -> str:
        words = ["ill-conditioned"] if self.is_ill else []
        words += ["not worse"] if self.is_not_worse else []
        return ", ".join(words) or "**open**"


def reasons(found: Iterable[Row], entries: Iterable[Entry]) -> Iterator[Reason]:
    """One for each measurement that is not good."""
    found = tuple(found)
    rules = {name: rule for entry in entries for name, rule in _rules(entry)}
    best = _best(found)
    for row in found:
        if not is_good(row.emitted):
            ours = row.emitted
            other = best.get(key(ours))
            change, is_ill = _conditioned(ours, rules.get((ours.display, ours.rule)))
            not_worse = other is not None and _order(ours) <= _order(other)
            yield Reason(ours, other, change, is_ill, not_worse)


def _order(finding: Finding) -> tuple[int, float]:
    return bad(finding), max(finding.core.worst, GOOD)


def _best(found: tuple[Row, ...]) -> Mapping[Key, Finding]:
    """The best of the frameworks' own functions; where none has it, of what they make of
    the formula as written."""
    sides: dict[str, dict[Key, Finding]] = {"native": {}, "written": {}}
    for row in found:
        for side, best in sides.items():
            other: Finding | None = getattr(row, side)
            if other is not None and other.target in FRAMEWORKS:
                held = best.setdefault(key(other), other)
                best[key(other)] = min(held, other, key=_order)
    return {**sides["written"], **sides["native"]}


# --- conditions ----------------------------------------------------------------------


def _rules(entry: Entry) -> Iterator[tuple[tuple[str, str], Rule]]:
    source = read(entry.display).value
    module = load(source).module if source else None
    for rule in module.rules if module else ():
        if rule.is_elementwise:
            done = complete(rule).value
            if done is not None:
                yield (rule.source.path, rule.name), done


def _conditioned(finding: Finding, rule: Rule | None) -> tuple[float, bool]:
    """The change of the truth at the worst place, and whether it is the reason at each
    of the places known."""
    spots = [*finding.whole.examples]
    if finding.core.worst > GOOD and finding.core.at is not None:
        spots.append(finding.core.at)
    if rule is None or not spots or finding.whole.lost:
        return 0.0, False
    asked = {_place(q): q for q in quantities(rule, rule, finding.order)}
    quantity = asked.get((finding.order, finding.variable))
    if quantity is None:
        return 0.0, False
    changes = [_change(quantity, rule, spot, finding.dtype) for spot in spots]
    offs = [_off(spot, finding.dtype) for spot in spots]
    is_ill = all(o <= GOOD * c + 0.5 for o, c in zip(offs, changes, strict=True))
    return changes[-1], is_ill


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
    rest = len(found) - ill - not_worse
    return (
        f"* not good: {len(found)}; at {ill} the function is ill-conditioned,"
        f" {not_worse} others are not worse than the best of PyTorch, TensorFlow and JAX,"
        f" {rest} are open (last section)."
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
