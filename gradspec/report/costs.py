"""Costs of rules (`compile --report`): for a terminal, for a pipe, for machines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from gradspec.driver.results import FileResult
from gradspec.plan.cost import CostSummary

_HEADS = (
    *("rule", "target", "keeps", "beyond in and out"),
    *("calls", "transcendental", "arrays", "as one kernel"),
)
_LEFT = 4
"""The first columns are words, the others counts: forward + backward."""


def rows(results: Iterable[FileResult]) -> tuple[tuple[str, ...], ...]:
    """A row for each rule and target."""
    return tuple(
        _row(module.target, cost)
        for result in results
        for cost, module in _by_rule(result)
    )


def _by_rule(result: FileResult) -> Iterable[tuple[CostSummary, Any]]:
    """The rows grouped by rule, one for each target."""
    pairs = [(a, m) for m in result.modules for a in m.costs]
    order = {rule.name: k for k, rule in enumerate(result.rules)}
    return sorted(pairs, key=lambda pair: order.get(pair[0].rule, len(order)))


def _row(target: str, cost: CostSummary) -> tuple[str, ...]:
    ahead, behind = cost.forward, cost.backward
    return (
        cost.rule,
        target,
        ", ".join(cost.kept) or "-",
        _beyond(cost),
        _both(ahead.calls, behind.calls),
        _both(ahead.transcendental, behind.transcendental),
        _both(ahead.arrays, behind.arrays),
        _both(ahead.fused, behind.fused),
    )


def _both(ahead: int, behind: int) -> str:
    return f"{ahead} + {behind}"


def _beyond(cost: CostSummary) -> str:
    """``0 B``, or the other residuals and the bytes of an element."""
    if cost.beyond is None:
        return "as the framework has it"
    return ", ".join(f"{name} {size} B" for name, size in cost.beyond) or "0 B"


def plain(results: Iterable[FileResult]) -> str:
    """Aligned columns for a pipe or a log."""
    found = rows(results)
    if not found:
        return ""
    table = (_HEADS, *found)
    widths = [max(len(line[k]) for line in table) for k in range(len(_HEADS))]
    return "\n".join(_aligned(line, widths) for line in table)


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    cells = zip(line, widths, strict=True)
    return "  ".join(
        f"{cell:<{width}}" if k < _LEFT else f"{cell:>{width}}"
        for k, (cell, width) in enumerate(cells)
    ).rstrip()


def show(results: Iterable[FileResult]) -> None:
    """The same with rich."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for k, head in enumerate(_HEADS):
        table.add_column(head, justify="left" if k < _LEFT else "right")
    before = ""
    for name, *cells in rows(results):
        shown = name if name != before else ""
        table.add_row(*(escape(cell) for cell in (shown, *cells)))
        before = name
    if table.row_count:
        Console(highlight=False).print(table)


def tell(results: Iterable[FileResult]) -> None:
    """A table on a terminal, aligned columns anywhere."""
    results = tuple(results)
    if sys.stdout.isatty():
        show(results)
    elif table := plain(results):
        sys.stdout.write(f"{table}\n")


def data(result: FileResult) -> list[dict[str, Any]]:
    """For JSON: names as in the table, bytes an element."""
    return [
        {**asdict(cost), "target": module.target, "beyond": _named(cost)}
        for cost, module in _by_rule(result)
    ]


def _named(cost: CostSummary) -> list[dict[str, Any]] | None:
    if cost.beyond is None:
        return None
    return [{"name": n, "bytes_per_element": size} for n, size in cost.beyond]
