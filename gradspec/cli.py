"""The command line: it arranges and prints; the work is done elsewhere.

Only click is imported here, so that ``gradspec --help`` is quick; each command imports
what it needs when it runs.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from gradspec import arguments
from gradspec.options import AuditOptions, Options
from gradspec.version import __version__, versions

if TYPE_CHECKING:
    from gradspec.checks.witness import Witness
    from gradspec.diagnostics import Diagnostic, Outcome
    from gradspec.driver.cache import FileResult
    from gradspec.driver.discover import Entry
    from gradspec.measure.boundaries import RuleTable

T = TypeVar("T")

CLEAN, FINDINGS, FAILURE = 0, 1, 2
GUARDED = "guarded"
"""The context's object where the command is a process of its own: it works in workers."""


def _print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(
            versions() if context.params["verbose"] else f"gradspec {__version__}"
        )
        context.exit()


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88}
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, with --verbose those of Python and libraries too.",
)
@click.option("--verbose", is_flag=True, is_eager=True, hidden=True)
@click.pass_context
def cli(context: click.Context, verbose: bool) -> None:
    """Write the mathematics once, get gradients that are right everywhere.

    Rules stand in .grad files. `compile` proves them and writes modules for NumPy,
    PyTorch, TensorFlow and JAX; exit codes: 0 clean, 1 findings, 2 wrong usage or our
    fault. What the table [tool.gradspec] of pyproject.toml says (paths, targets, out,
    strict, budget, ignore) holds where an option does not.
    """
    if verbose:
        raise click.UsageError("--verbose stands after a command, or with --version")
    if context.invoked_subcommand not in arguments.COMMANDS:
        return
    try:
        context.default_map = arguments.defaults(Path.cwd())
    except arguments.WrongSettings as fault:
        raise click.ClickException(f"{fault}") from fault


@cli.command("compile")
@arguments.paths
@arguments.stage
@arguments.options(Options, "targets", is_needed=False)
@arguments.folder(
    "--out",
    "Modules go to DIR/<target>/…",
    default="generated",
    show_default=True,
)
@arguments.options(Options, "strict", "trace", "checked")
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Write nothing; fail when DIR is not what would be written.",
)
@arguments.options(Options, "as_written", "report", "ignored", "budget")
@arguments.jobs
@click.option("-v", "--verbose", is_flag=True, help="Print a line per file.")
@arguments.quiet
@arguments.style("json", "github", "sarif")
@arguments.watch
def compile_command(
    paths: tuple[str, ...],
    stage: str | None,
    options: Options,
    out: str,
    only_check: bool,
    verbose: bool,
    jobs: int,
    quiet: bool,
    style: str,
) -> int:
    """Check the rules in PATH... and write a module per file and target; `-` is standard
    input."""
    from gradspec.driver import run, write
    from gradspec.report.diagnostics import printable

    if stage is not None:
        if only_check or options.report or style != "text":
            told = "--emit prints a stage: leave out --check, --report and --format"
            raise click.UsageError(told)
        return _print_stage(stage, paths, options, jobs)
    folder = Path(out)
    hidden = write.shadowing_folders(folder, options.targets)
    work = _Work("compiling", paths, options, jobs, hidden, verbose)
    files = () if work.failed else run.output_files(work.results)
    work.found += write.foreign(folder, write.beginnings(files))
    files = () if work.failed else files
    mixed = () if only_check else tuple(write.of_other_versions(folder, files))
    try:
        touched = (
            write.stale(folder, files, of_any_version=True)
            if only_check
            else write.write(folder, files)
        )
    except write.CannotWrite as fault:
        told = printable(f"{fault}; give another folder, --out")
        raise click.ClickException(told) from fault
    changed = tuple(f"{folder.as_posix()}/{f.path}" for f in touched)
    stale = write.not_up_to_date(out, changed) if only_check else ()
    work.report((*stale, *mixed), style, changed)
    if style == "text":
        from gradspec.report import summary

        _echo(summary.costs(work.results) if options.report else "")
        if not work.failed and not quiet:
            _echo(summary.table(work.results) if sys.stdout.isatty() else "")
            word = "to be written" if only_check else "written"
            told = f"{len(changed)} files {word}" if changed else "nothing to write"
            _echo(f"{summary.totals(work.results)}; {told} in {printable(out)}")
    return FINDINGS if work.failed or stale else CLEAN


