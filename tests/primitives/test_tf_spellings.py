"""The TensorFlow spellings, and their derivatives by GradientTape, against balls."""

from __future__ import annotations

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

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf

TF = Framework("tf", tf, tf.constant, tf.where)

# As for PyTorch.
FLOAT32_KNOWN = {
    "digamma": 20.0,
    "sinc_slope": 13.0,
}

AUTOGRAD_KNOWN = {
    "sigmoid": 2.0,
    "sigmoid_sum": 2.0,
    "sigmoid_product": 2.0,
    "tanh": 2.0,
}

names = pytest.mark.parametrize("name", OPERATORS)
PARTIALS = [
    (row.name, position)
    for row in ROWS
    for position, text in enumerate(row.partials)
    if text is not None
]


@names
def test_float64(name: str) -> None:
    error, point = forward_error(TF, name, np.float64)
    assert error <= FLOAT64, point


@names
def test_float32(name: str) -> None:
    error, point = forward_error(TF, name, np.float32)
    assert error <= FLOAT32_KNOWN.get(name, FLOAT32), point


@pytest.mark.parametrize("name", INFINITE)
def test_infinities(name: str) -> None:
    at_infinity(TF, name)


@pytest.mark.parametrize("name", ODD)
def test_the_sign_of_zero(name: str) -> None:
    keeps_the_sign_of_zero(TF, name)


def test_infinities_give_way() -> None:
    infinities_give_way(TF)


@names
def test_nan(name: str) -> None:
    at_nan(TF, name)


@pytest.mark.parametrize(("name", "position"), PARTIALS)
def test_gradient_tape(name: str, position: int) -> None:
    spelling = primitive(name).spellings["tf"]
    if isinstance(spelling, Expand) and " if " in spelling.formula:
        pytest.skip("a choice is made safe by the emitter, not by the table")
    worst: tuple[float, object] = (0.0, ())
    for group in groups(name, 2 if primitive(name).arity == 1 else 5):
        columns = [np.array(column) for column in zip(*group, strict=True)]
        args = TF.arguments(name, columns)
        slopes = (
            np.zeros(len(group)) if (s := _slope(name, args, position)) is None else s
        )
        worst = max(worst, partial_error(TF, name, position, slopes, group))
    assert worst[0] <= AUTOGRAD_KNOWN.get(name, 1e-9), worst


def _slope(name: str, args: list[Any], position: int) -> np.ndarray | None:
    with tf.GradientTape() as tape:
        tape.watch(args[position])
        out = TF.call(name, args)
    slope = tape.gradient(out, args[position])
    return None if slope is None else slope.numpy()


@pytest.mark.parametrize(
    "name", ["logaddexp", "hypot", "erfcx", "erfinv", "cbrt", "logit"]
)
def test_in_a_graph_with_unknown_shape(name: str) -> None:
    """Helpers must not need a static shape."""
    row = primitive(name)
    signature = [tf.TensorSpec(None, tf.float64) for _ in row.params]

    @tf.function(input_signature=signature)  # type: ignore[misc]
    def function(*args: Any) -> Any:
        return TF.call(name, list(args))

    for shape in ((), (3,), (2, 2)):
        args = [np.full(shape, 0.3 + 0.1 * k) for k in range(row.arity)]
        eager = TF.call(name, [tf.constant(a) for a in args])
        assert np.array_equal(function(*args).numpy(), eager.numpy())
