"""Formulas as written, with gradients that are stopped in them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec.measure.quantities import (
    is_derivative,
    written_outputs,
    written_program,
)
from tests.derive.rules import rules

STOPPING = """\
rule stopped(x) -> y:
    y = x
    override dx = 0 because "treated as a constant"

rule weighed(x, w) -> y:
    y = stopped(x + w) * x

rule swapped(x) -> y:
    y = x
    override dx = -dy because "reversed"

rule reversed(x) -> y:
    y = swapped(x) * x

rule late(x) -> y:
    y = weighed(x, 2) * x
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("stopped", False), ("weighed", True), ("reversed", False), ("late", False)],
)
def test_a_framework_can_stop_gradients_and_no_more(name: str, expected: bool) -> None:
    rule = rules(STOPPING)[name]
    assert is_derivative(rule) is expected


def test_what_is_stopped_is_told() -> None:
    rule = rules(STOPPING)["weighed"]
    steps = written_program(written_outputs(rule))["nodes"]
    assert [step for step in steps if step[0] == "stop"] == [["stop", 2]]
    assert steps[2] == ["add", 0, 1]


def test_gradients_stand_beside_those_of_the_formula(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text(STOPPING, encoding="utf-8")
    command = [sys.executable, "-m", "gradspec", "audit", "a.grad", "--target", "torch"]
    options = ["--points", "40", "--format", "json"]
    child = subprocess.run(
        [*command, *options], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)["findings"]
    sides = {
        (f["side"], f["quantity"]): f["whole"] for f in found if f["rule"] == "weighed"
    }
    for side in ("emitted", "written"):
        assert sides[side, "dx"]["points"] > 0
        assert sides[side, "dx"]["max_error"] <= 1
        assert sides[side, "dw"]["bad"] == 0