def _print_stage(
    stage: str, paths: tuple[str, ...], options: Options, jobs: int
) -> int:
    """Print a stage of every rule, and write nothing."""
    work = _Work("compiling", paths, options, jobs)
    texts: tuple[tuple[str, ...], ...] = ()
    if not work.failed:
        from gradspec.measure.stages import of_file

        texts = work.each("printing", partial(of_file, stage, options))
    work.report((), "text")
    _echo("\n\n".join(sum(texts, ())))
    return FINDINGS if work.failed else CLEAN


@cli.command("check")
@arguments.paths
@arguments.options(Options, "strict")
@click.option(
    "--boundaries",
    is_flag=True,
    help="Show what each rule does at kinks, jumps, poles and the ends of its domain.",
)
@click.option(
    "--evidence", is_flag=True, help="Say of each verdict what it rests on, in a line."
)
@click.option(
    "--fix", "fixes", is_flag=True, help="Apply the fixes that are safe, then check."
)
@arguments.options(Options, "order", "ignored", "budget")
@arguments.jobs
@arguments.quiet
@arguments.style("json", "github", "sarif")
@arguments.watch
def check_command(
    paths: tuple[str, ...],
    options: Options,
    boundaries: bool,
    evidence: bool,
    fixes: bool,
    jobs: int,
    quiet: bool,
    style: str,
) -> int:
    """Check the rules in PATH... and print the verdict on each gradient; `-` is standard
    input."""
    if fixes:
        _fix(paths, options, jobs)
    work = _Work("checking", paths, options, jobs)
    tables: tuple[RuleTable, ...] = ()
    if boundaries and not work.found:
        from gradspec.measure.boundaries import of_file

        found = work.each("looking at boundaries", partial(of_file, options))
        tables = sum(found, ())
    told = work.witnesses() if evidence and not work.found else ()
    work.report((), style, (), tables)
    if style == "text":
        from gradspec.report import summary

        results = work.results
        lines = summary.evidence(results, told) if evidence else summary.table(results)
        _echo("" if quiet else lines)
        _echo(summary.boundaries(tables))
    return FINDINGS if work.failed else CLEAN


def _fix(paths: tuple[str, ...], options: Options, jobs: int) -> None:
    """Apply what is safe to the files, and tell it."""
    from gradspec.driver import fixing, write
    from gradspec.driver.discover import STANDARD_INPUT, discover
    from gradspec.report.diagnostics import printable

    if STANDARD_INPUT in paths:
        raise click.UsageError("--fix changes files: standard input is none")
    entries = discover(paths).value or ()
    with _bar("fixing", len(entries)) as progress:
        jobs = jobs or os.cpu_count() or 1
        try:
            told = fixing.fix_files(entries, options, jobs, progress, _is_guarded())
        except write.CannotWrite as fault:
            raise click.ClickException(printable(f"{fault}")) from fault
    click.echo("".join(f"{printable(line)}\n" for line in told), nl=False, err=True)


@cli.command("test")
@arguments.optional_paths
@arguments.options(Options, "targets")
@click.option(
    "--conformance",
    is_flag=True,
    help="Take the rules, and built-in markers, through a framework's features.",
)
@arguments.options(Options, "ignored", "budget")
@arguments.jobs
@arguments.style("json", "github")
def test_command(
    paths: tuple[str, ...], options: Options, conformance: bool, jobs: int, style: str
) -> None:
    """Run the emitted modules of PATH... in their frameworks.

    Each rule's examples, its values and gradients against ball arithmetic, gradcheck
    and gradgradcheck (torch), nested GradientTapes (tf), forward mode (jax), and
    agreement between targets; in child processes. With --conformance: each rule, and
    built-in marker rules, through the features of the frameworks that depend on a
    rule's formulas, as a matrix.
    """
    if not paths and not conformance:
        raise click.UsageError("name at least one PATH")
    work = _Work("compiling", paths, options, jobs)
    cases: tuple[Any, ...] = ()
    if not work.failed:
        from gradspec.measure.jobs import cases_of

        cases = work.each("preparing", partial(cases_of, options, conformance))
        work.witnesses()
    if work.failed or style != "json":
        work.report((), style)
    if work.failed:
        sys.exit(FINDINGS)
    run = _run_conformance if conformance else _run_trials
    absent, failed = run(work, cases, style)
    sys.exit(FAILURE if absent else FINDINGS if failed else CLEAN)


