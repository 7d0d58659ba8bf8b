"""Gradients at borders: what a mask selects, zero bases, tips, and overflows beside 0."""

from __future__ import annotations

import numpy as np
import pytest

from tests.calling import by_target, called
from tests.targets.emission import module_of

# The extreme element is that of `choice` among the values of the function.
CHOSEN = {
    "max(log(1 + x[j]**2) for j)": lambda x: np.log1p(x * x),
    "min(sqrt(x[j]**2 + 1) - 1 for j)": lambda x: -abs(x),
    "1 - 2 * max(exp(x[j]) - 1 for j)": lambda x: x,
    "max(1.1 * x[j] * x[j] + 1 for j)": abs,
    "min((exp(2 * x[j]) - 1) / (exp(2 * x[j]) + 1) for j)": lambda x: -x,
    "max(log(1 + exp(x[j])) for j if x[j] > -9)": lambda x: x,
    "log(1 + max(exp(x[j]) - 1 for j))": lambda x: x,
}
MASKS = "\n\n".join(
    f"rule r{k}(x[..., n]) -> z:\n    z = {text}" for k, text in enumerate(CHOSEN)
)


@by_target
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_maximum_has_its_gradient_where_it_is_reached(
    target: str, dtype: type
) -> None:
    x = np.random.default_rng(3).normal(size=(60, 5)).astype(dtype)
    x[::7, 1:3] = x[::7, :1]
    for number, (text, choice) in enumerate(CHOSEN.items()):
        _, (dx,) = called(target, module_of(MASKS, target), f"r{number}", [x])
        value = choice(x.astype(np.float64))
        assert dx is not None
        reached = value == value.max(axis=-1, keepdims=True)
        np.testing.assert_array_equal(dx != 0, reached, err_msg=text)
