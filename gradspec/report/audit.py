"""The results of an audit: a table a file, then what is wrong and where; one JSON
document (schema in docs/audit.md); a CSV file and a picture for each rule.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec.diagnostics import Diagnostic
from gradspec.driver import write
from gradspec.options import AuditOptions
from gradspec.report.streams import align_columns, style_cells

if TYPE_CHECKING:
    from gradspec.ir.rule import Chosen
    from gradspec.measure.audits import Finding, TargetAudit
    from gradspec.measure.errors import Measure, Spot
    from gradspec.stabilise.choice import Candidate, Tried

FORMAT_VERSION = 2
_FIGURES = ("bad", "core", "whole", "ULP")
_SIDES = ("", "its own", "as written")
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class View:
    """``limit`` in tolerances makes the audit a test; ``plot`` and ``values`` are
    folders for pictures and for every point; ``explained`` are rules to explain first.
    """

    style: str = "text"
    limit: float | None = None
    plot: str | None = None
    values: str | None = None
    explained: tuple[tuple[Chosen, tuple[Tried, ...]], ...] = ()


def show(audits: Iterable[TargetAudit], options: AuditOptions, view: View) -> bool:
    """Print and draw; True if something raised, or is over the limit."""
    audits = tuple(audits)
    found = tuple(f for audit in audits for f in audit.findings)
    if view.style == "json":
        click.echo(document(audits, options))
    else:
        explain(view.explained)
        _show(audits)
    if view.plot is not None:
        drawn = write_pictures(audits, Path(view.plot))
        click.echo(f"{len(drawn)} pictures in {view.plot}", err=True)
    if view.values is not None:
        kept = write_values(audits, Path(view.values))
        click.echo(f"{len(kept)} files in {view.values}", err=True)
    guilty = () if view.limit is None else _over_limit(found, view.limit)
    if guilty and view.limit is not None:
        _blame(guilty, view.limit)
    raised = any(side in ("", "emitted") for a in audits for _, _, side, _ in a.faults)
    return bool(guilty) or raised


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The emitted function, the framework's own, its autodiff of the formula."""

    emitted: Finding
    native: Finding | None
    written: Finding | None


def rows(found: Iterable[Finding]) -> tuple[Row, ...]:
    """One for each rule, quantity, target and format, in that order."""
    sides: dict[tuple[str, ...], dict[str, Finding]] = {}
    for finding in found:
        sides.setdefault(_place(finding), {})[finding.side] = finding
    made = [
        Row(some["emitted"], some.get("native"), some.get("written"))
        for some in sides.values()
        if "emitted" in some
    ]
    rules = {rule: n for n, rule in enumerate(dict.fromkeys(map(_rule, made)))}
    return tuple(sorted(made, key=lambda row: (rules[_rule(row)], row.emitted.order)))


def _rule(row: Row) -> tuple[str, str]:
    return row.emitted.display, row.emitted.rule


def _place(finding: Finding) -> tuple[str, ...]:
    return (
        finding.display,
        finding.rule,
        finding.name,
        finding.target,
        finding.dtype,
    )


# --- for people ----------------------------------------------------------------------


def _show(audits: Iterable[TargetAudit]) -> None:
    """Print tables, examples of bad points, and what could not be run."""
    audits = tuple(audits)
    found = tuple(f for audit in audits for f in audit.findings)
    _tables(rows(found))
    _examples(found)
    for audit in audits:
        if audit.absent:
            click.echo(f"{audit.target}: error[GS611]: {audit.absent}", err=True)
        for rule, dtype, side, message in audit.faults:
            if side in ("", "emitted"):
                where = f"{rule} in {dtype}" if rule else "the runner"
                click.echo(
                    f"{audit.target}: error[GS612]: {where}: {message}", err=True
                )


def explain(rules: Iterable[tuple[Chosen, tuple[Tried, ...]]]) -> None:
    """The rewrites of each rule, from and to, with reasons; the candidates tried."""
    for chosen, tried in rules:
        rule = chosen.rule
        line, _ = rule.source.position(rule.name_span.start)
        click.secho(f"{rule.name} ({rule.source.path}:{line})", bold=True)
        if not chosen.rewrites:
            click.echo("  evaluated as written: nothing measured better")
        for rewrite in chosen.rewrites:
            click.echo(f"  {rewrite.name}: {rewrite.reason}")
            if rewrite.before != rewrite.after:
                click.echo(f"    written {rewrite.before}")
                click.echo(f"    chosen  {rewrite.after}")
        for one in tried:
            _tell_tried(one)


_RIVALS = 4
_LONGEST = 90


