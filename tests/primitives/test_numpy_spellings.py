"""The NumPy and plain Python spellings against balls."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradspec.primitives.lookup import primitive
from gradspec.primitives.table import ROWS
from tests.primitives.primitive_frameworks import (
    FLOAT32,
    FLOAT64,
    INFINITE,
    ODD,
    Framework,
    at_infinity,
    at_nan,
    forward_error,
    infinities_give_way,
    keeps_the_sign_of_zero,
)
from tests.primitives.primitive_truth import OPERATORS, nearest, points, truth

pytest.importorskip("scipy")

NUMPY = Framework("numpy", np, lambda array: array, np.where)

# The difference of a cosine and a quotient, in float32.
FLOAT32_KNOWN = {
    "sinc_slope": 13.0,
}

names = pytest.mark.parametrize("name", OPERATORS)


@names
def test_float64(name: str) -> None:
    with np.errstate(over="ignore", divide="ignore"):
        error, point = forward_error(NUMPY, name, np.float64)
    assert error <= FLOAT64, point


@names
def test_float32(name: str) -> None:
    with np.errstate(over="ignore", divide="ignore"):
        error, point = forward_error(NUMPY, name, np.float32)
    assert error <= FLOAT32_KNOWN.get(name, FLOAT32), point


@pytest.mark.parametrize("name", INFINITE)
def test_infinities(name: str) -> None:
    at_infinity(NUMPY, name)


@pytest.mark.parametrize("name", ODD)
def test_the_sign_of_zero(name: str) -> None:
    keeps_the_sign_of_zero(NUMPY, name)


def test_infinities_give_way() -> None:
    infinities_give_way(NUMPY)


@names
def test_nan(name: str) -> None:
    at_nan(NUMPY, name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@names
def test_one_number_keeps_its_type(name: str, dtype: type) -> None:
    """Arrays without axes too: NumPy gives scalars for these."""
    chosen = points(name)[len(points(name)) // 2]
    columns = [np.array([v], dtype) for v in chosen]
    args = [np.reshape(a, ()) if hasattr(a, "dtype") else a for a in columns]
    if name == "polygamma":
        args[0] = int(chosen[0])  # type: ignore[call-overload]
    with np.errstate(over="ignore", divide="ignore"):
        assert np.asarray(NUMPY.call(name, args)).dtype == dtype


@pytest.mark.parametrize(
    "name", [n for n in OPERATORS if "python" in primitive(n).spellings]
)
def test_python(name: str) -> None:
    """Plain numbers, for what is fixed for a whole call."""
    for point in points(name)[::5]:
        true = nearest(truth(name, point))
        if 1e-290 < abs(true) < 1e290:
            args = list(point)
            value = NUMPY.apply(name, args)
            assert math.isclose(value, true, rel_tol=2e-14), point


def test_comparisons_and_logic() -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])
    for row in ROWS:
        if row.result != "bool":
            continue
        args = [x, y] if "real" in row.argument_types else [x > y, x == y][: row.arity]
        assert row.model is not None
        assert np.array_equal(NUMPY.call(row.name, args), row.model(np, *args))
