"""Work on files, compiling first of all: cache, workers, and the order of results.

In a worker a file may take all its time and memory. Where that ends the worker, or
somebody has killed it, the file has an error, and the others have their results all the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from gradspec.diagnostics import Diagnostic, Outcome, not_ignored
from gradspec.driver import cache
from gradspec.driver.cache import FileResult, row, too_long, worker_loss
from gradspec.driver.discover import Entry, read_entry, read_imported
from gradspec.driver.write import OutputFile, required_files, with_packages
from gradspec.ir.plain import use_shelf
from gradspec.options import Options
from gradspec.source import Source
from gradspec.symbolic.limit import Shortage, expendable, run_limited

if TYPE_CHECKING:
    from gradspec.driver.load import Reader
    from gradspec.ir.rule import Complete, Rule
    from gradspec.pipeline import Compiled

T = TypeVar("T")
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
    stored = _cached_result(entry, options)
    if stored is not None:
        return stored
    with use_shelf(cache.rules()):
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
    source: Source,
    below: str,
    options: Options,
    share: slice = slice(None),
    read: Reader = read_imported,
) -> tuple[Compiled, dict[str, Source]]:
    """One text, or a share of its rules, with its checked rules whole; no modules if
    anything is wrong. ``read`` gives the texts that it imports.
    """
    from gradspec.driver.load import load
    from gradspec.pipeline import Compiled, compile_module

    root = Entry(source.path, below).root
    loaded = run_limited(options.budget, lambda: load(source, root, read))
    if isinstance(loaded, Shortage):
        stop = too_long(loaded.sentence(f"reading {source.path}", options.budget))
        return Compiled((), (), (stop,)), {}
    if loaded.module is None:
        return Compiled((), (), loaded.diagnostics), loaded.sources
    module = replace(loaded.module, rules=loaded.module.rules[share])
    compiled = compile_module(module, replace(source, path=below), options)
    found = not_ignored(loaded.diagnostics, options.ignored) + compiled.diagnostics
    failed = any(d.is_error for d in found)
    modules = () if failed else compiled.modules
    return Compiled(compiled.rules, modules, found), loaded.sources


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
    if len(entries) < jobs:
        _divide(entries, options, jobs)
    compiled = partial(_outcome, compile_entry, options)
    found = each_file(compiled, entries, jobs, progress, is_guarded)
    results = (
        outcome.value or FileResult(entry.display, (), (), outcome.diagnostics)
        for entry, outcome in zip(entries, found, strict=True)
    )
    cache.prune()
    return _told_once(tuple(results))


def _outcome(
    work: Callable[[Entry, Options], T], options: Options, entry: Entry
) -> Outcome[T]:
    return Outcome(work(entry, options))


def each_file(
    work: Callable[[Entry], Outcome[T]],
    entries: Iterable[Entry],
    jobs: int,
    progress: Progress,
    is_guarded: bool = True,
) -> tuple[Outcome[T], ...]:
    """``work`` on each file, in workers if ``is_guarded`` or if there are several. A
    file whose worker is lost has an error.
    """
    entries = tuple(entries)
    if not is_guarded and (jobs < 2 or len(entries) < 2):
        here = []
        for entry in entries:
            here.append(work(entry))
            progress(entry.display)
        return tuple(here)
    from gradspec.driver.workers import Lost, each

    done: dict[int, Outcome[T]] = {}
    with closing(each(partial(_in_worker, work), entries, jobs)) as results:
        for number, found in results:
            name = entries[number].display
            if isinstance(found, Lost):
                done[number] = Outcome(None, (worker_loss(name, found),))
            else:
                done[number] = found
            progress(name)
    return tuple(done[number] for number in range(len(entries)))


def _in_worker(work: Callable[[Entry], Outcome[T]], entry: Entry) -> Outcome[T]:
    expendable()
    return work(entry)


def gather_outcomes(outcomes: Iterable[Outcome[T]]) -> Outcome[tuple[T, ...]]:
    """The values and the diagnostics of several outcomes."""
    outcomes = tuple(outcomes)
    values = tuple(o.value for o in outcomes if o.value is not None)
    return Outcome(values, tuple(d for o in outcomes for d in o.diagnostics))


def run_within_budget(
    rule: Rule, what: str, options: Options, work: Callable[[], T]
) -> Outcome[T]:
    """The result of ``work`` on a rule; an error if it exceeds the budget."""
    from gradspec.pipeline import shortage_error

    found = run_limited(options.budget, work)
    if isinstance(found, Shortage):
        return Outcome(None, (shortage_error(rule, what, options, found),))
    return Outcome(found)


def each_rule(
    entry: Entry, what: str, options: Options, work: Callable[[Complete], T]
) -> Outcome[tuple[T, ...]]:
    """``work`` on each rule of a file that can be read and completed, within the
    budget."""
    from gradspec.derive.complete import complete
    from gradspec.driver.load import load

    source = read_entry(entry).value
    module = None if source is None else load(source, entry.root).module
    with use_shelf(cache.rules()):
        rules = (complete(r).value for r in (() if module is None else module.rules))
        return gather_outcomes(
            run_within_budget(rule, what, options, partial(work, rule))
            for rule in rules
            if rule is not None
        )


def _divide(entries: tuple[Entry, ...], options: Options, jobs: int) -> None:
    """Check and stabilise the rules of each file in several workers. Their results are
    in the cache when the file is compiled, so nothing is gained without one.
    """
    if cache.rules() is None:
        return
    from gradspec.driver.workers import each

    open_ = [entry for entry in entries if _cached_result(entry, options) is None]
    tasks = [(entry, first) for entry in open_ for first in range(jobs)]
    with closing(each(partial(_share, options, jobs), tasks, jobs)) as shares:
        for _ in shares:
            pass


def _share(options: Options, jobs: int, task: tuple[Entry, int]) -> None:
    """One rule in ``jobs`` of a file."""
    entry, first = task
    expendable()
    source = read_entry(entry).value
    if source is not None:
        share = slice(first, None, jobs)
        with use_shelf(cache.rules()):
            compile_rules(source, entry.below, replace(options, targets=()), share)


def _cached_result(entry: Entry, options: Options) -> FileResult | None:
    """The result from the cache, if nothing that it depends on has changed."""
    source = read_entry(entry).value

    def read_import(path: str) -> Source | None:
        return read_imported(path, entry.root).value

    return (
        None
        if source is None
        else cache.load(source, entry.below, options, read_import)
    )


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
                for name, text in required_files(target, names).items()
            ),
        ]
    )


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
