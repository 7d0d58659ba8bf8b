"""Positions of few bits: what is made of them, and the size of an axis, may need more."""

from __future__ import annotations

import numpy as np
import pytest

from tests.targets.vjps import TARGETS, upstream_of

RULES = """
rule doubled(w[v], t[m]: int) -> y[m]:
    y[i] = w[2 * t[i]]

rule picked(x[..., n], t[...]: int) -> y:
    y = x[t]**2
"""

VALUES = np.arange(400.0)
AT = np.array([100, 3, 100])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize(
    "target",
    [
        pytest.param(t, marks=() if t == "numpy" else getattr(pytest.mark, t))
        for t in TARGETS
    ],
)
def test_an_axis_longer_than_the_positions_could_count(
    target: str, dtype: type[np.integer]
) -> None:
    framework, module, vjp = TARGETS[target]
    pytest.importorskip(framework)
    rules = module(RULES)
    expected = np.zeros(400)
    np.add.at(expected, 2 * AT, upstream_of(AT))
    (y,), (dw, _) = vjp(rules, "doubled", (VALUES, AT.astype(dtype)))
    np.testing.assert_array_equal(y, VALUES[2 * AT])
    np.testing.assert_array_equal(dw, expected)

    rows = np.stack([VALUES] * 3)
    (y,), (dx, _) = vjp(rules, "picked", (rows, AT.astype(dtype)))
    np.testing.assert_array_equal(y, VALUES[AT] ** 2)
    slopes = np.zeros((3, 400))
    slopes[np.arange(3), AT] = 2 * VALUES[AT] * upstream_of(AT)
    np.testing.assert_allclose(dx, slopes, rtol=1e-15)


BEFORE = "rule before(w[v], t[m]: int) -> y[m]:\n    y[i] = w[t[i] - 1]\n"


def test_one_below_the_first_position_is_outside() -> None:
    """As unsigned bytes it would be the last of 256."""
    rules = TARGETS["numpy"][1](BEFORE)
    assert rules.before(VALUES, np.uint8([1, 2])).tolist() == [0.0, 1.0]
    with pytest.raises(IndexError, match="-1"):
        rules.before(VALUES, np.uint8([0]))


@pytest.mark.torch
def test_one_below_the_first_position_is_outside_in_torch() -> None:
    torch = pytest.importorskip("torch")
    before = TARGETS["torch"][1](BEFORE).before
    w, t = torch.tensor(VALUES), torch.tensor([1, 2], dtype=torch.uint8)
    assert before(w, t).tolist() == [0.0, 1.0]
    with pytest.raises((IndexError, RuntimeError), match=r"-1|bounds|out of range"):
        before(w, t - 1)


@pytest.mark.tf
def test_one_below_the_first_position_is_outside_in_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    before = TARGETS["tf"][1](BEFORE).before
    w, t = tf.constant(VALUES), tf.constant([1, 2], tf.uint8)
    assert before(w, t).numpy().tolist() == [0.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="-1"):
        before(w, t - 1)
