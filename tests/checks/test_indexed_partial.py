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


def test_elements_that_exist_at_no_size() -> None:
    (found,) = checked("rule r(x[n]) -> y[n]:\n    y[i] = x[i + 1]\n").diagnostics
    assert found.code == "GS420"
    assert found.labels[0].source.slice(found.labels[0].span) == "x[i + 1]"


ATTENDED = """
rule attention(q[..., m, k], r[..., n, k], v[..., n, h]) -> y[..., m, h]:
    s[i, j] = sum(q[i, a] * r[j, a] for a) / sqrt(k)
    p[i, j] = exp(s[i, j]) / sum(exp(s[i, o]) for o)
    y[i, c] = sum(p[i, j] * v[j, c] for j)
    t[i, j] = sum(dy[i, c] * v[j, c] for c)
    g[i, j] = p[i, j] * (t[i, j] - sum(t[i, o] * p[i, o] for o))
    dq[i, a] = sum(g[i, j] * r[j, a] for j)
"""


def test_what_no_axis_of_size_1_shows_is_refuted_though_there_is_no_time() -> None:
    """Without `/ sqrt(k)` it is right where k is 1."""
    outcome = checked(ATTENDED, budget=0.0)
    assert [d.code for d in outcome.diagnostics] == ["GS401"]
