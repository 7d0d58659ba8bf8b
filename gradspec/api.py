"""gradspec from Python: for notebooks, build scripts and tests.

Nothing heavy is imported until a function is called.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from gradspec.diagnostics import Diagnostic, Severity
from gradspec.options import BUDGET_SECONDS, Options

if TYPE_CHECKING:
    from gradspec.driver.cache import FileResult
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
        self.diagnostic = diagnostic
        place = ""
        for label in diagnostic.labels[:1]:
            line, column = label.source.position(label.span.start)
            place = f" ({label.source.path}:{line}:{column})"
        super().__init__(f"{diagnostic.code}: {diagnostic.headline}{place}")


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
    budget: float = BUDGET_SECONDS,
    as_written: bool = False,
    jobs: int = 1,
) -> CompileResult:
    """Compile `.grad` files, or folders of them, to ``out/<target>/….py``.

    The same as ``gradspec compile``: nothing is written when a rule has an error, a
    file is rewritten only if its text changes, and writes are atomic. ``as_written``:
    every formula is evaluated as it stands, nothing more accurate is looked for.

    Raises:
        CompileError: a rule, or the choice of files, has errors.
        ValueError: a target is not known.
    """
    from gradspec.driver import run, write
    from gradspec.driver.discover import discover

    options = Options(
        _target_names(targets), strict, trace, budget, as_written=as_written
    )
    chosen = (paths,) if isinstance(paths, (str, os.PathLike)) else paths
    found = discover(os.fspath(path) for path in chosen)
    _raise_errors(found.diagnostics + write.hidden(Path(out), options.targets))
    results = run.compile_entries(found.value or (), options, jobs, lambda _: None)
    diagnostics = tuple(d for result in results for d in result.diagnostics)
    _raise_errors(diagnostics)
    files = run.output_files(results)
    written = write.write(Path(out), files)
    diagnostics += tuple(write.of_other_versions(Path(out), files))
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
    budget: float = BUDGET_SECONDS,
    as_written: bool = False,
) -> str:
    """Compile the text of a `.grad` file to the text of a module.

    ``name`` names the text in messages and in the module's header; imports in the text
    are relative to its folder. The module imports the target's runtime from its own
    folder: `runtime_files` gives that.

    Raises:
        CompileError: the text has errors.
        ValueError: the target is not known.
    """
    from gradspec.driver.run import compile_source
    from gradspec.source import Source

    (target,) = _target_names(target)
    options = Options((target,), strict, trace, budget, as_written=as_written)
    below = Path(name).name
    result, _ = compile_source(Source(name, text), below, options)
    return _only_module(result).text


def runtime_files(target: str = "numpy") -> dict[str, str]:
    """The runtime of a target, by file name: what emitted modules import from the root
    of their output folder. `compile_paths` and `load` put it there themselves.

    Raises:
        ValueError: the target is not known.
    """
    from gradspec.driver import write

    (target,) = _target_names(target)
    return dict(write.runtime_files(target))


def load(
    source: AnyPath,
    target: str = "numpy",
    *,
    strict: bool = False,
    trace: bool = False,
    budget: float = BUDGET_SECONDS,
    as_written: bool = False,
) -> ModuleType:
    """Compile rules and import the module: ``ops = gradspec.load("a.grad")``.

    ``source`` is the path of a `.grad` file, or the text of one (it has a line break).
    Warnings are given as `GradspecWarning`. When the file, or one that it imports, has
    changed, another call gives a new module; else it gives the same.

    The module's file stands in the user's cache folder, by content, so that tools which
    read source text (``inspect``, ``tf.function``) find it. Functions of rules have a
    method ``plot`` (see `plot`).

    Raises:
        CompileError: the rules have errors, or the file cannot be read.
        ValueError: the target is not known.
        ModuleNotFoundError: the target's framework is not installed.
    """
    from gradspec.driver.cache import import_module
    from gradspec.notebook.plot import give_plots

    (target,) = _target_names(target)
    options = Options((target,), strict, trace, budget, as_written=as_written)
    if isinstance(source, str) and "\n" in source:
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
    from gradspec.ir.plain import shelved
    from gradspec.source import Source

    with shelved(cache.rules()):
        return compile_source(Source(TEXT, text), TEXT, options)[0]


def _target_names(targets: Iterable[str] | str) -> tuple[str, ...]:
    from gradspec.targets import TARGETS, outside_targets

    names = (targets,) if isinstance(targets, str) else tuple(targets)
    if names == ("all",):
        return TARGETS
    known = (*TARGETS, *outside_targets())
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not a target; there are {', '.join(known)}")
    return tuple(name for name in known if name in names)


def _only_module(result: FileResult) -> Emitted:
    _raise_errors(result.diagnostics)
    (module,) = result.modules
    return module


def _raise_errors(diagnostics: tuple[Diagnostic, ...]) -> None:
    if any(d.is_error for d in diagnostics):
        raise CompileError(diagnostics)