def _run_trials(work: _Work, cases: tuple[Any, ...], style: str) -> tuple[bool, bool]:
    from gradspec.measure import trials
    from gradspec.report.summary import show_trials

    with _bar("testing", len(work.options.targets)) as progress:
        reports = trials.run(work.results, cases, work.options, progress)
    show_trials(reports, style)
    return any(r.absent for r in reports), any(r.failures for r in reports)


def _run_conformance(
    work: _Work, cases: tuple[Any, ...], style: str
) -> tuple[bool, bool]:
    from gradspec.measure import conformance
    from gradspec.measure.jobs import subjects
    from gradspec.report.summary import show_matrices

    markers = conformance.markers(work.options)
    given = (markers, *subjects(work.results, cases))
    with _bar("testing", len(work.options.targets)) as progress:
        matrices = conformance.run(given, work.options, progress)
    show_matrices(matrices, style)
    return any(m.absent for m in matrices), any(m.failed for m in matrices)


@cli.command("audit")
@arguments.paths
@arguments.options(Options, "targets")
@arguments.options(AuditOptions, "dtypes", "order", "points")
@arguments.options(Options, "as_written")
@click.option(
    "--explain",
    "explained",
    metavar="RULE",
    help="Only this rule, and why its evaluations were chosen.",
)
@arguments.folder("--plot", "Draw the error against the input: DIR/<rule>.svg.")
@arguments.folder("--values", "Write every point: DIR/<rule>.<target>.<format>.csv.")
@click.option(
    "--fail-over",
    "limit",
    type=arguments.Number(min=0.0),
    metavar="T",
    help="Fail on an error beyond so many tolerances (4 is good), or no number.",
)
@arguments.options(Options, "ignored", "budget")
@arguments.jobs
@arguments.style("json")
def audit_command(
    paths: tuple[str, ...],
    options: Options,
    auditoptions: AuditOptions,
    explained: str | None,
    jobs: int,
    **view: Any,
) -> None:
    """Measure the emitted modules of PATH... in their frameworks.

    Values and gradients against ball arithmetic (rules over axes at small sizes), those
    of elementwise rules beside the framework's own functions and its differentiation of
    the formula as written.
    """
    work = _Work("compiling", paths, options, jobs)
    if work.failed:
        work.report((), "text")
        sys.exit(FINDINGS)
    names = [rule.name for result in work.results for rule in result.rules]
    if explained and explained not in names:
        from gradspec.lower.context import near

        advice = near(explained, names) or f"there are {', '.join(names)}"
        told = f"there is no rule {explained} in {', '.join(paths)}; {advice}"
        raise click.BadParameter(told, param_hint="--explain")
    from gradspec.measure import audits
    from gradspec.report import audit

    only = (explained,) if explained else ()
    shown = audit.View(**view)
    work.found += audit.foreign(only or names, options.targets, auditoptions, shown)
    if work.failed:
        work.report((), "text")
        sys.exit(FINDINGS)
    asked = replace(auditoptions, jobs=work.jobs, rules=only)
    steps = audits.steps(work.entries, options)
    try:
        with _bar("measuring", steps) as progress:
            done = audits.run(work.entries, work.results, options, asked, progress)
    except audits.Unmeasured as fault:
        work.found += fault.diagnostics
    reasons: tuple[Any, ...] = ()
    if explained and not work.failed:
        why = partial(audits.rules_with_candidates, options, explained)
        reasons = sum(work.each("explaining", why), ())
    if work.failed:
        work.report((), "text")
        sys.exit(FINDINGS)
    failed = audit.show(done, asked, replace(shown, explained=reasons))
    if any(one.absent for one in done):
        sys.exit(FAILURE)
    measured = {finding.rule for one in done for finding in one.findings}
    if left := [name for name in only or names if name not in measured]:
        click.echo(f"not measured: {', '.join(left)}", err=True)
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
    from gradspec.driver import load
    from gradspec.driver.discover import discover
    from gradspec.driver.write import CannotWrite
    from gradspec.report.diagnostics import printable
    from gradspec.report.findings import show_findings

    outcome = discover(paths)
    entries, found = outcome.value or (), outcome.diagnostics
    files = list(map(load.format_entry, entries))
    found += tuple(d for one in files for d in one.found)
    show_findings((), found)
    if [entry.data is None for entry in entries] == [False]:
        click.echo("".join(one.after or "" for one in files), nl=False)
        sys.exit(FINDINGS if found else CLEAN)
    changed = [one for one in files if one.is_changed]
    try:
        for one in changed:
            if diff:
                lines = map(printable, load.difference(one).split("\n"))
                click.echo("\n".join(lines), nl=False)
            elif only_check:
                click.echo(f"would format {printable(one.path)}")
            else:
                load.save(one)
    except CannotWrite as fault:
        raise click.ClickException(printable(f"{fault}")) from fault
    word = "to format" if only_check or diff else "formatted"
    click.echo(f"{len(changed)} of {len(files)} files {word}", err=diff)
    sys.exit(FINDINGS if found or (only_check and changed) else CLEAN)


