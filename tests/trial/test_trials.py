"""Rules for each thing that a target must get right, tried in every framework: values and
gradients of both orders against balls, in graphs and compiled, forward mode, strides.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec.measure.jobs import FRAMEWORKS

HERE = Path(__file__).parent
TARGETS = HERE.parent / "targets"


def _tried(folder: Path, targets: list[str]) -> str:
    child = subprocess.run(
        [sys.executable, "-m", "gradspec", "test", ".", "--target", ",".join(targets)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stdout[-4000:] + child.stderr[-4000:]
    return child.stdout


TRIED = {
    "numpy,torch,tf": tuple(sorted(HERE.glob("*.grad"))),
    "numpy,torch": tuple(
        TARGETS / f"{name}.grad" for name in ("elementwise", "indexed", "learned")
    ),
    "jax": tuple(
        HERE / f"{n}.grad" for n in ("branches", "once_wrong", "ranges", "windows")
    ),
}
"""Others are tried in TensorFlow by `test_shipped_rules`."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TRIED)
def test_trials(name: str, tmp_path: Path) -> None:
    targets = [
        target
        for target in name.split(",")
        if importlib.util.find_spec(FRAMEWORKS[target][0])
    ]
    for file in TRIED[name]:
        shutil.copy(file, tmp_path)
    tried = _tried(tmp_path, targets)
    assert len(re.findall(r"^\w+: \d+ rules, \d+ checks$", tried, re.M)) == len(targets)


@pytest.mark.filterwarnings("ignore:GS433", "ignore:GS465")  # of windows of zeros
def test_gradients_of_a_window_that_ends_before_the_data() -> None:
    import gradspec

    np = pytest.importorskip("numpy")
    rules = gradspec.load(HERE / "windows.grad", "numpy")
    x, w = np.arange(1.0, 9.0), np.array([1.0, 2.0, 0.5])
    y, pullback = rules.norms_vjp(x, w, m=6)
    gradient, _ = pullback(np.ones_like(y))
    found = gradient[[0, 1, -2, -1]]
    wanted = [0.272166, 1.453810, 1.404137, 0.310460]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
