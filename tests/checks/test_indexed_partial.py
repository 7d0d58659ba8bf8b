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


@pytest.mark.parametrize(
    ("head", "value", "is_right"),
    [
        ("x[n]) -> y[n]", "y[t] = x[t] + (y[t - 2] if t > 0 else 0)", False),
        ("x[n]) -> y[n]", "y[t] = x[t] + (y[t - 2] if t > 1 else 0)", True),
        ("x[n]) -> y[n]", "y[t] = x[t - 2] if t > 0 else 0", False),
        ("x[n]) -> y[n]", "y[t] = x[t - 9] if t > 6 else 0", False),
        ("x[m, n]) -> y[m, n]", "y[i, t] = x[i, t - 3] if t > 1 else 0", False),
        ("x[m, n]) -> y[m, n]", "y[i, t] = x[i, t - m] if t > 0 else 0", False),
        ("x[m, n]) -> y[m, n]", "y[i, t] = x[i, t - m] if t >= m else 0", True),
        ("x[n]) -> y[n]", "y[t] = x[t + 4] if t < n - 2 else 0", False),
        ("x[n]) -> y[n]", "y[t] = x[t + 4] if t < n - 4 else 0", True),
        ("x[n], k: static int = 2) -> y[n]", "y[t] = x[t - k] if t > 0 else 0", False),
        ("x[n], k: static int = 2) -> y[n]", "y[t] = x[t - k] if t >= k else 0", True),
        ("x[n], w[k]) -> y[n]", "y[i] = sum(w[j] * x[i - j] for j)", False),
        ("x[n], w[k]) -> y[n]", "y[i] = sum(w[j] * x[i - j] for j if j <= i)", True),
        (
            "x[n], w[k], m: static int) -> y[m]",
            "y[i] = sum(w[j] * x[2 * i + j] for j)",
            True,
        ),
        (
            "a[m], b[n], k: static int) -> y[k]",
            "y[i] = a[i] if i < m else b[i - m]",
            True,
        ),
        ("x[n]) -> y[]", "y = x[5] - x[7] + x[n - 3]", True),
    ],
)
def test_elements_that_no_longer_axis_has(
    head: str, value: str, is_right: bool
) -> None:
    found = codes(f"rule r({head}:\n    {value}\n")
    assert found == (() if is_right else ("GS420",))


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


@pytest.mark.parametrize(
    ("axes", "element"),
    [
        ("m", "x[i + n]"),
        ("m", "x[i + n + n]"),
        ("m, k", "x[i + n, 2 * i + n]"),
    ],
)
def test_an_axis_that_the_caller_makes_long_enough(axes: str, element: str) -> None:
    """Two halves in one axis: which size goes with which, only the caller knows."""
    body = (
        f"rule f(x[..., {axes}], n: static int) -> y[..., n]:\n    y[i] = {element}\n"
    )
    assert "GS420" not in codes(body)
