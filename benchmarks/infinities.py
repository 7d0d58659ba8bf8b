"""What emitted modules give at plus and minus infinity and at -0.0.

    python benchmarks/infinities.py             every shipped elementwise rule
    python benchmarks/infinities.py --write     also into benchmarks/infinities.md

Each input in turn goes to ±inf, the others at three points that are nowhere special; the
truth is the limit (`gradspec.symbolic.far`), asked for where there is one. At -0.0 a value
that is 0 or infinite has the sign that the framework's own function gives, or where it has
none its evaluation of the formula as written.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from gradspec import pipeline  # noqa: E402
from gradspec.audit.cases import Request, job  # noqa: E402
from gradspec.audit.points import Sample  # noqa: E402
from gradspec.audit.quantities import Quantity, quantities  # noqa: E402
from gradspec.driver.audits import RUNNERS  # noqa: E402
from gradspec.driver.discover import Entry, discover, read  # noqa: E402
from gradspec.driver.load import load  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.ir.rule import Kind, Rule  # noqa: E402
from gradspec.options import Options  # noqa: E402
from gradspec.stabilise.infinite import typical  # noqa: E402
from gradspec.symbolic.enclose import program  # noqa: E402
from gradspec.symbolic.far import far  # noqa: E402
from gradspec.symbolic.sides import Trend  # noqa: E402

PAGE = ROOT / "benchmarks" / "infinities.md"
TARGETS = ("numpy", "torch", "tf", "jax")
_NUMBERS = (Kind.FLOAT, Kind.NOGRAD)
_CLOSE = 1e-5
_PRECISION = 64

HEAD = """\
# At infinities and at -0.0

`python benchmarks/infinities.py --write`: every shipped elementwise rule in float32, each
input in turn at ±inf where the value or the gradient has a limit, and at -0.0.

| target | limits asked | wrong: emitted | the framework's own | as written | signs at -0.0 | others |
| --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A rule at its ends: for each row of ``sample`` and quantity the limit, or NaN."""

    rule: Rule
    sample: Sample
    wanted: dict[str, Any]
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """``wrong`` by side: rule, quantity and place; ``signs`` that differ at -0.0."""

    target: str
    asked: dict[str, int]
    wrong: dict[str, tuple[str, ...]]
    zeros: int
    signs: tuple[str, ...]


def asked(rule: Rule) -> Asked | None:
    """Rows at ±inf and at -0.0 of each input."""
    found = quantities(rule, rule, 1)
    points = typical(rule)
    rows, wanted, places = [], [], []
    for variable in (i for i in rule.tensor_inputs if i.kind in _NUMBERS):
        for end in (math.inf, -math.inf, -0.0):
            for point in points:
                if end == 0 and not _is_inside(rule, {**point, variable.name: end}):
                    continue
                limits = _limits(rule, found, point, variable.name, end)
                rows.append({**point, variable.name: end})
                wanted.append(limits)
                places.append(f"{variable.name} = {end}")
    if not rows:
        return None
    names = [i.name for i in rule.tensor_inputs]
    columns = {n: np.array([float(row[n]) for row in rows]) for n in names}
    statics = {i.name: Fraction(float(i.default or 1)) for i in rule.static_inputs}
    sample = Sample(columns, statics, np.ones(len(rows), dtype=bool))
    keys = [q.key for q in found]
    values = {k: np.array([w[n] for w in wanted]) for n, k in enumerate(keys)}
    return Asked(rule, sample, values, tuple(places))


def _is_inside(rule: Rule, point: Any) -> bool:
    """Whether the rule's assumptions hold there: else a NaN is no fault."""
    exact = {name: Fraction(value) for name, value in point.items()}
    conditions = (a.condition for a in rule.assumes)
    return all(program(c).run(exact, _PRECISION)[0] is True for c in conditions)


def _limits(
    rule: Rule, found: tuple[Quantity, ...], point: Any, name: str, end: float
) -> list[float]:
    if end == 0:
        return [math.nan] * len(found)
    statics = {i.name: Fraction(float(i.default or 1)) for i in rule.static_inputs}
    others = {k: v for k, v in point.items() if k != name} | statics
    assumed = tuple(a.condition for a in rule.assumes)
    exprs = tuple(q.forms[0] for q in found)
    limits = far(exprs, others, name, 1 if end > 0 else -1, assumed)
    return [
        float(one.value.mid())
        if one.trend is Trend.FINITE
        else one.value * math.inf
        if one.trend is Trend.INFINITE and one.value
        else math.nan
        for one in limits
    ]


