"""Powers of numbers near 1, less 1, where nothing is assumed of the base."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.stabilise.model import Machine
from gradspec.symbolic.truth import nearest
from tests.derive.rules import completed
from tests.stabilise.rules import stable


@pytest.mark.parametrize(
    ("form", "points"),
    [
        ("100 * (((1 + r / n)**n - 1) / (r / n))", [(2.0**-80, 3.0), (-5.0, 3.0)]),
        ("(1 - (1 + r)**(-n)) / r", [(2.0**-80, 3.0), (-0.999, 2.0**-60), (-3.0, 2.0)]),
        ("(1 - r)**n - 1", [(2.0**-80, 3.0), (4.0, 3.0)]),
        ("1 - (1 - r)**n", [(2.0**-80, 3.0), (4.0, 3.0)]),
    ],
)
def test_values_keep_their_digits(form: str, points: list[tuple[float, float]]) -> None:
    """Below -1 the power is that of a negative number, and stays."""
    text = f"rule f(r, n) -> y:\n    y = {form}\n"
    given = [{"r": r, "n": n} for r, n in points]
    true = nearest(closed.outputs(completed(text))["y"], given, "float64")
    columns = {name: np.array([one[name] for one in given]) for name in ("r", "n")}
    found = Machine(columns, np.float64).run(closed.outputs(stable(text).rule)["y"])
    np.testing.assert_allclose(found, list(true), rtol=1e-12)