@cli.command("diff")
@click.argument("old", metavar="OLD", type=click.Path())
@click.argument("new", metavar="NEW", type=click.Path())
@arguments.options(Options, "budget")
@arguments.jobs
@arguments.style("json", "github")
def diff_command(old: str, new: str, options: Options, jobs: int, style: str) -> None:
    """Compare the mathematics of two versions of rules: OLD and NEW are files or folders,
    on disk or in a revision of git (`main:rules`).

    Each rule's signature, outputs and gradients: the same text, proved to be the same,
    or different at a point, which is shown with both values. The exit code is 1 if who
    calls a rule of OLD can notice NEW.
    """
    from gradspec.driver.revisions import version_of
    from gradspec.measure.changes import changes_between
    from gradspec.report import changes
    from gradspec.report.findings import show_findings

    versions = [version_of(given) for given in (old, new)]
    before, after = (found.value for found in versions)
    told = tuple(d for found in versions for d in found.diagnostics)
    done: tuple[Any, ...] | None = None
    if before is not None and after is not None:
        number = jobs or os.cpu_count() or 1
        outcome = changes_between(before, after, options.budget, number, _is_guarded())
        done, told = outcome.value, (*told, *outcome.diagnostics)
    show_findings((), told, (), "github" if style == "github" else "text")
    if done is None:
        sys.exit(FAILURE)
    if style == "github":
        _echo("\n".join(changes.github(done)))
    else:
        _echo(changes.document(done) if style == "json" else changes.text(done))
    sys.exit(FINDINGS if any(one.is_noticed for one in done) else CLEAN)


@cli.command("lift")
@arguments.paths
@click.option("--why", is_flag=True, help="A line for each site that is not lifted.")
@click.option("--assumptions", is_flag=True, help="What each verdict assumes.")
@click.option("--tests", is_flag=True, help="Read folders of tests and docs, too.")
@arguments.folder("--out", "Write the rules: DIR/<path of the module>.grad.")
@click.option(
    "--repro",
    is_flag=True,
    help="A script for each refutation, which you may run: printed, or in --out DIR.",
)
@arguments.style("json", "github", "sarif")
def lift_command(
    paths: tuple[str, ...],
    why: bool,
    assumptions: bool,
    tests: bool,
    out: str | None,
    repro: bool,
    style: str,
) -> None:
    """Read the hand-written gradients of Python files, and prove or refute them.

    torch.autograd.Function, tf.custom_gradient, jax.custom_vjp and custom_jvp below
    PATH...; nothing is imported or run. The exit code is 1 only if one is refuted or
    cannot run. `# gradspec: on purpose, because ...` on the line of a class or function
    is an answer to a finding.
    """
    from gradspec.driver import write
    from gradspec.lift.lifting import lift
    from gradspec.report import lifted
    from gradspec.report.diagnostics import printable

    for path in paths:
        if not Path(path).exists():
            raise click.BadParameter(f"there is no {path}", param_hint="PATH")
    begun = time.perf_counter()
    report = lift(paths, tests)
    seconds = time.perf_counter() - begun
    if style == "text":
        click.echo(lifted.text(report, why, assumptions, seconds))
    elif style == "github":
        _echo("\n".join(lifted.github(report)))
    else:
        shown = lifted.document if style == "json" else lifted.sarif
        click.echo(shown(report))
    written = list(lifted.rule_files(report)) if out is not None else []
    scripts = list(lifted.scripts(report.findings)) if repro else []
    if out is None:
        _echo("\n".join(text for _, text in scripts))
        scripts = []
    try:
        write.write_texts(Path(out or "."), [*written, *scripts])
    except write.CannotWrite as fault:
        raise click.ClickException(printable(f"{fault}")) from fault
    sys.exit(FINDINGS if any(f.is_finding for f in report.findings) else CLEAN)


