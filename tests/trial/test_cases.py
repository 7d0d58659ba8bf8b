"""What a trial asks of an emitted function, and that it can fail."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gradspec.ir.expr import Ref, apply, const
from gradspec.primitives.lookup import formula
from gradspec.symbolic.compare import slope
from tests.trial.spoiling import assert_noticed

RULE = "rule f(x) -> y:\n    y = x * sin(x)\n    example x = 2: y = 1.8185949\n"


def test_slopes_are_those_of_calculus() -> None:
    point = {"x": Fraction(1, 2)}
    assert slope(formula("sin(x)"), point, "x") == pytest.approx(0.8775825618903728)
    assert slope(apply("mul", Ref("x"), Ref("x")), point, "x") == pytest.approx(1.0)
    assert slope(const(3), point, "x") == 0.0


@pytest.mark.parametrize(
    "text", ["abs(x - 0.5)", "sign(x - 0.5)", "log(x - 0.5)", "abs(x - 0.500001)"]
)
def test_there_is_no_slope_at_or_beside_a_kink(text: str) -> None:
    assert slope(formula(text), {"x": Fraction(1, 2)}, "x") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("np.sin(x)", "np.sin(1.0000001 * x)"),
        ("np.cos(x)", "np.cos(-1.0000001 * x)"),
    ],
)
def test_a_wrong_module_fails_its_trial(tmp_path: Path, old: str, new: str) -> None:
    """The emitted text is spoiled behind the compiler's back."""
    assert_noticed(tmp_path, RULE, old, new)
