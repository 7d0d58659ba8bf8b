"""Standard output and standard error where they are closed, full, or left by their
reader: the command goes on without them, and its exit code is its own. A fault of
gradspec goes to a file; progress to standard error, as a bar on a terminal or a line
per file (`--verbose`). Tables have the same columns on a terminal and in a pipe.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import click

from gradspec.version import versions

_LEFT = {errno.EPIPE} | ({errno.EINVAL} if os.name == "nt" else set())
"""Errors that mean that the reader (`head`, a pager) has gone."""


class _Patient(io.FileIO):
    """A stream that drops text that cannot be written, and keeps the reason."""

    fault = ""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as fault:
            if fault.errno not in _LEFT:
                self.fault = fault.strerror or "it cannot be written"
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return len(data)


def prepare() -> None:
    """Put patient streams in the place of Python's own, which raise, and open what is
    closed: the next file that is opened would be taken for it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, sys.stderr)


def is_lost() -> bool:
    """True, with a line on standard error, if some output could not be written."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    reason = raw.fault if isinstance(raw, _Patient) else ""
    if reason:
        click.echo(f"cannot write to standard output: {reason}", err=True)
    return bool(reason)


def _stream(number: int, own: TextIO | None) -> TextIO:
    """A tolerant stream; a terminal stays as it is. No character is an error."""
    if isinstance(own, io.TextIOWrapper) and own.isatty():
        own.reconfigure(errors="backslashreplace")
        return own
    return io.TextIOWrapper(
        io.BufferedWriter(_Patient(number, "w", closefd=False)),
        encoding=own.encoding if own else "utf-8",
        errors="backslashreplace",
        line_buffering=number == 2,
    )


def tell(fault: Exception) -> None:
    """Report a fault of ours, with the details in a file."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="gradspec-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"{versions()}\n")
        file.writelines(traceback.format_exception(fault))
    click.echo(
        f"gradspec failed by a fault of its own ({type(fault).__name__}); nothing was"
        f" written.\nPlease report it with the rule and {file.name}",
        err=True,
    )


# --- progress ----------------------------------------------------------------------

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


# --- tables ---------------------------------------------------------------------------


def align_columns(rows: Iterable[Sequence[str]], words: int | None = None) -> str:
    """The rows with their columns in line; the first ``words`` columns (all, if it is
    not given) from the left, those of numbers from the right. Styles of cells stay:
    `click.echo` leaves them out where they are not shown.
    """
    table = [[*row] for row in rows]
    columns = list(zip(*table, strict=True))
    widths = [max(map(_width, column)) for column in columns]
    first = len(columns) if words is None else words
    lines = (
        "  ".join(
            cell + " " * (width - _width(cell))
            if k < first
            else " " * (width - _width(cell)) + cell
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    )
    return "\n".join(line.rstrip() for line in lines)


def style_cells(cells: Iterable[str], **style: Any) -> list[str]:
    """Cells in a style."""
    return [click.style(cell, **style) if cell else "" for cell in cells]


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
