"""The cell magic ``%%gradspec``, and the output of a cell of rules, as HTML for a
notebook and as text for a terminal. IPython is not imported: only the shell that loads
the extension is used.

Text of the user's is inside ``<code>`` or ``<pre>``, escaped, so that a browser reads
it as no HTML and a notebook as no LaTeX.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from io import StringIO
from typing import Any

import click

from gradspec.arguments import options as flags
from gradspec.diagnostics import Diagnostic
from gradspec.driver import cache
from gradspec.driver.cache import import_module, row
from gradspec.driver.run import compile_rules
from gradspec.ir.plain import use_shelf
from gradspec.ir.rule import Judged, Status
from gradspec.notebook import latex
from gradspec.notebook.formulas import forward_formulas, gradient_formulas
from gradspec.notebook.plot import give_plots
from gradspec.options import Options
from gradspec.report.diagnostics import printable, render
from gradspec.report.summary import describe, verdicts
from gradspec.source import Source
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse
from gradspec.targets import TARGETS, outside_targets

_COLOURS = {
    Status.PROVED: "#2e8b57",
    Status.DERIVED: "#2e8b57",
    Status.AGREES: "#c77700",
    Status.OVERRIDE: "#a04fb5",
    Status.REFUTED: "#cc3333",
}
_GREY = (128, 128, 128)
_RED, _ORANGE, _BLUE, _TEAL = (
    (204, 51, 51),
    (199, 119, 0),
    (65, 105, 225),
    (0, 139, 139),
)
_ANSI = [_GREY, _RED, _GREY, _ORANGE, _BLUE, _GREY, _TEAL, _GREY]
"""A terminal's colours, so that they can be read on white and on black."""

_LEFT = 'style="text-align: left; vertical-align: top"'
_WORDS = 'style="font-family: inherit; background: none; white-space: normal"'


@dataclass(frozen=True, slots=True)
class CellOutput:
    """The result of a cell: its rules, diagnostics, and the names that it defined."""

    target: str
    rules: tuple[Judged, ...]
    diagnostics: tuple[Diagnostic, ...]
    defined: tuple[str, ...]

    def __repr__(self) -> str:
        import click

        lines = [f"{r.rule.name}  {verdicts(row(r))}" for r in self._shown]
        findings = [click.unstyle(render(found)) for found in self.diagnostics]
        return "\n\n".join(["\n".join([*lines, _summary(self)]), *findings])

    def _repr_html_(self) -> str:
        table = list(_table(self._shown))
        if table:
            titles = ("rule", "formula", "gradients", "verdicts")
            head = "".join(f"<th {_LEFT}>{title}</th>" for title in titles)
            table = [f"<table><tr>{head}</tr>", *table, "</table>"]
        findings = [_finding(found) for found in self.diagnostics]
        summary = f"<p><code {_WORDS}>{escape(_summary(self))}</code></p>"
        return "\n".join([*table, summary, *findings])

    @property
    def _shown(self) -> tuple[Judged, ...]:
        """The rules, unless some have errors: then those alone."""
        return () if any(d.is_error for d in self.diagnostics) else self.rules


def _summary(output: CellOutput) -> str:
    if output.defined:
        return f"Defined for {output.target}: {', '.join(output.defined)}"
    return "Nothing is defined."


def _finding(found: Diagnostic) -> str:
    """A diagnostic as in a terminal, with its colours."""
    from rich.console import Console
    from rich.terminal_theme import TerminalTheme
    from rich.text import Text

    console = Console(
        record=True, file=StringIO(), width=10_000, force_jupyter=False
    )  # in Jupyter it would show the text itself, beside the cell's result
    console.print(Text.from_ansi(render(found)), soft_wrap=True)
    pre = '<pre style="overflow-x: auto; line-height: 1.3">{code}</pre>'
    theme = TerminalTheme((255, 255, 255), (0, 0, 0), _ANSI)
    return console.export_html(theme=theme, inline_styles=True, code_format=pre)


# --- rules ----------------------------------------------------------------------------


def _table(rules: tuple[Judged, ...]) -> Iterator[str]:
    """A row for each `def` and for each gradient of each rule, in the order written."""
    by_name = {checked.rule.name: checked for checked in rules}
    module = parse(rules[0].rule.source).value if rules else None
    for item in module.items if module else ():
        match item:
            case nodes.FunctionDef(name):
                cells = (
                    f"<code>{escape(name)}</code>",
                    _line(latex.function(item)),
                    "",
                    "",
                )
                yield f"<tr>{''.join(f'<td {_LEFT}>{cell}</td>' for cell in cells)}</tr>"
            case nodes.RuleDef(name) if name in by_name:
                yield from _rows(by_name[name], item)


def _rows(checked: Judged, definition: nodes.RuleDef) -> Iterator[str]:
    """The rows of a rule; name and formula span all gradients."""
    gradients = list(_gradients(checked, definition)) or [("", "no gradient")]
    height = f'rowspan="{len(gradients)}"'
    title = f"<code>{escape(definition.name)}</code>{_doc(definition)}"
    formulas = "".join(map(_line, forward_formulas(checked.rule, definition)))
    first = f"<td {height} {_LEFT}>{title}</td><td {height} {_LEFT}>{formulas}</td>"
    for gradient, verdict in gradients:
        yield f"<tr>{first}<td {_LEFT}>{gradient}</td><td {_LEFT}>{verdict}</td></tr>"
        first = ""


def _doc(definition: nodes.RuleDef) -> str:
    """The first paragraph of the author's words."""
    paragraph = textwrap.dedent(definition.doc or "").strip().split("\n\n")[0]
    words = escape(printable(" ".join(paragraph.split())))
    return f"<br><code {_WORDS}>{words}</code>" if words else ""


def _gradients(checked: Judged, definition: nodes.RuleDef) -> Iterator[tuple[str, str]]:
    """Pairs of a gradient (or a local that only gradients use) and its verdict."""
    verdicts = {f"d{verdict.input}": verdict for verdict in checked.verdicts}
    for one in gradient_formulas(checked, definition):
        line = _line(one.latex) if one.latex else f"<code>{escape(one.text)}</code>"
        verdict = verdicts.get(one.name)
        if verdict is None:
            yield line, ""
            continue
        said = escape(describe(verdict))
        said = f'<span style="color: {_COLOURS.get(verdict.status)}">{said}</span>'
        if one.reason:
            said += f": <code {_WORDS}>{escape(printable(one.reason))}</code>"
        yield line, said


def _line(text: str) -> str:
    return rf"<div>$\displaystyle {escape(text)}$</div>"


# --- magic ----------------------------------------------------------------------------


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
    return (
        None
        if not isinstance(options, Options)
        else _compile_cell(shell, options, cell)
    )


@click.command(add_help_option=True)
@click.option(
    "--target",
    default=TARGETS[0],
    show_default=True,
    type=click.Choice((*TARGETS, *outside_targets())),
    help="The framework of the functions.",
)
@flags(Options, "strict", "as_written", "budget", "ignored")
def _options(target: str, options: Options) -> Options:
    """Compile the rules of the cell and define their functions."""
    return replace(options, targets=(target,))


def _compile_cell(shell: Any, options: Options, cell: str) -> CellOutput:
    (target,) = options.targets
    text = f"\n{cell}"  # lines count from that of the magic, as the notebook shows them
    with use_shelf(cache.rules()):
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
