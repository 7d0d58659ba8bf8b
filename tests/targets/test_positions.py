"""Positions: of few bits, where what is made of them, or the size of an axis, may need more;
and outside of their axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.calling import by_target, called, cotangent
from tests.targets.emission import module_of

RULES = """
rule doubled(w[v], t[m]: int) -> y[m]:
    y[i] = w[2 * t[i]]

rule picked(x[..., n], t[...]: int) -> y:
    y = x[t]**2

rule before(w[v], t[m]: int) -> y[m]:
    y[i] = w[t[i] - 1]

rule paired(x[n], t[n]: int) -> y[n]:
    z[i, j] = x[t[j]] + x[i]
    y[i] = (z[i + 1, t[i]] if i + 1 < n else 1)

rule chained(x[n], t[n]: int) -> y[n]:
    y[i] = (x[t[t[i + 1]]] if i + 1 < n else 1)
"""

VALUES = np.arange(400.0)
AT = np.array([100, 3, 100])


@by_target
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_an_axis_longer_than_the_positions_could_count(
    target: str, dtype: type[np.integer[Any]]
) -> None:
    rules, at = module_of(RULES, target), AT.astype(dtype)
    expected = np.zeros(400)
    np.add.at(expected, 2 * AT, cotangent(AT))
    (y,), (dw, _) = called(target, rules, "doubled", (VALUES, at))
    np.testing.assert_array_equal(y, VALUES[2 * AT])
    np.testing.assert_array_equal(dw, expected)
    (y,), (dx, _) = called(target, rules, "picked", (np.stack([VALUES] * 3), at))
    np.testing.assert_array_equal(y, VALUES[AT] ** 2)
    slopes = np.zeros((3, 400))
    slopes[np.arange(3), AT] = 2 * VALUES[AT] * cotangent(AT)
    np.testing.assert_allclose(dx, slopes, rtol=1e-15)


@by_target
def test_outside_is_an_error(target: str) -> None:
    """One below 0 would be the last of 256 as an unsigned byte."""
    rules = module_of(RULES, target)
    (y,), _ = called(target, rules, "before", (VALUES, np.uint8([1, 2])))
    assert y.tolist() == [0.0, 1.0]
    outside = r"-1|axis of size|bounds|out of range|is not in \["
    with pytest.raises(Exception, match=outside):
        called(target, rules, "before", (VALUES, np.uint8([0])))
    for t in (-1, 400):
        with pytest.raises(Exception, match=outside):
            called(target, rules, "picked", (VALUES, np.array(t)))


@by_target
@pytest.mark.parametrize(
    ("name", "t", "steps"),
    [
        ("paired", [1, 2, 0, 9], [(0, 2), (0, 1), (1, 0), (1, 2), (2, 1), (2, 3)]),
        ("chained", [9, 2, 3, 1], [(0, 3), (1, 1), (2, 2)]),
    ],
)
def test_a_position_that_is_not_used_may_be_outside(
    target: str, name: str, t: list[int], steps: list[tuple[int, int]]
) -> None:
    slopes = np.zeros((4, 4))
    slopes[tuple(zip(*steps, strict=True))] = 1
    x = np.array([1.0, 2.0, 4.0, 8.0])
    (y,), (dx, _) = called(target, module_of(RULES, target), name, (x, np.array(t)))
    np.testing.assert_array_equal(y, slopes @ x + [0, 0, 0, 1])
    np.testing.assert_allclose(dx, cotangent(y) @ slopes, rtol=1e-15)
