"""Nothing is kept beyond inputs and outputs: a sample of `benchmarks/memory.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.memory import EMITTED, measured, page

SAMPLE = """\
rule log1pexp(x) -> y:
    y = log(1 + exp(x))

rule swish(x, beta: param = 1.0) -> y:
    y = x / (1 + exp(-beta * x))

rule polar(r, t) -> (x, y):
    x = r * cos(t)
    y = r * sin(t)

rule root(x) -> y:
    assume x > 0
    y = sqrt(x)

rule difference(x) -> y:
    y = (x - sin(x)) / x**3

rule gate_saved(x) -> y:
    u = exp(-x)
    y = x * u
    dx = dy * u * (1 - x)
    save u
"""

pytestmark = [
    pytest.mark.xdist_group("memory"),  # one worker measures
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


TARGETS = {"float32": ("torch", "tf", "jax"), "bfloat16": ("torch", "jax")}
"""Under an eager tape of TensorFlow an output that the backward pass uses is kept in
float32, where that is computed in.
"""


@pytest.fixture(scope="module", params=list(TARGETS))
def lines(request, tmp_path_factory):
    for framework in ("torch", "tensorflow", "jax"):
        pytest.importorskip(framework)
    path = tmp_path_factory.mktemp("memory") / "sample.grad"
    Path(path).write_text(SAMPLE, encoding="utf-8")
    found = measured([str(path)], TARGETS[request.param], request.param)
    return {line.rule: line.cells for line in found}


@pytest.mark.parametrize("rule", ["log1pexp", "swish", "polar", "root", "difference"])
def test_no_target_keeps_anything(lines, rule):
    held = {c: round(lines[rule][c], 1) for c in EMITTED if c in lines[rule]}
    assert held == dict.fromkeys(held, 0.0)
    assert {"torch", "jax"} <= held.keys()


def test_the_measure_sees_what_is_kept(lines):
    """What the author saves, and what frameworks keep by themselves."""
    saved = lines["gate_saved"]
    assert all(saved[column] >= 2 for column in EMITTED if column in saved)
    for column in ("torch written", "jax written"):
        assert lines["log1pexp"][column] >= 2


def test_the_native_function_is_beside(lines):
    assert lines["log1pexp"]["torch native"] == 0
    assert lines["log1pexp"]["torch peak"] > 0


def test_the_page_has_a_row_for_each_rule():
    from benchmarks.memory import Line

    text = page([Line("f", {"torch": 0.0, "torch peak": 12.04})])
    assert "torch: 1 of 1 keep nothing" in text
    assert "| f | 0 |" in text
    assert "| 12 |" in text
