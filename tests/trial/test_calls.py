"""What a trial asks of a function over named axes, and that it can fail."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gradspec.measure.calls import place_in
from gradspec.measure.cases import trial_case
from tests.lower.grad_text import rule
from tests.trial.spoiling import assert_noticed

LINEAR = (
    "rule linear(x[..., k], w[m, k], b[m]) -> y[..., m]:\n"
    "    y[i] = sum(x[l] * w[i, l] for l) + b[i]\n"
    "    dw[i, l] = 0 * dy[i] * x[l]\n"
)
SQUARES = "rule f(x[..., n]) -> y:\n    y = sum(x[j]**2 for j)\n"


def array(given: list[Any]) -> dict[tuple[int, ...], float]:
    shape, values = given
    return dict(zip(product(*map(range, shape)), values, strict=True))


def test_gradients_are_summed_over_the_batch_whatever_the_rule_declares() -> None:
    for call in trial_case(rule(LINEAR))["calls"]:
        x, dy = array(call["given"]["x"]), array(call["upstream"]["y"])
        shape = call["given"]["x"][0][:-1]
        for (i, k), slope in array(call["first"]["dw"]).items():
            terms = [
                v * x[(*place_in(p[:-1], shape), k)]
                for p, v in dy.items()
                if p[-1] == i
            ]
            assert slope == pytest.approx(math.fsum(terms), rel=1e-15, abs=1e-15)


def test_calls_have_sizes_of_one_and_broadcast_and_empty_batches() -> None:
    calls = trial_case(rule(LINEAR))["calls"]
    shapes = [(c["given"]["x"][0], c["upstream"]["y"][0]) for c in calls]
    assert any(dy[:-1] == [2, 3] for _, dy in shapes)
    assert any(dy[0] == 0 for _, dy in shapes)
    assert any(x[-1] == 1 for x, _ in shapes)
    assert any(len(dy) == 1 for _, dy in shapes)


def test_second_derivatives_are_those_of_calculus() -> None:
    for call in trial_case(rule(SQUARES))["calls"]:
        dy, probe = array(call["upstream"]["y"]), array(call["probes"]["x"])
        for (*place, _), number, second in zip(
            probe, probe.values(), call["second"]["dx"][1], strict=True
        ):
            assert second == pytest.approx(2 * number * dy[tuple(place)])


def test_assumptions_hold_at_every_element_of_a_batch() -> None:
    text = (
        "rule f(p[..., n], q[..., n]) -> y:\n"
        "    assume p[i] > 0, sum(p[i] + q[i] for i) < 1\n"
        "    y = sum(q[i] * log(p[i]) for i)\n"
    )
    calls = trial_case(rule(text))["calls"]
    assert len(calls) == 4
    assert all(v > 0 for call in calls for v in call["given"]["p"][1])


@pytest.mark.parametrize(
    ("old", "new"), [("2.0 * dy", "2.0000001 * dy"), ("axis=-1", "axis=0")]
)
def test_a_wrong_module_fails_its_trial(tmp_path: Path, old: str, new: str) -> None:
    """The emitted text is spoiled behind the compiler's back."""
    assert_noticed(
        tmp_path,
        "rule f(x[..., n]) -> y:\n    y = sum(x[j]**2 for j) / n\n"
        "    dx[i] = 2 * dy * x[i] / n\n",
        old,
        new,
    )
