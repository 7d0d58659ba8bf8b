"""How NumPy modules share out large arrays among threads, and sums over many rows."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import imported, planned

RULES = """
rule affine(x[..., n], g[n], b[n]) -> y[..., n]:
    y[i] = g[i] * x[i] + b[i]

rule summed(a, b) -> y:
    y = log(exp(a) + exp(b))
"""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(target.module(planned(RULES)), "numpy_runs")


@pytest.mark.parametrize("rows", (1, 7, 8, 1000, 76_292))
def test_parts_follow_each_other_and_the_first_is_small(
    rules: ModuleType, rows: int
) -> None:
    parts = rules._parts(rows, rows * 131)
    ends = [0, *(part.stop for part in parts)]
    assert [part.start for part in parts] == ends[:-1]
    assert ends[-1] >= rows > parts[-1].start
    step = rules._BLOCK // 131 if rows == 76_292 else rules._BLOCK // 2 // 131
    first = max(1, step // 8)
    assert parts[0].stop <= first
    assert all(part.stop - part.start <= step + 1 for part in parts[:-1])
    assert parts[-1].stop - parts[-1].start <= step + first
    assert rows <= step or max(part.stop - part.start for part in parts) >= step


@pytest.mark.parametrize("count", (0, 1, 9, 76, 500))
@pytest.mark.parametrize("threads", (1, 2, 8))
def test_runs_hold_all_parts_in_order_and_end_with_short_ones(
    rules: ModuleType, count: int, threads: int
) -> None:
    parts = [slice(k, k + 1) for k in range(count)]
    runs = rules._runs(parts, threads)
    assert [part for run in runs for part in run] == parts
    assert all(1 <= len(run) <= rules._RUN for run in runs)
    assert all(len(run) == 1 for run in runs[-threads:])


@pytest.mark.parametrize("rows", (3, 64, 69, 5000))
def test_a_sum_over_rows_is_the_sum(rules: ModuleType, rows: int) -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((rows, 10)).astype(np.float32)
    for dy in (x + 1, np.asfortranarray(x + 1)):
        _, pullback = rules.affine_vjp(x, x[0], x[1])
        _, dg, db = pullback(dy)
        wide = dy.astype(np.float64)
        np.testing.assert_allclose(db, wide.sum(axis=0), rtol=0, atol=1e-6 * rows)
        np.testing.assert_allclose(dg, (wide * x).sum(axis=0), rtol=0, atol=1e-6 * rows)


def test_equal_infinities_among_many(rules: ModuleType) -> None:
    a = np.linspace(-5, 5, 5000).astype(np.float32)
    b = -a
    plain = rules.summed(a, b)
    a[[0, 7, 9]] = b[[0, 7, 8]] = np.inf, -np.inf, np.inf
    found = rules.summed(a, b)
    np.testing.assert_array_equal(
        found[[0, 7, 8, 9]], [np.inf, -np.inf, np.inf, np.inf]
    )
    np.testing.assert_array_equal(found[10:], plain[10:])
