"""A fault of gradspec: the details go to a file that can be attached to a report."""

from __future__ import annotations

import sys
import tempfile
import traceback

import click

from gradspec import __version__


def tell(fault: Exception) -> None:
    with tempfile.NamedTemporaryFile(
        "w", prefix="gradspec-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"gradspec {__version__}, Python {sys.version}\n")
        file.writelines(traceback.format_exception(fault))
    click.echo(
        f"gradspec failed by a fault of its own ({type(fault).__name__}); nothing was"
        f" written.\nPlease report it with the rule and {file.name}",
        err=True,
    )
