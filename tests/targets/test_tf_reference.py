"""The reference cases on TensorFlow, from rules as a user writes them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import RULES, emitted_module, imported, tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


def test_r1_log1pexp_does_not_overflow(rules: ModuleType) -> None:
    x = tf.constant(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = rules.log1pexp(x)
    assert y.numpy() == 100.0
    assert tape.gradient(y, x).numpy() == 1.0


def test_r2_composed_squares(rules: ModuleType) -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        a = rules.square(x)
        b = rules.square(a)
        c = rules.square(b)
    assert [t.numpy() for t in (a, b, c)] == [4.0, 16.0, 256.0]
    assert tape.gradient(c, x).numpy() == 1024.0


def test_r3_traced_squares(capfd: pytest.CaptureFixture[str]) -> None:
    text = "rule square(x[]) -> y[]:\n    y = x**2\n"
    traced = imported(emitted_module(text, "tf", trace=True))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = traced.square(traced.square(traced.square(x)))
    printed = capfd.readouterr().out.splitlines()
    assert printed == [
        "square: x = 2, y = 4",
        "square: x = 4, y = 16",
        "square: x = 16, y = 256",
    ]
    assert tape.gradient(y, x).numpy() == 1024.0
    expected = [(16, 1, 32, 32), (4, 32, 8, 256), (2, 256, 4, 1024)]
    assert capfd.readouterr().out.splitlines() == [
        f"square: x = {x}, upstream dy = {up}, current = {local}, downstream dx = {down}"
        for x, up, local, down in expected
    ]


def test_r4_product(rules: ModuleType) -> None:
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = rules.product(x, y)
    assert z.numpy() == 6.0
    assert [g.numpy() for g in tape.gradient(z, [x, y])] == [3.0, 2.0]
    assert tape.gradient(x, y) is None


def test_r5_sign_with_the_slope_of_a_sigmoid(rules: ModuleType) -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = rules.sign_step(x)
        loss = 0.5 * (y + 1) ** 2
    assert (y.numpy(), loss.numpy()) == (1.0, 2.0)
    assert tape.gradient(y, x).numpy() == pytest.approx(0.0451766551, abs=5e-9)
    assert tape.gradient(loss, x).numpy() == pytest.approx(0.0903533101, abs=1e-8)


def test_r6_the_sign_is_trained(rules: ModuleType) -> None:
    x = tf.Variable(-1.0)
    adam = tf.keras.optimizers.Adam(0.1)

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            loss = 0.5 * (rules.sign_step(x) - 1) ** 2
        gradient = tape.gradient(loss, x)
        adam.apply_gradients([(gradient, x)])
        return loss, gradient

    seen = {}
    for number in range(100):
        loss, gradient = step()
        if number % 10 == 0:
            seen[number] = (float(loss), float(gradient), float(x))
    assert seen[0][:2] == pytest.approx((2.0, -0.393223882), abs=1e-7)
    assert seen[0][2] == pytest.approx(-0.89999783, abs=3e-4)
    after = [0.0995881185, 0.6450876, 0.855591536, 0.938390434, 0.970632374]
    after += [0.983009696, 0.987700462, 0.989459515, 0.990113616]
    for number, want in zip(range(10, 100, 10), after, strict=True):
        assert seen[number][:2] == (0.0, 0.0)
        assert seen[number][2] == pytest.approx(want, abs=3e-4)


def test_r7_elementwise_square() -> None:
    text = "rule square(x) -> y:\n    y = x**2\n    dx = dy * 2 * x\n"
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf_module(text).square(x))
    assert tape.gradient(loss, x).numpy().tolist() == [2.0, 4.0, 6.0]


def test_r8_two_inputs_two_outputs(rules: ModuleType) -> None:
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z, w = rules.complex_op(x, y)
        loss = z + w
    dx, dy = tape.gradient(loss, [x, y])
    assert z.numpy() == pytest.approx(6.9092974, abs=1e-6)
    assert w.numpy() == 9.0
    assert dx.numpy() == pytest.approx(2.5838532, abs=1e-6)
    assert dy.numpy() == 8.0


def test_r9_piecewise(rules: ModuleType) -> None:
    x = tf.Variable([-1.0, 0.0, 1.0])
    with tf.GradientTape() as tape:
        y = rules.piecewise(x)
        loss = tf.reduce_sum(y)
    assert y.numpy().tolist() == [-1.0, 0.0, 2.0]
    assert tape.gradient(loss, x).numpy().tolist() == [1.0, 1.0, 2.0]


def test_r12_upstream_gradients_of_several_outputs(rules: ModuleType) -> None:
    normal = np.random.default_rng(1).normal
    x, y, dz, dw = (tf.constant(normal(size=s)) for s in ((3, 4), (4,), (3, 4), (4,)))
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        outputs = rules.complex_op(x, y)
    dx, dy = tape.gradient(outputs, [x, y], output_gradients=[dz, dw])
    np.testing.assert_allclose(dx, dz * (y + tf.cos(x)))
    np.testing.assert_allclose(dy, np.sum(dz * x, 0) + dw * 2 * y)


def test_r13_second_derivative(rules: ModuleType) -> None:
    x = tf.constant(0.5)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rules.log1pexp(x)
        first = tape.gradient(y, x)
    assert outer.gradient(first, x).numpy() == pytest.approx(0.2350037, abs=1e-6)


def test_r14_recomputed(rules: ModuleType) -> None:
    x = tf.Variable([0.5, -1.0])
    with tf.GradientTape(persistent=True) as tape:
        kept = tf.reduce_sum(rules.swish(x))
        again = tf.reduce_sum(tf.recompute_grad(rules.swish)(x))
    np.testing.assert_allclose(tape.gradient(again, x), tape.gradient(kept, x), 1e-6)
