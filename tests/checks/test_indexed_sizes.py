"""Ranked rules of assumed, fixed and small sizes."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked, codes


def test_elements_that_exist_at_no_size() -> None:
    (found,) = checked("rule r(x[n]) -> y[n]:\n    y[i] = x[i + 1]\n").diagnostics
    assert found.code == "GS420"
    assert found.labels[0].source.slice(found.labels[0].span) == "x[i + 1]"


def test_sizes_may_be_assumed() -> None:
    text = """
        rule spread(x[n]) -> y[]:
            assume n > 1
            y = x[n - 1] - x[n - 2]
            dx[i] = dy * (1 if i == n - 1 else -1 if i == n - 2 else 0)
    """
    outcome = checked(text)
    assert outcome.diagnostics == ()
    assert outcome.value is not None
    assert outcome.value.verdicts[0].status is Status.PROVED


@pytest.mark.parametrize("least", [4, 6, 12])
def test_small_sizes_may_be_assumed_away(least: int) -> None:
    text = f"""
        rule spread(x[n]) -> y[]:
            assume n >= {least}
            y = mean(x[i] for i)
            dx[i] = dy / 2
    """
    assert codes(text) == ("GS401",)


def test_convolution_is_judged_at_the_sizes_that_fit() -> None:
    text = """
        rule conv(x[n], w[k], m: static int) -> y[m]:
            y[i] = sum(x[i + l] * w[l] for l)
            dw[l] = sum(dy[i] * x[i {} l] for i)
    """
    outcome = checked(text.format("+"))
    assert outcome.value is not None
    assert outcome.value.verdicts[1].status is Status.PROVED


def test_a_rule_of_fixed_sizes_is_proved_without_more_ado() -> None:
    outcome = checked("""
        rule cross(a[3], b[3]) -> y[]:
            y = a[0] * b[1] - a[1] * b[0]
            da[i] = dy * (b[1] if i == 0 else -b[0] if i == 1 else 0)
    """)
    assert outcome.value is not None
    verdict = outcome.value.verdicts[0]
    assert (verdict.status, verdict.sizes) == (Status.PROVED, "")


def test_large_fixed_sizes_are_judged_by_the_calculus_alone() -> None:
    text = """
        rule squares(x[64, 64]) -> y[64]:
            y[i] = sum(x[i, j]**2 for j)
            dx[i, j] = {} * x[i, j] * dy[i]
    """
    assert codes(text.format(2)) == ()
    assert codes(text.format(3)) == ("GS421",)
    assert codes("rule r(x[64, 64]) -> y[64]:\n    y[i] = x[i, i]\n") == ()


def test_fixed_sizes_of_some_length_are_written_out() -> None:
    text = """
        rule normalised(x[..., 12]) -> y[..., 12]:
            y[i] = x[i] / sum(x[j] for j)
            dx[i] = {}(dy[i] - sum(dy[j] * y[j] for j)) / sum(x[j] for j)
    """
    assert codes(text.format("")) == ()
    assert codes(text.format("2 * ")) == ("GS401",)


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