def rules(entries: tuple[Entry, ...]) -> Iterator[tuple[str, Rule]]:
    for entry in entries:
        source = read(entry.display).value
        module = load(source).module if source else None
        checked, _ = pipeline.check_module(module, Options()) if module else ((), ())
        for one in checked:
            if one.rule.is_elementwise:
                yield entry.display, one.rule


def measured(entries: tuple[Entry, ...], targets: tuple[str, ...]) -> Iterator[Found]:
    results = compile_entries(entries, Options(targets), 2, lambda _: None)
    cases = [(d, a) for d, rule in rules(entries) if (a := asked(rule)) is not None]
    for target in targets:
        with tempfile.TemporaryDirectory(prefix="gradspec-") as name:
            folder = Path(name)
            paths = {}
            for result in results:
                for module in result.modules:
                    if module.target == target:
                        path = folder / module.path
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_text(module.text, "utf-8")
                        paths[result.display] = str(path)
            yield _run(target, folder, cases, paths)


def _run(
    target: str, folder: Path, cases: list[tuple[str, Asked]], paths: dict[str, str]
) -> Found:
    told = []
    for number, (display, one) in enumerate(cases):
        key = str(number)
        np.save(folder / f"{key}.points.npy", np.array([*one.sample.columns.values()]))
        request = Request("float32", 1, 1)
        case = job(one.rule, one.sample, request, folder, key)
        told.append({**case, "module": paths[display]})
    (folder / "job.json").write_text(json.dumps({"cases": told}), "utf-8")
    runner = RUNNERS / f"{target}_audit.py"
    command = [sys.executable, str(runner), str(folder / "job.json"), str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    counts = dict.fromkeys(("emitted", "native", "written"), 0)
    wrong: dict[str, list[str]] = {side: [] for side in counts}
    signs: list[str] = []
    zeros = 0
    for number, (_, one) in enumerate(cases):
        got = np.load(folder / f"{number}.npz")
        for side in counts:
            for key, limits in one.wanted.items():
                if f"{side}/{key}" in got.files:
                    values = got[f"{side}/{key}"]
                    counts[side] += int((~np.isnan(limits)).sum())
                    wrong[side] += _wrong(one, key, values, limits)
        some = _signs(one, got)
        zeros += some[0]
        signs += some[1]
    kept = {side: tuple(found) for side, found in wrong.items()}
    return Found(target, counts, kept, zeros, tuple(signs))


def _wrong(one: Asked, key: str, values: Any, limits: Any) -> Iterator[str]:
    for place, value, limit in zip(one.places, values, limits, strict=True):
        near = value == limit or abs(value - limit) <= _CLOSE * max(abs(limit), 1e-30)
        if not math.isnan(limit) and not near:
            yield f"{one.rule.name} {key} at {place}: {value:.6g}, not {limit:.6g}"


def _signs(one: Asked, got: Any) -> tuple[int, list[str]]:
    """How many values at -0.0 were compared, and where they differ in sign."""
    count, found = 0, []
    for key in one.wanted:
        side = "native" if f"native/{key}" in got.files else "written"
        if key[0] != "0" or f"{side}/{key}" not in got.files:
            continue
        if f"emitted/{key}" not in got.files:
            continue
        ours, theirs = got[f"emitted/{key}"], got[f"{side}/{key}"]
        for place, a, b in zip(one.places, ours, theirs, strict=True):
            if not place.endswith("-0.0") or math.isnan(b):
                continue
            count += 1
            special = b == 0 or math.isinf(b)
            if special and not (a == b and np.signbit(a) == np.signbit(b)):
                found.append(f"{one.rule.name} {key} at {place}: {a:g}, {side} {b:g}")
    return count, found


def page(found: list[Found]) -> str:
    lines = []
    for one in found:
        shares = [f"{len(one.wrong[s])} of {one.asked[s]}" for s in one.wrong]
        lines.append(
            f"| {one.target} | {one.asked['emitted']} | {' | '.join(shares)} |"
            f" {one.zeros} | {len(one.signs)} |"
        )
    text = HEAD + "\n".join(lines) + "\n"
    for one in found:
        text += f"\n## {one.target}\n\n"
        text += "".join(f"* {line}\n" for line in (*one.wrong["emitted"], *one.signs))
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", default=["rules"])
    parser.add_argument("--target", default=",".join(TARGETS))
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    entries = discover(chosen.paths).value or ()
    found = list(measured(tuple(entries), tuple(chosen.target.split(","))))
    text = page(found)
    print(text)
    if chosen.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
