"""The cell magic ``%%gradspec``: compile a cell of rules and define its functions.

IPython is not imported: only the shell that loads the extension is used.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from typing import Any

import click

from gradspec import arguments
from gradspec.driver import cache
from gradspec.driver.imported import import_module
from gradspec.driver.run import compile_rules
from gradspec.ir.plain import shelved
from gradspec.notebook.page import CellOutput
from gradspec.notebook.plot import give_plots
from gradspec.options import Options
from gradspec.source import Source
from gradspec.targets import TARGETS, outside_targets

MAGIC = "gradspec"
_FILE = "cell.grad"
"""A cell's file name in messages; its imports are relative to the working folder."""


def register(shell: Any) -> None:
    """Add the magic to an IPython shell."""
    shell.register_magic_function(partial(run_cell, shell), "cell", MAGIC)


def run_cell(shell: Any, line: str, cell: str) -> CellOutput | None:
    """Compile a cell and define its public functions in the user's namespace. The
    result is shown by the notebook; None if the line of the magic is wrong, which is
    printed.
    """
    try:
        options = _options.main(shlex.split(line), f"%%{MAGIC}", standalone_mode=False)
    except click.ClickException as fault:
        fault.show()
        return None
    except ValueError as fault:
        click.echo(f"%%{MAGIC}: {fault}", err=True)
        return None
    return None if not isinstance(options, Options) else _compiled(shell, options, cell)


@click.command(add_help_option=True)
@click.option(
    "--target",
    default=TARGETS[0],
    show_default=True,
    type=click.Choice((*TARGETS, *outside_targets())),
    help="The framework of the functions.",
)
@arguments.options(Options, "strict", "as_written", "budget", "ignored")
def _options(target: str, options: Options) -> Options:
    """Compile the rules of the cell and define their functions."""
    return replace(options, targets=(target,))


def _compiled(shell: Any, options: Options, cell: str) -> CellOutput:
    (target,) = options.targets
    text = f"\n{cell}"  # lines count from that of the magic, as the notebook shows them
    with shelved(cache.rules()):
        compiled, _ = compile_rules(Source(_FILE, text), _FILE, options)
    names: dict[str, Any] = {}
    for emitted in compiled.modules:
        try:
            module = import_module(emitted)
        except ModuleNotFoundError as missing:
            click.echo(f"{missing}: pip install 'gradspec[{target}]'", err=True)
            continue
        names = {name: getattr(module, name) for name in module.__all__}
        give_plots(module, (checked.rule.name for checked in compiled.rules))
    shell.push(names)
    return CellOutput(target, compiled.rules, compiled.diagnostics, tuple(names))
