"""A sum of nothing is 0, whatever stands before it.

A gradient that sums over an axis of size 0 is 0 on every target, also where a factor of it
is made of a mean over that axis, which is NaN.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.targets.vjps import TARGETS, Vjp, upstream_of

RULES = """
rule scaled(x[m, n], g[n], eps: static = 0.1) -> y[m, n]:
    c[i, j] = x[i, j] - mean(x[l, j] for l)
    r[j] = 1 / sqrt(mean(c[l, j]**2 for l) + eps)
    y[i, j] = g[j] * c[i, j] * r[j]

rule divided(x[m, n], g[n]) -> y[m, n]:
    s[j] = sum(x[l, j]**2 for l) / m + 1
    y[i, j] = g[j] * x[i, j] / s[j]

rule declared(x[m, n], g[n]) -> y[m, n]:
    r[j] = mean(x[l, j]**2 for l) + 1
    y[i, j] = g[j] * x[i, j] * r[j]
    override dg[j] = 3 * r[j] * sum(dy[i, j] * x[i, j] for i) because "a marker"

rule mixed(x[m, n], w[n, k]) -> y[m, k]:
    r[j] = 1 / (mean(x[l, j]**2 for l) + 1)
    y[i, q] = sum(x[i, j] * r[j] * w[j, q] for j)

rule shares(x[m, n], g[n]) -> y[m, n]:
    s[j] = logsumexp(x[l, j] for l)
    y[i, j] = g[j] * x[i, j] * s[j]
"""
SHAPES: dict[str, tuple[int, ...]] = {
    "scaled": (3,),
    "divided": (3,),
    "declared": (3,),
    "mixed": (3, 2),
    "shares": (3,),
}


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest) -> tuple[ModuleType, Vjp]:
    framework, module, vjp = TARGETS[request.param]
    pytest.importorskip(framework)
    return module(RULES), vjp


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy: of the mean of nothing
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("rule", SHAPES)
def test_gradients_of_no_rows_are_0(target: tuple[ModuleType, Vjp], rule: str) -> None:
    module, vjp = target
    rng = np.random.default_rng(0)
    shape = SHAPES[rule]
    weights = rng.normal(size=shape)
    (y,), (of_x, of_weights) = vjp(module, rule, (np.zeros((0, 3)), weights))
    assert of_x is not None and of_weights is not None
    assert (y.shape, of_x.shape) == ((0, shape[-1]), (0, 3))
    np.testing.assert_array_equal(of_weights, np.zeros(shape))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_count_as_they_did(target: tuple[ModuleType, Vjp]) -> None:
    module, vjp = target
    rng = np.random.default_rng(1)
    x, g = rng.normal(size=(5, 3)), rng.normal(size=3)
    (y,), (_, of_g) = vjp(module, "scaled", (x, g))
    assert of_g is not None
    np.testing.assert_allclose(of_g, np.sum(upstream_of(y) * y / g, 0), rtol=1e-12)
