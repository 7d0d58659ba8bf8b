"""Rules that were wrong once, tried on every target with `gradspec test`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec.driver.trials import FRAMEWORKS

HERE = Path(__file__).parent


@pytest.mark.parametrize("file", ["windows.grad", "once_wrong.grad"])
def test_trials(file: str) -> None:
    present = [t for t, (m, *_) in FRAMEWORKS.items() if importlib.util.find_spec(m)]
    command = [sys.executable, "-m", "gradspec", "test", str(HERE / file)]
    child = subprocess.run(
        [*command, "--target", ",".join(present)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stdout[-4000:] + child.stderr[-4000:]


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