def _tell_tried(tried: Tried) -> None:
    """The number of candidates measured, and the best of them."""
    from gradspec.ir.expr import show

    written, selected = tried.choice.written, tried.choice.selected
    if len(tried.measured) < 2:
        return
    click.echo(f"  tried for {show(written.form)}:")
    click.echo(f"    {len(tried.measured)} candidates were measured in both formats")
    click.echo(f"    as written: {_score(written)}; selected: {_score(selected)}")
    ranked = sorted(tried.measured, key=lambda candidate: candidate.faults)
    for candidate in ranked[:_RIVALS]:
        text = show(candidate.form)
        mark = "*" if candidate is selected else " "
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        click.echo(f"   {mark} {_score(candidate):>34}  {short}")


def _score(candidate: Candidate) -> str:
    """``3 bad points, else up to 1.2 tolerances``."""
    bad = sum(score.bad for score in candidate.scores)
    worst = max(score.worst for score in candidate.scores)
    if not bad:
        return f"up to {figure(worst)} tolerances"
    return f"{bad} bad point{'' if bad == 1 else 's'}"


def _over_limit(found: Iterable[Finding], limit: float) -> tuple[Finding, ...]:
    """Emitted values with an error beyond ``limit`` tolerances, or no number."""
    return tuple(f for f in found if f.side == "emitted" and f.whole.worst > limit)


def _blame(guilty: tuple[Finding, ...], limit: float) -> None:
    """Print the values over the limit."""
    for finding in guilty[:_SHOWN]:
        word = click.style("error[GS701]", fg="red", bold=True)
        click.echo(f"{word}: {_sentence(finding)}, over {limit:g}", err=True)
    if len(guilty) > _SHOWN:
        click.echo(f"  … and {len(guilty) - _SHOWN} more", err=True)


def _sentence(finding: Finding) -> str:
    what = f"{finding.rule}: {finding.name} on {finding.target} in {finding.dtype}"
    whole = finding.whole
    where = f" at {inputs(whole.at)}" if whole.at else ""
    if math.isinf(whole.worst) and whole.at:
        return f"{what} is {whole.at.got:g}{where}, truth {whole.at.truth:.6g}"
    return f"{what} is off by {figure(whole.worst)} tolerances{where}"


# --- tables --------------------------------------------------------------------------


def _tables(lines: tuple[Row, ...]) -> None:
    for display in dict.fromkeys(line.emitted.display for line in lines):
        click.secho(display, dim=True)
        click.echo(_table([x for x in lines if x.emitted.display == display]))
    if lines:
        click.secho(_LEGEND, dim=True)


_LEGEND = (
    "bad: points of the whole domain with an error of more than 4 tolerances, or no"
    " number. core, whole: the largest error in tolerances in the core (2^-12 ≤ |x| ≤ 128)"
    " and on the whole domain (∞: no number). ULP: the largest plain error in the core."
)


def _table(lines: list[Row]) -> str:
    above = [name for side in _SIDES for name in (side, "", "", "")]
    heads = ("rule", "", "target", "format", *(_FIGURES * len(_SIDES)))
    rows = [style_cells(row, bold=True) for row in (("", "", "", "", *above), heads)]
    before = ""
    for line in lines:
        rule = "" if line.emitted.rule == before else line.emitted.rule
        before = line.emitted.rule
        rows.append([rule, *_cells(line)])
    return align_columns(rows, 4)


def _cells(line: Row) -> Iterator[str]:
    ours = line.emitted
    yield from (ours.name, ours.target, ours.dtype)
    for finding in (ours, line.native, line.written):
        yield from ("–",) * len(_FIGURES) if finding is None else _figures(finding)


def _figures(finding: Finding) -> Iterator[str]:
    bad = finding.whole.bad
    yield click.style(f"{bad}", fg="red") if bad else "0"
    yield _grade(finding.core.worst)
    yield _grade(finding.whole.worst)
    yield click.style(figure(finding.core.ulp), dim=True)


def _grade(value: float) -> str:
    return click.style(figure(value), fg="green" if value <= 4 else "red")


def figure(value: float) -> str:
    """``2.34``, ``57``, ``8.1e+06``, ``∞``."""
    if math.isinf(value):
        return "∞"
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.0f}" if value < 1000 else f"{value:.1e}"


# --- examples ------------------------------------------------------------------------


def _examples(found: tuple[Finding, ...]) -> None:
    bad = [f for f in found if f.side == "emitted" and f.whole.bad]
    if not bad:
        return
    click.echo("Bad points:")
    for finding in bad:
        spots = "; ".join(_example(s) for s in finding.whole.examples[:2])
        click.echo(
            f"  {finding.rule}: {finding.name} on {finding.target} in {finding.dtype}:"
            f" {spots}"
        )


def _example(spot: Spot) -> str:
    return f"at {inputs(spot)} {spot.got:.6g}, truth {spot.truth:.6g}"


def inputs(spot: Spot) -> str:
    """``x = -88.73``."""
    return ", ".join(f"{name} = {value:.9g}" for name, value in spot.inputs)


# --- for machines --------------------------------------------------------------------


