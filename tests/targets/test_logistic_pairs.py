"""Slopes of a difference and of its opposite: where compilers fuse, one exponential and one
quotient serve both, and both keep their digits.
"""

from __future__ import annotations

import math
import shutil
from typing import Any

import numpy as np
import pytest

from gradspec import compile_text
from tests.targets.emission import imported

RULE = """
rule logaddexp(a, b) -> y:
    y = log(exp(a) + exp(b))
"""


def _drawn() -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    a = random.uniform(-80, 80, 20_000)
    near = random.random(a.size) < 0.7
    b = np.where(near, a + random.normal(0, 3, a.size), random.uniform(-80, 80, a.size))
    b[:100] = a[:100]
    return a.astype(np.float32), b.astype(np.float32)


def _logistic(s: Any) -> Any:
    t = np.exp(-np.abs(s))
    return np.where(s < 0, t, 1.0) / (1.0 + t)


def _within(got: Any, true: Any, units: float) -> None:
    normal = true > 1.2e-38
    step = np.spacing(true[normal].astype(np.float32)).astype(np.float64)
    errors = np.abs(np.asarray(got, np.float64)[normal] - true[normal]) / step
    assert normal.sum() > 10_000
    assert errors.max() <= units


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="nothing compiles C++")
def test_torch_compiles_both() -> None:
    torch = pytest.importorskip("torch")
    text = compile_text(RULE, "torch")
    assert "_sigmoid_sum(a, -b)" in text
    assert "_sigmoid_rest(a, -b)" in text
    rule = torch.compile(imported(text, "pairs_compiled").logaddexp, fullgraph=True)
    drawn = _drawn()
    a, b = (torch.from_numpy(x).requires_grad_() for x in drawn)
    da, db = torch.autograd.grad(rule(a, b).sum(), (a, b))
    difference = drawn[0].astype(np.float64) - drawn[1]
    _within(da.numpy(), _logistic(difference), 3.0)
    _within(db.numpy(), _logistic(-difference), 3.0)


@pytest.mark.torch
def test_torch_eager_in_float64() -> None:
    torch = pytest.importorskip("torch")
    rule = imported(compile_text(RULE, "torch"), "pairs_eager").logaddexp
    a, b = (torch.tensor(x.astype(np.float64), requires_grad=True) for x in _drawn())
    da, db = torch.autograd.grad(rule(a, b).sum(), (a, b))
    exact = torch.sigmoid((a - b).detach())
    torch.testing.assert_close(da, exact, rtol=2e-14, atol=0.0)
    torch.testing.assert_close(db, torch.sigmoid((b - a).detach()), rtol=2e-14, atol=0)
    ends = [torch.tensor([0.5, 2.0, 3.0, math.pi], dtype=torch.float64)] * 2
    points = tuple(x.clone().requires_grad_() for x in ends)
    assert torch.autograd.gradcheck(
        lambda x, y: torch.autograd.grad(rule(x, y).sum(), (x, y), create_graph=True),
        points,
    )


@pytest.mark.jax
def test_jax_jits_both() -> None:
    jax = pytest.importorskip("jax")
    rule = imported(compile_text(RULE, "jax"), "pairs_jax").logaddexp
    drawn = _drawn()
    pulled = jax.jit(jax.grad(lambda a, b: rule(a, b).sum(), (0, 1)))
    da, db = pulled(*drawn)
    difference = drawn[0].astype(np.float64) - drawn[1]
    _within(da, _logistic(difference), 4.0)
    _within(db, _logistic(-difference), 4.0)
    slope = jax.grad(jax.grad(rule, 1), 1)(2.0, 2.0)
    assert float(slope) == pytest.approx(0.25)


@pytest.mark.jax
def test_jax_has_one_exponential_for_both_passes() -> None:
    jax = pytest.importorskip("jax")
    rule = imported(compile_text(RULE, "jax"), "pairs_shared").logaddexp

    def both(a: Any, b: Any) -> Any:
        value, pulled = jax.vjp(rule, a, b)
        return value, pulled(jax.numpy.ones_like(value))

    text = jax.jit(both).lower(*_drawn()).compile().as_text()
    assert text.count(" exponential(") == 1
    assert text.count(" divide(") == 1


_ENDS = (
    [math.inf, -math.inf, math.inf, math.nan, math.inf, 3e38, 3e38, -3e38, 2.0],
    [math.inf, -math.inf, -math.inf, 1.0, math.nan, 3e38, 1.0, -3e38, 2.0],
)


@pytest.mark.jax
def test_jax_at_the_ends_and_at_ties() -> None:
    jax = pytest.importorskip("jax")
    rule = imported(compile_text(RULE, "jax"), "pairs_jax_ends").logaddexp
    a, b = (np.float32(x) for x in _ENDS)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(a, b)
    np.testing.assert_allclose(rule(a, b), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(rule)(a, b), expected, rtol=1e-6)


@pytest.mark.tf
def test_tf_at_the_ends_and_at_ties() -> None:
    tf = pytest.importorskip("tensorflow")
    rule = imported(compile_text(RULE, "tf"), "pairs_tf_ends").logaddexp
    a, b = (np.float32(x) for x in _ENDS)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(a, b)
    for run in (rule, tf.function(rule), tf.function(rule, jit_compile=True)):
        found = run(tf.constant(a), tf.constant(b)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-6)
