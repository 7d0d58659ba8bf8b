"""Indices with ranges of their own: verdicts at every size, and mistakes refuted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked, codes, status
from tests.cli.test_cli import run

POOL = """
rule pool(x[..., n], k: static int, s: static int, m: static int) -> y[..., m]:
    y[i] = mean(x[s * i + j] for j in k)
    dx[l] = {}
"""
FIRST = """
rule first(x[..., n], k: static int) -> y:
    y = sum(x[j] for j in k)
    dx[i] = {}
"""
SUMS = """
rule sums(x[..., n], k: static int, m: static int) -> y[..., m]:
    y[i] = sum(x[i + j]**2 for j in k)
    dx[l] = {}
"""
SAMPLED = """
rule sampled(x[..., n], m: static int) -> y[..., m]:
    u[i in m] = (i + 0.5) * n / m
    y[i] = sum(x[j] * exp(-(j - u[i])**2) for j)
    dx[j] = {}
"""
SHIFT = """
rule shift(x[n], k: static int) -> y[n]:
    y[t] = x[t + k] if t + k < n and t + k >= 0 else 2 * x[t]
    dx[t] = (dy[t - k] if t - k >= 0 and t - k < n else 0) + {}
"""
FAR = """
rule far(x[n], k: static int, j: static int) -> y[n]:
    y[t] = x[t] * (2 if t + k > j else 3)
    dx[t] = dy[t] * {}
"""
LATER = """
rule later(x[n], k: static int) -> y[n]:
    assume k > 0
    y[t] = x[t] + (y[t - k] if t >= k else 0)
    g[t] = dy[t] + (g[t + k] if t + k < n else 0)
    dx[t] = {}
"""
PROVED = [
    FAR.format("(2 if t + k > j else 3)"),
    POOL.format("sum(dy[i] for i if s * i <= l and l < s * i + k) / k"),
    FIRST.format("dy if i < k else 0"),
    SUMS.format("2 * x[l] * sum(dy[l - j] for j in k if j <= l and l - j < m)"),
    SAMPLED.format("sum(dy[i] * exp(-(j - u[i])**2) for i)"),
]
REFUTED = [
    FAR.format("(2 if t + k > j and k < j + 12 else 3)"),
    FAR.format("(2 if t + k > j or t < k - 20 and j > 5 else 3)"),
    LATER.format("g[t] if k < n + 7 else 0"),
    LATER.format("g[t] if t < k + 20 or k < 5 else 0"),
    POOL.format("sum(dy[i] for i if s * i <= l and l <= s * i + k) / k"),
    POOL.format("sum(dy[i] for i if s * i < l and l < s * i + k) / k"),
    POOL.format("sum(dy[i] for i if i <= l and l < i + k) / k"),
    POOL.format("sum(dy[i] for i if s * i <= l and l < s * i + k) / m"),
    POOL.format("sum(dy[i] for i if s * i <= l and l < s * i + k)"),
    FIRST.format("dy"),
    FIRST.format("dy if i <= k else 0"),
    SUMS.format("2 * x[l] * sum(dy[l - j] for j in m if j <= l and l - j < m)"),
    SUMS.format("2 * sum(dy[l - j] for j in k if j <= l and l - j < m)"),
    SHIFT.format("(2 * dy[t] if t + k >= n else 0)"),
    SHIFT.format("(2 * dy[t] if k < n and (t + k >= n or t + k < 0) else 0)"),
    SAMPLED.format("sum(dy[i] * exp(-(j - u[i])**2) for i if i < n)"),
    SAMPLED.format("sum(dy[i] * exp(-(j + u[i])**2) for i)"),
]


@pytest.mark.parametrize("text", PROVED)
def test_proved_at_every_size(text: str) -> None:
    outcome = checked(text)
    assert outcome.value is not None and not outcome.diagnostics
    verdict = outcome.value.verdicts[0]
    assert (verdict.status, verdict.sizes) == (Status.PROVED, "every size")


@pytest.mark.parametrize("text", REFUTED)
def test_refuted(text: str) -> None:
    assert "GS401" in codes(text)


def test_a_shift_is_compared_beside_its_default() -> None:
    text = SHIFT.replace("k: static int", "k: static int = 1")
    right = "(2 * dy[t] if t + k >= n or t + k < 0 else 0)"
    assert status(text.format(right)) is Status.AGREES
    wrong = text.format(right).replace("dy[t - k] if t - k >= 0", "dy[t - 1] if t > 0")
    assert status(wrong) is Status.REFUTED


def test_a_shift_may_leave_its_axis() -> None:
    right = SHIFT.format("(2 * dy[t] if t + k >= n or t + k < 0 else 0)")
    assert status(right) is Status.AGREES


LONG = """
rule long(x[n]) -> y[n]:
    y[i] = sum(exp(x[i] * j) for j in 9000)
    dx[i] = dy[i] * sum({} * exp(x[i] * j) for j in 9000)
"""


def test_a_range_that_is_too_long_to_look_at_is_proved_or_refused() -> None:
    assert status(LONG.format("j")) is Status.PROVED
    assert codes(LONG.format("(j + 1)")) == ("GS421",)


def test_an_index_that_the_author_compares_needs_no_range() -> None:
    assert status(POOL.format("sum(dy[i] for i, j in k if s * i + j == l) / k")) in (
        Status.PROVED,
        Status.AGREES,
    )


def test_a_range_that_is_used_is_no_unused_input() -> None:
    assert (
        codes("rule f(x[n], k: static int) -> y[n]:\n    y[i] = sum(x[i] for j in k)")
        == ()
    )


def test_the_rule_that_is_printed_is_a_rule(tmp_path: Path) -> None:
    file = Path(__file__).parents[1] / "trial" / "ranges.grad"
    printed = run("compile", file, "--emit", "rule", cwd=tmp_path)
    assert "u[i in n, j in k] = (i + 1)**j / k" in printed
    assert "y = sum(x[j]**2 for j in k)" in printed
    again = tmp_path / "again.grad"
    again.write_text(re.sub(r"  # .*", "", printed))
    assert "agrees" not in run("check", again, cwd=tmp_path)
