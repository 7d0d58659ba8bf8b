"""The results of an audit, in the requested format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradspec.options import AuditOptions
from gradspec.report import audit_machine, audit_plot, audit_text, audit_values

if TYPE_CHECKING:
    from gradspec.driver.audits import TargetAudit
    from gradspec.ir.rule import CheckedRule
    from gradspec.stabilise.choice import Tried


@dataclass(frozen=True, slots=True)
class View:
    """``limit`` in tolerances makes the audit a test; ``plot`` and ``values`` are
    folders for pictures and for every point; ``explained`` are rules to explain first.
    """

    style: str = "text"
    limit: float | None = None
    plot: str | None = None
    values: str | None = None
    explained: tuple[tuple[CheckedRule, tuple[Tried, ...]], ...] = ()


def show(audits: Iterable[TargetAudit], options: AuditOptions, view: View) -> bool:
    """Print and draw; True if something raised, or is over the limit."""
    audits = tuple(audits)
    found = tuple(f for audit in audits for f in audit.findings)
    if view.style == "json":
        click.echo(audit_machine.document(audits, options))
    else:
        audit_text.explain(view.explained)
        audit_text.show(audits)
    if view.plot is not None:
        drawn = audit_plot.write(audits, Path(view.plot))
        click.echo(f"{len(drawn)} pictures in {view.plot}", err=True)
    if view.values is not None:
        kept = audit_values.write(audits, Path(view.values))
        click.echo(f"{len(kept)} files in {view.values}", err=True)
    guilty = () if view.limit is None else audit_text.over(found, view.limit)
    if guilty and view.limit is not None:
        audit_text.blame(guilty, view.limit)
    raised = any(side in ("", "emitted") for a in audits for _, _, side, _ in a.faults)
    return bool(guilty) or raised
