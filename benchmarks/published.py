"""Expressions of published accuracy benchmarks, their gradients derived and measured.

    python benchmarks/published.py                      benchmarks/published.grad
    python benchmarks/published.py --points 500 other.grad

For each gradient, as the derivation writes it and as the compiler chooses to evaluate
it: the largest error in the core in ULP of float32, the bad points, the share beyond
4 ULP. Measured on the compiler's own model of float32 (docs/evaluation.md), at points
that the choice has not seen. `benchmarks/fpcore.py` makes rules of other suites.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from benchmarks.library import complete_rules  # noqa: E402
from gradspec.audit.points import points as sampled  # noqa: E402
from gradspec.ir import closed  # noqa: E402
from gradspec.ir.rule import CheckedRule, Derived, Rule  # noqa: E402
from gradspec.stabilise.measure import Score, Stratum, Trial  # noqa: E402
from gradspec.stabilise.model import Machine  # noqa: E402
from gradspec.stabilise.points import Points  # noqa: E402
from gradspec.stabilise.stabilise import stabilise  # noqa: E402

HERE = Path(__file__).parent / "published.grad"
GOOD = 4.0
_HALF = 0.5  # errors are counted from the rounded truth


@dataclass(frozen=True, slots=True)
class Finding:
    """A gradient as derived and as chosen."""

    rule: str
    name: str
    written: Score
    chosen: Score
    is_wide: bool

    @property
    def is_within(self) -> bool:
        return is_within(self.chosen)

    @property
    def is_worse(self) -> bool:
        """More bad points than as derived, or beyond 4 ULP and clearly further off."""
        return any(
            after.bad > before.bad or after.worst > max(1.5 * before.worst, GOOD)
            for before, after in (
                (self.written.core, self.chosen.core),
                (self.written.whole, self.chosen.whole),
            )
            if after.bad >= before.bad
        )


def is_within(score: Score) -> bool:
    return score.core.bad == 0 and score.core.worst + _HALF <= GOOD


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, default=[HERE])
    parser.add_argument("--points", type=int, default=1000)
    chosen = parser.parse_args(arguments)
    found: list[Finding] = []
    for path in chosen.paths:
        for rule in complete_rules(path):
            for finding in measured(rule, chosen.points):
                found.append(finding)
                print(_line(finding), flush=True)
    print(summary(found))
    return 0


def measured(rule: Rule, count: int) -> Iterator[Finding]:
    """The derived gradients of a rule, at about twice ``count`` points."""
    sample = points(rule, count)
    if not len(sample):
        return
    checked = stabilise(CheckedRule(rule, ()))
    machine = Machine(sample.columns)
    before, after = closed.cotangents(rule), closed.cotangents(checked.rule)
    everywhere = np.ones(len(sample), dtype=bool)
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        name = f"d{variable.name}"
        if not isinstance(entry, Derived):
            continue
        trial = Trial(before[name], sample, machine)
        form, is_wide = after[name], name in checked.wide
        score = trial.score_in_double if is_wide else trial.score_at
        written = trial.score_at(before[name], everywhere)
        yield Finding(rule.name, name, written, score(form, everywhere), is_wide)


def points(rule: Rule, count: int) -> Points:
    """The audit's points, all upstream gradients 1."""
    sample = sampled(rule, "float32", count)
    upstream = [f"d{output.name}" for output in rule.outputs]
    columns: dict[str, Any] = {
        name: np.asarray(column, dtype=np.float32)
        for name, column in sample.columns.items()
    }
    for name, value in {**sample.statics, **dict.fromkeys(upstream, 1)}.items():
        columns[name] = np.full(len(sample), float(value), dtype=np.float32)
    rows = tuple(
        dict(zip(columns, row, strict=True))
        for row in zip(*(c.tolist() for c in columns.values()), strict=True)
    )
    size = np.zeros(len(sample), dtype=np.float32)
    for variable in rule.inputs:
        size = np.maximum(size, np.abs(columns[variable.name]))
    return Points(columns, rows, sample.core, frozenset(upstream), size)


def summary(found: Iterable[Finding]) -> str:
    """How many are good, before and after."""
    every = list(found)
    lines = [
        f"{len(every)} gradients: within 4 ULP in the core"
        f" {sum(is_within(f.written) for f in every)} as derived,"
        f" {sum(f.is_within for f in every)} as chosen"
        f" ({sum(f.is_wide for f in every)} computed in float64)",
        f"with bad points {sum(f.written.whole.bad > 0 for f in every)} as derived,"
        f" {sum(f.chosen.whole.bad > 0 for f in every)} as chosen;"
        f" in the core {sum(f.written.core.bad > 0 for f in every)} and"
        f" {sum(f.chosen.core.bad > 0 for f in every)}",
        f"made worse: {sum(f.is_worse for f in every)}",
    ]
    return "\n".join(lines)


def _line(found: Finding) -> str:
    mark = "" if found.is_within else "  beyond 4 ULP"
    mark += "  WORSE" if found.is_worse else ""
    mark += "  float64" if found.is_wide else ""
    before, after = _told(found.written), _told(found.chosen)
    return f"{found.rule:32.32} {found.name:6} {before:>34} -> {after:<34}{mark}"


def _told(score: Score) -> str:
    bad = f"{score.core.bad}+{score.whole.bad - score.core.bad} bad, "
    share = f", {100 * score.core.share:.0f} %" if score.core.share else ""
    return f"{bad if score.whole.bad else ''}{_ulp(score.core)}{share}"


def _ulp(stratum: Stratum) -> str:
    value = stratum.worst + _HALF
    return f"{value:.1f}" if value < 1000 else f"{value:.0e}"


if __name__ == "__main__":
    raise SystemExit(main())
