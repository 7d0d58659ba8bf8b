"""No backward pass needs much more memory than what it is given and gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradspec
from benchmarks import peaks


@pytest.mark.shared_cache
@pytest.mark.parametrize("path", peaks.FILES, ids=lambda path: path.stem)
def test_at_most_four_times(path: Path) -> None:
    found = list(peaks.lines(path))
    assert found
    assert [line for line in found if not line.is_good] == []


@pytest.mark.shared_cache
def test_gradients_are_those_of_the_formula() -> None:
    """By differences along a direction; the pushforward is the transpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = gradspec.load(peaks.FILES[-1])
    rules = [r for r in vars(module).values() if getattr(r, "_axes", None)]
    wrong = {rule._name: error for rule in rules if (error := _error(rule)) > 1e-6}
    assert len(rules) > 35
    assert wrong == {}


def _error(rule: Any) -> float:
    random = np.random.default_rng(3)
    values = [
        random.normal(size=v.shape) if _is_float(v) else v
        for v in peaks.arguments(rule, 4, 2)
    ]
    arrays = [v for v in values if isinstance(v, np.ndarray)]
    steps = [random.normal(size=v.shape) * _is_float(v) for v in arrays]
    outputs, pullback = rule(*values).vjp()
    above = [random.normal(size=np.shape(y)) for y in _tuple(outputs)]

    def paired(left: Iterable[Any], right: Iterable[Any]) -> float:
        pairs = zip(left, right, strict=True)
        return float(sum(np.sum(a * b) for a, b in pairs if a is not None))

    def at(step: float) -> float:
        pairs = zip(arrays, steps, strict=True)
        moved = iter([v + step * d if _is_float(v) else v for v, d in pairs])
        given = (next(moved) if isinstance(v, np.ndarray) else v for v in values)
        return paired(_tuple(rule(*given).result()), above)

    found = paired(pullback(*above), steps)
    pairs = zip(arrays, steps, strict=True)
    tangents = [step if _is_float(v) else None for v, step in pairs]
    along = paired(_tuple(rule(*values).jvp(tangents)[1]), above)
    slope = (at(1e-6) - at(-1e-6)) / 2e-6
    return max(abs(found - slope), abs(found - along)) / max(1.0, abs(found))


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
