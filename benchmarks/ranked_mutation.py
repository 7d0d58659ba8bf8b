"""Mutation score of the shipped rules with axes: `python benchmarks/ranked_mutation.py`.

Derived cotangents are declared as they were derived, then changed in one place. A mutant
that the index calculus proves equal to the derivative for every size is *equivalent*.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import process_time

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from benchmarks.ranked_mutants import mutants  # noqa: E402
from gradspec.checks.check import check  # noqa: E402
from gradspec.derive.complete import complete  # noqa: E402
from gradspec.driver.load import load  # noqa: E402
from gradspec.ir.rule import Declared, Derived, Rule, Status  # noqa: E402
from gradspec.source import Source  # noqa: E402

KILLED, EQUIVALENT, SURVIVED = "killed", "equivalent", "survived"


@dataclass(frozen=True, slots=True)
class Fate:
    rule: str
    mutant: str
    outcome: str
    seconds: float


def main(arguments: list[str]) -> int:
    """One of so many mutants (the argument; 1: all)."""
    step = int(arguments[0]) if arguments else 1
    wrong = [pair for rule in ranked() for pair in mutants(rule)]
    fates = [fate(*pair) for pair in wrong[::step]]
    kinds = dict.fromkeys(f.mutant.partition(": ")[2] for f in fates)
    print(
        "| mutation | mutants | killed | survived | equivalent | median CPU ms | longest |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind in kinds:
        print(_line(kind, [f for f in fates if f.mutant.endswith(f": {kind}")]))
    print(_line("**all**", fates))
    survivors = [f for f in fates if f.outcome == SURVIVED]
    for one in survivors:
        print(f"survived: {one.rule} {one.mutant}")
    return 1 if survivors else 0


def ranked() -> list[Rule]:
    """The shipped rules with axes, every cotangent declared."""
    found = []
    for path in sorted((ROOT / "rules").rglob("*.grad")):
        module = load(Source(path.name, path.read_text("utf-8"))).module
        for rule in module.rules if module is not None else ():
            completed = None if rule.is_elementwise else complete(rule).value
            if completed is not None:
                found.append(_declared(completed))
    return found


def _declared(rule: Rule) -> Rule:
    backward = tuple(
        Declared(entry.value, entry.indices, rule.name_span)
        if isinstance(entry, Derived)
        else entry
        for entry in rule.backward
    )
    return replace(rule, backward=backward)


def fate(label: str, wrong: Rule) -> Fate:
    begun = process_time()
    checked = check(wrong, budget=0.0).value
    seconds = process_time() - begun
    assert checked is not None
    name = label.partition(":")[0].removeprefix("d")
    status = next(v.status for v in checked.verdicts if v.input == name)
    outcome = {Status.REFUTED: KILLED, Status.PROVED: EQUIVALENT}.get(status, SURVIVED)
    return Fate(wrong.name, label, outcome, seconds)


def _line(name: str, fates: list[Fate]) -> str:
    counts = [
        sum(f.outcome == o for f in fates) for o in (KILLED, SURVIVED, EQUIVALENT)
    ]
    times = [1000 * f.seconds for f in fates]
    cells = (name, len(fates), *counts, f"{median(times):.0f}", f"{max(times):.0f}")
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
