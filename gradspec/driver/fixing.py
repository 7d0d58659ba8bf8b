"""The fixes of a file applied to its text, as `gradspec check --fix` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from gradspec.diagnostics import Diagnostic, Fix, Outcome
from gradspec.driver import cache
from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.load import Formatted, save
from gradspec.driver.run import Progress, compile_rules, each_file
from gradspec.ir.plain import use_shelf
from gradspec.options import Options
from gradspec.source import Source

_ROUNDS = 10
"""Times that what is left is fixed again: one fix may uncover another fault."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A text before and after, and the fixes that were applied to it, in order."""

    text: Formatted
    fixes: tuple[Fix, ...] = ()


def fix_files(
    entries: Iterable[Entry],
    options: Options,
    jobs: int,
    progress: Progress,
    is_guarded: bool,
) -> list[str]:
    """Fix files where they stand; a line for each fix.

    Raises:
        CannotWrite: the operating system refused it.
    """
    work = partial(fix_entry, options)
    told = []
    for one in each_file(work, entries, jobs, progress, is_guarded):
        if one.value and one.value.fixes:
            save(one.value.text)
            path = one.value.text.path
            told += [f"{path}: {fix.title}" for fix in one.value.fixes]
    return told


def fix_entry(options: Options, entry: Entry) -> Outcome[Fixed]:
    """One file, fixed; it is not written."""
    source = read_entry(entry)
    if source.value is None:
        return Outcome(Fixed(Formatted(entry.display, "", None)))
    with use_shelf(cache.rules()):
        return Outcome(_fix_source(source.value, entry.below, options))


def _fix_source(first: Source, below: str, options: Options) -> Fixed:
    source, applied = first, list[Fix]()
    before = found = _findings(first, below, options)
    for _ in range(_ROUNDS):
        for fixes in _batches(found, source.path):
            changed = Source(source.path, _with_all(source.text, fixes))
            again = _findings(changed, below, options)
            if (_counts(again), -_place(again)) < (_counts(found), -_place(found)):
                source, found = changed, again
                applied += fixes
                break
        else:
            break
    if _counts(found) >= _counts(before):
        source, applied = first, []
    text = Formatted(source.path, first.text, source.text)
    return Fixed(text, tuple(applied))


def _findings(source: Source, below: str, options: Options) -> tuple[Diagnostic, ...]:
    return compile_rules(source, below, options)[0].diagnostics


def _counts(found: Iterable[Diagnostic]) -> tuple[int, ...]:
    """The numbers of errors by stage, then that of all findings: the errors of an early
    stage hide those of later ones.
    """
    found = tuple(found)
    errors = [one.code[:3] for one in found if one.is_error]
    return errors.count("GS1"), errors.count("GS2"), len(errors), len(found)


def _place(found: Iterable[Diagnostic]) -> int:
    """The place of the first error: one behind the other in a line come to light one by
    one."""
    return min(
        (d.labels[0].span.start for d in found if d.is_error and d.labels), default=0
    )


def _batches(found: tuple[Diagnostic, ...], path: str) -> Iterator[tuple[Fix, ...]]:
    """All safe fixes together, then each alone."""
    chosen = safe_fixes(found, path)
    if len(chosen) > 1:
        yield tuple(chosen)
    yield from ((fix,) for fix in chosen)


def safe_fixes(found: Iterable[Diagnostic], path: str) -> list[Fix]:
    """The first safe fix of each finding of a file, without those that overlap others."""
    chosen: list[Fix] = []
    for one in found:
        safe = (fix for fix in one.fixes if fix.is_safe)
        is_here = any(a.source.path == path for a in one.labels[:1])
        fix = next(safe, None) if is_here else None
        if fix and all(_are_apart(fix, other) for other in chosen):
            chosen.append(fix)
    return chosen


def _are_apart(one: Fix, other: Fix) -> bool:
    first, second = sorted((one.span, other.span), key=lambda span: span.start)
    return first.end < second.start or (first.end == second.start < second.end)


def _with_all(text: str, fixes: Iterable[Fix]) -> str:
    for fix in sorted(fixes, key=lambda fix: -fix.span.start):
        text = fix.apply_to(text)
    return text
