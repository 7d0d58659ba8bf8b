"""Values and gradients of a rule by ball arithmetic, at a few fixed points.

Only `pin` asks for them; a test compares with what is pinned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradspec import pipeline
from gradspec.driver.discover import read
from gradspec.driver.load import load
from gradspec.ir.rule import CheckedRule
from gradspec.options import Options
from gradspec.trial.cases import rule_cases
from gradspec.trial.ranked import ranked_cases
from tests.contract.call import TYPES, Call, row
from tests.contract.files import File
from tests.contract.tables import Row

POINTS = 3
RENAMED = ("np", "pullback")
"""Rules whose functions have other names on some targets (the table of names has them)."""
_LARGEST = 24
"""Elements of a call over axes, inputs and gradients together, if there is such a call."""

Case = dict[str, Any]


def rows(file: File) -> Iterator[Row]:
    """A row a call of each of the file's rules that is tried."""
    source = read(str(file.path), str(file.path.parent)).value
    assert source is not None
    lowered = load(source, str(file.path.parent)).module
    assert lowered is not None
    checked, _ = pipeline.check_module(lowered, Options(()))
    for one in checked:
        name = one.rule.name
        if name in file.rules(whole=False) and name not in RENAMED:
            for number, call in enumerate(_calls(one)):
                yield row(file.name, name, number, call)


def _calls(checked: CheckedRule) -> list[Call]:
    if not checked.rule.is_elementwise:
        return _over_axes(ranked_cases(checked.rule))
    case = rule_cases(checked)
    group = max(case["groups"], key=lambda g: len(_usable(g)))
    chosen = _chosen(group)
    if all(batch for _, _, batch in case["inputs"]):
        return [_elementwise(case, group, chosen, (len(chosen),))]
    return [_elementwise(case, group, [k], ()) for k in chosen]


def _chosen(group: Case) -> list[int]:
    """Of points with different signs and zeros before others of the same."""
    seen: dict[tuple[float, ...], int] = {}
    usable = _usable(group)
    for k in usable:
        numbers = [*group["points"][k].values()]
        numbers += [values[k] for values in group["expected"].values()]
        seen.setdefault(tuple(np.sign(numbers)), k)
    apart = usable[:: max(1, len(usable) // POINTS)]
    return [*dict.fromkeys([*seen.values()][:POINTS] + apart)][:POINTS]


def _usable(group: Case) -> list[int]:
    """Points at which everything is neither large nor lost: those are for audits."""
    return [
        k
        for k in range(len(group["points"]))
        if all(_is_moderate(values[k]) for values in group["expected"].values())
        and all(abs(v) <= 8 for v in group["points"][k].values())
    ]


def _is_moderate(value: float) -> bool:
    return math.isfinite(value) and (value == 0 or 1e-3 <= abs(value) <= 1e3)


def _elementwise(
    case: Case, group: Case, chosen: list[int], shape: tuple[int, ...]
) -> Call:
    points = [group["points"][k] for k in chosen]
    expected = {n: [v[k] for k in chosen] for n, v in group["expected"].items()}

    def array(values: list[float], kind: str) -> Any:
        return np.array(values, TYPES.get(kind, np.float64)).reshape(shape)

    inputs = {n: array([p[n] for p in points], k) for n, k, _ in case["inputs"]}
    floats = [name for name, kind in case["outputs"] if kind == "float"]
    return Call(
        group["statics"],
        inputs,
        {n: array([p[f"d{n}"] for p in points], "float") for n in floats},
        {n: array(expected[n], k) for n, k in case["outputs"]},
        {n: array(expected[f"d{n}"], "float") for n in inputs if f"d{n}" in expected},
    )


def _over_axes(case: Case) -> list[Call]:
    """The largest call that is small enough, and that has an element."""
    calls = [call for call in case["calls"] if _size(call)]
    fits = [call for call in calls if _size(call) <= _LARGEST]
    if not calls:
        return []
    chosen = max(fits, key=_size) if fits else min(calls, key=_size)
    given, expected = chosen["given"], chosen["expected"]

    def array(value: tuple[list[int], list[float]], kind: str) -> Any:
        shape, flat = value
        return np.array(flat, TYPES.get(kind, np.float64)).reshape(shape)

    inputs = {n: array(given[n], k) for n, k, _ in case["inputs"]}
    outputs = {n: array(expected[n], k) for n, k in case["outputs"]}
    floats = [name for name, kind in case["outputs"] if kind == "float"]
    above = {n: array(given[f"d{n}"], "float") for n in floats}
    slopes = {
        n: array(expected[f"d{n}"], "float") for n in inputs if f"d{n}" in expected
    }
    return [Call(chosen["statics"], inputs, above, outputs, slopes)]


def _size(call: Case) -> int:
    """Zero if it has no element, or an infinite one."""
    arrays = [flat for _, flat in call["expected"].values()]
    if not all(arrays) or not all(math.isfinite(v) for flat in arrays for v in flat):
        return 0
    given = [f for n, (_, f) in call["given"].items() if not n.startswith("probe ")]
    return sum(map(len, [*arrays, *given]))
