"""Gradients as sums with one term for each upstream gradient."""

from __future__ import annotations

import pytest

from gradspec.plan.arrays import Expr
from gradspec.plan.extents import Extents
from gradspec.plan.gradients import linear_terms
from gradspec.plan.operations import Types, translate
from gradspec.primitives.lookup import formula

UPSTREAM = ("dz", "dw")


def array(text: str) -> Expr:
    return translate(formula(text), Types(frozenset(), frozenset(), frozenset()))


@pytest.mark.parametrize(
    ("whole", "parts"),
    [
        ("dz * x", {"dz": "dz * x"}),
        ("dz * x + dw * 2 * y", {"dz": "dz * x", "dw": "dw * 2 * y"}),
        ("dz - dw", {"dz": "dz", "dw": "-dw"}),
        ("(dz + dw) * x / y", {"dz": "dz * x / y", "dw": "dw * x / y"}),
        ("dz if x > 0 else 0", {"dz": "dz if x > 0 else 0"}),
        (
            "dz if x > 0 else dw",
            {"dz": "dz if x > 0 else 0", "dw": "0 if x > 0 else dw"},
        ),
        ("0", {}),
    ],
)
def test_terms(whole: str, parts: dict[str, str]) -> None:
    assert linear_terms(array(whole), UPSTREAM, Extents({})) == {
        d: array(t) for d, t in parts.items()
    }


@pytest.mark.parametrize(
    "whole", ["dz * dw", "1 + dz", "2", "abs(dz)", "dz if dz > 0 else 0", "x / dz"]
)
def test_what_is_not_linear(whole: str) -> None:
    assert linear_terms(array(whole), UPSTREAM, Extents({})) is None
