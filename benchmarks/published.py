"""Expressions of published accuracy benchmarks: values and derived gradients, measured.

    python benchmarks/published.py                      benchmarks/published.grad
    python benchmarks/published.py --points 500 other.grad

A line for each value and gradient that is not good as selected, in float32 or float64:
its bad points and its largest error in tolerances (docs/audit.md), as written and as
selected. Last, how many are good. Measured on the compiler's own model of arithmetic
(docs/evaluation.md), at points that the choice has not seen. `benchmarks/fpcore.py` makes
rules of other suites.
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
from gradspec.ir.expr import Expr  # noqa: E402
from gradspec.ir.rule import Judged, Rule  # noqa: E402
from gradspec.ir.walk import closed_cotangents, closed_outputs  # noqa: E402
from gradspec.report.audit import figure  # noqa: E402
from gradspec.stabilise.accuracy_model import Score, Trial  # noqa: E402
from gradspec.stabilise.stabilise import stabilise  # noqa: E402
from gradspec.symbolic.arithmetic_model import Machine  # noqa: E402
from gradspec.symbolic.points.measured import Points, as_points  # noqa: E402
from gradspec.symbolic.points.strata import points as sampled  # noqa: E402

HERE = Path(__file__).parent / "published.grad"
FORMATS: dict[str, Any] = {"float32": np.float32, "float64": np.float64}


@dataclass(frozen=True, slots=True)
class Finding:
    """A value or a gradient in a format, as written (or derived) and as selected;
    ``is_wide``: it is computed in float64."""

    rule: str
    name: str
    dtype: str
    written: Score
    selected: Score
    is_wide: bool

    @property
    def is_good(self) -> bool:
        return self.selected.bad == 0

    @property
    def is_worse(self) -> bool:
        """More bad points than as written."""
        before, after = self.written, self.selected
        return after.bad > before.bad or after.core > before.core


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
                if not finding.is_good:
                    print(_line(finding), flush=True)
    print(summary(found))
    return 0


def measured(rule: Rule, count: int) -> Iterator[Finding]:
    """The values and gradients of a rule, at about twice ``count`` points a format."""
    checked = stabilise(Judged(rule, ()))
    before, after = _quantities(rule), _quantities(checked.rule)
    for dtype, work in FORMATS.items():
        sample = points(rule, dtype, count)
        machine = Machine(sample.columns, work)
        for name, form in before.items() if len(sample) else ():
            trial = Trial(form, sample, machine)
            is_wide = name in checked.wide and dtype == "float32"
            score = trial.score_in_double if is_wide else trial.score
            selected = score(after[name])
            yield Finding(rule.name, name, dtype, trial.score(form), selected, is_wide)


def _quantities(rule: Rule) -> dict[str, Expr]:
    """Outputs that take a gradient, and gradients that are no overrides."""
    values = closed_outputs(rule)
    found = {o.name: values[o.name] for o in rule.outputs if o.takes_gradient}
    gradients = closed_cotangents(rule)
    kept = (entry.name for entry in rule.backward if not entry.is_override)
    return found | {name: gradients[name] for name in kept}


def points(rule: Rule, dtype: str, count: int) -> Points:
    """The audit's points."""
    sample = sampled(rule, dtype, count)
    rows = [{n: float(v) for n, v in row.items()} for row in sample.rows()]
    return as_points(rule, rows, FORMATS[dtype])


def summary(found: Iterable[Finding]) -> str:
    """How many are good, as written and as selected."""
    every = list(found)
    lines = []
    for dtype in FORMATS:
        some = [f for f in every if f.dtype == dtype]
        told = (
            f"{title} {sum(not s.core for s in scores)} good in the core,"
            f" {sum(not s.bad for s in scores)} everywhere"
            for title, scores in (
                ("as written", [f.written for f in some]),
                ("as selected", [f.selected for f in some]),
            )
        )
        lines.append(f"{dtype}: {len(some)} values and gradients; {'; '.join(told)}")
    lines.append(f"computed in float64: {sum(f.is_wide for f in every)}")
    lines.append(f"more bad points than as written: {sum(f.is_worse for f in every)}")
    return "\n".join(lines)


def _line(found: Finding) -> str:
    mark = ("  WORSE" if found.is_worse else "") + (
        "  float64" if found.is_wide else ""
    )
    return (
        f"{found.rule:32.32} {found.name:8} {found.dtype}"
        f" {_told(found.written):>28} -> {_told(found.selected):<28}{mark}".rstrip()
    )


def _told(score: Score) -> str:
    """``3 + 12 bad, up to 8.1e+06``: in the core and outside it."""
    return f"{score.core} + {score.bad - score.core} bad, up to {figure(score.worst)}"


if __name__ == "__main__":
    raise SystemExit(main())
