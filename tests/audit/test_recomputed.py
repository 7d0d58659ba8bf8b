"""The audit's numbers are those of another library and another reader of the rules.

`benchmarks/recomputed.py` does the same for the whole library.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

import gradspec
from benchmarks.recomputed import compare, recompute
from benchmarks.rule_reading import read
from gradspec.options import AuditOptions
from gradspec.symbolic.truth import pairs
from tests.derive.rules import completed

LIBRARY = Path(__file__).parents[2] / "rules"


@pytest.mark.shared_cache  # the searches are those of all who compile them
@pytest.mark.parametrize(
    ("file", "rule", "dtype"),
    [
        ("activations/sigmoidal", "sigmoid", "float32"),
        ("activations/sigmoidal", "softsign", "float64"),
        ("stable/information", "entropy", "float64"),
        ("losses/regression", "huber", "float32"),
    ],
)
def test_points_and_maxima_are_equal(file: str, rule: str, dtype: str) -> None:
    asked = AuditOptions((dtype,), 1, 20, 1, (rule,))
    found = list(recompute([str(LIBRARY / f"{file}.grad")], ("numpy",), asked))
    assert len(found) >= 2, "a value and a gradient"
    for one in found:
        assert not one.differences, one.name
        assert one.points > 200 and one.undecided <= one.points / 50


def test_what_is_wrong_differs(tmp_path: Path) -> None:
    """The comparison sees an error, a count and a maximum that are not those told."""
    path = tmp_path / "a.grad"
    path.write_text("rule f(x) -> y:\n    y = exp(x)\n")
    (rule,) = read(path).rules
    got = float(np.float32(math.e)) + 2.0**-18
    with mp.workdps(40):
        allowed = mpf(2) ** -22 + mp.e * mpf(2) ** -23
        right = float(abs(mpf(got) - mp.e) / allowed)
    assert right > 5
    row = {"x": "1.0", "y tolerance": repr(float(allowed)), "y emitted": repr(got)}
    whole = {"points": 1, "bad": 1, "max_error": right}
    finding = {"rule": "f", "quantity": "y", "side": "emitted", "whole": whole}
    finding |= {"target": "numpy", "dtype": "float32"}
    good = {**row, "y emitted error": repr(right)}
    assert compare(rule, finding, [good]).differences == ()
    for told in ("", "inf", repr(1.3 * right), repr(right / 2)):
        assert compare(rule, finding, [{**good, "y emitted error": told}]).differences
    for name, value in whole.items():
        wrong = {**finding, "whole": {**whole, name: 2 * value}}
        assert compare(rule, wrong, [good]).differences, name


def test_bad_points_are_real(tmp_path: Path) -> None:
    path = tmp_path / "naive.grad"
    path.write_text(
        "rule soft(x) -> y:\n    exact y = log(1 + exp(x))\n"
        "    exact dx = dy * (1 - 1 / (1 + exp(x)))\n"
    )
    child = subprocess.run(
        [
            *(sys.executable, "-m", "gradspec", "audit", "naive.grad"),
            *("--target", "numpy", "--points", "200", "--format", "json"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    exact = {
        "y": lambda x: mp.log1p(mp.exp(x)),
        "dx": lambda x: 1 / (1 + mp.exp(-x)),
    }
    with pytest.warns(gradspec.GradspecWarning, match="GS441"):
        module = gradspec.load(path)
    seen = 0
    for finding in json.loads(child.stdout)["findings"]:
        for spot in finding["whole"]["bad_points"]:
            if finding["side"] != "emitted":
                continue
            x, got = spot["inputs"]["x"], float(spot["got"])
            with mp.workdps(60):
                true = exact[finding["quantity"]](mpf(x))
            allowed = float(np.spacing(np.float32(spot["truth"])))  # at least
            assert not abs(got - spot["truth"]) <= 4 * allowed
            assert float(true) == pytest.approx(spot["truth"], rel=1e-12)
            with np.errstate(all="ignore"):
                value, pullback = module.soft_vjp(np.float32(x))
                (slope,) = pullback(np.float32(1))
            again = value if finding["quantity"] == "y" else slope
            assert float(again) == got or (math.isnan(got) and math.isnan(again))
            seen += 1
    assert seen >= 8


def test_a_truth_is_on_the_right_side_of_a_power_of_two() -> None:
    """There a unit in the last place doubles: 2 artanh(2**-23) is 2**-22 and a little."""
    expr = completed("rule f(p) -> y:\n    y = log((1 - p) / p)\n").forward[0].value
    ((high, low),) = pairs(expr, [{"p": 0.5 - 2.0**-24}], "float32")
    assert high + low > 2.0**-22 or (high == 2.0**-22 and low > 0)
    expr = completed("rule f(x) -> y:\n    y = 2 * exp(x) * exp(-x)\n").forward[0].value
    assert pairs(expr, [{"x": 0.7}], "float32")[0][0] == pytest.approx(2.0)
