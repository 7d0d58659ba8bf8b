"""What a user lets NumPy report of floating point is as it was after a call, whatever the
rules ignore in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import imported, planned

RULES = """
rule chosen(x, on: bool) -> y:
    y = log(x) if on else x

rule sloped(x) -> y:
    y = x * exp(-1 / x**2) if x > 0 else x
    override dx = dy * exp(-1 / x**2) if x > 0 else 2 * dy because "a marker"

rule rows(x[..., n]) -> y[..., n]:
    y[i] = sqrt(x[i]) if x[i] > 0 else sum(x[j] for j)
"""
LARGE = np.linspace(-2.0, 2.0, 1 << 19).reshape(1 << 10, -1)


class ErrstateOfNumPy1(contextlib.ContextDecorator):
    """It is one object for every call of what it decorates."""

    def __init__(self, call: Any = None, **kinds: Any) -> None:
        self.kinds = kinds

    def __enter__(self) -> None:
        self.before = np.seterr(**self.kinds)

    def __exit__(self, *_: object) -> None:
        np.seterr(**self.before)


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(np, "errstate", ErrstateOfNumPy1)
        return imported(target.module(planned(RULES)), "numpy_rules_of_errors")


@pytest.fixture(autouse=True)
def errors() -> Iterator[None]:
    before = np.geterr()
    yield
    np.seterr(**before)


@pytest.mark.parametrize("threads", ("1", "2"))
def test_errors_are_reported_as_before(
    rules: ModuleType, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "errstate", ErrstateOfNumPy1)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    decorated, before = 0, dict.fromkeys(np.geterr(), "warn")
    for name, *others in (("chosen", LARGE > 0), ("sloped",), ("rows",)):
        rule, vjp = getattr(rules, name), getattr(rules, f"{name}_vjp")
        decorated += hasattr(rule, "__wrapped__")
        np.seterr(**before)
        rule(LARGE, *others)
        assert np.geterr() == before, name
        _, pullback = vjp(LARGE, *others)
        assert np.geterr() == before, name
        pullback(LARGE)
        assert np.geterr() == before, name
    assert decorated >= 2
