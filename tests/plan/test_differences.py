"""Gradients of differences lose no more digits than autograd of the formula does."""

from __future__ import annotations

import pytest

from benchmarks import offsets

RULES = [
    *("cdist", "transport", "laplacian", "lennard_jones", "automatic_relevance"),
    *(
        "translation",
        "products",
        "pull",
        "spread",
        "opposite",
        "matern",
        "weighted_mask",
        "hausdorff",
    ),
]


@pytest.fixture(scope="module")
def lines() -> list[offsets.Line]:
    return list(offsets.lines(RULES))


@pytest.mark.parametrize("rule", RULES)
def test_as_the_plain_formula(lines: list[offsets.Line], rule: str) -> None:
    found = [line for line in lines if line.rule == rule]
    assert len(found) >= len(offsets.CONDITIONS) - 1
    assert [line for line in found if not line.is_good] == []


def test_a_sum_of_exponentials_is_a_product(lines: list[offsets.Line]) -> None:
    close = offsets.Condition(0, 1e-4)
    (line,) = (x for x in lines if (x.rule, x.condition) == ("matern", close))
    assert max(line.emitted.values()) < 1e-6 < line.plain
