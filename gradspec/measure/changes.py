"""What changed between two versions of rule files, for those who call the rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from gradspec.checks.versions import (
    Compared,
    How,
    Part,
    compare_rules,
    signature,
)
from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.driver.discover import SUFFIX, Entry, read_entry
from gradspec.driver.load import load
from gradspec.driver.revisions import Version, read_import
from gradspec.driver.workers import Lost, each
from gradspec.ir.rule import Rule
from gradspec.ir.walk import deep
from gradspec.symbolic.limit import Shortage, expendable, run_limited

_SAME = Compared()
_TRIES = 64
"""Pairs of a rule that has gone and a new one that are compared at most."""


@dataclass(frozen=True, slots=True)
class Change:
    """A rule of either version: its ``name`` (that of its file before it, in a folder)
    in the old one, ``now`` in the new one, either of them empty where there is none;
    ``file`` and ``line`` are its place, in the new version if it is there.
    """

    name: str
    now: str
    file: str
    line: int
    compared: Compared = _SAME

    @property
    def kind(self) -> str:
        """same, changed, renamed, removed or new."""
        if not self.name or not self.now:
            return "removed" if self.name else "new"
        if self.name != self.now:
            return "renamed"
        told = self.compared.signature
        is_same = all(part.how is How.TEXT for part in self.compared.parts)
        return "same" if is_same and not told else "changed"

    @property
    def is_noticed(self) -> bool:
        """True if who called the old rule can notice the new one."""
        loud = self.kind in ("renamed", "removed")
        return loud or self.compared.is_noticed


_Place = tuple[str, Entry, str]
"""A rule by its revision, its file and its name."""

_Task = tuple[_Place, _Place]
"""A rule of each version."""


def changes_between(
    old: Version, new: Version, budget: float, jobs: int, is_guarded: bool
) -> Outcome[tuple[Change, ...]]:
    """Every rule of both versions, by name; the files' errors if they have any."""
    outcomes = [_rules(old, new), _rules(new, old)]
    before, after = (o.value or {} for o in outcomes)
    found = tuple(d for o in outcomes for d in o.diagnostics if d.is_error)
    if found:
        return Outcome(None, tuple(dict.fromkeys(found)))
    pairs = {name: name for name in before if name in after}
    pairs |= _renamings(before, after, budget, jobs, is_guarded)
    differing = [n for n, now in pairs.items() if before[n].rule != after[now].rule]
    tasks = [(before[n].place, after[pairs[n]].place) for n in differing]
    compared = dict(
        zip(differing, _compare(tasks, budget, jobs, is_guarded), strict=True)
    )
    made = [
        Change(n, now, *after[now].line, compared.get(n, _SAME))
        for n, now in pairs.items()
    ]
    made += [Change(n, "", *r.line) for n, r in before.items() if n not in pairs]
    gone = {*pairs.values()}
    made += [Change("", n, *r.line) for n, r in after.items() if n not in gone]
    return Outcome(tuple(sorted(made, key=lambda one: one.name or one.now)))


@dataclass(frozen=True, slots=True)
class _Found:
    rule: Rule
    place: _Place

    @property
    def line(self) -> tuple[str, int]:
        source, span = self.rule.source, self.rule.name_span
        return source.path, source.position(span.start)[0]


def _rules(version: Version, other: Version) -> Outcome[dict[str, _Found]]:
    """The rules of a version by name. That of a file is part of it, unless both
    versions are single files."""
    found: dict[str, _Found] = {}
    told: tuple[Diagnostic, ...] = ()
    for entry in version.entries:
        rules = _rules_of(version.revision, entry)
        told += rules.diagnostics
        family = entry.below.removesuffix(SUFFIX).replace("/", ".")
        prefix = "" if version.is_file and other.is_file else f"{family}."
        for name, rule in (rules.value or {}).items():
            found[f"{prefix}{name}"] = _Found(rule, (version.revision, entry, name))
    return Outcome(found, told)


def _rules_of(revision: str, entry: Entry) -> Outcome[dict[str, Rule]]:
    source = read_entry(entry)
    if source.value is None:
        return Outcome(None, source.diagnostics)
    loaded = load(source.value, entry.root, partial(read_import, revision))
    rules = loaded.module.rules if loaded.module else ()
    return Outcome({rule.name: rule for rule in rules}, loaded.diagnostics)


def _renamings(
    before: dict[str, _Found],
    after: dict[str, _Found],
    budget: float,
    jobs: int,
    is_guarded: bool,
) -> dict[str, str]:
    """Rules that have gone, each with a new one of its signature that nobody can tell
    from it."""
    gone = [n for n in before if n not in after]
    fresh = [n for n in after if n not in before]
    words = {n: signature(before[n].rule) for n in gone}
    alike = [
        (a, b) for a in gone for b in fresh if words[a] == signature(after[b].rule)
    ]
    found: dict[str, str] = {}

    def take(a: str, b: str) -> None:
        if a not in found and b not in found.values():
            found[a] = b

    for a, b in alike:
        if before[a].rule.definitions == after[b].rule.definitions:
            take(a, b)
    rest = [(a, b) for a, b in alike if a not in found and b not in found.values()]
    rest = rest[:_TRIES]
    tasks = [(before[a].place, after[b].place) for a, b in rest]
    compared = _compare(tasks, budget, jobs, is_guarded)
    for pair, seen in zip(rest, compared, strict=True):
        if not seen.is_noticed:
            take(*pair)
    return found


def _compare(
    tasks: list[_Task], budget: float, jobs: int, is_guarded: bool
) -> Iterator[Compared]:
    """Each pair of rules, in workers if they are asked for."""
    work = partial(_compare_pair, budget)
    if not is_guarded:
        yield from map(work, tasks)
        return
    done: dict[int, Compared] = {}
    with closing(each(partial(_in_worker, work), tasks, jobs)) as results:
        for number, seen in results:
            if isinstance(seen, Lost):
                done[number] = _unknown(tasks[number], seen.reason)
            else:
                done[number] = seen
    yield from (done[number] for number in range(len(tasks)))


def _in_worker(work: partial[Compared], task: _Task) -> Compared:
    expendable()
    return work(task)


@deep()
def _compare_pair(budget: float, task: _Task) -> Compared:
    old, new = ((_rules_of(r, file).value or {})[name] for r, file, name in task)
    found = run_limited(budget, partial(compare_rules, old, new, budget))
    return (
        _unknown(task, found.sentence("the comparison", budget))
        if isinstance(found, Shortage)
        else found
    )


def _unknown(task: _Task, reason: str) -> Compared:
    return Compared((), (Part(task[0][2], How.UNKNOWN, reason=reason),))
