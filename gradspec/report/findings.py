"""The findings of a command, printed in the chosen style."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gradspec.diagnostics import Diagnostic
from gradspec.driver.cache import FileResult
from gradspec.report.diagnostics import document, github, render
from gradspec.report.sarif import of_diagnostics

if TYPE_CHECKING:
    from gradspec.measure.boundaries import RuleTable


def show_findings(
    results: tuple[FileResult, ...],
    others: tuple[Diagnostic, ...],
    changed: tuple[str, ...] = (),
    style: str = "text",
    tables: tuple[RuleTable, ...] = (),
) -> None:
    """Print findings of files and ``others``; texts go to stderr, documents to stdout."""
    found = (*others, *(d for result in results for d in result.diagnostics))
    if style == "json":
        click.echo(document(results, others, changed, tables))
    elif style == "sarif":
        click.echo(of_diagnostics(found))
    elif found and style == "github":
        click.echo("\n".join(github(found)))
    elif found:
        for diagnostic in found:
            click.echo(f"{render(diagnostic)}\n", err=True)
        grave = [d.severity.value for d in found]
        counts = [_quantity(grave.count(noun), noun) for noun in ("error", "warning")]
        counts += [_quantity(grave.count("note"), "note")] if "note" in grave else []
        click.echo(", ".join(counts), err=True)


def _quantity(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
