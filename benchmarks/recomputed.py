"""The audit's numbers, recomputed by mpmath from the text of the rules.

    python benchmarks/recomputed.py                  all elementwise rules, NumPy
    python benchmarks/recomputed.py --points 200 --target torch rules/stable

`gradspec audit --format json --values DIR` says what came out at every point and what
errors that are. Here another reader of the language (`rule_reading.py`, which shares no
code with gradspec) evaluates each rule with mpmath, at two precisions that must
agree in 30 digits, and works out tolerances, errors, bad points and the maximum again.
FLINT, and gradspec's own derivatives, have no part in it.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpmath import libmp, mp, mpf

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from benchmarks.rule_numbers import value  # noqa: E402
from benchmarks.rule_reading import Rule, read  # noqa: E402
from gradspec.driver.discover import discover  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.measure import audits  # noqa: E402
from gradspec.options import AuditOptions, Options  # noqa: E402
from gradspec.report import audit as report  # noqa: E402

FORMATS = {
    "float16": (11, -14, 16),
    "bfloat16": (8, -126, 128),
    "float32": (24, -126, 128),
    "float64": (53, -1022, 1024),
}
"""Bits, the least normal exponent, one beyond the largest."""

FACTORS = (1, 2, 4, 8, 16)
_OPEN = (
    ArithmeticError,
    ValueError,
    TypeError,
    TimeoutError,
    MemoryError,
    libmp.ComplexResult,
    libmp.NoConvergence,
)
"""A logarithm of what is 0 in so many digits, a series that does not end, …"""

AGREED = mpf(10) ** -30
SECONDS = 2
GOOD = 4.0
_NEAR = 2.0**-12
_ROUGH = 1 / 7
"""What the audit's truth may be off, in units, and its slopes, relatively."""

_FLOATING = ("", "float", "nograd")

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One finding of the audit: the points decided here, those that were not, and what
    differs.
    """

    name: str
    points: int
    undecided: int
    differences: tuple[str, ...]


def compare(rule: Rule, finding: dict[str, Any], rows: list[Row]) -> Recomputed:
    """A finding of ``--format json`` with the points of ``--values``."""
    truths = [truth(rule, finding["quantity"], row) for row in rows]
    name = f"{finding['rule']} {finding['quantity']} {finding['side']}"
    told = f"{name} on {finding['target']} in {finding['dtype']}"
    unknown = sum(t is None for t in truths)
    found = tuple(_differences(rule, finding, rows, truths))
    return Recomputed(told, len(rows) - unknown, unknown, found)


# --- truth ---------------------------------------------------------------------------


def truth(rule: Rule, quantity: str, row: Row) -> mpf | None:
    """The exact value in many digits, None if that is open."""
    before: mpf | None = None
    least = _digits(row)
    for digits in (least * k for k in FACTORS):
        try:
            with mp.workdps(digits):
                after = _limited(rule, quantity, row)
        except _OPEN:
            return None
        agreed = before is not None and abs(after - before) <= AGREED * abs(after)
        # A difference may vanish at two precisions; what vanishes at all is 0.
        if agreed and (after or digits > least * FACTORS[-2]):
            return after
        before = after
    return None


def _digits(row: Row) -> int:
    """As many that a small input is not lost beside 1, nor its square."""
    inputs = [abs(float(text)) for key, text in row.items() if " " not in key]
    sizes = [abs(math.log10(x)) for x in inputs if x and math.isfinite(x)]
    return 60 + 2 * math.ceil(max(sizes, default=0.0))


def _limited(rule: Rule, quantity: str, row: Row) -> mpf:
    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return _exact(rule, quantity, row)
    finally:
        signal.alarm(0)


def _exact(rule: Rule, quantity: str, row: Row) -> mpf:
    given = {n: mpf(float(row[n])) for n in rule.kinds if n in row}
    statics = {n: mpf(float(right.text)) for n, right in _plain(rule)}
    point = rule.complete({**statics, **given})
    if quantity in rule.outputs:
        return mpf(value(rule.forward(point)[quantity]))
    name, _, output = quantity.partition(" of ")
    output = output or rule.upstream[0]
    upstream = {o: mpf(int(o == output)) for o in rule.upstream}
    return mpf(value(rule.gradient(point, upstream)[name[1:]]))


def _plain(rule: Rule) -> Iterator[tuple[str, Any]]:
    """Defaults that are numbers: a caller passes the double nearest to each."""
    for name, right in rule.defaults.items():
        try:
            float(right.text.strip("()"))
        except ValueError:
            continue
        yield name, type(right)(right.text.strip("()"), right.tree)


# --- errors --------------------------------------------------------------------------


def tolerance(rule: Rule, quantity: str, row: Row, true: mpf, dtype: str) -> mpf | None:
    """A unit of the truth and what a unit of each floating input changes, by differences
    over four units; None where a truth beside the point is open."""
    total = _unit(true, dtype)
    for name in (n for n, kind in rule.kinds.items() if n in row and kind in _FLOATING):
        x = float(row[name])
        step = 4 * float(_unit(mpf(x), dtype)) if x else 0.0
        changes = [mpf(0)]
        for moved in (x + step, x - step) if step else ():
            beside = truth(rule, quantity, {**row, name: repr(moved)})
            if beside is None:
                return None
            changes.append(abs(beside - true) / 4)
        total += max(changes)
    return total


def _unit(value: mpf, dtype: str) -> mpf:
    """Of the value as rounded to the format."""
    bits, least, _ = FORMATS[dtype]
    part, exponent = mp.frexp(abs(value)) if value else (0, least)
    exponent += part >= 1 - mpf(2) ** (-bits - 1)
    return mpf(2) ** (max(exponent - 1, least) - bits + 1)


def error_of(got: float, true: mpf, allowed: mpf, dtype: str) -> float | None:
    """The error in tolerances, infinite for no number; None where nothing is judged."""
    bits, least, top = FORMATS[dtype]
    most = mpf(2) ** top - mpf(2) ** (top - bits)
    if mp.isnan(true) or abs(true) > most:
        return None
    if abs(true) < mpf(2) ** least and abs(got) <= 2.0**least:
        return 0.0
    if math.isinf(got) and got * true > 0 and abs(true) + GOOD * allowed > most:
        return 0.0
    return float(abs(mpf(got) - true) / allowed) if math.isfinite(got) else math.inf


def _differences(
    rule: Rule, finding: dict[str, Any], rows: list[Row], truths: list[mpf | None]
) -> Iterator[str]:
    quantity = finding["quantity"]
    head = f"{quantity} {finding['side']}"
    mine: list[float | None] = []
    for row, true in zip(rows, truths, strict=True):
        told = row[f"{head} error"]
        theirs = float(told) if told else None
        if true is None or (theirs is None and quantity not in rule.outputs):
            mine.append(theirs)  # open, or a derivative at the jump of a sign
            continue
        found = _error(rule, finding, row, true)
        mine.append(found)
        if not _same(found, theirs, _slack(true, finding["dtype"])):
            inputs = {k: v for k, v in row.items() if " " not in k}
            yield f"{head} at {inputs}: {told or 'nothing'}, here {found}"
    yield from _summary(finding["whole"], [m for m in mine if m is not None])


def _error(rule: Rule, finding: dict[str, Any], row: Row, true: mpf) -> float | None:
    """With the audit's tolerance where ours is open."""
    quantity, dtype = finding["quantity"], finding["dtype"]
    got = float(row[f"{quantity} {finding['side']}"])
    allowed = tolerance(rule, quantity, row, true, dtype)
    if allowed is None:
        allowed = mpf(float(row[f"{quantity} tolerance"]))
    return error_of(got, true, allowed, dtype)


