"""Half precision: what float64 decides of the truth, and gradients that are rounded once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradspec.audit.quantities import every, unit
from gradspec.audit.question import decided
from gradspec.driver import audits
from gradspec.driver.discover import discover
from gradspec.driver.run import compile_entries
from gradspec.options import AuditOptions, Options
from gradspec.primitives.formula import formula
from gradspec.symbolic.brackets import bracket
from gradspec.symbolic.truth import pairs

RULES = Path(__file__).parents[2] / "rules" / "activations"

FORMS = (
    *("x + 1e-20", "x - x / 3", "x * x * x", "(x + 1) / (x - 2)", "1 / (x * x)"),
    *("sqrt(x)", "rsqrt(x)", "cbrt(x)", "abs(x - 1)", "x**3", "x**(-2)", "x**0.25"),
    *("exp(x)", "exp2(x)", "expm1(x)", "exp_neg_square(x)", "exp_neg_half_square(x)"),
    *("log(x)", "log2(x)", "log10(x)", "log1p(x)", "sigmoid(x)", "logsigmoid(x)"),
    *("softplus(x)", "sin(x)", "cos(3 * x)", "sinh(x)", "cosh(x)", "tanh(x)"),
    *("asinh(x)", "acosh(x)", "atan(x)", "erf(x)", "erfc(x)", "ndtr(x)"),
    *("floor(x)", "round(x)", "sign(x)", "relu(x)", "clip(x, -2, 3)", "max(x, pi)"),
    *("x if x > 1 else exp(x)", "1 if x == 2 or not x < 3 else x"),
    *("x * (1 + erf(x / sqrt(2))) / 2", "1 / square(cosh(x))"),
)


@pytest.mark.parametrize("text", FORMS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_float64_decides_is_the_truth(text: str, dtype: str) -> None:
    form = formula(text)
    column = every(dtype)[::311]
    found = decided(form, {"x": column}, dtype)
    places = np.flatnonzero(~np.isnan(found))
    assert len(places) > len(column) // 20
    rows = [{"x": float(x)} for x in column[places]]
    true, rest = np.array(pairs(form, rows, "float64")).T
    assert (~np.isnan(true)).sum() > len(column) // 20  # far out balls may not know
    ends = bracket(form, {"x": column})
    low, high = (
        np.broadcast_to(e, column.shape)[places] for e in (ends.low, ends.high)
    )
    finite = np.isfinite(true)
    assert ((low <= true) & (true <= high))[finite].all()
    units = unit(true, rest, dtype), unit(found[places], np.zeros(len(places)), dtype)
    measured = np.isfinite(units).all(axis=0)
    assert (units[0] == units[1])[measured].all()
    off = np.abs(found[places][measured] - true[measured])
    assert (off <= 2.0**-12 * units[0][measured]).all()


def test_a_value_between_two_binades_is_left_to_balls() -> None:
    found = decided(formula("tanh(x)"), {"x": np.array([1.0, 30.0])}, "float16")
    assert np.isnan(found).tolist() == [False, True]


@pytest.mark.shared_cache  # the searches are those of all who compile them
def test_gradients_are_rounded_once() -> None:
    """All 65,536 inputs: outputs that the backward reads are not read as rounded."""
    paths = [str(RULES / "sigmoidal.grad"), str(RULES / "smooth.grad")]
    entries = discover(paths).value or ()
    options = Options(("torch", "numpy"))
    results = compile_entries(entries, options, 1, lambda _: None)
    names = ("sigmoid", "gaussian", "squareplus")
    asked = AuditOptions(("float16", "bfloat16"), 1, 10, 1, names, ("emitted",))
    done = audits.run(entries, results, options, asked, lambda _: None)
    assert not any(audit.absent or audit.faults for audit in done)
    found = [f for audit in done for f in audit.findings]
    assert {f.rule for f in found} == {*names}
    assert {f.side for f in found} == {"emitted"}
    for finding in found:
        told = (finding.rule, finding.name, finding.target, finding.dtype)
        assert finding.whole.count > 25_000, told
        assert not finding.whole.bad, told
        assert finding.whole.worst <= 1.0, told


def test_one_point_may_have_an_exponent_of_its_own() -> None:
    """Its column is an array of one number, not a number."""
    columns = {"x": np.array([3.0]), "p": np.array([2.5])}
    ends = bracket(formula("x**p"), columns)
    assert ends.low < 3.0**2.5 < ends.high