def document(audits: Iterable[TargetAudit], options: AuditOptions) -> str:
    """The findings of all targets."""
    audits = tuple(audits)
    data = {
        "version": FORMAT_VERSION,
        "points": options.points,
        "findings": [_finding(f) for audit in audits for f in audit.findings],
        "faults": [
            {
                "target": audit.target,
                "rule": rule,
                "dtype": dtype,
                "side": side,
                "message": message,
            }
            for audit in audits
            for rule, dtype, side, message in audit.faults
        ],
        "absent": {a.target: a.absent for a in audits if a.absent},
    }
    return json.dumps(data, indent=2, ensure_ascii=False)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.display,
        "rule": finding.rule,
        "target": finding.target,
        "dtype": finding.dtype,
        "order": finding.order,
        "quantity": finding.name,
        "side": finding.side,
        "whole": _measure(finding.whole),
        "core": _measure(finding.core),
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "points": measure.count,
        "bad": measure.bad,
        "share_bad": measure.share,
        "max_error": _number(measure.worst),
        "at": None if measure.at is None else _spot(measure.at),
        "max_ulp": _number(measure.ulp),
        "bad_points": [_spot(spot) for spot in measure.examples],
    }


def _spot(spot: Spot) -> dict[str, Any]:
    return {
        "inputs": {name: _number(value) for name, value in spot.inputs},
        "got": _number(spot.got),
        "truth": _number(spot.truth),
    }


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinity: they are texts."""
    return value if math.isfinite(value) else repr(value)


_PICTURE, _VALUES = r"(?s).*<dc:title>gradspec<", r"[^\n]* truth rest,"
"""Patterns of how the files begin."""


def foreign(
    rules: Iterable[str], targets: Iterable[str], options: AuditOptions, view: View
) -> tuple[Diagnostic, ...]:
    """GS616 for files that pictures and values would overwrite."""
    rules = tuple(rules)
    pictures = {f"{rule}.svg": _PICTURE for rule in rules}
    cases = product(rules, targets, options.dtypes)
    values = {f"{'.'.join(case)}.csv": _VALUES for case in cases}
    folders = (view.plot, pictures), (view.values, values)
    return sum((write.foreign(Path(f), p) for f, p in folders if f is not None), ())


def write_values(audits: Iterable[TargetAudit], folder: Path) -> tuple[Path, ...]:
    """Files named ``<rule>.<target>.<format>.csv``."""
    cases: dict[str, list[Finding]] = {}
    for finding in (f for audit in audits for f in audit.findings):
        name = f"{finding.rule}.{finding.target}.{finding.dtype}.csv"
        cases.setdefault(name, []).append(finding)
    folder.mkdir(parents=True, exist_ok=True)
    for name, findings in cases.items():
        columns = dict(_columns(findings))
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    return tuple(folder / name for name in cases)


def _columns(findings: list[Finding]) -> Iterator[tuple[str, list[str]]]:
    """The values of one rule on one target in one format; a name that comes twice is the
    same column.
    """
    for name, column in findings[0].columns.items():
        yield name, _numbers(column)
    for finding in findings:
        yield f"{finding.name} truth", _numbers(finding.truth.high)
        yield f"{finding.name} truth rest", _numbers(finding.truth.low)
        yield f"{finding.name} tolerance", _numbers(finding.truth.tolerance)
        yield f"{finding.name} {finding.side}", _numbers(finding.values)
        yield f"{finding.name} {finding.side} error", _judged_measures(finding, "error")
        yield f"{finding.name} {finding.side} ulp", _judged_measures(finding, "ulp")


def _numbers(column: Iterable[float]) -> list[str]:
    return [repr(float(value)) for value in column]


def _judged_measures(finding: Finding, name: str) -> list[str]:
    """``error`` or ``ulp``; empty where nothing is judged."""
    column = getattr(finding.found, name).tolist()
    judged = finding.found.judged.tolist()
    return [
        repr(value) if is_judged else ""
        for value, is_judged in zip(column, judged, strict=True)
    ]


# --- pictures -------------------------------------------------------------------------


OURS, NATIVE, WRITTEN = "#1b6ac9", "#d9730d", "#8a8a8a"
_LOWEST, _HIGHEST = 2.0**-3, 2.0**30
"""The ends of the error axis; what is beyond stands there, points without a number
above."""

_ENDS = {"float16": (-24, 16, 8), "float64": (-60, 60, 20)}
"""Exponents of the input axis: where it gives way to 0, its end, and a step."""


def write_pictures(audits: Iterable[TargetAudit], folder: Path) -> tuple[Path, ...]:
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
                path, metadata={"Date": None, "Creator": "gradspec"}
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
    from gradspec.checks.instances import stem

    ours = row.emitted
    by = stem(ours.variable or next(iter(ours.columns)))
    name = next(column for column in ours.columns if stem(column) == by)
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
