"""Locals that lack elements: fine as long as nothing uses those."""

from __future__ import annotations

import pytest

from gradspec.ir.unroll import partial
from tests.checks.written import checked, codes, written

DIFFERENCE = """
rule r(x[..., n]) -> y[...]:
    {}d[i] = x[i + 1] - x[i]
    y = {}
"""


@pytest.mark.parametrize(
    ("uses", "lacking"),
    [
        ("sum(abs(d[i]) for i if i < n - 1)", {"d"}),
        ("sum(x[i]**2 for i)", {"d"}),  # never used
        ("sum(d[i + 1] * d[i] for i if i + 2 < n)", {"d"}),
    ],
)
def test_a_local_may_lack_elements_that_nothing_uses(
    uses: str, lacking: set[str]
) -> None:
    text = DIFFERENCE.format("", uses)
    assert codes(text) in ((), ("GS418",))
    assert partial(written(text)) == lacking


def test_a_local_over_a_given_number_of_positions_is_whole_where_it_fits() -> None:
    text = """
        rule conv(x[n], w[k], v[m]) -> y[m]:
            p[i, l] = x[i + l] * w[l] * v[i]
            y[i] = sum(p[i, l] for l)
    """
    assert partial(written(text)) == set()


def test_an_element_that_does_not_exist_is_told_with_what_it_lacks() -> None:
    (found,) = checked(DIFFERENCE.format("", "d[1] - d[0]")).diagnostics
    assert found.code == "GS250"
    told = "`d[1]` needs `x[2]`, which is outside its axis at n = 2"
    assert found.labels[0].message == told
    assert found.labels[0].source.slice(found.labels[0].span) == "d[1]"
    assert "`assume n > 2`" in found.help


def test_through_another_local_too() -> None:
    text = """
        rule r(x[..., n]) -> y[...]:
            d[i] = x[i + 1] - x[i]
            e[i] = d[i + 1] - d[i]
            y = e[0]
    """
    assert codes(text) == ("GS250",)


def test_sizes_that_are_assumed_away_do_not_count() -> None:
    text = DIFFERENCE.format("assume n > 2\n    ", "d[1] - d[0]")
    assert codes(text) == ()
    text = DIFFERENCE.format("assume n > 1\n    ", "d[1] - d[0]")
    assert codes(text) == ("GS250",)
