"""The tutorial's rules, compiled once for each target."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import gradspec

TUTORIAL = Path(__file__).parents[2] / "rules" / "tutorial"


@cache
def tutorial(name: str, target: str) -> ModuleType:
    """The module of ``rules/tutorial/<name>.grad``."""
    return gradspec.load(TUTORIAL / f"{name}.grad", target=target)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is asked of the compiled modules, over and over, is compiled once."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("shared_cache")
