"""Numbers of the formats in float64 arrays, against NumPy's and Python's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradspec.symbolic.points.formats import (
    every,
    largest,
    least_normal,
    numbers,
    ordinals,
    rounded,
    units,
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


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([*FORMATS]))
def test_rounding_is_exact(value: float, dtype: str) -> None:
    from flint import arb

    expected = round_exact(arb(value), FORMATS[dtype])
    assert float(rounded([value], dtype)[0]) == expected


@given(st.integers(-30000, 30000), st.sampled_from([*FORMATS]))
def test_ordinals_count_neighbours(place: int, dtype: str) -> None:
    values = numbers([place, place + 1], dtype)
    assert values[0] < values[1]
    assert ordinals(values, dtype).tolist() == [place, place + 1]
    middle = 0.5 * (values[0] + values[1])
    assert float(rounded([middle], dtype)[0]) in values.tolist()


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
def test_the_unit_of_a_double_is_its_ulp(value: float) -> None:
    assert units(np.array([value]), "float64")[0] == math.ulp(value)