@cli.command("explain")
@click.argument("code", required=False)
def explain_command(code: str | None) -> None:
    """Explain a code (GS402), or list all codes."""
    from gradspec.report import diagnostics

    if code is None:
        click.echo(diagnostics.listing())
        return
    page = diagnostics.page(code)
    if page is None:
        raise click.BadParameter(
            f"there is no code {code}; `gradspec explain` lists them", param_hint="CODE"
        )
    click.echo(page, nl=False)


@cli.command("lsp")
def lsp_command() -> None:
    """Serve an editor that speaks the language server protocol.

    Verdicts and findings as you type, quick fixes, hover, rename, formatting; the editor
    starts it (docs/editor.md). It needs `pip install 'gradspec[lsp]'`.
    """
    try:
        from gradspec.editor.server import serve
    except ModuleNotFoundError as missing:
        told = f"{missing}: pip install 'gradspec[lsp]'"
        raise click.ClickException(told) from missing
    serve()


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
    color = False if os.environ.get("NO_COLOR") else None
    try:
        code = cli.main(
            prog_name="gradspec", standalone_mode=False, obj=GUARDED, color=color
        )
    except click.ClickException as wrong:
        wrong.show()
        code = FAILURE
    except (click.Abort, KeyboardInterrupt) as stopped:
        click.echo("interrupted; no file was left half-written", err=True)
        is_abort = isinstance(stopped, click.Abort)  # which click raised of the other
        told = getattr(stopped.__context__ if is_abort else stopped, "args", ())
        code = 128 + (told[0] if told else signal.SIGINT)
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except Exception as fault:
        from gradspec.report.streams import tell

        tell(fault)
        code = FAILURE
    from gradspec.report.streams import is_lost

    if is_lost():
        return FAILURE
    return code if isinstance(code, int) else CLEAN


# --- shared steps --------------------------------------------------------------------


@dataclass(init=False, slots=True)
class _Work:
    """The files of a command and their results; ``found`` are the diagnostics that
    belong to no result.
    """

    options: Options
    jobs: int
    entries: tuple[Entry, ...]
    found: tuple[Diagnostic, ...]
    results: tuple[FileResult, ...]

    def __init__(
        self,
        what: str,
        paths: tuple[str, ...],
        options: Options,
        jobs: int,
        found: tuple[Diagnostic, ...] = (),
        verbose: bool = False,
    ) -> None:
        from gradspec.driver.discover import discover
        from gradspec.driver.run import compile_entries

        outcome = discover(paths)
        self.options, self.jobs = options, jobs or os.cpu_count() or 1
        self.entries = outcome.value or ()
        self.found = outcome.diagnostics if paths else ()
        self.found += found
        self.results = ()
        if self.entries and not found:  # bad names of files hide no other error
            with _bar(what, len(self.entries), verbose) as progress:
                self.results = compile_entries(
                    self.entries, options, self.jobs, progress, _is_guarded()
                )

    @property
    def failed(self) -> bool:
        return any(d.is_error for d in self.found) or any(
            result.failed for result in self.results
        )

    def each(self, what: str, of_file: Callable[[Entry], Outcome[T]]) -> tuple[T, ...]:
        """``of_file`` for every file, in workers as when it is compiled."""
        from gradspec.driver.run import each_file, gather_outcomes

        with _bar(what, len(self.entries)) as progress:
            outcomes = each_file(
                of_file, self.entries, self.jobs, progress, _is_guarded()
            )
        outcome = gather_outcomes(outcomes)
        self.found += outcome.diagnostics
        return outcome.value or ()

    def witnesses(self) -> tuple[tuple[str, Witness], ...]:
        """SymPy's word on every derivative; what contradicts ours is found."""
        from gradspec.measure.witnesses import of_file

        return sum(self.each("asking SymPy", partial(of_file, self.options)), ())

    def report(
        self,
        others: tuple[Diagnostic, ...],
        style: str,
        changed: tuple[str, ...] = (),
        tables: tuple[RuleTable, ...] = (),
    ) -> None:
        """Print all that was found."""
        from gradspec.report.findings import show_findings

        found = (*self.found, *others)
        show_findings(self.results, found, changed, style, tables)


def _is_guarded() -> bool:
    return bool(click.get_current_context().obj == GUARDED)


def _bar(what: str, total: int, verbose: bool = False) -> Any:
    from gradspec.report.streams import bar

    return bar(what, total, verbose)


def _echo(text: str) -> None:
    if text:
        click.echo(text)
