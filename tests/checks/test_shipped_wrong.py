"""Wrong gradients that were shipped are refuted, and told what is wrong with them."""

from __future__ import annotations

import pytest

from tests.checks.shipped import Shipped, shipped
from tests.checks.written import checked

ALL = shipped()


def test_they_are_many_and_each_has_its_own_name() -> None:
    assert len(ALL) >= 60
    assert len({one.name for one in ALL}) == len(ALL)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_shipped_gradient_is_refuted_with_the_right_diagnosis(one: Shipped) -> None:
    found = [d for d in checked(one.text, budget=1.0).diagnostics if d.is_error]
    assert found
    assert {d.code for d in found} <= {"GS401", "GS402", "GS416", "GS431"}
    labels = (label.message for d in found for label in d.labels)
    told = "; ".join((*labels, *(note for d in found for note in d.notes)))
    for word in one.words:
        assert word in told, one.wrong
