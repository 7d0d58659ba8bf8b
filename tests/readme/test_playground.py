"""The playground's bridge in Pyodide, by Node: the source checked out, with the wheels that
the page has. NumPy comes from Pyodide's own server, so there is no code here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = Path(os.environ.get("GRADSPEC_PLAYGROUND", ROOT / "build/site/playground"))
WRONG = "rule wave(x) -> y:\n    y = sin(x)\n    dx = dy * sin(x)\n"
RIGHT = """rule shares(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
"""

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed"),
    pytest.mark.skipif(
        not (PAGE / "wheels.json").exists(),
        reason="`python docs/playground.py build/site/playground` brings Pyodide",
    ),
]


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    """What is said of the texts."""
    node = ["node", str(Path(__file__).with_name("playground.mjs"))]
    given = [*node, str(PAGE), str(ROOT), WRONG, RIGHT, "rule ("]
    done = subprocess.run(given, capture_output=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:].decode(errors="replace")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_verdicts_and_findings_are_those_of_check_text(
    answers: list[dict[str, Any]],
) -> None:
    wrong, right, broken = answers
    assert [g["words"] for g in wrong["rules"][0]["gradients"]] == ["dx refuted"]
    assert "write `dx = dy * cos(x)`" in wrong["findings"][0]["text"]
    assert (right["failed"], right["findings"]) == (False, [])
    assert [g["formula"] for g in right["rules"][0]["gradients"]] == [
        "dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))"
    ]
    assert broken["rules"] == [] and "GS103" in broken["findings"][0]["text"]


def test_a_fix_is_the_whole_text_mended(answers: list[dict[str, Any]]) -> None:
    fixes = answers[0]["findings"][0]["fixes"]
    assert [fix["text"] for fix in fixes][:1] == [WRONG.replace("* sin", "* cos")]


def test_without_numpy_a_sentence_stands_for_the_code(
    answers: list[dict[str, Any]],
) -> None:
    assert answers[1]["code"] == "# Code needs NumPy, which could not be loaded."
