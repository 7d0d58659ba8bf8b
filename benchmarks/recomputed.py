"""The audit's numbers, recomputed by mpmath from the text of the rules.

    python benchmarks/recomputed.py                  all elementwise rules, NumPy
    python benchmarks/recomputed.py --points 200 --target torch rules/stable

`gradspec audit --format json --values DIR` says what came out at every point and what
errors that are. Here another reader of the language (tests/rules_library, which shares
no code with gradspec) evaluates each rule with mpmath, at two precisions that must
agree in 30 digits, and works out errors, bad points, the maximum and the shares again.
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

from gradspec.driver import audits  # noqa: E402
from gradspec.driver.discover import discover  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.options import AuditOptions, Options  # noqa: E402
from gradspec.report import audit_machine, audit_values  # noqa: E402
from tests.rules_library.rule_numbers import value  # noqa: E402
from tests.rules_library.rule_reading import Rule, read  # noqa: E402

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
_NEAR = 2.0**-12
"""ULP: what the audit's truth may be off, and how near to 1 or 4 a share is open."""

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
    found = tuple(_differences(finding, rows, truths))
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


def _differences(
    finding: dict[str, Any], rows: list[Row], truths: list[mpf | None]
) -> Iterator[str]:
    head = f"{finding['quantity']} {finding['side']}"
    mine: list[float | str] = []
    for row, true in zip(rows, truths, strict=True):
        theirs = row[f"{head} ulp"]
        if true is None:
            mine.append(theirs if theirs in ("bad", "lost", "") else float(theirs))
            continue
        verdict = verdict_of(float(row[head]), true, finding["dtype"])
        mine.append(verdict)
        if not _same(verdict, theirs, _slack(true, finding["dtype"])):
            inputs = {k: v for k, v in row.items() if " " not in k}
            yield f"{head} at {inputs}: {theirs or 'nothing'}, here {verdict or 'nothing'}"
    yield from _summary(finding["whole"], mine)


def verdict_of(got: float, true: mpf, dtype: str) -> float | str:
    """The error in ULP; "bad", "lost", or "" where nothing is measured."""
    bits, least, top = FORMATS[dtype]
    size = abs(true)
    finite = math.isfinite(got)
    if mp.isnan(true):
        return ""
    if mpf(2) ** least <= size < mpf(2) ** top - mpf(2) ** (top - bits - 1):
        if not finite or got == 0:
            return "bad"
        _, exponent = mp.frexp(true)
        return float(abs(mpf(got) - true) / mpf(2) ** (exponent - bits))
    is_lost = not finite if size < 1 else math.isnan(got)
    return "lost" if is_lost else ""


def _slack(true: mpf, dtype: str) -> float:
    """ULP that the audit may be off: its truths are sums of two doubles, and the second
    of them is subnormal where the first is tiny."""
    if not true or mp.isnan(true):
        return _NEAR
    _, exponent = mp.frexp(true)
    return _NEAR + float(mpf(2) ** (FORMATS[dtype][0] - exponent - 1074))


def _same(mine: float | str, theirs: str, slack: float) -> bool:
    if isinstance(mine, str) or theirs in ("bad", "lost", ""):
        return mine == theirs
    return abs(mine - float(theirs)) <= slack + 1e-9 * mine


def _summary(whole: dict[str, Any], mine: list[float | str]) -> Iterator[str]:
    errors = [m for m in mine if not isinstance(m, str)]
    bad = mine.count("bad")
    count = len(errors) + bad
    for name, found in (
        ("points", count),
        ("bad", bad),
        ("lost", mine.count("lost")),
    ):
        if whole[name] != found:
            yield f"{name}: {whole[name]}, here {found}"
    most = max(errors, default=0.0)
    if abs(whole["max_ulp"] - most) > _NEAR + 1e-9 * most:
        yield f"max_ulp: {whole['max_ulp']}, here {most}"
    for limit in (1.0, 4.0):
        share = (sum(e > limit for e in errors) + bad) / max(count, 1)
        open_ = sum(abs(e - limit) <= _NEAR for e in errors) / max(count, 1)
        theirs = whole[f"share_over_{limit:.0f}"]
        if abs(share - theirs) > open_ + 1e-12:
            yield f"share_over_{limit:.0f}: {theirs}, here {share}"


# --- the run -------------------------------------------------------------------------


def recompute(
    paths: list[str], targets: tuple[str, ...], asked: AuditOptions
) -> Iterator[Recomputed]:
    """Audits the files and recomputes what the emitted functions gave."""
    entries = discover(paths).value or ()
    options = Options(targets)
    results = compile_entries(entries, options, asked.jobs, lambda _: None)
    done = audits.run(entries, results, options, asked, lambda _: None)
    document = json.loads(audit_machine.document(done, asked))
    with tempfile.TemporaryDirectory(prefix="gradspec-") as name:
        audit_values.write(done, Path(name))
        for finding in document["findings"]:
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
