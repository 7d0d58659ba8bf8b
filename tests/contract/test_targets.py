"""Values of the other targets' modules, and the names in them, are as pinned."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.conformance.features import FEATURES
from tests.contract import cells
from tests.contract.comparing import changed
from tests.contract.files import CASES, SHIPPED
from tests.contract.tables import read, told

PACKAGES = {"torch": "torch", "tf": "tensorflow", "jax": "jax"}


@pytest.mark.shared_cache
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "target", [pytest.param(t, marks=getattr(pytest.mark, t)) for t in PACKAGES]
)
def test_values(target: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what frameworks say when they are imported
        pytest.importorskip(PACKAGES[target])
    found = changed(target, (*SHIPPED, *CASES), tmp_path)
    assert not found, told(found)


@pytest.mark.parametrize("target", cells.TARGETS)
def test_every_feature_is_pinned(target: str) -> None:
    rows = [row for row in read("cells") if row["target"] == target]
    assert [row["feature"] for row in rows] == [f.name for f in FEATURES[target]]
