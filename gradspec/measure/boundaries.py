"""The table of boundaries of a rule, shown by `gradspec check --boundaries`.

Each line is a break (`checks/breaks.py`) with the values that the emitted program gives
there, as text: it crosses processes and goes into JSON unchanged. The tables are not
cached, but the evaluations in them are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from gradspec.checks.boundaries import (
    Finding,
    finding,
    intended_reason,
    short,
)
from gradspec.checks.breaks import Break, Kind, thorough, typical_breaks
from gradspec.checks.instances import Instance, typical
from gradspec.diagnostics import Outcome
from gradspec.driver.discover import Entry
from gradspec.driver.run import each_rule
from gradspec.ir.expr import Ref
from gradspec.ir.rule import Complete, Judged, Rule
from gradspec.ir.unroll import unroll
from gradspec.ir.walk import names
from gradspec.options import Options
from gradspec.pipeline import with_evaluations
from gradspec.primitives.foreign import is_plain
from gradspec.stabilise.explanation import values_by_format
from gradspec.stabilise.names import Names
from gradspec.symbolic.borders.limits import Trend
from gradspec.symbolic.borders.surfaces import Origin, Surface


@dataclass(frozen=True, slots=True)
class Line:
    """``forward``: from the left, at the place, from the right; ``slope``: the true
    slope from the left, the gradient as written (upstream 1), the slope from the right.
    ``emitted``: the output and the gradient of the program. ``code``: that of the
    corresponding diagnostic, if any.
    """

    where: str
    given: str
    kind: str
    output: str
    input: str
    forward: tuple[str, str, str]
    slope: tuple[str, str, str]
    entry: str
    emitted: str
    verdict: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The boundaries of one rule; ``place`` is ``path:line``."""

    place: str
    name: str
    lines: tuple[Line, ...]


def of_file(options: Options, entry: Entry) -> Outcome[tuple[RuleTable, ...]]:
    """A table for every rule that can be read."""
    table = partial(_table, entry.display, options)
    return each_rule(entry, "looking at the boundaries of", options, table)


def _table(display: str, options: Options, rule: Complete) -> RuleTable:
    line, _ = rule.source.position(rule.name_span.start)
    return RuleTable(f"{display}:{line}", rule.name, lines(rule, options))


def lines(rule: Complete, options: Options) -> tuple[Line, ...]:
    """The lines of a complete rule; of one with axes, at two elements an axis."""
    instance = typical(rule)
    is_solved = any(one.is_equation for one in rule.definitions)
    if instance is None or is_solved or not is_plain(rule):
        return ()  # nothing is known of the limits of roots and of foreign functions
    chosen = with_evaluations(Judged(rule, ()), options).rule
    emitted = unroll(chosen, instance.sizes, instance.integers).rule
    found = typical_breaks(instance, thorough(instance))
    return _Table(instance, emitted).lines(found)


class _Table:
    """``emitted`` is the rule in its selected forms."""

    def __init__(self, instance: Instance, emitted: Rule) -> None:
        self.instance, self.emitted = instance, emitted
        self._names = Names(emitted)

    def lines(self, found: Iterator[Break]) -> tuple[Line, ...]:
        """The lines, one for each place and verdict, whatever the other inputs were. A
        coincidence has one if surfaces meet there that no other place has together.
        """
        made: dict[tuple[str, ...], Line] = {}
        known: set[tuple[str, frozenset[Surface]]] = set()
        for one in found:
            met = one.place.input, frozenset(one.place.surfaces)
            is_new = not one.place.is_coincidence or met not in known
            if is_new and _is_told(self.instance, one):
                line = self._line(one)
                key = (line.where, line.output, line.input, line.kind, line.verdict)
                made.setdefault((*key, *_trends(one)), line)
            known.add(met)
        return tuple(made.values())

    def _line(self, found: Break) -> Line:
        values = self._values_by_format(found)
        verdict, code = self._verdict(found, values)
        left, value, right = map(short, (found.left, found.value, found.right))
        before, stated, after = map(short, (found.before, found.stated, found.after))
        return Line(
            _where(found),
            self._other_inputs(found),
            _kind(found),
            found.output.name,
            found.place.input,
            (left, value, right),
            (before, stated, after),
            self._entry(found),
            _emitted_text(values),
            verdict,
            code,
        )

    def _other_inputs(self, found: Break) -> str:
        """The other inputs that the output depends on."""
        used = names(self.instance.forward[found.output.name]) - {found.place.input}
        shown = (i.name for i in self.instance.rule.inputs if i.name in used)
        point = found.place.point
        return ", ".join(f"{name} = {float(point[name]):.6g}" for name in shown)

    def _entry(self, found: Break) -> str:
        if not found.output.takes_gradient:
            return "none"
        rule, name = self.instance.rule, found.place.input
        if name in rule.overrides:
            return "override"
        return "declared" if name in rule.declared else "derived"

    # --- what the program gives --------------------------------------------------------

    def _values_by_format(
        self, found: Break
    ) -> tuple[dict[str, float], dict[str, float]]:
        """The output and the gradient by format; empty at a place that no number
        hits."""
        if found.value.trend is Trend.OUTSIDE:
            return {}, {}
        output = found.output.name
        value = self._value(output, found)
        if not found.output.takes_gradient:
            return value, {}
        return value, self._value(f"d{found.place.input}", found)

    def _value(self, name: str, found: Break) -> dict[str, float]:
        point: dict[str, Fraction] = dict(found.place.point)
        form = self._names.close(Ref(name))
        return values_by_format(self.emitted, form, point, found.output.name)

    # --- verdicts ------------------------------------------------------------------------

    def _verdict(
        self, found: Break, values: tuple[dict[str, float], dict[str, float]]
    ) -> tuple[str, str]:
        seen = finding(self.instance, found)
        is_declared = self._entry(found) == "declared"
        match seen:
            case Finding.MEANT:
                return f"meant: {intended_reason(self.instance, found)}", ""
            case Finding.JUMP:
                return "not continuous", "GS432"
            case Finding.PATCH:
                return "not the limit", "GS430"
            case Finding.SLOPE:
                return "outside the slopes", "GS402" if is_declared else "GS434"
            case Finding.LIMIT:
                return "not the slope", "GS431" if is_declared else "GS434"
            case Finding.HOLE:
                return _gap_verdict(values)
            case _:
                return _fine(found, self._entry(found)), ""


