"""Gradients over axes and of small algebra, as people wrote them by hand.

The true ones are proved; values and gradients are those of torch's autograd on every
target, at several shapes; wrong versions are refused with a witness.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import gradspec
from tests.corpus.ranked.wrong import FILES, accepted, checked, one_of_each_rule

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RULES = tuple(
    (path.stem, name)
    for path in FILES
    for name in re.findall(r"^rule (\w+)", path.read_text("utf-8"), re.MULTILINE)
)
_PACKAGES = {"numpy": "torch", "torch": "torch", "tf": "tensorflow"}
_TF_SHARE = 3
"""TensorFlow runs one rule in so many; which, a hash of the name says."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranked")
    gradspec.compile_paths(HERE / "rules", "all", folder / "generated")
    return folder


def _jobs(target: str) -> list[tuple[str, str]]:
    return [
        job
        for job in RULES
        if target != "tf" or zlib.crc32(job[1].encode()) % _TF_SHARE == 0
    ]


@pytest.fixture(scope="module", params=("numpy", "torch", "tf"))
def faults(request: pytest.FixtureRequest, compiled: Path) -> dict[Any, list[str]]:
    """What differs, by file and rule."""
    target = request.param
    for package in ("torch", _PACKAGES[target]):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    jobs = _jobs(target)
    command = [sys.executable, str(HERE / "runner.py")]
    done = subprocess.run(
        [*command, str(ROOT), str(compiled), target],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(zip(jobs, json.loads(done.stdout), strict=True))


def test_values_and_gradients_are_those_of_autograd(
    faults: dict[Any, list[str]],
) -> None:
    assert {job: found for job, found in faults.items() if found} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_true_gradients_are_proved(path: Path) -> None:
    unproved = []
    for name, outcome in checked(path.read_text("utf-8")):
        assert outcome.value is not None, [d.headline for d in outcome.diagnostics]
        statuses = {v.input: v.status.value for v in outcome.value.verdicts}
        if not set(statuses.values()) <= {"proved", "derived", "none"}:
            unproved.append((name, statuses))
    assert not unproved


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_wrong_gradients_are_refused_with_a_witness(path: Path) -> None:
    wrong = one_of_each_rule(path)
    assert wrong
    assert [(m.rule, m.statement) for m in accepted(wrong)] == []
