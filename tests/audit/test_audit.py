"""`gradspec audit` through the command line, on NumPy (torch and TensorFlow: below)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

RULE = """\
rule bump(x) -> y:
    y = exp(-x**2)

rule logistic(x) -> y:
    y = 1 / (1 + exp(-x))
    dx = dy * y * sigmoid(-x)

rule logsumexp(x[..., n]) -> y:
    y = log(sum(exp(x[k]) for k))
"""


pytestmark = pytest.mark.shared_cache  # all audit the same rules


def _audit(
    folder: Path, *arguments: str, text: str = RULE
) -> subprocess.CompletedProcess[str]:
    (folder / "a.grad").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "gradspec", "audit", "a.grad", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def _findings(folder: Path, *arguments: str, text: str = RULE) -> list[dict[str, Any]]:
    child = _audit(folder, *arguments, "--format", "json", text=text)
    assert child.returncode == 0, child.stderr
    document = json.loads(child.stdout)
    assert document["version"] == 2
    findings: list[dict[str, Any]] = document["findings"]
    return findings


def test_the_numbers_are_those_of_another_library(tmp_path: Path) -> None:
    """mpmath, at the input of the largest error, for what the module returned there."""
    findings = _findings(tmp_path, "--target", "numpy", "--dtype", "float64")
    exact = {
        "y": lambda x: mpmath.exp(-(x**2)),
        "dx": lambda x: -2 * x * mpmath.exp(-(x**2)),
    }
    seen = [f for f in findings if f["rule"] == "bump" and f["side"] == "emitted"]
    assert {f["quantity"] for f in seen} == {"y", "dx"}
    for finding in seen:
        whole = finding["whole"]
        at, got = whole["at"]["inputs"]["x"], whole["at"]["got"]
        with mpmath.workdps(60):
            x, step = mpmath.mpf(at), 4 * mpmath.mpf(np.spacing(abs(at)))
            truth, *beside = map(exact[finding["quantity"]], (x, x + step, x - step))
            change = max(abs(value - truth) for value in beside) / 4
            exponent = mpmath.floor(mpmath.log(abs(truth), 2))
            ulp = mpmath.mpf(2) ** (max(exponent, -1022) - 52)
            error = float(abs(got - truth) / (ulp + change))
        assert whole["max_error"] == pytest.approx(error, rel=1e-2)
        assert 0.2 < error <= 4
        assert whole["max_ulp"] >= error


def test_all_halves_at_once(tmp_path: Path) -> None:
    findings = _findings(tmp_path, "--target", "numpy", "--dtype", "float16")
    values = {
        f["quantity"]: f["whole"]
        for f in findings
        if f["rule"] == "logistic" and f["side"] == "emitted"
    }
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)].astype(np.float64)
    slope = np.exp(-np.abs(finite)) / (1 + np.exp(-np.abs(finite))) ** 2
    assert values["dx"]["points"] == len(slope) - 1  # 0.0 and -0.0 are one
    assert values["dx"]["bad"] == 0
    assert values["dx"]["max_error"] <= 0.51, "computed in float32, rounded once"


def test_a_limit_makes_it_a_test_and_the_table_shows_each_side(tmp_path: Path) -> None:
    few = ("--target", "numpy", "--points", "60")
    child = _audit(tmp_path, *few, "--fail-over", "0.1")
    assert child.returncode == 1
    assert "error[GS701]: bump: y on numpy in float32 is off by" in child.stderr
    child = _audit(tmp_path, *few, "--fail-over", "1e9")
    assert child.returncode == 0, child.stderr
    assert "its own" in child.stdout and "as written" in child.stdout
    lines = [line.split() for line in child.stdout.splitlines()]
    assert ["bump", "y", "numpy", "float32", "0"] in [line[:5] for line in lines]
    assert ["bad", "core", "whole", "ULP"] * 3 in [line[3:] for line in lines]
    assert ["logsumexp", "y", "numpy", "float32"] in [line[:4] for line in lines]


def test_an_explanation_shows_what_became_of_the_formula(tmp_path: Path) -> None:
    few = ("--target", "numpy", "--points", "60")
    child = _audit(tmp_path, *few, "--explain", "logistic")
    assert child.returncode == 0, child.stderr
    assert "logistic (a.grad:4)" in child.stdout
    assert "written 1 / (1 + exp(-x))" in child.stdout
    assert "chosen  sigmoid(x)" in child.stdout
    assert "tried for 1 / (1 + exp(-x)):" in child.stdout
    assert "tolerances  sigmoid(x)" in child.stdout
    assert "bump" not in child.stdout


def test_as_written_is_what_is_measured_then_and_shown(tmp_path: Path) -> None:
    few = ("--target", "numpy", "--points", "60", "--as-written", "--plot", "pictures")
    sides = {
        (f["side"], f["quantity"]): f["whole"]
        for f in _findings(tmp_path, *few)
        if f["rule"] == "bump"
    }
    assert sides["emitted", "y"] == sides["written", "y"]
    paths = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert paths == ["bump.svg", "logistic.svg", "logsumexp.svg"]
    text = (tmp_path / "pictures" / "bump.svg").read_text("utf-8")
    assert "<svg" in text and text.count("<image") >= 2, "the dots of two panels"
    assert "bump: dx on numpy, float32" in text


def test_a_missing_framework_is_said(tmp_path: Path) -> None:
    program = (
        "import importlib.util as u, sys\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n == 'numpy' else find(n, *a)\n"
        "sys.argv = ['gradspec', 'audit', 'a.grad', '--target', 'numpy']\n"
        "from gradspec import cli\ncli.main()\n"
    )
    (tmp_path / "a.grad").write_text(RULE)
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 2
    assert "GS611" in child.stderr


AXES = """\
rule affine(x[..., k], w[m, k], b[m]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l) + b[i]