_LONGEST = 28


def _where(found: Break) -> str:
    """The place in the author's terms, unless those are long."""
    if len(found.place.where) <= _LONGEST:
        return found.place.where
    name = found.place.input
    return f"{name} = {float(found.place.point[name]):.6g}"


def _is_told(instance: Instance, found: Break) -> bool:
    """True unless nothing can happen: at an edge of a primitive that is none here, or
    at a place outside the domain altogether."""
    if found.kind is Kind.END and not found.sides and not found.value.is_finite:
        return False
    if found.kind is not Kind.SMOOTH or finding(instance, found) is not Finding.FINE:
        return True
    dull = (Origin.EDGE, Origin.STEP, Origin.END)
    return any(s.origin not in dull for s in found.place.surfaces)


def _trends(found: Break) -> tuple[str, ...]:
    limits = (*found.sides, found.value, *found.slopes, found.stated)
    return tuple(limit.trend.value for limit in limits)


def _kind(found: Break) -> str:
    """The kind of break; one that the rule fills is still a removable singularity."""
    origins = {s.origin for s in found.place.surfaces}
    if found.kind is Kind.SMOOTH and {Origin.EDGE, Origin.CHOICE} <= origins:
        return Kind.REMOVABLE.value
    return found.kind.value


def _gap_verdict(values: tuple[dict[str, float], dict[str, float]]) -> tuple[str, str]:
    tried = [number for some in values for number in some.values()]
    if any(math.isnan(number) for number in tried):
        return "NaN is emitted", "GS433"
    return ("filled by the emitted form" if tried else "undefined as written"), ""


def _fine(found: Break, entry: str) -> str:
    if not found.place.root.exact and found.kind is not Kind.POLE:
        return "no number of a program"
    match found.kind:
        case Kind.JUMP:
            return "not assumed"
        case Kind.END if found.value.trend is Trend.OUTSIDE:
            return "open end"
        case Kind.END:
            return "closed end" if found.value.is_finite else "undefined at the end"
        case Kind.POLE:
            return "patched pole" if found.value.is_finite else "pole"
        case Kind.REMOVABLE:
            return "removable"
        case Kind.UNKNOWN:
            return "not decided"
        case _ if entry == "override":
            return "override"
        case Kind.KINK if found.stated.is_finite:
            return "between the slopes"
        case Kind.SMOOTH if _kind(found) == Kind.REMOVABLE.value:
            return "filled with the limit"
        case _:
            return "continuous" if found.kind is not Kind.SMOOTH else "smooth"


def _emitted_text(values: tuple[dict[str, float], dict[str, float]]) -> str:
    """``1, 0``: output and gradient; for both formats where they differ in kind."""
    return ", ".join(_one(some) for some in values if some)


def _one(some: dict[str, float]) -> str:
    texts = dict.fromkeys(f"{value + 0.0:.6g}" for value in some.values())
    if len(texts) == 1 or not any(math.isnan(v) for v in some.values()):
        return next(reversed(texts))
    return " / ".join(f"{value:.6g} in {name}" for name, value in some.items())
