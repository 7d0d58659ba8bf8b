"""One trial for all frameworks: what differs between them is an `Adapter`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from ranked_trying import try_calls
from reporting import RELATIVE, Trial, compare_example, numbers, slack

from gradspec.trial.loading import imported

Case = dict[str, Any]
Run = list[dict[str, float]]


class Adapter(Protocol):
    """What a framework's runner provides, beside `ranked_trying.RankedAdapter`."""

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        """A tensor of ``dtype`` (``kind`` "int" and "bool" have types of their own)."""

    def shape(self, value: Any) -> tuple[int, ...]:
        """The shape of a tensor."""

    def listed(self, value: Any) -> list[float]:
        """The elements of a tensor as Python floats."""

    def vjp(
        self, module: ModuleType, case: Case, inputs: list[Any], statics: Case
    ) -> tuple[tuple[Any, ...], Any]:
        """Outputs, and a function from the upstream gradients of the float outputs to
        one gradient (or None) per input.
        """

    def further(
        self, trial: Trial, module: ModuleType, case: Case, group: Case
    ) -> None:
        """The framework's own checks: gradcheck, nested tapes, tangents."""


def main(adapter: Adapter) -> None:
    """Read the job named on the command line, try every rule, write the result."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    results = []
    for module_job in job["modules"]:
        module = imported(module_job["path"])
        for case in module_job["rules"]:
            trial = Trial(case["rule"])
            _try(trial, adapter, module, case)
            results.append({"display": module_job["display"], **trial.result()})
            print(case["rule"], flush=True)
    Path(sys.argv[2]).write_text(json.dumps(results), "utf-8")


def arrays(adapter: Adapter, case: Case, run: Run, dtype: str = "float64") -> list[Any]:
    """The inputs of a run: vectors, or scalars where an input is declared of rank 0."""
    batched = is_batched(case)
    return [
        adapter.array(_column(run, name, batched), kind, dtype)
        for name, kind, _ in case["inputs"]
    ]


def upstreams(
    adapter: Adapter, case: Case, run: Run, dtype: str = "float64"
) -> list[Any]:
    """The upstream gradients of the float outputs."""
    batched = is_batched(case)
    return [
        adapter.array(_column(run, f"d{name}", batched), "float", dtype)
        for name, kind in case["outputs"]
        if kind == "float"
    ]


def is_batched(case: Case) -> bool:
    """No input is declared of rank 0, so that all points go in one call."""
    return all(batch for _, _, batch in case["inputs"])


def runs(case: Case, group: Case) -> Iterator[tuple[list[int], Run]]:
    """The calls that a group of points takes, with the points' numbers."""
    points = group["points"]
    if is_batched(case):
        yield list(range(len(points))), points
    else:
        for number, point in enumerate(points):
            yield [number], [point]


def smooth(case: Case, group: Case, limit: int) -> Case | None:
    """The first points of a group at which every gradient is differentiable."""
    chosen = [i for i, second in enumerate(group["second"]) if second is not None][
        :limit
    ]
    if not chosen:
        return None
    return {
        "statics": group["statics"],
        "points": [group["points"][i] for i in chosen],
        "second": [group["second"][i] for i in chosen],
        "expected": {
            name: [values[i] for i in chosen]
            for name, values in group["expected"].items()
        },
    }


def _try(trial: Trial, adapter: Adapter, module: ModuleType, case: Case) -> None:
    if "calls" in case:
        try_calls(trial, adapter, module, case)
    for group in case.get("groups", ()):
        trial.attempt(
            "values", "", lambda g=group: _values(trial, adapter, module, case, g)
        )
        trial.attempt(
            "framework's own checks",
            "",
            lambda g=group: adapter.further(trial, module, case, g),
        )
    for example in case["examples"]:
        for dtype in ("float64", "float32"):
            trial.attempt(
                "example",
                f"line {example['line']} ({dtype})",
                lambda e=example, d=dtype: _example(trial, adapter, module, case, e, d),
            )


def _values(
    trial: Trial, adapter: Adapter, module: ModuleType, case: Case, group: Case
) -> None:
    for numbered, run in runs(case, group):
        outputs, pullback = adapter.vjp(
            module, case, arrays(adapter, case, run), group["statics"]
        )
        gradients = pullback(*upstreams(adapter, case, run))
        columns = [*outputs, *(g for g in gradients if g is not None)]
        rows = [_spread(adapter.listed(column), len(run)) for column in columns]
        for place, number in enumerate(numbered):
            got = [row[place] for row in rows]
            _compare(trial, group, number, got)
            trial.values.append(got)


def _compare(trial: Trial, group: Case, number: int, got: list[float]) -> None:
    point = group["points"][number]
    if len(got) != len(group["expected"]):
        trial.fail(
            "gradients", str(point), f"{len(got)} values for {list(group['expected'])}"
        )
        return
    for (name, expected), value in zip(group["expected"].items(), got, strict=True):
        true = expected[number]
        if not math.isnan(true):
            room = slack(true, point, RELATIVE)
            trial.expect(name, str(point), value, true, room)


def _example(
    trial: Trial,
    adapter: Adapter,
    module: ModuleType,
    case: Case,
    example: Case,
    dtype: str,
) -> None:
    given = {name: numbers(value) for name, value in example["given"].items()}
    tensors = {name for name, _, _ in case["inputs"]}
    cotangents = {f"d{name}" for name, _ in case["outputs"]}
    inputs = [adapter.array(given[n], kind, dtype) for n, kind, _ in case["inputs"]]
    statics = {
        name: int(value) if float(value).is_integer() else value
        for name, value in given.items()
        if name not in tensors | cotangents
    }
    outputs, pullback = adapter.vjp(module, case, inputs, statics)
    upstream = [
        adapter.array(
            _filled(given.get(f"d{name}", 1.0), adapter.shape(value)), "float", dtype
        )
        for (name, kind), value in zip(case["outputs"], outputs, strict=True)
        if kind == "float"
    ]
    gradients = pullback(*upstream)
    got = {
        name: adapter.listed(v)
        for (name, _), v in zip(case["outputs"], outputs, strict=True)
    }
    for (name, _, _), gradient in zip(case["inputs"], gradients, strict=True):
        if gradient is not None:
            got[f"d{name}"] = adapter.listed(gradient)
    compare_example(trial, example, got, dtype)


def _filled(value: Any, shape: tuple[int, ...]) -> Any:
    """A scalar upstream gradient holds for every element."""
    if isinstance(value, list) or not shape:
        return value
    return [_filled(value, shape[1:]) for _ in range(shape[0])]


def _column(run: Run, name: str, batched: bool) -> Any:
    values = [point[name] for point in run]
    return values if batched else values[0]


def _spread(values: list[float], count: int) -> list[float]:
    return values * count if len(values) == 1 else values
