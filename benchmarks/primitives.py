"""How accurate each primitive's spelling is on each target, measured on the frameworks.

    python benchmarks/primitives.py             what is off by more than 4 tolerances
    python benchmarks/primitives.py --write     into gradspec/primitives/measured.py

A rule for each primitive is compiled as it is written and audited (docs/audit.md). The
choice of evaluations rests on the faults that are written down (docs/evaluation.md).
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from gradspec.audit.cases import Finding  # noqa: E402
from gradspec.driver import audits  # noqa: E402
from gradspec.driver.discover import discover  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.ir.expr import Apply, Ref, const  # noqa: E402
from gradspec.ir.text import show  # noqa: E402
from gradspec.options import AuditOptions, Options  # noqa: E402
from gradspec.primitives.row import Primitive  # noqa: E402
from gradspec.primitives.table import ROWS  # noqa: E402

MODULE = ROOT / "gradspec" / "primitives" / "measured.py"
TARGETS = ("numpy", "torch", "tf", "jax")
DTYPES = ("float32", "float64")
_POINTS = 2500

_FAULT = 8.0
"""ULP from which on a choice may depend on it."""

_PARTS, _SPREAD = 12, 0.25
"""A fault is what so many of the parts of a bucket have; fewer are the neighbourhood of
a zero, or the very end of the range."""

_ALIKE = 16.0
"""Neighbouring buckets are one if their errors differ by no more than this factor."""

_EDGES = (
    *(-1074, -126, -64, -24, *range(-12, 11), 16, 24, 32, 64, 127, 256, 512, 1024),
)
"""Exponents at which buckets of magnitudes begin."""

_EXACT = frozenset(
    [
        *("add", "sub", "mul", "div", "neg", "abs", "max", "min", "clip"),
        *("relu", "square", "reciprocal", "mod"),
    ]
)

HEAD = '''\
"""What each target's functions are worth, for the choice of evaluations.

Generated: `python benchmarks/primitives.py --write` measures the spellings of the table
on the frameworks. ``FAULTS`` says where a function of one argument is usually off by more
than {fault:g} ULP; the error is infinite where a normal number comes out as 0, as an infinity or
as NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Span = tuple[float, float, float]
"""From one number to another, and the error between them."""

'''

TAIL = '''\


def _spans() -> Iterator[tuple[tuple[str, str, str], Span]]:
    for line in _FAULTS.strip().splitlines():
        name, target, dtype, low, high, ulp = line.split()
        yield (name, target, dtype), (float(low), float(high), float(ulp))


def _gathered() -> Mapping[tuple[str, str, str], tuple[Span, ...]]:
    found: dict[tuple[str, str, str], tuple[Span, ...]] = {}
    for key, span in _spans():
        found[key] = (*found.get(key, ()), span)
    return found


