"""How accurate the shipped elementwise rules are, measured on the real frameworks.

    python benchmarks/accuracy.py             all rules, targets, float32 and float64
    python benchmarks/accuracy.py --write     also into benchmarks/accuracy.md
    python benchmarks/accuracy.py --points 500 rules/activations
    python benchmarks/accuracy.py --target torch,jax -j 2

The numbers are those of `gradspec audit` (docs/audit.md says what they mean).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from benchmarks.accuracy_reasons import (  # noqa: E402
    Reason,
    bad,
    is_good,
    reasons,
    section,
    summary,
    totals,
)
from gradspec.driver import audits  # noqa: E402
from gradspec.driver.discover import discover  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.options import AuditOptions, Options  # noqa: E402
from gradspec.report.audit_rows import Row, rows  # noqa: E402

PAGE = ROOT / "benchmarks" / "accuracy.md"
TARGETS = ("numpy", "torch", "tf", "jax")
DTYPES = ("float32", "float64")
HEAD = """\
# Accuracy of the shipped elementwise rules

`python benchmarks/accuracy.py --write`: the emitted modules in their frameworks, {points}
points a stratum and more beside zeros and ends (docs/audit.md).

Each cell: the largest error in the core (2⁻¹² ≤ |x| ≤ 128) in ULP, then the share of the
whole domain beyond 4 ULP if there is any, and ✗ with the number of bad points if there
are any (NaN, ±inf or 0 for a normal number, or NaN for another). What is not good (a bad
point, or more than 4 ULP in the core) is bold, and stands with its reason in the last
section (benchmarks/accuracy_reasons.py): beside the best of what PyTorch, TensorFlow and
JAX have of their own (or, where none has it, make of the formula as written by automatic
differentiation), and beside what one unit in the last place of the inputs changes in the
true result where ours is worst, in ULP.

{totals}
"""


def main(arguments: list[str] | None = None) -> int:
    chosen = _chosen(arguments)
    start = time.perf_counter()
    targets = tuple(chosen.target.split(","))
    paths = chosen.paths or ["rules"]
    found = tuple(measured(paths, targets, chosen.points, chosen.jobs))
    whys = tuple(reasons(found, discover(paths).value or ()))
    text = page(found, whys, targets, chosen.points)
    print(text)
    if chosen.write:
        PAGE.write_text(text, encoding="utf-8")
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 0


def _chosen(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--points", type=int, default=600)
    parser.add_argument("--target", default=",".join(TARGETS))
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args(arguments)


def measured(
    paths: Iterable[str], targets: tuple[str, ...], points: int, jobs: int
) -> Iterator[Row]:
    """Values and gradients of all rules of the paths, on all targets."""
    entries = discover(paths).value or ()
    options = Options(targets)
    results = compile_entries(entries, options, jobs, lambda _: None)
    asked = AuditOptions(DTYPES, 1, points, jobs)
    done = audits.run(entries, results, options, asked, _told)
    for audit in done:
        if audit.absent:
            raise SystemExit(f"{audit.target}: {audit.absent}")
    yield from rows(finding for audit in done for finding in audit.findings)


def _told(display: str) -> None:
    print(display, file=sys.stderr)


# --- the page ------------------------------------------------------------------------


def page(
    found: tuple[Row, ...],
    whys: tuple[Reason, ...],
    targets: tuple[str, ...],
    points: int,
) -> str:
    counts = f"{_totals(found)}\n{totals(whys)}"
    lines = [HEAD.format(points=points, totals=counts)]
    for display in dict.fromkeys(row.emitted.display for row in found):
        lines.append(f"## {display}\n")
        lines += _table(
            [row for row in found if row.emitted.display == display], targets
        )
        lines.append("")
    return "\n".join((*lines, *section(whys), ""))


def _totals(found: tuple[Row, ...]) -> str:
    gradients = [row for row in found if row.emitted.order == 1]
    lines = []
    for name, some in (("values", found), ("gradients", gradients)):
        kept = [r for r in some if (r.emitted.order == 1) == (name == "gradients")]
        good = sum(is_good(row.emitted) for row in kept)
        clean = sum(not bad(row.emitted) for row in kept)
        lines.append(
            f"* {name}: {len(kept)} measured (rule, target, format); {clean} without a"
            f" bad point, {good} of them within 4 ULP in the core."
        )
        for side in ("native", "written"):
            others = [getattr(r, side) for r in kept if getattr(r, side) is not None]
            if others:
                fine = sum(is_good(other) for other in others)
                word = "the frameworks' own" if side == "native" else "as written"
                lines.append(f"  * {word}: {fine} of {len(others)} are as good.")
    return "\n".join(lines)


def _table(of_file: list[Row], targets: tuple[str, ...]) -> Iterator[str]:
    heads = [f"{target} {dtype[5:]}" for target in targets for dtype in DTYPES]
    yield f"| rule | | {' | '.join(heads)} |"
    yield f"| --- | --- |{' --- |' * len(heads)}"
    cells: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for row in of_file:
        ours = row.emitted
        place = cells.setdefault((ours.rule, ours.name), {})
        place[ours.target, ours.dtype] = _cell(row)
    for (rule, name), found in cells.items():
        texts = [found.get((t, d), "–") for t in targets for d in DTYPES]
        yield f"| {rule} | {name} | {' | '.join(texts)} |"


def _cell(row: Row) -> str:
    text = summary(row.emitted)
    return text if is_good(row.emitted) else f"**{text}**"


if __name__ == "__main__":
    raise SystemExit(main())
