"""Standard output and standard error where they are closed, full, or left by their
reader: the command goes on without them, and its exit code is its own.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

import click

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