FAULTS: Mapping[tuple[str, str, str], tuple[Span, ...]] = _gathered()
"""By function, target and format."""
'''


@dataclass(frozen=True, slots=True)
class Span:
    """Magnitudes of one sign, from one exponent to another, and the error there."""

    sign: int
    low: int
    high: int
    ulp: float

    def text(self) -> str:
        """``low <= |x| < high``, written in the order of the numbers."""
        ends = (_power(self.low), _power(self.high))
        first, second = ends if self.sign > 0 else (f"-{ends[1]}", f"-{ends[0]}")
        return f"{first} {second} {_number(self.ulp)}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=_POINTS)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(arguments)
    found = tuple(measured(chosen.points))
    if chosen.write:
        MODULE.write_text(module(found), encoding="utf-8")
    for finding in found:
        spans = faults(finding)
        if finding.core.bad or spans:
            shown = "; ".join(span.text() for span in spans)
            error = f"{finding.core.worst:.3g} tolerances, {finding.core.bad} bad"
            print(
                f"{finding.rule:16} {finding.target:6} {finding.dtype} {error} {shown}"
            )
    return 0


def measured(points: int) -> Iterator[Finding]:
    """The values of every primitive, on every target, in both formats."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "primitives.grad"
        path.write_text("\n".join(rule(row) for row in rows()), encoding="utf-8")
        entries = discover([str(path)]).value or ()
        options = Options(TARGETS, as_written=True, budget=60.0)
        results = compile_entries(entries, options, 1, lambda _: None)
        for result in results:
            for diagnostic in result.diagnostics:
                if diagnostic.is_error:
                    raise SystemExit(diagnostic.headline)
        asked = AuditOptions(DTYPES, 0, points, 1)
        for audit in audits.run(entries, results, options, asked, lambda _: None):
            broken = [fault for fault in audit.faults if fault[2] != "written"]
            if audit.absent or broken:
                raise SystemExit(f"{audit.target}: {audit.absent or broken}")
            yield from (f for f in audit.findings if f.side == "emitted")


def rows() -> Iterator[Primitive]:
    """What can be wrong by more than its rounding."""
    for row in ROWS:
        is_function = row.result == "real" and row.arity and not row.is_step
        if is_function and row.name not in _EXACT:
            yield row


def rule(row: Primitive) -> str:
    """A rule that is the primitive; an integer argument (an order) is 1."""
    kinds = dict(zip(row.params, row.argument_types, strict=True))
    floats = [name for name, kind in kinds.items() if kind == "real"]
    given = (Ref(name) if name in floats else const(1) for name in row.params)
    domain = "y > 0" if row.name == "polygamma" else row.domain
    lines = [f"rule p_{row.name}({', '.join(floats)}) -> out:"]
    lines += [f"    assume {domain}"] if domain else []
    lines += [f"    out = {show(Apply(row.name, tuple(given)))}", ""]
    return "\n".join(lines)


# --- where the faults are --------------------------------------------------------------


def faults(finding: Finding) -> tuple[Span, ...]:
    """The spans of one argument in which many values are wrong."""
    if len(finding.columns) > 1:
        return ()
    (column,) = finding.columns.values()
    return tuple(span for sign in (-1, 1) for span in _spans(finding, column, sign))


def _spans(finding: Finding, column: Any, sign: int) -> list[Span]:
    found: list[Span] = []
    for low, high in pairwise(_EDGES):
        worst = _error(finding, sign * column, low, high)
        if not worst:
            continue
        last = found[-1] if found else None
        if last is not None and last.high == low and _is_alike(last.ulp, worst):
            found[-1] = Span(sign, last.low, high, max(last.ulp, worst))
        else:
            found.append(Span(sign, low, high, worst))
    return found


def _error(finding: Finding, size: Any, low: int, high: int) -> float:
    """The error that is usual between two powers of two; 0 if it is a good one."""
    seen = finding.found
    top = math.inf if high > 1023 else 2.0**high
    inside = (size >= 2.0**low) & (size < top) & seen.judged
    lost = ~np.isfinite(finding.values) | ((finding.values == 0) & (seen.error > 0))
    ulp = np.where(lost, np.inf, seen.ulp)[inside]
    part = (_PARTS * (np.log2(size[inside]) - low) / (high - low)).astype(int)
    usual = [float(np.median(ulp[part == n])) for n in np.unique(part)]
    poor = sorted((error for error in usual if error > _FAULT), reverse=True)
    place = math.ceil(_SPREAD * len(usual))
    return poor[place - 1] if 0 < place <= len(poor) else 0.0


def _is_alike(one: float, other: float) -> bool:
    low, high = sorted((one, other))
    return one == other or high <= _ALIKE * low


# --- the module ------------------------------------------------------------------------


def module(found: tuple[Finding, ...]) -> str:
    """The text of the generated module."""
    spans = [
        f"{finding.rule.removeprefix('p_')} {finding.target} {finding.dtype} {span.text()}"
        for finding in found
        for span in faults(finding)
    ]
    head = HEAD.format(fault=_FAULT)
    return "\n".join([head, '_FAULTS = """', *spans, '"""', TAIL])


def _power(exponent: int) -> str:
    return "inf" if exponent > 1023 else f"{2.0**exponent:.5g}"


def _number(ulp: float) -> str:
    return "inf" if math.isinf(ulp) else f"{ulp:.3g}"


if __name__ == "__main__":
    raise SystemExit(main())
