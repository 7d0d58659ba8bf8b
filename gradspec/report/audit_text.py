"""An audit for people: a table a file, then what is wrong and where."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from gradspec.report.audit_rows import Row, rows

if TYPE_CHECKING:
    from gradspec.audit.cases import Finding
    from gradspec.audit.measure import Spot
    from gradspec.driver.audits import TargetAudit
    from gradspec.ir.rule import CheckedRule
    from gradspec.stabilise.choice import Candidate, Tried

_HEADINGS = ("rule", "", "target", "format")
_FIGURES = ("bad", "core", "whole", "ULP")
_SIDES = ("", "its own", "as written")
_WIDE = 150
"""Columns for a pipe or a log, which have no width."""

_SHOWN = 20


def show(audits: Iterable[TargetAudit]) -> None:
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


def explain(rules: Iterable[tuple[CheckedRule, tuple[Tried, ...]]]) -> None:
    """The rewrites of each rule, from and to, with reasons; the candidates tried."""
    for checked, tried in rules:
        rule = checked.rule
        line, _ = rule.source.position(rule.name_span.start)
        click.secho(f"{rule.name} ({rule.source.path}:{line})", bold=True)
        if not checked.rewrites:
            click.echo("  evaluated as written: nothing measured better")
        for rewrite in checked.rewrites:
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
    from gradspec.ir.text import show

    written, selected = tried.choice.written, tried.choice.selected
    if len(tried.measured) < 2:
        return
    click.echo(f"  tried for {show(written.form)}:")
    click.echo(f"    {len(tried.measured)} candidates were measured in both formats")
    click.echo(f"    as written: {_scored(written)}; selected: {_scored(selected)}")
    ranked = sorted(tried.measured, key=lambda candidate: candidate.faults)
    for candidate in ranked[:_RIVALS]:
        text = show(candidate.form)
        mark = "*" if candidate is selected else " "
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        click.echo(f"   {mark} {_scored(candidate):>34}  {short}")


def _scored(candidate: Candidate) -> str:
    """``3 bad points, else up to 1.2 tolerances``."""
    bad = sum(score.bad for score in candidate.scores)
    worst = max(score.worst for score in candidate.scores)
    if not bad:
        return f"up to {figure(worst)} tolerances"
    return f"{bad} bad point{'' if bad == 1 else 's'}"


def over(found: Iterable[Finding], limit: float) -> tuple[Finding, ...]:
    """Emitted values with an error beyond ``limit`` tolerances, or no number."""
    return tuple(f for f in found if f.side == "emitted" and f.whole.worst > limit)


def blame(guilty: tuple[Finding, ...], limit: float) -> None:
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
    from rich.console import Console
    from rich.markup import escape

    width = None if sys.stdout.isatty() else _WIDE
    console = Console(highlight=False, width=width)
    for display in dict.fromkeys(line.emitted.display for line in lines):
        console.print(f"[dim]{escape(display)}[/dim]")
        console.print(_table([x for x in lines if x.emitted.display == display]))
    if lines:
        console.print(f"[dim]{_LEGEND}[/dim]")


_LEGEND = (
    "bad: points of the whole domain with an error of more than 4 tolerances, or no"
    " number. core, whole: the largest error in tolerances in the core (2^-12 ≤ |x| ≤ 128)"
    " and on the whole domain (∞: no number). ULP: the largest plain error in the core."
)


def _table(lines: list[Row]) -> object:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in _HEADINGS:
        table.add_column(f"\n{heading}", no_wrap=True)
    for side in _SIDES:
        for number, heading in enumerate(_FIGURES):
            above = side if number == 0 else ""
            table.add_column(f"{above}\n{heading}", justify="right", no_wrap=True)
    before = ""
    for line in lines:
        rule = "" if line.emitted.rule == before else line.emitted.rule
        before = line.emitted.rule
        table.add_row(rule, *_cells(line))
    return table


def _cells(line: Row) -> Iterator[str]:
    ours = line.emitted
    yield from (ours.name, ours.target, ours.dtype)
    for finding in (ours, line.native, line.written):
        yield from ("–",) * len(_FIGURES) if finding is None else _figures(finding)


def _figures(finding: Finding) -> Iterator[str]:
    bad = finding.whole.bad
    yield f"[red]{bad}[/red]" if bad else "0"
    yield _graded(finding.core.worst)
    yield _graded(finding.whole.worst)
    yield f"[dim]{figure(finding.core.ulp)}[/dim]"


def _graded(value: float) -> str:
    colour = "green" if value <= 4 else "red"
    return f"[{colour}]{figure(value)}[/{colour}]"


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
