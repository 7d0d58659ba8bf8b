"""Pictures of an audit: the error against the input, one SVG file a rule.

Inputs stand on an axis of exponents, negative ones to the left; errors on one of powers
of two, in tolerances, with a band of its own on top for points without a number. The
words in the picture have the colours of the dots that they speak of, so there is no
legend to learn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from gradspec.report.audit_rows import Row, rows
from gradspec.report.audit_text import figure

if TYPE_CHECKING:
    from gradspec.audit.cases import Finding
    from gradspec.driver.audits import TargetAudit

OURS, NATIVE, WRITTEN = "#1b6ac9", "#d9730d", "#8a8a8a"
_WIDTH, _HEIGHT = 560, 276
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 14, 74, 40
_LOWEST, _HIGHEST = -3.0, 30.0
"""Powers of two of the error axis; what is beyond stands at its end."""

_BAND = 16
_COLUMNS = 260
"""Of the dots that fall into one column only the highest is drawn."""


def write(audits: Iterable[TargetAudit], folder: Path) -> tuple[Path, ...]:
    """One file for each rule, named ``<rule>.svg``."""
    found = rows(f for audit in audits for f in audit.findings)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for rule in dict.fromkeys(row.emitted.rule for row in found):
        path = folder / f"{rule}.svg"
        path.write_text(picture([r for r in found if r.emitted.rule == rule]), "utf-8")
        paths.append(path)
    return tuple(paths)


def picture(of_rule: list[Row]) -> str:
    """All panels of a rule: a row for each target and format, its quantities beside
    one another.
    """
    places = list(dict.fromkeys((r.emitted.target, r.emitted.dtype) for r in of_rule))
    names = list(dict.fromkeys(r.emitted.name for r in of_rule))
    width, height = _WIDTH * len(names), _HEIGHT * len(places)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for row in of_rule:
        ours = row.emitted
        across = _WIDTH * names.index(ours.name)
        down = _HEIGHT * places.index((ours.target, ours.dtype))
        parts.append(f'<g transform="translate({across},{down})">')
        parts.extend(_panel(row))
        parts.append("</g>")
    return "\n".join((*parts, "</svg>\n"))


def _panel(row: Row) -> Iterator[str]:
    ours = row.emitted
    axis = _Axis(_input(ours), ours.dtype)
    title = f"{ours.rule}: {ours.name} on {ours.target}, {ours.dtype}"
    yield f'<text x="{_LEFT}" y="16" font-weight="bold">{escape(title)}</text>'
    yield from _words(row)
    yield from _frame(axis)
    for finding, colour in (
        (row.written, WRITTEN),
        (row.native, NATIVE),
        (ours, OURS),
    ):
        if finding is not None:
            yield from _dots(finding, axis, colour)


def _words(row: Row) -> Iterator[str]:
    """A line for each side, in the colour of its dots."""
    told = [("gradspec", row.emitted, OURS)]
    if row.native is not None:
        told.append((f"{row.emitted.target}'s own", row.native, NATIVE))
    if row.written is not None:
        words = _HOW[row.emitted.order].format(row.emitted.target)
        told.append((words, row.written, WRITTEN))
    for number, (who, finding, colour) in enumerate(told):
        words = escape(f"{who}: {_told(finding)}")
        y = 32 + 16 * number
        yield f'<text x="{_LEFT}" y="{y}" fill="{colour}">{words}</text>'


_HOW = (
    "as written",
    "as written, differentiated by {}",
    "as written, differentiated twice by {}",
)


def _told(finding: Finding) -> str:
    """``up to 2.3 tolerances``, ``12 of 7200 points bad, up to 8.1e+06 tolerances``."""
    whole = finding.whole
    if not whole.count:
        return "nothing to measure"
    error = finding.found.error
    worst = float(error.max(where=error < math.inf, initial=0.0))
    points = f"{whole.bad} of {whole.count} points bad, " if whole.bad else ""
    return f"{points}up to {figure(worst)} tolerances"


def _input(finding: Finding) -> str:
    """The input on the axis: the one of the derivative, else the first."""
    return finding.variable or next(iter(finding.columns))


class _Axis:
    """Numbers by sign and exponent: -2^top … -2^low, 2^low … 2^top."""

    def __init__(self, name: str, dtype: str) -> None:
        ends = {"float16": (-24, 16, 8), "float64": (-60, 60, 20)}
        self.name = name
        self.low, self.top, self.step = ends.get(dtype, (-40, 40, 20))

    def x(self, value: float) -> float:
        if value == 0:
            return self._place(0.5)
        power = math.log2(abs(value))
        share = (power - self.low) / (self.top - self.low)
        half = 0.02 + 0.48 * min(1.0, max(0.0, share))
        return self._place(0.5 + math.copysign(half, value))

    def _place(self, share: float) -> float:
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> Iterator[tuple[float, str]]:
        yield self.x(0.0), "0"
        for power in range(self.low + self.step, self.top + 1, self.step):
            for sign in (1, -1):
                value = sign * 2.0**power
                number = f"2{_raised(power)}" if power else "1"
                yield self.x(value), f"{'−' if sign < 0 else ''}{number}"


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _y(error: float) -> float:
    power = math.log2(error) if error > 0 else _LOWEST
    share = (min(_HIGHEST, max(_LOWEST, power)) - _LOWEST) / (_HIGHEST - _LOWEST)
    bottom, top = _HEIGHT - _BOTTOM, _TOP + _BAND
    return bottom - share * (bottom - top)


_LINES = ((0.5, "½"), (4, "4"), (2.0**10, "2¹⁰"), (2.0**20, "2²⁰"))
"""Errors with a line across: 4 tolerances are good."""


def _frame(axis: _Axis) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    yield (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" height="{_BAND - 3}"'
        ' fill="#fbe3e0"/>'
    )
    yield f'<text x="{_LEFT - 6}" y="{_TOP + 10}" text-anchor="end">NaN, ∞</text>'
    middle = (_TOP + _BAND + bottom) / 2
    yield (
        f'<text transform="translate(14,{middle:.0f}) rotate(-90)"'
        ' text-anchor="middle" font-style="italic">error in tolerances</text>'
    )
    for error, word in _LINES:
        y, colour = _y(error), "#5a9a5a" if error == 4 else "#dddddd"
        yield (
            f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"'
            f' stroke="{colour}"/>'
        )
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{word}</text>'
    for x, word in axis.ticks():
        yield f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{word}</text>'
    yield (
        f'<text x="{(_LEFT + right) / 2}" y="{bottom + 30}" text-anchor="middle"'
        f' font-style="italic">{escape(axis.name)}</text>'
    )
    yield (
        f'<line x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"'
        ' stroke="#888888"/>'
    )


def _dots(finding: Finding, axis: _Axis, colour: str) -> Iterator[str]:
    """The largest error of each column, and a dot in the band where one is no
    number."""
    values = finding.columns[axis.name].tolist()
    found = finding.found
    highest: dict[int, float] = {}
    lost: set[int] = set()
    step = (_WIDTH - _LEFT - _RIGHT) / _COLUMNS
    marks = zip(values, found.error.tolist(), found.judged.tolist(), strict=True)
    for value, error, is_judged in marks:
        column = round((axis.x(value) - _LEFT) / step)
        if error == math.inf:
            lost.add(column)
        elif is_judged:
            highest[column] = max(error, highest.get(column, 0.0))
    places = [(k, _y(e)) for k, e in highest.items()]
    places += [(k, _TOP + _BAND / 2 - 1.5) for k in lost]
    dots = "".join(f"M{_LEFT + k * step:.1f} {y:.1f}h0" for k, y in sorted(places))
    yield (
        f'<path d="{dots}" stroke="{colour}" stroke-opacity="0.75" stroke-width="3.6"'
        ' stroke-linecap="round"/>'
    )
