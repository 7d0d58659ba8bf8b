"""Compiling files: cache, workers, and the order of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from gradspec.diagnostics import Diagnostic
from gradspec.driver import cache, runtimes, watch
from gradspec.driver.discover import Entry, read, read_imported
from gradspec.driver.results import FileResult, row
from gradspec.driver.write import OutputFile, with_packages
from gradspec.ignoring import kept
from gradspec.ir.shelf import shelved
from gradspec.options import Options
from gradspec.source import Source
from gradspec.symbolic.attempts import attempt

Progress = Callable[[str], None]

PASSING = frozenset(["GS461", "GS463", "GS609"])
"""What another run may not find (for want of time, or of a file): a result that has one of
these is not kept."""


def compile_entry(entry: Entry, options: Options) -> FileResult:
    """One file, from the cache when nothing that it depends on has changed."""
    watch.join()
    outcome = read(entry.display, entry.root)
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
    from gradspec import pipeline
    from gradspec.driver.load import load
    from gradspec.driver.results import too_long

    with attempt(f"reading {source.path}", options.budget) as may:
        if not may:
            return FileResult(source.path, (), (), (too_long(source, options),)), {}
        loaded = load(source, Entry(source.path, below).root)
    if loaded.module is None:
        return FileResult(source.path, (), (), loaded.diagnostics), loaded.sources
    compiled = pipeline.compile_module(
        loaded.module, replace(source, path=below), options
    )
    found = kept(loaded.diagnostics, options.ignored) + compiled.diagnostics
    failed = any(d.is_error for d in found)
    rules = tuple(row(rule) for rule in compiled.rules)
    modules = () if failed else compiled.modules
    return FileResult(source.path, rules, modules, found), loaded.sources


def compile_entries(
    entries: Iterable[Entry], options: Options, jobs: int, progress: Progress
) -> tuple[FileResult, ...]:
    """All files, in the order given, whichever worker finished first."""
    entries = tuple(entries)
    if jobs == 1 or len(entries) < 2:
        results = tuple(_serially(entries, options, progress))
    else:
        results = _in_workers(entries, options, jobs, progress)
    cache.prune()
    return _told_once(results)


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


def _serially(
    entries: tuple[Entry, ...], options: Options, progress: Progress
) -> Iterator[FileResult]:
    for entry in entries:
        yield compile_entry(entry, options)
        progress(entry.display)


def _in_workers(
    entries: tuple[Entry, ...], options: Options, jobs: int, progress: Progress
) -> tuple[FileResult, ...]:
    """Processes are spawned, not forked: the parent may hold threads (a progress bar)."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    workers = min(jobs, len(entries))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = {pool.submit(compile_entry, e, options): e for e in entries}
        try:
            for future in as_completed(futures):
                future.result()
                progress(futures[future].display)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return tuple(future.result() for future in futures)


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
