"""The mutation score of the checker on every shipped rule.

    python benchmarks/mutation.py            a fixed sample, some minutes on one core
    python benchmarks/mutation.py --all      every mutant and every disguise
    python benchmarks/mutation.py --peers 0  without gradcheck and check_grads beside it
    python benchmarks/mutation.py --write    also into benchmarks/mutation.md

Wrong cotangents are made by small changes of right ones and must be refuted; right ones
in disguise must not be. A mutant that is not refuted is compared with the truth by
mpmath, to 60 digits: equal at every point is equivalent, anything else has survived.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from benchmarks import mutation_page, ranked_mutation, score  # noqa: E402
from benchmarks.library import library  # noqa: E402
from benchmarks.mutants import is_worth_it  # noqa: E402
from benchmarks.mutation_page import Results  # noqa: E402
from gradspec.ir.expr import show  # noqa: E402
from gradspec.ir.rule import Status  # noqa: E402

PAGE = ROOT / "benchmarks" / "mutation.md"
BUDGET = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _chosen(arguments)
    results = _results(chosen)
    lines = mutation_page.page(results)
    print("\n".join(lines))
    survivors = [*_survivors(results)]
    for line in survivors:
        print(f"survived: {line}", file=sys.stderr)
    if chosen.write:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    seen = (*results.disguised, *results.collected)
    refused = any(s.status is Status.REFUTED for s in seen)
    return 1 if survivors or refused else 0


def _chosen(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="leave nothing out")
    parser.add_argument("--every", type=int, default=4, help="one mutant of so many")
    parser.add_argument("--ranked", type=int, default=7, help="of rules with axes")
    parser.add_argument("--disguises", type=int, default=3, help="one of so many")
    parser.add_argument("--peers", type=int, default=10, help="mutants of a kind")
    parser.add_argument("--write", action="store_true", help=f"also into {PAGE.name}")
    chosen = parser.parse_args(arguments)
    if chosen.all:
        chosen.every = chosen.ranked = chosen.disguises = 1
    return chosen


def _results(chosen: argparse.Namespace) -> Results:
    shipped = library()
    rules = [rule for rule in shipped if is_worth_it(rule)]
    every = score.all_mutants(rules)
    with_axes = ranked_mutation.ranked()
    of_axes = ranked_mutation.all_mutants(with_axes)
    return Results(
        rules=tuple(rules),
        with_axes=tuple(with_axes),
        overrides=score.overrides((*shipped, *with_axes)),
        made=(len(every), len(of_axes)),
        steps=(chosen.every, chosen.ranked, chosen.disguises),
        fates=tuple(score.fate(m) for m in every[:: chosen.every]),
        ranked=tuple(
            ranked_mutation.fate(m, BUDGET) for m in of_axes[:: chosen.ranked]
        ),
        disguised=tuple(score.disguised(rules, chosen.disguises, BUDGET)),
        collected=tuple(score.collected(chosen.disguises, BUDGET)),
        peers=chosen.peers,
    )


def _survivors(results: Results) -> Sequence[str]:
    elementwise = [
        f"{f.mutant.rule.name}: {f.mutant.kind}: "
        + ", ".join(f"d{name} = {show(value)}" for name, value in f.mutant.values)
        for f in results.fates
        if f.outcome == score.SURVIVED
    ]
    ranked = [
        f"{f.mutant.rule.name}: {f.mutant.kind}: {f.mutant.shown()}"
        for f in results.ranked
        if f.outcome == score.SURVIVED
    ]
    return elementwise + ranked


if __name__ == "__main__":
    sys.exit(main())
