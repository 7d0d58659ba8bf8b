"""Every point of an audit, for other programs: a CSV file a rule, target and format.

A line is a point: the inputs, for each quantity the truth (as the sum of two doubles)
and the tolerance, and for each side what came out with its error, in tolerances and in
ULP. Numbers are written so that reading them gives the same doubles.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradspec.audit.cases import Finding
    from gradspec.driver.audits import TargetAudit

Column = tuple[str, list[str]]


def write(audits: Iterable[TargetAudit], folder: Path) -> tuple[Path, ...]:
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


def _columns(findings: list[Finding]) -> Iterator[Column]:
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
        yield f"{finding.name} {finding.side} error", _judged(finding, "error")
        yield f"{finding.name} {finding.side} ulp", _judged(finding, "ulp")


def _numbers(column: object) -> list[str]:
    return [repr(float(value)) for value in column]  # type: ignore[attr-defined]


def _judged(finding: Finding, name: str) -> list[str]:
    """``error`` or ``ulp``; empty where nothing is judged."""
    column = getattr(finding.found, name).tolist()
    judged = finding.found.judged.tolist()
    return [
        repr(value) if is_judged else ""
        for value, is_judged in zip(column, judged, strict=True)
    ]