rule picked(x[..., n], t[...]: int, on[..., n]: bool, power: static int = 2) -> (y, z):
    y = x[t] ** power
    z = sum(x[j] if on[j] else 0 for j)

rule spread(x[n], scale: static = 2.0) -> y[n]:
    m = mean(x[j] for j)
    y[i] = scale * (x[i] - m)

rule rough(x[..., n]) -> y[..., n]:
    exact y[i] = sum(exp(x[j]) for j) - exp(x[i]) + 0 * x[i]
"""


@pytest.mark.torch
@pytest.mark.tf
def test_rules_over_axes_are_measured_element_by_element(tmp_path: Path) -> None:
    few = ("--target", "numpy,torch,tf", "--points", "20")
    child = _audit(tmp_path, *few, "--values", "values", "--format", "json", text=AXES)
    assert child.returncode == 0, child.stderr
    document = json.loads(child.stdout)
    assert not document["faults"]
    worst: dict[tuple[str, str], list[float]] = {}
    for finding in document["findings"]:
        key = finding["rule"], finding["quantity"]
        worst.setdefault(key, []).append(finding["whole"]["max_error"])
        assert finding["whole"]["points"] >= 20
    names = ("y", "dx", "dw", "db"), ("y", "z", "dx of y", "dx of z"), ("y", "dx")
    quantities = zip(("affine", "picked", "spread"), names, strict=True)
    right = {(rule, name) for rule, names in quantities for name in names}
    assert worst.keys() == {*right, ("rough", "y"), ("rough", "dx")}
    for key, errors in worst.items():
        assert len(errors) == 3
        assert (max(errors) <= 4) == (key != ("rough", "y")), key
    assert all(
        at.name.endswith("float32.csv") for at in (tmp_path / "values").iterdir()
    )


def test_a_step_has_no_plain_error_beside_its_jump_to_zero(tmp_path: Path) -> None:
    text = "rule spike(v, x) -> s:\n    s = 1 if 0.9 * v + x > 1 else 0\n"
    few = ("--target", "numpy", "--points", "300", "--order", "0")
    (whole,) = (f["whole"] for f in _findings(tmp_path, *few, text=text)[:1])
    assert 1 < whole["max_error"] <= 4, "the other side of the jump"
    assert whole["max_ulp"] <= 2**23, "of the ones beside it; of a 0 it was 1e44"


def test_an_unknown_rule_is_wrong_usage(tmp_path: Path) -> None:
    child = _audit(tmp_path, "--target", "numpy", "--explain", "logistik")
    assert child.returncode == 2 and child.stdout == ""
    assert (
        "there is no rule logistik in a.grad; did you mean `logistic`?" in child.stderr
    )
    child = _audit(tmp_path, "--target", "numpy", "--explain", "logsumexp")
    assert child.returncode == 0 and "logsumexp (a.grad:8)" in child.stdout
    text = "rule wide(x[128]) -> y:\n    y = sum(x[j] for j)\n"
    child = _audit(tmp_path, "--target", "numpy", text=text)
    assert child.returncode == 0 and child.stderr.endswith("not measured: wide\n")


@pytest.mark.torch
@pytest.mark.tf
@pytest.mark.jax
def test_gradients_beside_the_frameworks_own(tmp_path: Path) -> None:
    """Native logistic slopes are 0 from 17 on in float32; the emitted ones are not."""
    few = ("--target", "torch,tf,jax", "--points", "300", "--order", "2")
    text = "rule sigmoid(x) -> y:\n    y = 1 / (1 + exp(-x))\n"
    found = {
        (f["target"], f["quantity"], f["side"]): f["core"]
        for f in _findings(tmp_path, *few, text=text)
    }
    for target in ("torch", "tf", "jax"):
        assert found[target, "dx", "emitted"]["max_error"] < 8
        assert found[target, "dx", "native"]["max_error"] > 1000
        assert found[target, "dx", "written"]["bad"] > 0
        assert found[target, "d²x", "emitted"]["points"] > 300


@pytest.mark.tf
@pytest.mark.jax
def test_what_a_compiler_makes_of_a_function_is_measured(tmp_path: Path) -> None:
    """A graph of TensorFlow has an approximate reciprocal, XLA `x / (u * u)`: both are
    right operation by operation.
    """
    few = ("--target", "tf,jax", "--points", "300", "--order", "0")
    text = (
        "rule inverse(x) -> y:\n    assume x > 0\n    y = 1 / x\n\n"
        "rule twice(x) -> y:\n    assume x > 0\n    y = x / (1 + x) / (1 + x)\n"
    )
    found = {
        (f["rule"], f["target"], f["side"]): f["whole"]
        for f in _findings(tmp_path, *few, text=text)
    }
    assert found["inverse", "tf", "written"]["max_ulp"] > 1000
    assert found["inverse", "tf", "emitted"]["max_ulp"] <= 1
    assert found["twice", "jax", "written"]["bad"] > 10
    assert found["twice", "jax", "emitted"]["bad"] == 0
