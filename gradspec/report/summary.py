"""The summary: each rule and the verdict on its gradients."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.driver.results import FileResult, RuleRow
from gradspec.ir.rule import Status, Verdict


def describe(verdict: Verdict) -> str:
    """A verdict in a few words: ``dx proved``, ``dx agrees (64 points, 30 digits)``."""
    name = f"d{verdict.input}"
    match verdict.status:
        case Status.AGREES:
            return f"{name} agrees ({verdict.points} points, {verdict.digits} digits)"
        case Status.PROVED if verdict.on_domain:
            return f"{name} proved{_sizes(verdict)} on the assumed domain"
        case Status.PROVED:
            return f"{name} proved{_sizes(verdict)}"
        case Status.DERIVED if verdict.through_surrogate:
            return f"{name} derived from the surrogate"
        case _:
            return f"{name} {verdict.status.value}"


def _sizes(verdict: Verdict) -> str:
    return f" at {verdict.sizes}" if verdict.sizes else ""


def verdicts(rule: RuleRow) -> str:
    """The verdicts of a rule, inputs without gradient left out."""
    told = [describe(v) for v in rule.verdicts if v.status is not Status.NONE]
    return (", ".join(told) or "no gradient") + _second(rule.second)


def _second(verdicts: tuple[Verdict, ...]) -> str:
    """``; second order proved``, or pair by pair where they differ."""
    kinds = dict.fromkeys(v.status for v in verdicts)
    if not kinds:
        return ""
    if len(kinds) == 1:
        return f"; second order {next(iter(kinds)).value}"
    told = (f"d{v.input.replace(',', ' by ')} {v.status.value}" for v in verdicts)
    return f"; second order: {', '.join(told)}"


def rows(results: Iterable[FileResult]) -> tuple[tuple[str, str, str], ...]:
    """(place, rule, verdicts) of every rule."""
    return tuple(
        (f"{result.display}:{rule.line}", rule.name, verdicts(rule))
        for result in results
        for rule in result.rules
    )


def totals(results: Iterable[FileResult]) -> str:
    """``12 rules: 3 cotangents proved, 9 derived``."""
    rules = [rule for result in results for rule in result.rules]
    counts = dict.fromkeys(Status, 0)
    for rule in rules:
        for verdict in rule.verdicts:
            counts[verdict.status] += 1
    told = [
        f"{count} {status.value}"
        for status, count in counts.items()
        if count and status is not Status.NONE
    ]
    noun = "rule" if len(rules) == 1 else "rules"
    return f"{len(rules)} {noun}" + (f" ({', '.join(told)})" if told else "")


def plain_table(results: Iterable[FileResult]) -> str:
    """Aligned columns for a pipe or a log."""
    table = rows(results)
    if not table:
        return ""
    widths = [max(len(line[column]) for line in table) for column in (0, 1)]
    return "\n".join(
        f"{place:<{widths[0]}}  {name:<{widths[1]}}  {told}"
        for place, name, told in table
    )


def print_table(results: Iterable[FileResult]) -> None:
    """The same with rich, for a terminal: a heading per file, columns in line."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    results = tuple(results)
    names = [rule.name for result in results for rule in result.rules]
    console = Console(highlight=False)
    for result in results:
        if not result.rules:
            continue
        console.print(f"[dim]{escape(result.display)}[/dim]")
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(width=max(map(len, names)) + 2)
        for rule in result.rules:
            table.add_row(f"  {rule.name}", _coloured(verdicts(rule)))
        console.print(table)


def _coloured(told: str) -> str:
    colours = (("proved", "green"), ("agrees", "yellow"), ("override", "magenta"))
    for word, colour in colours:
        told = told.replace(word, f"[{colour}]{word}[/{colour}]")
    return told
