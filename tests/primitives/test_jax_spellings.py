"""The JAX spellings, and their derivatives by both modes, against balls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Expand
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
    groups,
    infinities_give_way,
    keeps_the_sign_of_zero,
    partial_error,
)
from tests.primitives.primitive_truth import OPERATORS

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
pytestmark = pytest.mark.jax

JAX = Framework("jax", jnp, jnp.asarray, jnp.where)

# As for PyTorch.
FLOAT32_KNOWN = {
    "digamma": 20.0,
    "lgamma": 70.0,
    "erfinv_slope": 50.0,
    "exp2": 25.0,
    "sinh": 20.0,
    "cosh": 20.0,
    "erfinv": 50.0,
    "sinc_slope": 13.0,
}

AUTODIFF_KNOWN = {
    "expm1": 2.0,
    "sigmoid": 2.0,
    "sigmoid_sum": 2.0,
    "expm1_sum": 2.0,
    "expm1_product": 2.0,
    "sigmoid_product": 2.0,
    "tanh": 2.0,
    "i0": 1e-6,
}

names = pytest.mark.parametrize("name", OPERATORS)
PARTIALS = [
    (row.name, position)
    for row in ROWS
    for position, text in enumerate(row.partials)
    if text is not None
]


@pytest.fixture(autouse=True)
def _both_precisions() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@names
def test_float64(name: str) -> None:
    error, point = forward_error(JAX, name, np.float64)
    assert error <= FLOAT64, point


@names
def test_float32(name: str) -> None:
    error, point = forward_error(JAX, name, np.float32)
    assert error <= FLOAT32_KNOWN.get(name, FLOAT32), point


@pytest.mark.parametrize("name", INFINITE)
def test_infinities(name: str) -> None:
    at_infinity(JAX, name)


@pytest.mark.parametrize("name", ODD)
def test_the_sign_of_zero(name: str) -> None:
    keeps_the_sign_of_zero(JAX, name)


def test_infinities_give_way() -> None:
    infinities_give_way(JAX)


@names
def test_nan(name: str) -> None:
    at_nan(JAX, name)


@pytest.mark.parametrize(("name", "position"), PARTIALS)
def test_autodiff(name: str, position: int) -> None:
    spelling = primitive(name).spellings["jax"]
    if isinstance(spelling, Expand) and " if " in spelling.formula:
        pytest.skip("a choice is made safe by the emitter, not by the table")
    worst: tuple[float, object] = (0.0, ())
    for group in groups(name, 2 if primitive(name).arity == 1 else 5):
        columns = [np.array(column) for column in zip(*group, strict=True)]
        args = JAX.arguments(name, columns)
        worst = max(
            worst,
            partial_error(JAX, name, position, _slope(name, args, position), group),
        )
    assert worst[0] <= AUTODIFF_KNOWN.get(name, 1e-9), worst


def _slope(name: str, args: list[Any], position: int) -> np.ndarray:
    def total(x: Any) -> Any:
        given = [*args[:position], x, *args[position + 1 :]]
        return jnp.sum(JAX.call(name, given))

    return np.asarray(jax.grad(total)(args[position]))
