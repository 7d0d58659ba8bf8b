"""The command line: it arranges and prints; the work is done elsewhere.

Only click is imported here, so that ``gradspec --help`` is quick; each command imports
what it needs when it runs.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gradspec import __version__, arguments
from gradspec.options import AuditOptions, Options

if TYPE_CHECKING:
    from gradspec.diagnostics import Diagnostic
    from gradspec.driver.boundaries import RuleTable
    from gradspec.driver.discover import Entry
    from gradspec.driver.results import FileResult

CLEAN, FINDINGS, FAILURE = 0, 1, 2
GUARDED = "guarded"
"""The context's object where the command is a process of its own: it works in workers."""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88}
)
@click.version_option(__version__, prog_name="gradspec", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Write the mathematics once, get gradients that are right everywhere.

    Rules stand in .grad files. `compile` proves them and writes modules for NumPy,
    PyTorch, TensorFlow and JAX; exit codes: 0 clean, 1 findings, 2 wrong usage or our
    fault. What the table [tool.gradspec] of pyproject.toml says (paths, targets, out,
    strict, budget, ignore) holds where an option does not.
    """
    from gradspec.driver import settings

    if context.invoked_subcommand not in settings.COMMANDS:
        return
    try:
        context.default_map = settings.defaults(Path.cwd())
    except settings.WrongSettings as fault:
        raise click.ClickException(f"{fault}") from fault


@cli.command("compile")
@arguments.paths
@arguments.targets
@click.option(
    "--out",
    default="generated",
    show_default=True,
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Modules go to DIR/<target>/…",
)
@arguments.strict
@click.option(
    "--trace", is_flag=True, help="Emit modules that print what passes through."
)
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Write nothing; fail when DIR is not what would be written.",
)
@arguments.as_written
@arguments.report
@arguments.ignored
@arguments.budget
@arguments.jobs
@arguments.verbose
@arguments.quiet
@arguments.style
def compile_command(
    paths: tuple[str, ...],
    targets: tuple[str, ...],
    out: str,
    strict: bool,
    trace: bool,
    only_check: bool,
    as_written: bool,
    report: bool,
    ignored: tuple[str, ...],
    budget: float,
    jobs: int,
    verbose: bool,
    quiet: bool,
    style: str,
) -> None:
    """Check the rules in PATH... and write a module per file and target; `-` is standard
    input."""
    options = Options(
        targets,
        strict,
        trace,
        budget,
        as_written=as_written,
        report=report,
        ignored=ignored,
    )
    from gradspec.driver import run, runtimes, write
    from gradspec.report.diagnostic_text import printable

    entries, found = _discover(paths)
    found += runtimes.hidden(Path(out), targets)
    results: tuple[FileResult, ...] = ()
    if not found:
        results = _compile("compiling", entries, options, jobs, verbose)
    failed = bool(found) or any(result.failed for result in results)
    files = () if failed else run.output_files(results)
    folder = Path(out)
    step = write.stale if only_check else write.write
    try:
        touched = step(folder, files)
    except write.CannotWrite as fault:
        told = printable(f"{fault}; give another folder, --out")
        raise click.ClickException(told) from fault
    changed = tuple(f"{folder.as_posix()}/{f.path}" for f in touched)
    stale = tuple(write.not_up_to_date(path) for path in changed) if only_check else ()
    mixed = write.of_other_versions(folder, files)
    _report(results, (*found, *stale, *mixed), changed, style)
    if style == "text" and report:
        from gradspec.report import costs

        costs.tell(results)
    if style == "text" and not failed and not quiet:
        _conclude(results, changed, "to be written" if only_check else "written", out)
    sys.exit(FINDINGS if failed or stale else CLEAN)


@cli.command("check")
@arguments.paths
@arguments.strict
@arguments.boundaries
@arguments.evidence
@arguments.second_order
@arguments.ignored
@arguments.budget
@arguments.jobs
@arguments.quiet
@arguments.style
def check_command(
    paths: tuple[str, ...],
    strict: bool,
    boundaries: bool,
    evidence: bool,
    order: int,
    ignored: tuple[str, ...],
    budget: float,
    jobs: int,
    quiet: bool,
    style: str,
) -> None:
    """Check the rules in PATH... and print the verdict on each gradient; `-` is standard
    input."""
    entries, found = _discover(paths)
    options = Options((), strict, budget=budget, order=order, ignored=ignored)
    results = _compile("checking", entries, options, jobs) if not found else ()
    tables = _boundaries(entries) if boundaries and not found else ()
    _report(results, found, (), style, tables)
    if style == "text":
        if not quiet:
            (_print_evidence if evidence else _print_table)(results)
        from gradspec.report.boundaries import tell

        tell(tables)
    failed = bool(found) or any(result.failed for result in results)
    sys.exit(FINDINGS if failed else CLEAN)


@cli.command("test")
@arguments.optional_paths
@arguments.targets
@arguments.conformance
@arguments.budget
@arguments.jobs
@arguments.style
def test_command(
    paths: tuple[str, ...],
    targets: tuple[str, ...],
    conformance: bool,
    budget: float,
    jobs: int,
    style: str,
) -> None:
    """Run the emitted modules of PATH... in their frameworks.

    Each rule's examples, its values and gradients against ball arithmetic, gradcheck
    and gradgradcheck (torch), nested GradientTapes (tf), forward mode (jax), and
    agreement between targets; in child processes. With --conformance: each rule, and
    built-in marker rules, through every feature of the frameworks, as a matrix.
    """
    if not paths and not conformance:
        raise click.UsageError("name at least one PATH")
    entries, found = _discover(paths) if paths else ((), ())
    options = Options(targets, budget=budget)
    results = _compile("compiling", entries, options, jobs) if not found else ()
    failed = bool(found) or any(result.failed for result in results)
    if failed or style != "json":
        _report(results, found, (), style)
    if failed:
        sys.exit(FINDINGS)
    from gradspec.report import tested

    run = tested.conformed if conformance else tested.tried
    absent, failed = run(entries, results, options, style)
    sys.exit(FAILURE if absent else FINDINGS if failed else CLEAN)


@cli.command("audit")
@arguments.paths
@arguments.targets
@arguments.dtypes
@arguments.order
@arguments.points
@arguments.as_written
@arguments.explained
@arguments.plot
@arguments.values
@arguments.limit
@arguments.budget
@arguments.jobs
@arguments.audit_style
def audit_command(
    paths: tuple[str, ...],
    targets: tuple[str, ...],
    dtypes: tuple[str, ...],
    order: int,
    points: int,
    as_written: bool,
    explained: str | None,
    plot: str | None,
    values: str | None,
    limit: float | None,
    budget: float,
    jobs: int,
    style: str,
) -> None:
    """Measure the emitted modules of PATH... in their frameworks.

    Values and gradients of elementwise rules against ball arithmetic, beside the
    framework's own functions and its differentiation of the formula as written.
    """
    entries, found = _discover(paths)
    options = Options(targets, budget=budget, as_written=as_written)
    workers = jobs or os.cpu_count() or 1
    results = _compile("compiling", entries, options, workers) if not found else ()
    if found or any(result.failed for result in results):
        _report(results, found, (), "text")
        sys.exit(FINDINGS)
    from gradspec.driver import audits
    from gradspec.report import audit

    only = (explained,) if explained else ()
    asked = AuditOptions(dtypes, order, points, workers, only)
    with _bar("measuring", audits.steps(entries, options)) as progress:
        done = audits.run(entries, results, options, asked, progress)
    told = audits.explained(entries, options, explained) if explained else ()
    failed = audit.show(done, asked, audit.View(style, limit, plot, values, told))
    if any(one.absent for one in done):
        sys.exit(FAILURE)
    sys.exit(FINDINGS if failed else CLEAN)


@cli.command("fmt")
@arguments.paths
@click.option(
    "--check", "only_check", is_flag=True, help="Write nothing; fail on a difference."
)
@click.option("--diff", is_flag=True, help="Write nothing; print the differences.")
def fmt_command(paths: tuple[str, ...], only_check: bool, diff: bool) -> None:
    """Put the rules in PATH... into the canonical layout; `-` is standard input.

    Lines of 88 columns, four spaces, no needless brackets; comments stay. No formula is
    changed. A file with a syntax error is reported and left alone.
    """
    from gradspec.driver import formatting
    from gradspec.driver.write import CannotWrite
    from gradspec.report.diagnostic_text import printable

    entries, found = _discover(paths)
    if [entry.data is None for entry in entries] == [False]:
        (one,) = map(formatting.format_entry, entries)
        _report((), one.found, (), "text")
        click.echo(one.after or "", nl=False)
        sys.exit(FINDINGS if one.after is None else CLEAN)
    files = [] if found else list(map(formatting.format_entry, entries))
    found += tuple(d for one in files for d in one.found)
    _report((), found, (), "text")
    changed = [one for one in files if one.is_changed]
    try:
        for one in changed:
            if diff:
                click.echo(formatting.difference(one), nl=False)
            elif only_check:
                click.echo(f"would format {printable(one.path)}")
            else:
                formatting.save(one)
    except CannotWrite as fault:
        raise click.ClickException(printable(f"{fault}")) from fault
    word = "to format" if only_check or diff else "formatted"
    click.echo(f"{len(changed)} of {len(files)} files {word}", err=diff)
    sys.exit(FINDINGS if found or (only_check and changed) else CLEAN)


@cli.command("explain")
@click.argument("code", required=False)
def explain_command(code: str | None) -> None:
    """Explain a code (GS402), or list all codes."""
    from gradspec.report import explain

    if code is None:
        click.echo(explain.listing())
        return
    page = explain.page(code)
    if page is None:
        raise click.BadParameter(
            f"there is no code {code}; `gradspec explain` lists them", param_hint="CODE"
        )
    click.echo(page, nl=False)


@cli.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script for a shell: eval "$(gradspec completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.BadParameter(f"click has no completion for {shell}")
    click.echo(kind(cli, {}, "gradspec", "_GRADSPEC_COMPLETE").source())


def main() -> NoReturn:
    """Run; no traceback ever reaches a user, and no rule hangs what works on rules."""
    from gradspec.report.streams import prepare

    prepare()
    for name in ("SIGTERM", "SIGHUP"):
        kind = getattr(signal, name, None)
        if kind is not None and signal.getsignal(kind) is signal.SIG_DFL:
            signal.signal(kind, _interrupt)
    sys.exit(_run())


def _interrupt(number: int, _: object) -> NoReturn:
    """To be told to end is an interrupt, with an exit code of its own."""
    raise KeyboardInterrupt(number)


def _run() -> int:
    """The exit code of the command."""
    try:
        code = cli.main(prog_name="gradspec", standalone_mode=False, obj=GUARDED)
    except click.ClickException as wrong:
        wrong.show()
        code = FAILURE
    except (click.Abort, KeyboardInterrupt) as stopped:
        click.echo("interrupted; no file was left half-written", err=True)
        told = (stopped.__cause__ or stopped).args
        code = 128 + (told[0] if told else signal.SIGINT)
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except Exception as fault:
        from gradspec.report.fault import tell

        tell(fault)
        code = FAILURE
    from gradspec.report.streams import is_lost

    if is_lost():
        return FAILURE
    return code if isinstance(code, int) else CLEAN


# --- shared steps --------------------------------------------------------------------


def _discover(
    paths: tuple[str, ...],
) -> tuple[tuple[Entry, ...], tuple[Diagnostic, ...]]:
    from gradspec.driver.discover import discover

    outcome = discover(paths)
    return outcome.value or (), outcome.diagnostics


def _compile(
    what: str,
    entries: tuple[Entry, ...],
    options: Options,
    jobs: int,
    verbose: bool = False,
) -> tuple[FileResult, ...]:
    from gradspec.driver.run import compile_entries

    workers = jobs or os.cpu_count() or 1
    with _bar(what, len(entries), verbose) as progress:
        is_guarded = click.get_current_context().obj == GUARDED
        return compile_entries(entries, options, workers, progress, is_guarded)


def _bar(what: str, total: int, verbose: bool = False) -> Any:
    from gradspec.report.progress import bar

    return bar(what, total, verbose)


def _report(
    results: tuple[FileResult, ...],
    others: tuple[Diagnostic, ...],
    changed: tuple[str, ...],
    style: str,
    tables: tuple[RuleTable, ...] = (),
) -> None:
    found = (*others, *(d for result in results for d in result.diagnostics))
    if style == "json":
        from gradspec.report.machine import document

        click.echo(document(results, others, changed, tables))
        return
    if not found:
        return
    if style == "github":
        from gradspec.report.machine import github

        _each(click.echo, github(found))
        return
    from gradspec.report.diagnostic_text import render

    _each(lambda d: click.echo(f"{render(d)}\n", err=True), found)
    grave = [d.severity.value for d in found]
    counts = [_counted(grave.count(noun), noun) for noun in ("error", "warning")]
    counts += [_counted(grave.count("note"), "note")] if "note" in grave else []
    click.echo(", ".join(counts), err=True)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _each(action: Callable[[Any], None], values: Iterable[Any]) -> None:
    for value in values:
        action(value)


def _conclude(
    results: tuple[FileResult, ...], changed: tuple[str, ...], word: str, out: str
) -> None:
    """A table on a terminal, one line anywhere."""
    from gradspec.report.diagnostic_text import printable
    from gradspec.report.summary import totals

    if sys.stdout.isatty():
        _print_table(results)
    files = f"{len(changed)} files {word}" if changed else "nothing to write"
    click.echo(f"{totals(results)}; {files} in {printable(out)}")


def _print_evidence(results: tuple[FileResult, ...]) -> None:
    from gradspec.report.evidence import lines

    _each(click.echo, lines(results))


def _print_table(results: tuple[FileResult, ...]) -> None:
    from gradspec.report import summary

    if sys.stdout.isatty():
        summary.print_table(results)
    elif table := summary.plain_table(results):
        click.echo(table)


def _boundaries(entries: tuple[Entry, ...]) -> tuple[RuleTable, ...]:
    from gradspec.driver.boundaries import tables

    with _bar("looking at boundaries", len(entries)) as progress:
        return tables(entries, progress)
