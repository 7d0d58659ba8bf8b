"""Which operation a recurrence becomes, and which one is not planned."""

from __future__ import annotations

import pytest

from gradspec.plan.arrays import Cumulative, Item, LinearScan, Loop, nodes
from tests.targets.ranked_numpy import lowered, planned

PLANNED = (
    ("x[n]", "x[t] + (h[t - 1] if t > 0 else 0)", Cumulative),
    ("x[n]", "x[t] + (h[t + 1] if t < n - 1 else 0)", Cumulative),
    ("x[n], a[n]", "x[t] + (a[t] * h[t - 1] if t > 0 else 0)", LinearScan),
    ("x[n], a", "(h[t - 1] - x[t]) / exp(a) if t > 0 else x[t]", LinearScan),
    ("x[n], a", "-(a * h[t + 1] if t < n - 1 else a) + x[t]", LinearScan),
    ("x[n]", "x[t] * (h[t - 1] if t > 0 else 1)", LinearScan),
    ("x[n]", "max(x[t], h[t - 1]) if t > 0 else x[t]", Loop),
    ("x[n]", "x[t] + (h[t - 1] + h[t - 2] if t > 1 else 0)", Loop),
    ("x[n], a[k]", "x[t] + sum(a[j] * h[t - j - 1] for j if j < t)", Loop),
)


def _text(inputs: str, value: str, axes: str = "n", index: str = "t") -> str:
    return f"rule f({inputs}) -> h[{axes}]:\n    h[{index}] = {value}\n"


@pytest.mark.parametrize(("inputs", "value", "kind"), PLANNED)
def test_the_operation_of_a_recurrence(inputs: str, value: str, kind: type) -> None:
    (plan,) = planned(lowered(_text(inputs, value))).rules
    found = {type(node) for let in plan.forward for node in nodes(let.value)}
    assert found & {Cumulative, LinearScan, Loop} == {kind}
    assert (Item in found) is (kind is Loop)


REFUSED = (
    (_text("x[n]", "x[t] + sum(x[t - s] * h[s] for s if s < t)"), "varying number"),
    (
        _text(
            "x[m, n]",
            "x[i, j] + (h[i - 1, j] if i > 0 else 0) + (h[i, j - 1] if j > 0 else 0)",
            "m, n",
            "i, j",
        ),
        "two axes",
    ),
)


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_is_checked_only(text: str, reason: str) -> None:
    (found,) = planned(lowered(text)).unplanned
    assert reason in found.reason
