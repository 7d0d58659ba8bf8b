"""The evidence for a verdict, in a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradspec.driver.results import FileResult
from gradspec.ir.rule import Status, Verdict
from gradspec.report.summary import describe

_TOLD = (Status.PROVED, Status.AGREES, Status.REFUTED)


def lines(results: Iterable[FileResult]) -> Iterator[str]:
    """A line for every cotangent that was checked."""
    for result in results:
        for rule in result.rules:
            for verdict in rule.verdicts:
                if verdict.status in _TOLD:
                    place = f"{result.display}:{rule.line} {rule.name}"
                    yield f"{place}: {evidence(verdict)}"


def evidence(verdict: Verdict) -> str:
    """``dx proved: normal form, 12 ms; 24 points agree to 50 digits (256 bits)``."""
    if verdict.status is Status.REFUTED:
        parts = [f"by {verdict.method} at {verdict.bits} bits"]
    elif verdict.status is Status.PROVED:
        parts = [f"by {verdict.method}", *_points(verdict)]
    else:
        parts = list(_points(verdict))
    if verdict.assumed:
        parts.append(f"assuming {', '.join(verdict.assumed)}")
    if verdict.stopped:
        parts.append(f"stopped: {' and '.join(verdict.stopped)}")
    name = describe(verdict).partition(" (")[0]
    return f"{name}, {1000 * verdict.seconds:.0f} ms: {'; '.join(parts)}"


def _points(verdict: Verdict) -> Iterator[str]:
    if verdict.points:
        yield (
            f"{verdict.points} points agree to {verdict.digits} digits"
            f" ({verdict.bits} bits)"
        )
