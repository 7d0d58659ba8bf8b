"""Every shipped rule, tried in NumPy and torch: values and gradients against balls,
examples, gradcheck, gradgradcheck, agreement. What TensorFlow and JAX make of their
modules is pinned in `tests/contract`; rules of each kind are tried in `test_trials`.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAMEWORKS = {"numpy": "numpy", "torch": "torch"}

pytestmark = [pytest.mark.timeout(1200), pytest.mark.xdist_group("shipped rules")]


@pytest.fixture(scope="module")
def tried() -> str:
    """One run for both targets: proofs, searches and expected values are worked out
    once, and the targets are compared with one another, too.
    """
    present = [t for t, name in FRAMEWORKS.items() if importlib.util.find_spec(name)]
    targets = ",".join(present)
    child = subprocess.run(
        [sys.executable, "-m", "gradspec", "test", "rules/", "--target", targets],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stdout[-4000:] + child.stderr[-4000:]
    return child.stdout


@pytest.mark.parametrize("target", FRAMEWORKS)
def test_the_shipped_rules_pass_their_trials(target: str, tried: str) -> None:
    pytest.importorskip(FRAMEWORKS[target])
    (told,) = re.findall(rf"^{target}: (\d+) rules, (\d+) checks$", tried, re.M)
    assert int(told[0]) >= 170
    assert int(told[1]) >= 18_000
