"""The sides of each measurement next to one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradspec.audit.cases import Finding


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
