"""The constants of a distance from a zero stay two where compilers would add them up."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

import gradspec
from gradspec.stabilise.fenced import fenced
from tests.stabilise.rules import stable, texts, unary

SILU = unary("x / (1 + exp(-x))")
ZERO = -1.2784645427610738
POINTS = ZERO * (1.0 + np.array([1, -3, 40, -900, 2**20, 2**40]) * 2.0**-50)


def _errors(got: Any) -> Any:
    with mpmath.workprec(300):
        sigmoids = [1 / (1 + mpmath.exp(-mpmath.mpf(x))) for x in POINTS.tolist()]
        pairs = zip(sigmoids, POINTS.tolist(), strict=True)
        truths = np.array([float(s * (1 + x * (1 - s))) for s, x in pairs])
    return np.abs(np.asarray(got) - truths) / np.spacing(np.abs(truths))


def test_a_sum_with_two_constants_is_fenced() -> None:
    shared = stable(SILU)
    assert fenced(shared, "numpy") is shared
    assert fenced(shared, "torch") is shared
    own = fenced(shared, "jax")
    assert texts(own.rule)["dx"].count("fence(") >= 1
    assert texts(own.rule)["y"] == texts(shared.rule)["y"]
    assert fenced(own, "jax") == own


def test_constants_that_are_one_exactly_need_none() -> None:
    shared = stable(unary("(x + 3) + 0.5"))
    assert fenced(shared, "tf") is shared


def _loaded(target: str, folder: Path) -> ModuleType:
    path = folder / "silu.grad"
    path.write_text(SILU, encoding="utf-8")
    return gradspec.load(path, target=target)


@pytest.mark.tf
@pytest.mark.parametrize("is_xla", [False, True])
def test_graphs_of_tensorflow_keep_the_digits(is_xla: bool, tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    rules = _loaded("tf", tmp_path)

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rules.f(x)
        return tape.gradient(y, x)

    run = tf.function(slope, autograph=False, jit_compile=is_xla)
    assert _errors(run(tf.constant(POINTS)).numpy()).max() < 4


@pytest.mark.jax
def test_jax_keeps_the_digits(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    rules = _loaded("jax", tmp_path)
    slope = jax.vmap(jax.grad(rules.f))
    with jax.enable_x64(True):
        for run in (slope, jax.jit(slope)):
            assert _errors(run(jax.numpy.asarray(POINTS))).max() < 4
