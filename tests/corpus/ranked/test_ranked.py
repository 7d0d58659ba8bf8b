"""Gradients over axes and of small algebra, as people wrote them by hand.

The true ones are proved; values and gradients are those of torch's autograd on every
target, at several shapes; wrong versions are refused with a witness.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gradspec
from gradspec.ir.rule import Verdict
from tests.corpus.ranked.choosing import FILES, accepted, chosen, only, wrong

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
JOBS = tuple((path.stem, name) for path in FILES for name in chosen(path))
_PACKAGES = {"numpy": "torch", "torch": "torch", "tf": "tensorflow"}
_ONLY_AGREE = {
    "squeeze_excite": "fractions of sigmoids under a sum",
    "swiglu": "fractions of sigmoids under a sum",
    "low_rank_bilinear_pool": "fractions of hyperbolic tangents under a sum",
    "gem_pool": "powers with a variable exponent under a sum",
    "moving_average": "a minimum of positions",
    "policy_gradient": "an entropy of a log softmax, too many terms",
    "gcn_layer": "rectifiers under a sum: at 0 the derived one gives half the slope",
    "info_nce": "a diagonal under a sum",
    "givens": "other coordinates than those of the defaults",
}
"""Judged by ball arithmetic alone, and why."""


@dataclass(frozen=True)
class Built:
    folder: Path
    verdicts: dict[str, tuple[Verdict, ...]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("ranked")
    for path in FILES:
        text = only(path.read_text("utf-8"), chosen(path))
        (folder / path.name).write_text(text, "utf-8")
    made = gradspec.compile_paths(folder, "all", folder / "ranked_corpus")
    rows = {row.name: row.verdicts for file in made.files for row in file.rules}
    return Built(folder, rows)


@pytest.fixture(scope="module", params=("numpy", "torch", "tf"))
def faults(request: pytest.FixtureRequest, built: Built) -> dict[Any, list[str]]:
    """What differs, by file and rule."""
    target = request.param
    for package in ("torch", _PACKAGES[target]):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    command = [sys.executable, str(HERE / "runner.py")]
    done = subprocess.run(
        [*command, str(ROOT), str(built.folder), target],
        input=json.dumps(JOBS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(zip(JOBS, json.loads(done.stdout), strict=True))


@pytest.mark.xdist_group("ranked corpus")  # one worker compiles them
def test_values_and_gradients_are_those_of_autograd(
    faults: dict[Any, list[str]],
) -> None:
    assert {job: found for job, found in faults.items() if found} == {}


@pytest.mark.xdist_group("ranked corpus")  # one worker compiles them
def test_true_gradients_are_proved(built: Built) -> None:
    assert set(built.verdicts) == {name for _, name in JOBS}
    unproved = {
        name: [v.input for v in verdicts if v.status.value == "agrees"]
        for name, verdicts in built.verdicts.items()
        if name not in _ONLY_AGREE
    }
    assert {name: inputs for name, inputs in unproved.items() if inputs} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_wrong_gradients_are_refused_with_a_witness(path: Path) -> None:
    some = wrong(path)
    assert some
    assert [(m.rule, m.statement) for m in accepted(some)] == []
