"""Masked arrays are refused: `np.asarray` would take what the mask hides, in silence."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import numpy_module

RULES = """
rule swish(x) -> y:
    y = x / (1 + exp(-x))

rule shares(x[..., n], t[...]: int) -> y:
    y = exp(x[t]) / sum(exp(x[j]) for j)

rule chosen(x, on: bool) -> y:
    y = x**2 if on else x
"""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return numpy_module(RULES)


def _masked(values: Any) -> Any:
    hidden = np.zeros(np.shape(values), bool)
    hidden[..., 0] = True
    return np.ma.array(values, mask=hidden)


@pytest.mark.parametrize("rows", (2, 1 << 18))
def test_a_masked_array_is_refused(rules: ModuleType, rows: int) -> None:
    x, t = np.ones((rows, 3)), np.zeros(rows, int)
    _, pull = rules.swish_vjp(x)
    _, pulled = rules.shares_vjp(x, t)
    for call in (
        lambda: rules.swish(_masked(x)),
        lambda: rules.swish_vjp(_masked(x)),
        lambda: rules.swish_jvp((_masked(x),), (x,)),
        lambda: rules.swish_jvp((x,), (_masked(x),)),
        lambda: pull(_masked(x)),
        lambda: rules.shares(_masked(x), t),
        lambda: rules.shares(x, _masked(t)),
        lambda: pulled(_masked(np.ones(rows))),
        lambda: rules.chosen(x, _masked(x > 0)),
    ):
        with pytest.raises(TypeError, match="would lose its mask"):
            call()


def test_other_subclasses_are_taken_as_arrays(rules: ModuleType) -> None:
    class Own(np.ndarray):
        pass

    x = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    assert np.array_equal(rules.swish(x.view(Own)), rules.swish(x))
    assert np.array_equal(rules.swish(np.ma.array(x)), rules.swish(x))  # none is hidden
