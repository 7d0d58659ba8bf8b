"""Order statistics on every target: what sorting gives, with ties, rows, batches, one
element and none; counting by hand is the same function, and sorts too."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.calling import by_target, called, cotangent
from tests.targets.emission import module_of

RULES = """
def before(x, y, i, j) = x < y or (x == y and i < j)

rule sort(x[..., n]) -> (y[..., n], p[..., n]: int):
    p[k] = nth(k, x[j] for j)
    y[k] = x[p[k]]

rule counted(x[..., n]) -> y[..., n]:
    r[i] = sum(1 for j if before(x[j], x[i], j, i))
    y[k] = sum(x[i] for i if r[i] == k)

rule largest(x[..., n], m: static int) -> y[..., m]:
    y[k] = x[nth(k, -x[j] for j)]

rule counted_largest(x[..., n], m: static int) -> y[..., m]:
    y[k] = sum(x[i] for i if sum(1 for j if x[j] > x[i] or x[i] == x[j] and j < i) == k)

rule median(x[..., n]) -> y[...]:
    y = x[nth(floor((n - 1) / 2), x[j] for j)]

rule columns(x[..., m, n]) -> y[..., m, n]:
    y[k, j] = x[nth(k, x[i, j] for i), j]

rule by_key(x[..., n], a[..., n]) -> y[..., n]:
    y[k] = x[nth(k, (a[j] - 1)**2 for j)] * a[k]

rule middle(x[..., n], t: static int = 1) -> y[...]:
    y = sum(x[nth(k, x[j] for j)] for k if t <= k and k < n - t) / (n - 2 * t)

rule deviation(x[..., n]) -> y[...]:
    m = x[nth(floor((n - 1) / 2), x[j] for j)]
    e[i] = abs(x[i] - m)
    y = e[nth(floor((n - 1) / 2), e[j] for j)]

rule ranks(x[..., n]: nograd) -> (r[..., n]: int):
    r[i] = sum(k for k if nth(k, x[j] for j) == i)
"""

Array = np.ndarray[Any, Any]
TIES = np.array([2.0, -1.0, 3.0, 2.0, -1.0, 0.0, 2.0])
SHAPES = {
    "ties": TIES,
    "batch": np.round(2 * np.sin(np.arange(2 * 3 * 5.0))).reshape(2, 3, 5),
    "one": np.array([[4.0], [-1.0]]),
    "none": np.zeros((2, 0)),
    "nan": np.array([2.0, np.nan, -1.0, 0.0, -0.0, -np.inf]),
}


def _order(x: Array, axis: int = -1) -> Array:
    return np.argsort(x, axis, kind="stable")


def _back(x: Array, p: Array, dy: Array, axis: int = -1) -> Array:
    """The gradient of the elements at ``p``."""
    dx = np.zeros(x.shape)
    np.put_along_axis(dx, p, dy, axis)
    return dx


@by_target
@pytest.mark.parametrize("shape", SHAPES)
def test_elements_and_gradients_are_those_of_a_stable_sort(
    target: str, shape: str
) -> None:
    rules, x = module_of(RULES, target), SHAPES[shape]
    p = _order(x)
    expected, slopes = np.take_along_axis(x, p, -1), _back(x, p, cotangent(x))
    (y, places), (dx,) = called(target, rules, "sort", (x,))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(places, p)
    np.testing.assert_array_equal(dx, slopes)
    (y,), (dx,) = called(target, rules, "counted", (x,))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(dx, slopes)
    (r,), _ = called(target, rules, "ranks", (x,), asked=[False])
    np.testing.assert_array_equal(r, _order(p))


@by_target
def test_some_of_the_elements(target: str) -> None:
    rules, x = module_of(RULES, target), SHAPES["batch"]
    p = _order(-x)[..., :2]
    dy = cotangent(p)
    for name in ("largest", "counted_largest"):
        (y,), (dx,) = called(target, rules, name, (x,), statics={"m": 2})
        np.testing.assert_array_equal(y, np.take_along_axis(x, p, -1))
        np.testing.assert_array_equal(dx, _back(x, p, dy))
    for x in (TIES, SHAPES["batch"], SHAPES["one"]):
        p = _order(x)
        half = (x.shape[-1] - 1) // 2
        (y,), (dx,) = called(target, rules, "median", (x,))
        np.testing.assert_array_equal(y, np.sort(x)[..., half])
        at, dy = p[..., half : half + 1], cotangent(y)[..., None]
        np.testing.assert_array_equal(dx, _back(x, at, dy))
    (y,), (dx,) = called(target, rules, "middle", (TIES,))
    np.testing.assert_allclose(y, np.sort(TIES)[1:-1].mean(), rtol=1e-15)
    slopes = _back(TIES, _order(TIES)[1:-1], np.full(5, 0.2))
    np.testing.assert_allclose(dx, slopes, rtol=1e-15)
    with pytest.raises(Exception, match=r"axis|size|bounds|range|[Dd]im|slice"):
        called(target, rules, "largest", (TIES,), statics={"m": 8})


@by_target
def test_rows_and_keys(target: str) -> None:
    rules, x = module_of(RULES, target), SHAPES["batch"]
    p = _order(x, -2)
    (y,), (dx,) = called(target, rules, "columns", (x,))
    np.testing.assert_array_equal(y, np.sort(x, -2))
    np.testing.assert_array_equal(dx, _back(x, p, cotangent(x), -2))
    a = np.cos(x)
    p = _order((a - 1) ** 2)
    (y,), (dx, da) = called(target, rules, "by_key", (x, a))
    taken = np.take_along_axis(x, p, -1)
    np.testing.assert_allclose(y, taken * a, rtol=1e-15)
    np.testing.assert_allclose(dx, _back(x, p, cotangent(x) * a), rtol=1e-15)
    np.testing.assert_allclose(da, cotangent(x) * taken, rtol=1e-15)


@by_target
def test_an_order_within_another(target: str) -> None:
    x = np.array([0.5, -3.0, 2.0, 7.0, 4.0])
    (y,), (dx,) = called(target, module_of(RULES, target), "deviation", (x,))
    assert float(y) == 2.0
    np.testing.assert_array_equal(dx, [0.0, 0.0, -1.0, 0.0, 1.0])


@pytest.mark.torch
def test_they_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    rules, x = module_of(RULES, "torch"), torch.tensor(np.sin(np.arange(24.0) ** 2))
    own: Mapping[str, Callable[[Any], Any]] = {
        "sort": lambda x: torch.sort(x, dim=-1, stable=True)[0],
        "largest": lambda x: torch.topk(x, 3)[0],
        "median": lambda x: torch.median(x, -1)[0],
    }
    for shape in ((24,), (4, 6)):
        for name, function in own.items():
            given = x.reshape(shape).requires_grad_()
            statics = {"m": 3} if name == "largest" else {}
            mine = getattr(rules, name)(given, **statics)
            mine = mine[0] if isinstance(mine, tuple) else mine
            whole = function(given)
            assert torch.equal(mine, whole)
            dy = torch.cos(torch.arange(whole.numel(), dtype=x.dtype))
            slopes = [
                torch.autograd.grad(y, given, dy.reshape(y.shape))[0]
                for y in (mine, whole)
            ]
            assert torch.equal(*slopes)


@pytest.mark.parametrize("name", ["sort", "counted", "median", "middle"])
def test_memory_grows_with_the_elements_not_with_their_square(name: str) -> None:
    rules, x = module_of(RULES, "numpy"), np.cos(np.arange(4000.0) ** 2)
    tracemalloc.start()
    called("numpy", rules, name, (x,))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 40 * x.nbytes
