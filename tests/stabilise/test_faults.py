"""What a target is known to get wrong is wrong in the model of that target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradspec.driver.run import compile_source
from gradspec.options import Options
from gradspec.primitives import measured
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import rows
from gradspec.primitives.on_target import OnTarget
from gradspec.primitives.row import Primitive
from gradspec.primitives.table import ROWS
from gradspec.source import Source
from gradspec.stabilise import faults
from gradspec.stabilise.model import Machine
from gradspec.stabilise.stabilise import for_target
from tests.stabilise.rules import stable, texts, unary

COSH = unary("1 / square(cosh(x))", "assume abs(x) < 80")
TAIL = ("erfc", "torch", "float32")


def _on(row: Primitive, known: dict[tuple[str, str, str], Any]) -> dict[str, OnTarget]:
    """What is known of a row, with no faults but these."""
    return {
        target: replace(
            here,
            single_faults=known.get((row.name, target, "float32"), ()),
            double_faults=known.get((row.name, target, "float64"), ()),
        )
        for target, here in row.on.items()
    }


@pytest.fixture
def no_tail(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """torch's erfc loses its tail and gives 0 far out."""
    spans = ((4.0, 8.0, 300.0), (8.0, np.inf, np.inf))
    cosh = {("cosh", "torch", dtype): ((1.0, 8.0, 300.0),) for dtype in faults.DTYPES}
    known = {TAIL: spans, **cosh}
    made = tuple(replace(row, on=_on(row, known)) for row in rows())
    monkeypatch.setattr(faults, "rows", lambda: made)
    faults.faults.cache_clear()
    yield
    faults.faults.cache_clear()


@pytest.mark.usefixtures("no_tail")
def test_the_model_has_the_targets_errors() -> None:
    columns = {"x": np.array([1.0, 5.0, 9.0], dtype=np.float32)}
    right = Machine(columns).run(formula("erfc(x)"))
    wrong = Machine(columns, np.float32, "torch").run(formula("erfc(x)"))
    assert wrong[0] == right[0]
    assert abs(wrong[1] - right[1]) == 300 * np.spacing(right[1])
    assert np.isnan(wrong[2])
    elsewhere = Machine(columns, np.float32, "numpy").run(formula("erfc(x)"))
    assert np.array_equal(elsewhere, right)


@pytest.mark.usefixtures("no_tail")
def test_a_target_with_a_fault_gets_its_own_form() -> None:
    shared = stable(COSH)
    assert "cosh" in texts(shared.rule)["y"]
    assert for_target(shared, "numpy") is shared
    own = for_target(shared, "torch")
    assert texts(own.rule)["y"] == "4 * sigmoid(2 * x) * sigmoid(-2 * x)"


def test_a_rule_without_such_functions_is_chosen_once() -> None:
    shared = stable(unary("log(1 + exp(x))"))
    for target in ("numpy", "torch", "tf"):
        assert for_target(shared, target) is shared


def test_the_table_is_of_our_functions() -> None:
    known = {row.name for row in ROWS}
    assert known >= {name for name, _, _ in measured.FAULTS}
    targets = {(target, dtype) for _, target, dtype in measured.FAULTS}
    assert {target for target, _ in targets} <= {"numpy", "torch", "tf", "jax"}
    for spans in measured.FAULTS.values():
        assert all(low < high and ulp > 8 for low, high, ulp in spans)


@pytest.mark.usefixtures("no_tail")
def test_targets_are_compiled_from_their_own_forms() -> None:
    options = Options(("numpy", "torch"))
    result, _ = compile_source(Source("f.grad", COSH), "f.grad", options)
    modules = {module.target: module.text for module in result.modules}
    assert "sigmoid" not in modules["numpy"]
    assert "torch.sigmoid(2.0 * x)" in modules["torch"]
