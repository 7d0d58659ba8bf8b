"""Functions that the model asks balls for, of constants alone."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir.expr import Apply, Const, Ref
from gradspec.symbolic.arithmetic_model import Machine


@pytest.mark.parametrize(
    ("op", "argument", "value"),
    [("lgamma", 5, 3.1780538), ("digamma", 1, -0.57721567), ("ndtri", 1, np.inf)],
)
def test_a_special_function_of_a_constant_is_a_number(op, argument, value):
    machine = Machine({"x": np.array([1.0, 2.0], dtype=np.float32)})
    constant = Apply(op, (Const(argument),))
    assert np.shape(machine.run(constant)) in {(), (2,)}
    total = machine.run(Apply("add", (Ref("x"), constant)))
    np.testing.assert_allclose(total, np.float32(value) + np.array([1.0, 2.0]), 1e-6)
