"""Half precision: every shipped rule of one input at all 65,536 inputs.

    python benchmarks/half.py             float16 and bfloat16, all targets
    python benchmarks/half.py --write     also into benchmarks/half.md

Emitted modules compute float16 and bfloat16 in float32 and round once. So what is good in
float32 (no error of more than 4 tolerances, docs/audit.md) has to be within 1 tolerance
here: half a unit of the last rounding, and what little float32 was off. NumPy has no
bfloat16.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from gradspec.driver.discover import Entry, discover, read  # noqa: E402
from gradspec.driver.load import load  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.measure import audits  # noqa: E402
from gradspec.measure.audits import Finding  # noqa: E402
from gradspec.options import AuditOptions, Options  # noqa: E402
from gradspec.stabilise.accuracy_model import GOOD  # noqa: E402
from gradspec.symbolic.points.formats import least_normal  # noqa: E402

PAGE = ROOT / "benchmarks" / "half.md"
TARGETS = ("numpy", "torch", "tf", "jax")
HALF = ("float16", "bfloat16")
CLOSE = 1.0
_AT_ONCE = 16
"""Rules that one process measures at once."""

HEAD = """\
# Half precision, every input

`python benchmarks/half.py --write`: values and gradients of every shipped rule of one
input, at all 65,536 numbers of float16 and bfloat16, on the emitted modules.

{totals}

Below: rules that are not within 1 tolerance somewhere (∞: NaN or an infinity for a number).
Not in the error are inputs that are subnormal numbers of bfloat16, which TensorFlow and JAX
take for 0 (†: so many are not within 1 tolerance). `float32` is the error in float32 on the
whole domain: what is not good there cannot be good here.

| rule | | target | format | half | float32 |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True, slots=True)
class Task:
    """Rules of one input, of some files."""

    entries: tuple[Entry, ...]
    names: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity of a rule on a target in a format; ``worst``: the largest error in
    half precision at normal inputs, in tolerances; ``flushed``: others that are not close;
    ``single``: the error in float32, ``good`` there.
    """

    rule: str
    name: str
    target: str
    dtype: str
    worst: float
    flushed: int
    single: str
    good: bool

    @property
    def close(self) -> bool:
        return self.worst <= CLOSE


def unary(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Elementwise rules of one tensor input, of any shape: a single number is no array
    of them, and takes a call for each."""
    found = []
    for entry in entries:
        source = read(entry.display, entry.root).value
        module = load(source, entry.root).module if source else None
        for rule in module.rules if module else ():
            inputs = rule.tensor_inputs
            if not rule.has_axes and len(inputs) == 1 and inputs[0].shape.batch:
                found.append(rule.name)
    return tuple(found)


def measured(tasks: tuple[Task, ...], jobs: int) -> Iterator[Line]:
    """The lines of all tasks in order, whoever is done first."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for lines in pool.map(_of_task, tasks):
            yield from lines


def divided(
    entries: Iterable[Entry], targets: tuple[str, ...], rules: tuple[str, ...] = ()
) -> tuple[Task, ...]:
    """A few files at a time: each task starts every framework once, and holds half a
    million numbers of each of its rules."""
    tasks: list[Task] = []
    for entry in entries:
        names = unary((entry,))
        names = tuple(n for n in names if not rules or n in rules)
        last = tasks[-1] if tasks else None
        if names and last and len(last.names) + len(names) <= _AT_ONCE:
            tasks[-1] = Task((*last.entries, entry), (*last.names, *names), targets)
        elif names:
            tasks.append(Task((entry,), names, targets))
    return tuple(tasks)


def _of_task(task: Task) -> tuple[Line, ...]:
    options = Options(task.targets)
    results = compile_entries(task.entries, options, 1, lambda _: None)
    asked = AuditOptions((*HALF, "float32"), 1, 1000, 1, task.names, ("emitted",))
    done = audits.run(task.entries, results, options, asked, lambda _: None)
    for audit in done:
        if audit.absent or audit.faults:
            raise SystemExit(f"{audit.target}: {audit.absent or audit.faults}")
    return tuple(_lines([f for audit in done for f in audit.findings]))


def _lines(findings: list[Finding]) -> Iterator[Line]:
    ours = [f for f in findings if f.side == "emitted"]
    single = {(f.rule, f.name, f.target): f for f in ours if f.dtype == "float32"}
    for finding in ours:
        if finding.dtype == "float32":
            continue
        wide = single[finding.rule, finding.name, finding.target].whole
        worst, flushed = _apart(finding)
        yield Line(
            finding.rule,
            finding.name,
            finding.target,
            finding.dtype,
            worst,
            flushed,
            _told(wide.worst),
            wide.bad == 0,
        )


def _apart(finding: Finding) -> tuple[float, int]:
    """The largest error where the input is a normal number of the format computed in, and
    the points that are not close elsewhere."""
    (column,) = finding.columns.values()
    error = finding.found.error
    small = (abs(column) < least_normal("float32")) & (column != 0)
    worst = float(error[~small].max(initial=0.0))
    return worst, int(((error > CLOSE) & small).sum())


def _told(error: float) -> str:
    return "∞" if math.isinf(error) else f"{error:.3g}"


def page(lines: list[Line]) -> str:
    rows = [_row(line) for line in lines if not line.close]
    return HEAD.format(totals=totals(lines)) + "\n".join(rows) + "\n"


def totals(lines: list[Line]) -> str:
    good = [line for line in lines if line.good]
    close = [line for line in good if line.close]
    others = [line for line in lines if not line.good]
    also = sum(line.close for line in others)
    rules = len({line.rule for line in lines})
    return (
        f"* {rules} rules; {len(lines)} measured (rule, quantity, target, format).\n"
        f"* {len(good)} of them are good in float32 (at most {GOOD:g} tolerances):"
        f" {len(close)} of these are within {CLOSE:g} tolerance in half precision at"
        f" every normal input.\n"
        f"* {len(others)} are not good in float32 somewhere: {also} of these are within"
        f" {CLOSE:g} tolerance in half precision all the same."
    )


def _row(line: Line) -> str:
    flushed = f"(†{line.flushed}) " if line.flushed else ""
    single = line.single if line.good else f"*{line.single}*"
    return (
        f"| {line.rule} | {line.name} | {line.target} | {line.dtype} |"
        f" {flushed}{_told(line.worst)} | {single} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", default=["rules"])
    parser.add_argument("--target", default=",".join(TARGETS))
    parser.add_argument("--rule", default="", help="only these, with commas")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write it")
    chosen = parser.parse_args()
    start = time.perf_counter()
    entries = discover(chosen.paths).value or ()
    targets = tuple(chosen.target.split(","))
    names = tuple(filter(None, chosen.rule.split(",")))
    tasks = divided(entries, targets, names)
    lines = list(measured(tasks, chosen.jobs))
    text = page(lines)
    print(text)
    if chosen.write:
        chosen.page.write_text(text, encoding="utf-8")
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 1 if any(line.good and not line.close for line in lines) else 0


if __name__ == "__main__":
    raise SystemExit(main())
