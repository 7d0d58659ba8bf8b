"""SymPy's word on the derivatives of a file's rules, for `check --evidence` and `test`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gradspec.diagnostics import Outcome
from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.run import run_within_budget
from gradspec.options import Options

if TYPE_CHECKING:
    from gradspec.checks.witness import Witness
    from gradspec.diagnostics import Diagnostic


def of_file(options: Options, entry: Entry) -> Outcome[tuple[tuple[str, Witness], ...]]:
    """A witness of each derivative of the rules that can be read, with its file."""
    from gradspec.checks.witness import witnesses
    from gradspec.derive.complete import complete
    from gradspec.driver.load import load

    source = read_entry(entry).value
    loaded = None if source is None else load(source, entry.root)
    if loaded is None or loaded.module is None:
        return Outcome(())
    told: list[tuple[str, Witness]] = []
    found: list[Diagnostic] = []
    for rule in loaded.module.rules:
        completed = complete(rule).value
        if completed is None:
            continue
        work = partial(witnesses, completed)
        outcome = run_within_budget(rule, "asking SymPy about", options, work)
        found += outcome.diagnostics
        if outcome.value is not None:
            found += outcome.value.diagnostics
            told += [(entry.display, one) for one in outcome.value.value or ()]
    return Outcome(tuple(told), tuple(found))
