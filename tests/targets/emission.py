"""Rules compiled and imported as users do it, for the tests of the targets."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import gradspec
from tests.calling import PACKAGES

HERE = Path(__file__).parent
ELEMENTWISE, INDEXED = HERE / "elementwise.grad", HERE / "indexed.grad"
LEARNED = HERE / "learned.grad"


@cache
def module_of(rules: str | Path, target: str, trace: bool = False) -> ModuleType:
    """The rules of a text or file as a module of ``target``, whatever is warned of."""
    pytest.importorskip(PACKAGES[target])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gradspec.GradspecWarning)
        return gradspec.load(rules, target, trace=trace)


@cache
def text_of(rules: str, target: str) -> str:
    """The emitted module as text."""
    return gradspec.compile_text(rules, target=target)


def own_rules(name: str) -> str:
    """The rules of one test file."""
    return (HERE / "rules" / f"{name}.grad").read_text("utf-8")
