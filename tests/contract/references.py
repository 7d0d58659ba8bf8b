"""Values and gradients of a rule by ball arithmetic, at a few fixed points.

Only `pin` asks for them; a test compares with what is pinned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradspec import pipeline
from gradspec.driver.discover import read
from gradspec.driver.load import load
from gradspec.ir.rule import Judged
from gradspec.measure.cases import trial_case
from gradspec.options import Options
from tests.contract.call import TYPES, Call, row
from tests.contract.files import File
from tests.contract.tables import Row

POINTS = 3
RENAMED = ("np", "pullback")
"""Rules whose functions have other names on some targets (the table of names has them)."""
_LARGEST = 24
"""Elements of a call over axes, inputs and gradients together, if there is such a call."""

Case = dict[str, Any]
PARTS = {"given": ("given", "upstream"), "expected": ("values", "first")}
"""Parts of a call."""


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


def _calls(checked: Judged) -> list[Call]:
    case = trial_case(checked.rule)
    if case["axes"]:
        return _over_axes(case)
    sampled = [call for call in case["calls"] if not call["checked"]]
    by_statics: dict[str, list[Case]] = {}
    for call in sampled:
        by_statics.setdefault(repr(call["statics"]), []).append(call)
    calls = max(by_statics.values(), key=lambda group: len(_usable(group)))
    chosen = _chosen(calls)
    if any(shape for shape, _ in calls[0]["given"].values()):
        return [_call(case, calls[0], [k for _, k in chosen], (len(chosen),))]
    return [_call(case, call, [0], ()) for call, _ in chosen]


Spot = tuple[Case, int]
"""A call, and the place in it of one point."""


def _numbers(spot: Spot, of: str) -> list[float]:
    """What is given at a point, or expected."""
    call, k = spot
    return [flat[k] for part in PARTS[of] for _, flat in call[part].values()]


def _chosen(calls: list[Case]) -> list[Spot]:
    """Of points with different signs and zeros before others of the same."""
    seen: dict[tuple[float, ...], int] = {}
    usable = _usable(calls)
    for k, spot in enumerate(usable):
        numbers = [*_numbers(spot, "given"), *_numbers(spot, "expected")]
        seen.setdefault(tuple(np.sign(numbers)), k)
    apart = range(0, len(usable), max(1, len(usable) // POINTS))
    chosen = [*dict.fromkeys([*[*seen.values()][:POINTS], *apart])][:POINTS]
    return [usable[k] for k in chosen]


def _usable(calls: list[Case]) -> list[Spot]:
    """Points at which everything is neither large nor lost: those are for audits."""
    spots = [
        (c, k) for c in calls for k in range(len(next(iter(c["given"].values()))[1]))
    ]
    return [
        spot
        for spot in spots
        if all(map(_is_moderate, _numbers(spot, "expected")))
        and all(abs(v) <= 8 for v in _numbers(spot, "given"))
    ]


def _is_moderate(value: float) -> bool:
    return math.isfinite(value) and (value == 0 or 1e-3 <= abs(value) <= 1e3)


def _call(case: Case, call: Case, chosen: list[int], shape: tuple[int, ...]) -> Call:
    def array(value: tuple[list[int], list[float]], kind: str) -> Any:
        flat = [value[1][k] for k in chosen]
        return np.array(flat, TYPES.get(kind, np.float64)).reshape(shape)

    return _made(case, call, array)


def _made(case: Case, call: Case, array: Callable[[Any, str], Any]) -> Call:
    return Call(
        call["statics"],
        {n: array(call["given"][n], k) for n, k in case["inputs"]},
        {n: array(value, "float") for n, value in call["upstream"].items()},
        {n: array(call["values"][n], k) for n, k in case["outputs"]},
        {n[1:]: array(value, "float") for n, value in call["first"].items()},
    )


def _over_axes(case: Case) -> list[Call]:
    """The largest call that is small enough, and that has an element."""
    calls = [call for call in case["calls"] if _size(call)]
    fits = [call for call in calls if _size(call) <= _LARGEST]
    if not calls:
        return []
    chosen = max(fits, key=_size) if fits else min(calls, key=_size)

    def array(value: tuple[list[int], list[float]], kind: str) -> Any:
        shape, flat = value
        return np.array(flat, TYPES.get(kind, np.float64)).reshape(shape)

    return [_made(case, chosen, array)]


def _size(call: Case) -> int:
    """Zero if it has no element, or an infinite one."""
    arrays = [flat for part in PARTS["expected"] for _, flat in call[part].values()]
    if not all(arrays) or not all(math.isfinite(v) for flat in arrays for v in flat):
        return 0
    given = [flat for part in PARTS["given"] for _, flat in call[part].values()]
    return sum(map(len, [*arrays, *given]))
