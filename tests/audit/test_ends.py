"""Half precision at every input, on emitted modules: a sample of what `benchmarks/half.py`
measures of the whole library."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks import half
from gradspec.driver.discover import discover

LIBRARY = Path(__file__).parents[2] / "rules"


@pytest.mark.shared_cache  # the searches are those of all who compile them
def test_half_precision_is_rounded_once() -> None:
    entries = discover([str(LIBRARY / "activations" / "sigmoidal.grad")]).value or ()
    tasks = half.divided(entries, ("numpy",), ("softsign", "hardsigmoid"))
    assert [task.names for task in tasks] == [("softsign", "hardsigmoid")]
    lines = list(half.measured(tasks, 1))
    assert {(line.rule, line.name) for line in lines} == {
        ("softsign", "y"),
        ("softsign", "dx"),
        ("hardsigmoid", "y"),
        ("hardsigmoid", "dx"),
    }
    assert all(line.good and line.close for line in lines)
    assert all(line.dtype == "float16" for line in lines), "NumPy has no bfloat16"


def test_a_line_that_is_off_is_shown() -> None:
    good = half.Line("f", "y", "torch", "float16", 0.5, 0, "1.2", True)
    off = half.Line("g", "y", "torch", "float16", 1.5, 0, "1.2", True)
    bad = half.Line("h", "y", "torch", "bfloat16", math.inf, 1, "1.2", True)
    text = half.page([good, off, bad])
    assert "| g | y |" in text and "| h | y |" in text and "| f | y |" not in text
    assert "3 of them are good in float32" in text and ": 1 of these" in text
