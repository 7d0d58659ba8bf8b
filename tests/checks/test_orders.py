"""Gradients of order statistics: right ones are proved, and those that go to another place
are refuted."""

from __future__ import annotations

import pytest

from gradspec.ir.expr import show
from gradspec.ir.rule import Status
from tests.checks.written import codes, status, written

SORT = """
rule sort(x[..., n]) -> y[..., n]:
    p[k] = nth(k, x[j] for j)
    y[k] = x[p[k]]
    dx[i] = {}
"""
SQUARES = """
rule squares(x[..., n]) -> y[..., n]:
    y[k] = x[nth(k, -x[j]**2 for j)]
    dx[i] = {}
"""
KTH = """
rule kth(x[..., n], k: static int) -> y:
    y = x[nth(k - 1, x[j] for j)]**2
    dx[i] = {}
"""
COLUMNS = """
rule columns(x[m, n]) -> y[m, n]:
    y[k, j] = x[nth(k, x[i, j] for i), j]
    dx[i, j] = {}
"""
PROVED = [
    SORT.format("sum(dy[k] for k if p[k] == i)"),
    SORT.format("sum(dy[k] for k if nth(k, x[j] for j) == i)"),
    SQUARES.format("sum(dy[k] if i == nth(k, -x[j]**2 for j) else 0 for k)"),
    COLUMNS.format("sum(dy[k, j] for k if nth(k, x[l, j] for l) == i)"),
]
AGREES = [
    SORT.format("dy[sum(1 for j if x[j] < x[i] or x[j] == x[i] and j < i)]"),
    KTH.format("2 * x[i] * dy if i == nth(k - 1, x[j] for j) else 0"),
]
REFUTED = [
    SORT.format("dy[i]"),
    SORT.format("dy[p[i]]"),
    SORT.format("sum(dy[k] for k if p[k] == i and k > 0)"),
    SORT.format("sum(dy[k] for k if nth(k, -x[j] for j) == i)"),
    SORT.format("dy[sum(1 for j if x[j] > x[i] or x[j] == x[i] and j < i)]"),
    SORT.format("dy[sum(1 for j if x[j] < x[i])] / 2"),
    SQUARES.format("sum(dy[k] if i == nth(k, x[j]**2 for j) else 0 for k)"),
    SQUARES.format("sum(dy[k] if i == nth(k, -x[j] for j) else 0 for k)"),
    KTH.format("2 * x[i] * dy if i == nth(k, x[j] for j) else 0"),
    KTH.format("dy if i == nth(k - 1, x[j] for j) else 0"),
    COLUMNS.format("sum(dy[k, j] for k if nth(k, x[i, l] for l) == j)"),
    COLUMNS.format("sum(dy[k, j] for k if nth(j, x[l, j] for l) == i)"),
]


@pytest.mark.parametrize("text", PROVED)
def test_right_gradients_are_proved_at_every_size(text: str) -> None:
    assert status(text) is Status.PROVED
    jumps = "GS432"  # the elements differ where their squares are equal
    assert codes(text) == ((jumps,) if "squares" in text else ())


@pytest.mark.parametrize("text", AGREES)
def test_gradients_by_rank_and_by_value_agree(text: str) -> None:
    assert status(text) is Status.AGREES


@pytest.mark.parametrize("text", REFUTED)
def test_gradients_that_go_elsewhere_are_refuted(text: str) -> None:
    assert status(text) is Status.REFUTED


def test_a_derived_gradient_is_shown_as_it_is_written() -> None:
    text = SQUARES.partition("    dx")[0]
    (found,) = written(text).backward
    shown = show(found.value)
    assert shown == "sum(dy[j] if nth(j, -square(x[k]) for k) == i else 0 for j)"
    assert status(text + f"    dx[i] = {shown}\n") is Status.PROVED
