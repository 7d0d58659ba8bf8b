"""How accurate the shipped elementwise rules are, measured on the real frameworks.

    python benchmarks/accuracy.py             all rules, targets, float32 and float64
    python benchmarks/accuracy.py --write     also into benchmarks/accuracy.md
    python benchmarks/accuracy.py --points 500 rules/activations
    python benchmarks/accuracy.py --target torch,jax -j 2

The numbers are those of `gradspec audit` (docs/audit.md says what they mean). A value or
a gradient is good where no point has an error of more than 4 tolerances.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from gradspec.driver.discover import discover  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.measure import audits  # noqa: E402
from gradspec.measure.audits import Finding  # noqa: E402
from gradspec.options import AuditOptions, Options  # noqa: E402
from gradspec.report.audit import Row, figure, inputs, rows  # noqa: E402

PAGE = ROOT / "benchmarks" / "accuracy.md"
TARGETS = ("numpy", "torch", "tf", "jax")
DTYPES = ("float32", "float64")
HEAD = """\
# Accuracy of the shipped elementwise rules

`python benchmarks/accuracy.py --points {points} --write`: the emitted modules in their
frameworks, {points} points a stratum and more beside zeros and ends, values and gradients.
Errors are in tolerances (docs/audit.md): what rounding the result and moving each input by
a unit in the last place can change. Good is an error of at most 4 at every point; the core
are points with 2⁻¹² ≤ |x| ≤ 128.
"""


def main(arguments: list[str] | None = None) -> int:
    chosen = _chosen(arguments)
    start = time.perf_counter()
    targets = tuple(chosen.target.split(","))
    paths = chosen.paths or ["rules"]
    found = tuple(measured(paths, targets, chosen.points, chosen.jobs))
    text = page(found, targets, chosen.points)
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
    """Values and gradients of all elementwise rules of the paths, on all targets: those
    over axes have other points, and nothing beside them."""
    entries = discover(paths).value or ()
    options = Options(targets)
    results = compile_entries(entries, options, jobs, lambda _: None)
    asked = AuditOptions(DTYPES, 1, points, jobs)
    done = audits.run(entries, results, options, asked, _told)
    for audit in done:
        if audit.absent:
            raise SystemExit(f"{audit.target}: {audit.absent}")
    found = (finding for audit in done for finding in audit.findings)
    yield from rows(one for one in found if not any("[" in c for c in one.columns))


def _told(display: str) -> None:
    print(display, file=sys.stderr)


# --- the page ------------------------------------------------------------------------


def page(found: tuple[Row, ...], targets: tuple[str, ...], points: int) -> str:
    return "\n".join(
        (HEAD.format(points=points), *_totals(found, targets), *_faulty(found), "")
    )


def _totals(found: tuple[Row, ...], targets: tuple[str, ...]) -> Iterator[str]:
    """A table for each side."""
    sides = {"emitted": "Emitted", "native": "The frameworks' own", "written": _WRITTEN}
    for side, title in sides.items():
        kept = [f for row in found if (f := getattr(row, side)) is not None]
        yield f"## {title}\n"
        yield "| target | format | measured | good | good in the core | no NaN |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for target in targets:
            for dtype in DTYPES:
                some = [f for f in kept if (f.target, f.dtype) == (target, dtype)]
                yield f"| {target} | {dtype} | {_counts(some)} |"
        yield f"| all | | {_counts(kept)} |"
        yield ""


_WRITTEN = "As written, differentiated by the frameworks"


def _counts(found: list[Finding]) -> str:
    good = sum(is_good(finding) for finding in found)
    core = sum(finding.core.bad == 0 for finding in found)
    clean = sum(not nans(finding) for finding in found)
    return f"{len(found)} | {good} | {core} | {clean}"


def is_good(finding: Finding) -> bool:
    return finding.whole.bad == 0


def nans(finding: Finding) -> int:
    """Points that are NaN where the truth is in the range."""
    return int((finding.found.judged & np.isnan(finding.values)).sum())


def _faulty(found: tuple[Row, ...]) -> Iterator[str]:
    """What is not good, a line for each quantity and format."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in found:
        groups.setdefault(_quantity(row.emitted), []).append(row)
    faulty = [group for group in groups.values() if not all(map(_is_good, group))]
    yield f"## What is not good ({len(faulty)} of {len(groups)})\n"
    if faulty:
        yield "| rule | | format | targets | bad points | error | at | why |"
        yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
        yield from map(_line, faulty)


def _quantity(finding: Finding) -> tuple[str, ...]:
    return finding.display, finding.rule, finding.name, finding.dtype


def _is_good(row: Row) -> bool:
    return is_good(row.emitted)


def _line(group: list[Row]) -> str:
    """The targets on which a quantity is not good; the error and the point of the worst."""
    poor = [row for row in group if not _is_good(row)]
    worst = max(
        (row.emitted for row in poor), key=lambda f: (f.whole.worst, f.whole.bad)
    )
    cells = (
        *(worst.rule, worst.name, worst.dtype),
        ", ".join(row.emitted.target for row in poor),
        f"{worst.whole.bad} of {worst.whole.count}",
        figure(worst.whole.worst),
        inputs(worst.whole.at) if worst.whole.at else "",
        why(poor, len(poor) < len(group)),
    )
    return f"| {' | '.join(cells)} |"


def why(poor: list[Row], others_are_good: bool) -> str:
    """What the measurement itself tells of the reason."""
    reasons = []
    if all(row.emitted.core.bad == 0 for row in poor):
        reasons.append("outside the core only")
    if others_are_good:
        reasons.append("other targets are good")
    natives = [(row.emitted, row.native) for row in poor if row.native is not None]
    if natives and all(own.whole.bad >= ours.whole.bad for ours, own in natives):
        reasons.append("the frameworks' own are no better")
    if any(nans(row.emitted) for row in poor):
        reasons.append("NaN")
    if all(_is_flushed(row.emitted) for row in poor):
        reasons.append("0 or subnormal for a small number")
    return "; ".join(reasons) or "no better form was found"


def _is_flushed(finding: Finding) -> bool:
    """Whether all bad points come out as 0 or subnormal, as where an intermediate value
    is subnormal and the processor takes it for 0."""
    tiny = np.finfo(finding.dtype).tiny
    return bool((np.abs(finding.values[finding.found.bad]) < tiny).all())


if __name__ == "__main__":
    raise SystemExit(main())