def _slack(true: mpf, dtype: str) -> float:
    """Units that the audit may be off: its truths are sums of two doubles, and the second
    of them is subnormal where the first is tiny."""
    if not true or mp.isnan(true):
        return _NEAR
    _, exponent = mp.frexp(true)
    return _NEAR + float(mpf(2) ** (FORMATS[dtype][0] - exponent - 1074))


def _same(mine: float | None, theirs: float | None, slack: float) -> bool:
    if mine is None or theirs is None or math.isinf(mine):
        return mine == theirs
    return abs(mine - theirs) <= slack + _ROUGH * mine


def _summary(whole: dict[str, Any], mine: list[float]) -> Iterator[str]:
    if whole["points"] != len(mine):
        yield f"points: {whole['points']}, here {len(mine)}"
    bad = sum(e > GOOD for e in mine)
    open_ = sum(abs(e - GOOD) <= _NEAR + _ROUGH * GOOD for e in mine)
    if abs(whole["bad"] - bad) > open_:
        yield f"bad: {whole['bad']}, here {bad}"
    most = max(mine, default=0.0)
    if not _same(most, float(whole["max_error"]), _NEAR):
        yield f"max_error: {whole['max_error']}, here {most}"


# --- the run -------------------------------------------------------------------------


def recompute(
    paths: list[str], targets: tuple[str, ...], asked: AuditOptions
) -> Iterator[Recomputed]:
    """Audits the files and recomputes what the emitted functions gave."""
    entries = discover(paths).value or ()
    options = Options(targets)
    results = compile_entries(entries, options, asked.jobs, lambda _: None)
    done = audits.run(entries, results, options, asked, lambda _: None)
    findings = (finding for audit in done for finding in audit.findings)
    over_axes = {f.rule for f in findings if any("[" in name for name in f.columns)}
    document = json.loads(report.document(done, asked))
    with tempfile.TemporaryDirectory(prefix="gradspec-") as name:
        report.write_values(done, Path(name))
        for finding in document["findings"]:
            if finding["rule"] in over_axes:  # `read` knows no indices
                continue
            rules = {r.name: r for r in read(Path(finding["path"]).resolve()).rules}
            if finding["side"] == "emitted" and finding["rule"] in rules:
                of_rule = (
                    f"{finding['rule']}.{finding['target']}.{finding['dtype']}.csv"
                )
                with (Path(name) / of_rule).open(encoding="utf-8", newline="") as file:
                    rows = list(csv.DictReader(file))
                yield compare(rules[finding["rule"]], finding, rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", default=["rules"])
    parser.add_argument("--target", default="numpy")
    parser.add_argument("--dtype", default="float32,float64")
    parser.add_argument("--points", type=int, default=40)
    chosen = parser.parse_args()
    start = time.perf_counter()
    asked = AuditOptions(tuple(chosen.dtype.split(",")), 1, chosen.points, 2)
    total = [0, 0, 0, 0]
    for found in recompute(chosen.paths, tuple(chosen.target.split(",")), asked):
        total[0] += 1
        total[1] += found.points
        total[2] += found.undecided
        total[3] += bool(found.differences)
        if found.differences:
            print(f"{found.name}: {len(found.differences)} differ")
            for text in found.differences[:3]:
                print(f"    {text}")
    print(
        f"{total[0]} findings, {total[1]} points recomputed, {total[2]} left open by"
        f" mpmath; {total[3]} findings differ; {time.perf_counter() - start:.0f} s"
    )
    return 1 if total[3] else 0


if __name__ == "__main__":
    raise SystemExit(main())
