"""The conformance suite: one call of each rule through every feature of a framework.

Every cell is reported as it is done, so that the parent knows which one a crash is due
to.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gradspec.driver.emitted import import_file
from gradspec.measure.frameworks.asking import Listed, ask, gaps, truths
from gradspec.measure.frameworks.setting import Case, Run, report

RELATIVE = 2e-4
"""Single precision, relative to the largest element of a gradient."""

HALF = 0.05
"""Tolerance of a feature that computes in bfloat16."""

DOUBLE = 1e-9
"""Tolerance of a feature in float64, which a single-precision step would exceed."""


def work(job: Case, setting: Any, register: Mapping[str, Run]) -> None:
    """Every cell of the job that is left."""
    features = {feature["name"]: feature for feature in job["features"]}
    cases = {(m["path"], c["rule"]): c for m in job["modules"] for c in m["cases"]}

    def build(load: Any, path: str, case: Case) -> Any:
        return setting(load(path), case)

    for path, rule, way, name in job["left"]:
        key, case = (path, rule, way, name), {**cases[path, rule], "way": way}
        load = import_file
        if way == "plain":
            case, load = case | case["bare"], setting.plain
        report({"key": key, "state": "started"})
        setting_of = partial(build, load, path, case)
        state, message = _cell(register[name], setting_of, case, features[name])
        report({"key": key, "state": state, "message": message})


def _cell(
    run: Run, setting_of: Callable[[], Any], case: Case, feature: dict[str, Any]
) -> tuple[str, str]:
    try:
        got = ask(setting_of, run)
    except Exception as fault:
        return "error", _fault_text(fault)
    order = feature["order"]
    if not order and got is None:  # it has checked what there is to check
        return "ok", ""
    room = HALF if feature["half"] else DOUBLE if feature["double"] else RELATIVE
    expected, lost = (truths(one, order) for one in (case, case | case["bare"]))
    assert expected is not None
    if _agree(got, expected, room):
        return "ok", ""
    if lost is not None and _agree(got, lost, room):
        return "dropped", "what the forward expression gives came out"
    wanted = [values for _, values in expected.values()]
    return "wrong", f"got {_short(got)}, expected {_short(wanted)}"


def _fault_text(fault: Exception) -> str:
    """The first line of an exception's message, or the last if the first only
    announces."""
    words = [line.strip() for line in str(fault).splitlines() if line.strip()] or [""]
    if words[0].endswith(":"):
        words.reverse()
    frames = traceback.extract_tb(fault.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(fault).__name__}: {words[0][:160]}{where}"


def _agree(
    got: list[Listed] | None, expected: dict[str, Listed], relative: float
) -> bool:
    """True if shapes and elements agree, within a part of the largest element of each."""
    if got is None or len(got) != len(expected):
        return False
    for mine, true in zip(got, expected.values(), strict=True):
        room = relative * max([1e-3, *map(abs, true[1])]) if true else 0.0
        if not true or any(gaps(mine, true, [room] * len(true[1]))):
            return False
    return True


def _short(values: Any) -> str:
    text = json.dumps(values)
    return text if len(text) <= 90 else f"{text[:87]}..."
