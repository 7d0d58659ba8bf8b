"""Every shipped rule, tried in NumPy and torch, elementwise ones in TensorFlow: values
and gradients against balls, examples, gradcheck, gradgradcheck, nested tapes, traced
functions, agreement. Rules of each kind are tried in every framework by `test_trials`.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAMEWORKS = {"numpy": "numpy", "torch": "torch", "tf": "tensorflow"}
ELEMENTWISE = ("activations", "losses", "special", "stable")
RUNS = {
    "numpy,torch": (("rules/",), 250, 30_000),
    "tf": (tuple(f"rules/{folder}" for folder in ELEMENTWISE), 130, 18_000),
}
"""Targets that share proofs, searches and expected values and are compared with one
another; what is tried; the least numbers of rules and of checks."""


@pytest.mark.timeout(1200)
@pytest.mark.xdist_group("shipped rules")
@pytest.mark.parametrize("targets", RUNS)
def test_the_shipped_rules_pass_their_trials(targets: str) -> None:
    paths, rules, checks = RUNS[targets]
    present = [
        target
        for target in targets.split(",")
        if importlib.util.find_spec(FRAMEWORKS[target])
    ]
    if not present:
        pytest.skip(f"{targets} not installed")
    command = ["test", *paths, "--target", ",".join(present)]
    child = subprocess.run(
        [sys.executable, "-m", "gradspec", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stdout[-4000:] + child.stderr[-4000:]
    for target in present:
        (told,) = re.findall(
            rf"^{target}: (\d+) rules, (\d+) checks$", child.stdout, re.M
        )
        assert int(told[0]) >= rules
        assert int(told[1]) >= checks
