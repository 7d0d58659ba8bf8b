"""Progress on standard error: a bar on a terminal, or a line per file (`--verbose`)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Advance = Callable[[str], None]
"""A callback that takes the name of a finished piece of work."""


@contextmanager
def bar(what: str, total: int, is_verbose: bool = False) -> Iterator[Advance]:
    """Gives a function to call after each of ``total`` pieces of work.

    On a terminal a bar stands from the start and is gone at the end. With
    ``is_verbose`` there is a line per piece instead, with the seconds since the last
    one.
    """
    if is_verbose:
        yield _lines()
    elif sys.stderr.isatty() and total:
        with _on_terminal(what, total) as advance:
            yield advance
    else:
        yield lambda _: None


def _lines() -> Advance:
    last = time.monotonic()

    def advance(name: str) -> None:
        nonlocal last
        now = time.monotonic()
        click.echo(f"{name}  {now - last:.1f} s", err=True)
        last = now

    return advance


@contextmanager
def _on_terminal(what: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda name: shown.update(task, advance=1, description=f"{what} {name}")
