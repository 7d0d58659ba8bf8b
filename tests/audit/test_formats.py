"""Numbers of the formats in float64 arrays, against NumPy's and Python's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradspec.measure.quantities import (
    DTYPES,
    every,
    largest,
    least_normal,
    numbers,
    ordinals,
    rounded,
    unit,
)
from gradspec.symbolic.truth import FORMATS, round_exact

NATIVE = {"float16": np.float16, "float32": np.float32, "float64": np.float64}


@pytest.mark.parametrize("dtype", NATIVE)
def test_limits_are_those_of_numpy(dtype: str) -> None:
    info = np.finfo(NATIVE[dtype])
    assert least_normal(dtype) == float(info.tiny)
    assert largest(dtype) == float(info.max)


@pytest.mark.parametrize(("dtype", "count"), [("float16", 63487), ("bfloat16", 65279)])
def test_every_number_of_sixteen_bits(dtype: str, count: int) -> None:
    """65536 patterns less those of NaN and the infinities, and one of the two zeros."""
    values = every(dtype)
    assert len(values) == count
    assert (np.diff(values) > 0).all()
    assert (rounded(values, dtype) == values).all()


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(DTYPES))
def test_rounding_is_exact(value: float, dtype: str) -> None:
    from flint import arb

    expected = round_exact(arb(value), FORMATS[dtype])
    assert float(rounded([value], dtype)[0]) == expected


@given(st.integers(-30000, 30000), st.sampled_from(DTYPES))
def test_ordinals_count_neighbours(place: int, dtype: str) -> None:
    values = numbers([place, place + 1], dtype)
    assert values[0] < values[1]
    assert ordinals(values, dtype).tolist() == [place, place + 1]
    middle = 0.5 * (values[0] + values[1])
    assert float(rounded([middle], dtype)[0]) in values.tolist()


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
def test_the_unit_of_a_double_is_its_ulp(value: float) -> None:
    assert unit(np.array([value]), np.array([0.0]), "float64")[0] == math.ulp(value)


def test_the_unit_just_below_a_power_of_two() -> None:
    """The exact value decides, not the double nearest to it."""
    high, low = np.array([1.0, 1.0, -1.0]), np.array([-1e-20, 1e-20, 1e-20])
    assert unit(high, low, "float32").tolist() == [2.0**-24, 2.0**-23, 2.0**-24]
