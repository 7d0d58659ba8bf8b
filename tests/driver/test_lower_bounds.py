"""gradspec with the oldest libraries that pyproject.toml allows.

A virtual environment holds exactly the lower bounds, without a framework. In it rules are
checked, compiled, run and measured, and the spellings of NumPy are compared with balls.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTING = ("hypothesis", "mpmath", "pytest", "pytest-timeout", "pytest-xdist")
"""Of the libraries for developers those that the tests below import."""

RULES = (
    "rules/activations/sigmoidal.grad",
    "rules/tutorial",
    "rules/special/normal.grad",
    "rules/losses/classification.grad",
)
COMMANDS = (
    ("gradspec", "check", "--evidence", *RULES),
    ("gradspec", "test", "--target", "numpy", *RULES),
    ("gradspec", "audit", "--target", "numpy", "--points", "40", RULES[0]),
    (
        *(
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/primitives/test_spellings.py",
        ),
        *("tests/driver/test_workers.py", "-k"),
        "numpy and (values or infinities) or one_number or outlives",
    ),
)

OFFLINE = re.compile(r"connection|resol(ve|ution)|unreachable|timed out|proxy", re.I)
"""What pip says where it reaches no index."""


def lower_bounds() -> list[str]:
    """The oldest version of each library that compiling, running NumPy modules and the
    tests below need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["numpy"]]
    wanted += [one for one in extras["dev"] if one.partition(">=")[0] in TESTING]
    return [one.partition(",")[0].replace(">=", "==") for one in wanted]


@pytest.mark.timeout(900)  # it downloads some 80 MB
def test_the_oldest_libraries_that_are_allowed(tmp_path: Path) -> None:
    pins = lower_bounds()
    assert len(pins) > len(TESTING) and all("==" in pin for pin in pins)
    folder = tmp_path / "oldest"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q"]
    installed = _run([*pip, "--no-compile", "--disable-pip-version-check", *pins])
    if installed.returncode and OFFLINE.search(installed.stderr):
        pytest.skip(f"pip reaches no package index: {installed.stderr[-200:]}")
    assert installed.returncode == 0, installed.stderr
    for command in COMMANDS:
        done = _run([python, "-m", *command], PYTHONPATH=str(ROOT))
        assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])


def _run(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    env = {
        n: v for n, v in os.environ.items() if not n.startswith(("PYTEST", "PYTHON"))
    }
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**env, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
