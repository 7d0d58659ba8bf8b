"""Compiling files: cache, workers, and the order of results.

In a worker a file may take all its time and memory. Where that ends the worker while
SymPy was at work the file is compiled again without it; if that is the end too, or if
somebody has killed the worker, the file has an error, and the others are compiled all
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gradspec.diagnostics import Diagnostic
from gradspec.driver import cache, runtimes
from gradspec.driver.discover import Entry, read_entry, read_imported
from gradspec.driver.results import FileResult, lost, row, too_long
from gradspec.driver.workers import Lost, each
from gradspec.driver.write import OutputFile, with_packages
from gradspec.ignoring import kept
from gradspec.ir.plain import shelved
from gradspec.options import Options
from gradspec.source import Source
from gradspec.symbolic.limit import expendable, in_time

if TYPE_CHECKING:
    from gradspec.pipeline import Compiled

Progress = Callable[[str], None]

PASSING = frozenset(["GS461", "GS463", "GS609"])
"""Codes that another run may not report (more time, or a file that now exists): a
result with one of these is not cached."""


def compile_entry(entry: Entry, options: Options) -> FileResult:
    """One file, from the cache when nothing that it depends on has changed."""
    outcome = read_entry(entry)
    source = outcome.value
    if source is None:
        return FileResult(entry.display, (), (), outcome.diagnostics)

    def imported(path: str) -> Source | None:
        return read_imported(path, entry.root).value

    stored = cache.load(source, entry.below, options, imported)
    if stored is not None:
        return stored
    with shelved(cache.rules()):
        result, sources = compile_source(source, entry.below, options)
    if not any(d.code in PASSING for d in result.diagnostics):
        cache.store(source, entry.below, options, result, sources)
    return result


def compile_source(
    source: Source, below: str, options: Options
) -> tuple[FileResult, dict[str, Source]]:
    """One text, without the cache; also the imported texts."""
    compiled, sources = compile_rules(source, below, options)
    rules = tuple(row(rule) for rule in compiled.rules)
    found = compiled.diagnostics
    return FileResult(source.path, rules, compiled.modules, found), sources


def compile_rules(
    source: Source, below: str, options: Options
) -> tuple[Compiled, dict[str, Source]]:
    """One text, its checked rules whole; no modules if anything is wrong."""
    from gradspec import pipeline
    from gradspec.driver.load import load

    root = Entry(source.path, below).root
    loaded = in_time(options.budget, lambda: load(source, root))
    if loaded is None:
        return pipeline.Compiled((), (), (too_long(source, options),)), {}
    if loaded.module is None:
        return pipeline.Compiled((), (), loaded.diagnostics), loaded.sources
    compiled = pipeline.compile_module(
        loaded.module, replace(source, path=below), options
    )
    found = kept(loaded.diagnostics, options.ignored) + compiled.diagnostics
    failed = any(d.is_error for d in found)
    modules = () if failed else compiled.modules
    return pipeline.Compiled(compiled.rules, modules, found), loaded.sources


def compile_entries(
    entries: Iterable[Entry],
    options: Options,
    jobs: int,
    progress: Progress,
    is_guarded: bool = False,
) -> tuple[FileResult, ...]:
    """All files, in the order given, whichever worker finished first. ``is_guarded``:
    in workers also where one does it all.
    """
    entries = tuple(entries)
    found: dict[int, FileResult] = {}
    if is_guarded or (jobs > 1 and len(entries) > 1):
        compiling = _in_workers(entries, options, jobs)
    else:
        compiling = ((n, compile_entry(e, options)) for n, e in enumerate(entries))
    with closing(compiling):
        for number, result in compiling:
            found[number] = result
            progress(entries[number].display)
    cache.prune()
    return _told_once(tuple(found[number] for number in range(len(entries))))


def output_files(results: Iterable[FileResult]) -> tuple[OutputFile, ...]:
    """Everything that a compilation puts below the output folder: modules, the files of
    the runtimes that they import, and an ``__init__.py`` for every folder.
    """
    modules = [module for result in results for module in result.modules]
    imported: dict[str, set[str]] = {}
    for module in modules:
        imported.setdefault(module.target, set()).update(module.runtime)
    return with_packages(
        [
            *(OutputFile(f"{m.target}/{m.path}", m.text) for m in modules),
            *(
                OutputFile(f"{target}/{name}", text)
                for target, names in sorted(imported.items())
                for name, text in runtimes.needed(target, names).items()
            ),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Task:
    entry: Entry
    options: Options
    with_sympy: bool = True


def _in_workers(
    entries: tuple[Entry, ...], options: Options, jobs: int
) -> Generator[tuple[int, FileResult], None, None]:
    tasks = tuple(_Task(entry, options) for entry in entries)
    late = []
    with closing(each(_compiled, tasks, jobs)) as results:
        for number, found in results:
            if isinstance(found, Lost) and found.is_late:
                late.append(number)
            else:
                yield number, _result(entries[number], options, found)
    again = tuple(replace(tasks[number], with_sympy=False) for number in late)
    with closing(each(_compiled, again, jobs)) as results:
        for number, found in results:
            yield late[number], _result(again[number].entry, options, found)


def _compiled(task: _Task) -> FileResult:
    """In a worker."""
    from gradspec.symbolic import consult

    expendable()
    consult.use(task.with_sympy)
    return compile_entry(task.entry, task.options)


def _result(entry: Entry, options: Options, found: FileResult | Lost) -> FileResult:
    if not isinstance(found, Lost):
        return found
    return FileResult(entry.display, (), (), (lost(entry.display, found, options),))


def _told_once(results: tuple[FileResult, ...]) -> tuple[FileResult, ...]:
    """A fault of a file that several import is told by the first that met it."""
    told: set[Diagnostic] = set()
    kept = []
    for result in results:
        fresh = tuple(d for d in result.diagnostics if d not in told)
        failed = result.failed
        told.update(fresh)
        modules = () if failed else result.modules
        kept.append(replace(result, diagnostics=fresh, modules=modules))
    return tuple(kept)
