"""Rules that call foreign functions, in each framework and under its transformations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.targets.emission import module_of

special = pytest.importorskip("scipy.special")

RULES = Path(__file__).parent / "bessel.grad"
X, A = np.array([0.3, 1.2, 2.0]), np.array(1.5)
Y = A * special.j0(X**2)
DX = -2 * A * X * special.j1(X**2)
_BENT = special.j0(X**2) - special.j1(X**2) / X**2
DDX = -2 * A * special.j1(X**2) - 4 * A * X**2 * _BENT


def _close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12)


def test_numpy() -> None:
    rules = module_of(RULES, "numpy")
    y, pullback = rules.ripple_vjp(X, A)
    _close(y, Y)
    _close(pullback(np.ones(3))[0], DX)
    assert rules.ripple(X.astype(np.float32), np.float32(1)).dtype == np.float32


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forward mode
def test_torch_and_its_transformations() -> None:
    torch = pytest.importorskip("torch")
    rules = module_of(RULES, "torch")
    x, a = torch.tensor(X, requires_grad=True), torch.tensor(A)
    y = rules.ripple(x, a)
    (dx,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    for found, wanted in ((y, Y), (dx, DX), (ddx, DDX)):
        _close(found.detach(), wanted)
    x = x.detach()
    batched = (0, None)
    _close(torch.vmap(rules.ripple, batched)(x, a), Y)
    slope = torch.func.grad(rules.ripple)
    _close(torch.vmap(slope, batched)(x, a), DX)
    _close(torch.vmap(torch.func.grad(slope), batched)(x, a), DDX)
    _close(torch.func.jvp(lambda x: rules.ripple(x, a), (x,), (torch.ones(3),))[1], DX)
    far = torch.vmap(rules.far)(torch.ones(2, 3), torch.ones(2, 4))
    assert far.shape == (2, 3, 4)
    assert rules.ripple(x.half(), a.half()).dtype == torch.float16


@pytest.mark.torch
def test_torch_compile_and_export() -> None:
    torch = pytest.importorskip("torch")
    rules = module_of(RULES, "torch")
    x, a = torch.tensor(X, requires_grad=True), torch.tensor(A)
    compiled = torch.compile(rules.ripple, fullgraph=True, backend="aot_eager")
    y = compiled(x, a)
    _close(y.detach(), Y)
    _close(torch.autograd.grad(y.sum(), x)[0], DX)

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def forward(self, x: Any, a: Any) -> Any:
            return rules.ripple(x, a)

    program = torch.export.export(Model(), (x.detach(), a))
    _close(program.module()(x.detach(), a), Y)


@pytest.mark.jax
def test_jax_and_its_transformations() -> None:
    jax = pytest.importorskip("jax")
    rules = module_of(RULES, "jax")
    with jax.enable_x64(True):
        x, a = jax.numpy.asarray(X), jax.numpy.asarray(A)
        slope = jax.grad(rules.ripple)
        over = (0, None)
        _close(jax.jit(rules.ripple)(x, a), Y)
        _close(jax.vmap(rules.ripple, over)(x, a), Y)
        _close(jax.jit(jax.vmap(slope, over))(x, a), DX)
        _close(jax.vmap(jax.grad(slope), over)(x, a), DDX)
        _close(jax.jvp(lambda x: rules.ripple(x, a), (x,), (jax.numpy.ones(3),))[1], DX)


@pytest.mark.tf
def test_tensorflow_in_graphs_and_eagerly() -> None:
    tf = pytest.importorskip("tensorflow")
    rules = module_of(RULES, "tf")
    x, a = tf.constant(X), tf.constant(A)
    for run in (rules.ripple, tf.function(rules.ripple)):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = run(x, a)
            dx = tape.gradient(y, x)
        assert y.shape == (3,)
        for found, wanted in ((y, Y), (dx, DX), (outer.gradient(dx, x), DDX)):
            _close(found, wanted)
    _close(tf.vectorized_map(lambda v: rules.ripple(v, a), x), Y)


MISSING = """\
extern def f(x) = "no_such_kernels.f" with derivative 1
extern def g(x) = "scipy.special.no_such" with derivative 1
"""


@pytest.mark.parametrize("target", ["numpy", "torch", "tf", "jax"])
def test_a_module_that_is_missing_is_named_at_import(target: str) -> None:
    pytest.importorskip({"tf": "tensorflow"}.get(target, target))
    for name, what in (("f", "no_such_kernels"), ("g", "no_such")):
        text = f"{MISSING}rule r(x) -> y:\n    y = {name}(x)\n"
        with pytest.raises(ImportError, match=what):
            gradspec.load(text, target)


def test_a_function_of_one_framework_is_missing_on_the_others() -> None:
    text = 'extern def f(x) = "torch.sqrt" with derivative 0.5 / f(x)\n'
    text += "rule r(x) -> y:\n    assume x > 0\n    y = f(x)\n"
    assert '"torch.sqrt(x)"' in gradspec.compile_text(text, "torch")
    with pytest.raises(gradspec.CompileError, match="GS501"):
        gradspec.compile_text(text, "jax")
