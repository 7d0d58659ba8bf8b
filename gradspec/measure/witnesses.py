"""SymPy's word on the derivatives of a file's rules, for `check --evidence` and `test`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec.diagnostics import Outcome
from gradspec.driver.discover import Entry
from gradspec.driver.run import each_rule, gather_outcomes
from gradspec.options import Options

if TYPE_CHECKING:
    from gradspec.checks.witness import Witness


def of_file(options: Options, entry: Entry) -> Outcome[tuple[tuple[str, Witness], ...]]:
    """A witness of each derivative of the rules that can be read, with its file."""
    from gradspec.checks.witness import witnesses

    each = each_rule(entry, "asking SymPy about", options, witnesses)
    told = gather_outcomes(each.value or ())
    pairs = ((entry.display, one) for own in told.value or () for one in own)
    return Outcome(tuple(pairs), each.diagnostics + told.diagnostics)
