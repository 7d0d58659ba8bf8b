"""gradspec from Python: for notebooks, build scripts and tests.

Nothing heavy is imported until a function is called.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from gradspec.diagnostics import Diagnostic, Outcome, Severity
from gradspec.options import BUDGET_SECONDS, LARGEST_BUDGET, Options, is_budget

if TYPE_CHECKING:
    from gradspec.driver.cache import FileResult
    from gradspec.driver.checking import CheckResult
    from gradspec.source import Source
    from gradspec.targets.target import Emitted

AnyPath: TypeAlias = "str | os.PathLike[str]"

TEXT = "rules.grad"
"""The name of a text without a name in messages."""


class CompileError(Exception):
    """Rules with errors. ``diagnostics`` holds all findings; the message shows them
    with the source line and a caret each.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        import click

        from gradspec.report.diagnostics import render

        self.diagnostics = diagnostics
        shown = "\n\n".join(render(d) for d in diagnostics if d.is_error)
        super().__init__(f"the rules have errors\n{click.unstyle(shown)}")


class GradspecWarning(UserWarning):
    """A warning about rules that were loaded: ``GS434: …``, and where it is. The whole
    finding is ``diagnostic``.
    """

    def __init__(self, diagnostic: Diagnostic) -> None:
        from gradspec.report.diagnostics import printable

        self.diagnostic = diagnostic
        place = ""
        for label in diagnostic.labels[:1]:
            line, column = label.source.position(label.span.start)
            place = f" ({label.source.path}:{line}:{column})"
        super().__init__(printable(f"{diagnostic.code}: {diagnostic.headline}{place}"))


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The result of `compile_paths`: every output path, those that changed, the
    diagnostics (warnings only: errors raise) and a result per file with each rule's
    verdicts.
    """

    outputs: tuple[Path, ...]
    written: tuple[Path, ...]
    diagnostics: tuple[Diagnostic, ...]
    files: tuple[FileResult, ...]


def compile_paths(
    paths: Iterable[AnyPath] | AnyPath,
    targets: Iterable[str] | str = ("numpy",),
    out: AnyPath = "generated",
    *,
    strict: bool = False,
    trace: bool = False,
    checked: bool = False,
    budget: float = BUDGET_SECONDS,
    as_written: bool = False,
    jobs: int = 1,
) -> CompileResult:
    """Compile `.grad` files, or folders of them, to ``out/<target>/….py``.

    The same as ``gradspec compile``: nothing is written when a rule has an error, a
    file is rewritten only if its text changes, and writes are atomic. ``as_written``:
    every formula is evaluated as it stands, nothing more accurate is looked for;
    ``checked``: a call checks the assumptions of its rule.

    Raises:
        CompileError: a rule, or the choice of files, has errors.
        TypeError, ValueError: an argument is none that the function takes.
    """
    from gradspec.driver import run, write
    from gradspec.driver.discover import discover

    names = _target_names(targets)
    options = _options(names, strict, trace, checked, budget, as_written)
    is_shown = _is_path(out) and os.fspath(out).isprintable()
    _require("out", is_shown, "a path of characters that can be shown", out)
    chosen, jobs = _paths(paths), _jobs(jobs)
    found = discover(os.fspath(path) for path in chosen)
    _raise_errors(
        found.diagnostics + write.shadowing_folders(Path(out), options.targets)
    )
    results = run.compile_entries(found.value or (), options, jobs, lambda _: None)
    diagnostics = tuple(d for result in results for d in result.diagnostics)
    _raise_errors(diagnostics)
    files = run.output_files(results)
    _raise_errors(write.foreign(Path(out), write.beginnings(files)))
    diagnostics += tuple(write.of_other_versions(Path(out), files))
    written = write.write(Path(out), files)
    return CompileResult(
        tuple(Path(out, file.path) for file in files),
        tuple(Path(out, file.path) for file in written),
        diagnostics,
        results,
    )


def compile_text(
    text: str,
    target: str = "numpy",
    *,
    name: str = TEXT,
    strict: bool = False,
    trace: bool = False,
    checked: bool = False,
    budget: float = BUDGET_SECONDS,
    as_written: bool = False,
) -> str:
    """Compile the text of a `.grad` file to the text of a module.

    ``name`` names the text in messages and in the module's header; imports in the text
    are relative to its folder. The module imports the target's runtime from its own
    folder: `runtime_files` gives that.

    Raises:
        CompileError: the text, or its name, has errors.
        TypeError, ValueError: an argument is none that the function takes.
    """
    from gradspec.driver.run import compile_source

    options = _options(_one_target(target), strict, trace, checked, budget, as_written)
    _require("name", isinstance(name, str), "a text", name)
    result, _ = compile_source(_source(name, text), Path(name).name, options)
    return _only_module(result).text


def check_text(
    text: str,
    *,
    name: str = TEXT,
    strict: bool = False,
    order: int = 1,
    budget: float = BUDGET_SECONDS,
    evaluations: bool = False,
    read: Callable[[str], str | None] | None = None,
) -> CheckResult:
    """Check the text of a `.grad` file: its rules with their gradients and verdicts,
    and all findings, errors too.

    ``name`` names the text in messages; imports in it are relative to its folder.
    ``read`` is asked first for the text of an imported file, by its path (that of the
    importing file's folder with the imported one behind it); where it gives None the
    file itself is read. ``order`` 2 checks second derivatives, too. With ``evaluations``
    what `gradspec check` warns of is found as well: values that no evaluation gets right
    (GS441 to GS444), and holes that they leave (GS433, GS434). To search them takes most of
    the time.

    Raises:
        TypeError, ValueError: an argument is none that the function takes.
    """
    from gradspec.driver.checking import CheckResult, check_source
    from gradspec.driver.discover import named_text, read_imported, source_of

    options = _check_options(strict, order, budget, evaluations)
    _require("name", isinstance(name, str), "a text", name)
    _require("text", isinstance(text, str), "a text", text)
    _require("read", read is None or callable(read), "a function", read)

    def read_text(path: str, root: str) -> Outcome[Source]:
        found = None if read is None else read(path)
        if found is None:
            return read_imported(path, root)
        return source_of(path, found.encode("utf-8", "surrogatepass"))

    source = named_text(name, text)
    if source.value is None:
        return CheckResult((), source.diagnostics)
    return check_source(source.value, Path(name).name, options, read_text)


def check_paths(
    paths: Iterable[AnyPath] | AnyPath,
    *,
    strict: bool = False,
    order: int = 1,
    budget: float = BUDGET_SECONDS,
    evaluations: bool = False,
    jobs: int = 1,
) -> CheckResult:
    """Check `.grad` files, or folders of them: `check_text` for each, in one result.
    ``jobs`` is a number of processes, 0 for one per core.

    Raises:
        TypeError, ValueError: an argument is none that the function takes.
    """
    from functools import partial

    from gradspec.driver.checking import CheckResult, check_entry
    from gradspec.driver.discover import discover
    from gradspec.driver.run import each_file

    options = _check_options(strict, order, budget, evaluations)
    found = discover(os.fspath(path) for path in _paths(paths))
    check = partial(check_entry, options)
    done = each_file(
        check, found.value or (), _jobs(jobs), lambda _: None, is_guarded=False
    )
    rules = tuple(r for one in done if one.value for r in one.value.rules)
    lost = (d for one in done for d in one.diagnostics)
    told = (d for one in done if one.value for d in one.value.diagnostics)
    return CheckResult(rules, (*found.diagnostics, *dict.fromkeys((*lost, *told))))


def runtime_files(target: str = "numpy") -> dict[str, str]:
    """The runtime of a target, by file name: what emitted modules import from the root
    of their output folder. `compile_paths` and `load` put it there themselves.

    Raises:
        ValueError: the target is not known.
    """
    from gradspec.driver import write

    return dict(write.runtime_files(*_one_target(target)))


def load(
    source: AnyPath,
    target: str = "numpy",
    *,
    strict: bool = False,
    trace: bool = False,
    checked: bool = False,
    budget: float = BUDGET_SECONDS,
    as_written: bool = False,
) -> ModuleType:
    """Compile rules and import the module: ``ops = gradspec.load("a.grad")``.

    ``source`` is the path of a `.grad` file, or the text of one: a string that has a
    line break, or has ``=`` and does not end in ``.grad``. Warnings are given as
    `GradspecWarning`. When the file, or one that it imports, has changed, another call
    gives a new module; else it gives the same. Its functions can be pickled for the same
    process only: another has no module of that name (`compile_paths` makes one).

    The module's file stands in the user's cache folder, by content, so that tools which
    read source text (``inspect``, ``tf.function``) find it. Functions of rules have a
    method ``plot`` (see `plot`).

    Raises:
        CompileError: the rules have errors, or the file cannot be read.
        TypeError, ValueError: an argument is none that the function takes.
        ModuleNotFoundError: the target's framework is not installed.
    """
    from gradspec.driver.cache import import_module
    from gradspec.notebook.plot import give_plots

    options = _options(_one_target(target), strict, trace, checked, budget, as_written)
    _require("source", _is_path(source), "the path or the text of rules", source)
    if isinstance(source, str) and _is_text(source):
        result = _of_text(source, options)
    else:
        result = _of_file(source, options)
    emitted = _only_module(result)
    for found in result.diagnostics:
        if found.severity is Severity.WARNING:
            warnings.warn(GradspecWarning(found), stacklevel=2)
    module = import_module(emitted)
    give_plots(module, (rule.name for rule in result.rules))
    return module


def plot(
    rule: Callable[..., Any],
    /,
    *,
    over: str | None = None,
    between: tuple[float, float] | None = None,
    ax: Any = None,
    **inputs: Any,
) -> Any:
    """Draw an elementwise rule: its outputs, and its gradients at the cotangent 1.

    ``over`` is the input on the axis, the first that has a gradient if it is not named;
    ``inputs`` are numbers for others, which are 1 without (static ones have their
    defaults). The axis is the domain that the rule assumes, from -5 to 5 where that has
    no ends, or ``between`` two numbers. ``ax`` are matplotlib's axes to draw in; they
    are the result, too.

    Raises:
        ModuleNotFoundError: matplotlib is missing (``pip install 'gradspec[plot]'``).
        TypeError: ``rule`` is no function of a rule, or has no such input.
        ValueError: the rule has axes, or no input that can be drawn over.
    """
    from gradspec.notebook import plot as drawing

    return drawing.plot(rule, over=over, between=between, ax=ax, **inputs)


def _of_file(path: AnyPath, options: Options) -> FileResult:
    from gradspec.driver.discover import discover
    from gradspec.driver.run import compile_entry

    found = discover((os.fspath(path),))
    _raise_errors(found.diagnostics)
    if not found.value or len(found.value) != 1:
        raise ValueError(f"{os.fspath(path)} is a folder: load takes one file")
    return compile_entry(found.value[0], options)


def _of_text(text: str, options: Options) -> FileResult:
    from gradspec.driver import cache
    from gradspec.driver.run import compile_source
    from gradspec.ir.plain import use_shelf

    with use_shelf(cache.rules()):
        return compile_source(_source(TEXT, text), TEXT, options)[0]


def _source(name: str, text: str) -> Source:
    from gradspec.driver.discover import named_text

    _require("text", isinstance(text, str), "a text", text)
    found = named_text(name, text)
    _raise_errors(found.diagnostics)
    assert found.value is not None  # there was no error
    return found.value


def _is_text(source: str) -> bool:
    return "\n" in source or ("=" in source and not source.endswith(".grad"))


def _require(name: str, is_right: bool, wanted: str, value: object) -> None:
    """Raise an error that names the argument unless it is right."""
    if not is_right and isinstance(value, int | float | str):
        raise ValueError(f"{name} must be {wanted}")
    if not is_right:
        raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def _paths(paths: Iterable[AnyPath] | AnyPath) -> tuple[AnyPath, ...]:
    if isinstance(paths, str | os.PathLike) or not isinstance(paths, Iterable):
        paths = (paths,)
    chosen = tuple(paths)
    for path in chosen:
        _require("paths", _is_path(path), "paths", path)
    return chosen


def _jobs(jobs: int) -> int:
    _require("jobs", type(jobs) is int and jobs >= 0, "a whole number from 0 on", jobs)
    return jobs or os.cpu_count() or 1


def _check_options(
    strict: bool, order: int, budget: float, evaluations: bool
) -> Options:
    _require("order", type(order) is int and order in (1, 2), "1 or 2", order)
    flag = isinstance(evaluations, bool)
    _require("evaluations", flag, "True or False", evaluations)
    options = _options((), strict, False, False, budget, False)
    return replace(options, order=order, searches=evaluations)


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _options(
    targets: tuple[str, ...],
    strict: bool,
    trace: bool,
    checked: bool,
    budget: float,
    as_written: bool,
) -> Options:
    wanted = f"a number of seconds above 0, up to {LARGEST_BUDGET:g}"
    _require("budget", is_budget(budget), wanted, budget)
    flags = {"strict": strict, "trace": trace, "checked": checked}
    flags |= {"as_written": as_written}
    for name, value in flags.items():
        _require(name, isinstance(value, bool), "True or False", value)
    return Options(targets, strict, trace, checked, budget, as_written=as_written)


def _one_target(target: str) -> tuple[str]:
    is_one = isinstance(target, str) and target != "all"
    _require("target", is_one, "the name of one target", target)
    (name,) = _target_names(target, "target")
    return (name,)


def _target_names(
    targets: Iterable[str] | str, argument: str = "targets"
) -> tuple[str, ...]:
    from gradspec.targets import TARGETS, known_targets

    _require(argument, isinstance(targets, Iterable), "names of targets", targets)
    names = (targets,) if isinstance(targets, str) else tuple(targets)
    if names == ("all",):
        return TARGETS
    known = known_targets(names)
    for name in names or ("",):
        if name not in known:
            raise ValueError(
                f"{argument}: {name!r} is not a target; there are {', '.join(known)}"
            )
    return tuple(name for name in known if name in names)


def _only_module(result: FileResult) -> Emitted:
    _raise_errors(result.diagnostics)
    if not result.modules:
        raise ValueError("the rules give no module: there is none to emit among them")
    return result.modules[0]


def _raise_errors(diagnostics: tuple[Diagnostic, ...]) -> None:
    if any(d.is_error for d in diagnostics):
        raise CompileError(diagnostics)
