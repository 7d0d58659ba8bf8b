"""Pictures of an audit: the error against the input, one SVG file a rule."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec.report.audit import Row, figure, rows

if TYPE_CHECKING:
    from gradspec.audit.cases import Finding
    from gradspec.driver.audits import TargetAudit

OURS, NATIVE, WRITTEN = "#1b6ac9", "#d9730d", "#8a8a8a"
_LOWEST, _HIGHEST = 2.0**-3, 2.0**30
"""The ends of the error axis; what is beyond stands there, points without a number
above."""

_ENDS = {"float16": (-24, 16, 8), "float64": (-60, 60, 20)}
"""Exponents of the input axis: where it gives way to 0, its end, and a step."""


def write(audits: Iterable[TargetAudit], folder: Path) -> tuple[Path, ...]:
    """One file for each rule, named ``<rule>.svg``."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        raise click.ClickException(
            "plots need matplotlib: pip install 'gradspec[plot]'"
        ) from None
    found = rows(f for audit in audits for f in audit.findings)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for rule in dict.fromkeys(row.emitted.rule for row in found):
        path = folder / f"{rule}.svg"
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": rule}):
            picture([r for r in found if r.emitted.rule == rule]).savefig(
                path, metadata={"Date": None}
            )
        paths.append(path)
    return tuple(paths)


def picture(of_rule: list[Row]) -> Any:
    """All panels of a rule: a row for each target and format, its quantities beside
    one another.
    """
    from matplotlib.figure import Figure

    places = list(dict.fromkeys((r.emitted.target, r.emitted.dtype) for r in of_rule))
    names = list(dict.fromkeys(r.emitted.name for r in of_rule))
    size = 5.6 * len(names), 3.2 * len(places)
    whole = Figure(figsize=size, layout="constrained")
    panels = whole.subplots(len(places), len(names), squeeze=False)
    for row in of_rule:
        ours = row.emitted
        place = places.index((ours.target, ours.dtype)), names.index(ours.name)
        _panel(panels[place], row)
    return whole


_HOW = ("as written", "as written, differentiated", "as written, differentiated twice")


def _panel(panel: Any, row: Row) -> None:
    """The errors of each side, in tolerances; 4 are good."""
    ours = row.emitted
    name = ours.variable or next(iter(ours.columns))
    low, top, step = _ENDS.get(ours.dtype, (-40, 40, 20))
    ticks = [2.0**power for power in range(low + step, top + 1, step)]
    panel.set_title(f"{ours.rule}: {ours.name} on {ours.target}, {ours.dtype}")
    panel.set_xscale("symlog", base=2, linthresh=2.0**low)
    panel.set_yscale("log", base=2)
    panel.set(xlim=(-(2.0**top), 2.0**top), ylim=(_LOWEST / 2, _HIGHEST * 8))
    panel.set(xlabel=name, ylabel="tolerances")
    panel.set_xticks([-tick for tick in ticks] + [0.0, *ticks])
    panel.axhline(4, color="#5a9a5a", linewidth=0.8)
    sides = (
        (row.written, WRITTEN, _HOW[ours.order]),
        (row.native, NATIVE, f"{ours.target}'s own"),
        (ours, OURS, "gradspec"),
    )
    for finding, colour, who in sides:
        if finding is not None:
            errors = finding.found.error.clip(_LOWEST, _HIGHEST)
            errors[~(finding.found.error < float("inf"))] = _HIGHEST * 4
            inside = finding.found.judged
            dots = {"color": colour, "markersize": 2, "linestyle": "", "marker": "."}
            values = finding.columns[name][inside].clip(-(2.0**top), 2.0**top)
            label = f"{who}: {_summary(finding)}"
            panel.plot(values, errors[inside], label=label, rasterized=True, **dots)
    panel.legend(fontsize="x-small", loc="upper left")


def _summary(finding: Finding) -> str:
    """``up to 2.3 tolerances``, ``12 of 7200 points bad, up to 8.1e+06 tolerances``."""
    whole = finding.whole
    if not whole.count:
        return "nothing to measure"
    error = finding.found.error
    worst = float(error.max(where=error < float("inf"), initial=0.0))
    points = f"{whole.bad} of {whole.count} points bad, " if whole.bad else ""
    return f"{points}up to {figure(worst)} tolerances"
