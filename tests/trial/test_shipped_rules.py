"""Every shipped rule, tried in every framework: values and gradients against balls,
examples, gradcheck, gradgradcheck, nested tapes, traced functions.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
@pytest.mark.shared_cache  # proofs and searches are those of all targets
@pytest.mark.xdist_group("shipped rules")
@pytest.mark.parametrize(
    ("target", "framework"),
    [("numpy", "numpy"), ("torch", "torch"), ("tf", "tensorflow")],
)
def test_the_shipped_rules_pass_their_trials(target: str, framework: str) -> None:
    pytest.importorskip(framework)
    child = subprocess.run(
        [sys.executable, "-m", "gradspec", "test", "rules/", "--target", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    (told,) = re.findall(rf"^{target}: (\d+) rules, (\d+) checks$", child.stdout, re.M)
    assert int(told[0]) >= 170
    assert int(told[1]) >= 18_000
