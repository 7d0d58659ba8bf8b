"""The output of the command ``test``."""

from __future__ import annotations

from dataclasses import replace

from gradspec.driver.discover import Entry
from gradspec.driver.results import FileResult
from gradspec.options import Options
from gradspec.report.progress import bar


def tried(
    entries: tuple[Entry, ...],
    results: tuple[FileResult, ...],
    options: Options,
    style: str,
) -> tuple[bool, bool]:
    """Trials of rules against the truth and each other. Returns whether a framework is
    missing, and whether something failed.
    """
    from gradspec.driver import trials
    from gradspec.report import trial_text

    with bar("testing", len(options.targets)) as progress:
        reports = trials.run(entries, results, options, progress)
    trial_text.show(reports, style)
    return any(r.absent for r in reports), any(r.failures for r in reports)


def conformed(
    entries: tuple[Entry, ...],
    results: tuple[FileResult, ...],
    options: Options,
    style: str,
) -> tuple[bool, bool]:
    """The matrix of rules and features; the same two answers."""
    from gradspec.driver import conforming
    from gradspec.report import matrix_text

    subjects = conforming.subjects(entries, results, options)
    markers = replace(conforming.markers(options), ways=conforming.DOUBTED)
    given = (markers, *subjects)
    with bar("testing", len(options.targets)) as progress:
        matrices = conforming.run(given, options, progress)
    matrix_text.show(matrices, style)
    return any(m.absent for m in matrices), any(m.failed for m in matrices)
