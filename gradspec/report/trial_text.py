"""The results of trials, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

import click

from gradspec.driver.trials import Failure, TrialReport

SHOWN = 20
"""Failures shown: a rule that is wrong at one point is wrong at many."""


def show(reports: Iterable[TrialReport], style: str) -> None:
    """Print the reports in the chosen style."""
    reports = tuple(reports)
    match style:
        case "json":
            click.echo(json.dumps([asdict(r) for r in reports], indent=2))
        case "github":
            for report in (r for r in reports if r.absent):
                click.echo(f"::error title=GS611::{report.target}: {report.absent}")
            for failure in (f for r in reports for f in r.failures):
                click.echo(
                    f"::error file={failure.display},title=GS612::{_sentence(failure)}"
                )
        case _:
            _text(reports)


def _text(reports: tuple[TrialReport, ...]) -> None:
    for report in reports:
        for failure in report.failures[:SHOWN]:
            word = click.style("error[GS612]", fg="red", bold=True)
            click.echo(f"{word}: {_sentence(failure)}", err=True)
        more = len(report.failures) - SHOWN
        if more > 0:
            click.echo(f"  … and {more} more on {report.target}", err=True)
    for report in reports:
        click.echo(_line(report))


def _line(report: TrialReport) -> str:
    if report.absent:
        return f"{report.target}: error[GS611]: {report.absent}"
    failed = f", {len(report.failures)} failed" if report.failures else ""
    return f"{report.target}: {report.rules} rules, {report.checks} checks{failed}"


def _sentence(failure: Failure) -> str:
    where = f" at {failure.where}" if failure.where else ""
    return (
        f"{failure.rule} on {failure.target}: {failure.what}{where}: {failure.message}"
    )
