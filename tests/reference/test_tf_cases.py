"""The published reference cases R1 to R14 on TensorFlow, from the tutorial's rules."""

from __future__ import annotations

import re

import pytest

import gradspec
from tests.reference.conftest import TUTORIAL, tutorial
from tests.reference.test_torch_cases import PUBLISHED

tf = pytest.importorskip("tensorflow")


def test_r1_log1pexp_at_100() -> None:
    x = tf.Variable(100.0)
    with tf.GradientTape() as tape:
        y = tutorial("log1pexp", "tf").log1pexp(x)
    assert (float(y), float(tape.gradient(y, x))) == (100.0, 1.0)


def test_r2_square_composed() -> None:
    square = tutorial("square", "tf").square
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        first = square(x)
        second = square(first)
        third = square(second)
    found = (first, second, third, tape.gradient(third, x))
    assert [float(v) for v in found] == [4.0, 16.0, 256.0, 1024.0]
    with pytest.raises(ValueError, match=r"square.*x"):
        square(tf.ones([3]))


def test_r3_trace(capfd: pytest.CaptureFixture[str]) -> None:
    module = gradspec.load(TUTORIAL / "square.grad", target="tf", trace=True)
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = module.square(module.square(module.square(x)))
    tape.gradient(y, x)
    told = capfd.readouterr()
    lines = (told.out + told.err).splitlines()
    numbers = [n for n in map(_numbers, lines) if n]
    forward = [[2.0, 4.0], [4.0, 16.0], [16.0, 256.0]]
    backward = [[1.0, 32.0, 32.0], [32.0, 8.0, 256.0], [256.0, 4.0, 1024.0]]
    assert [n[-2:] for n in numbers[:3]] == forward
    assert [n[-3:] for n in numbers[3:]] == backward


def test_r6_training() -> None:
    """L = (y - 1)²/2 by Keras' Adam, learning rate 0.1."""
    sign_step = tutorial("sign_step", "tf").sign_step
    x = tf.Variable(-1.0)
    adam = tf.keras.optimizers.Adam(learning_rate=0.1)
    told = []
    for _ in range(100):
        with tf.GradientTape() as tape:
            loss = (sign_step(x) - 1.0) ** 2 / 2
        gradient = tape.gradient(loss, x)
        adam.apply_gradients([(gradient, x)])
        told.append((float(loss), float(gradient), float(x)))
    assert told[0][:2] == (2.0, pytest.approx(-0.393223882, rel=1e-6))
    assert [t[2] for t in told[::10]] == pytest.approx(PUBLISHED, abs=3e-4)
    assert all(t[:2] == (0.0, 0.0) for t in told[10::10])


def test_r10_no_gradient_is_none() -> None:
    x, t, weight = tf.Variable(2.0), tf.Variable(1.0), tf.Variable(0.5)
    with tf.GradientTape() as tape:
        loss = tutorial("labels", "tf").weighted_error(x, t, weight)
    found = tape.gradient(loss, (x, t, weight))
    assert float(found[0]) == 1.0
    assert found[1:] == (None, None)


def test_r11_variables_learn() -> None:
    affine = tutorial("affine", "tf").affine
    weight, bias = tf.Variable(0.0), tf.Variable(0.0)
    adam = tf.keras.optimizers.Adam(learning_rate=0.05)
    x = tf.linspace(-1.0, 1.0, 32)

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            error = affine(x, weight, bias) - (3.0 * x - 2.0)
            loss = tf.reduce_mean(tf.square(error))
        adam.apply_gradients(
            zip(tape.gradient(loss, (weight, bias)), (weight, bias), strict=True)
        )

    for _ in range(400):
        step()
    assert (float(weight), float(bias)) == pytest.approx((3.0, -2.0), abs=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_r12_vjp_sums_over_outputs_in_shape_and_dtype(dtype: str) -> None:
    x = tf.cast(tf.random.stateless_normal([3, 4], (1, 2), dtype=tf.float64), dtype)
    y = tf.cast(tf.random.stateless_normal([4], (3, 4), dtype=tf.float64), dtype)
    with tf.GradientTape() as tape:
        tape.watch((x, y))
        z, w = tutorial("complex_op", "tf").complex_op(x, y)
    dz, dw = tf.ones_like(z) * 0.5, tf.ones_like(w) * 0.25
    dx, dy = tape.gradient((z, w), (x, y), output_gradients=(dz, dw))
    wide = [tf.cast(v, tf.float64) for v in (x, y, dz, dw)]
    expected_x = wide[2] * (wide[1] + tf.cos(wide[0]))
    expected_y = tf.reduce_sum(wide[2] * wide[0], 0) + wide[3] * 2 * wide[1]
    assert (dx.shape, dx.dtype, dy.shape, dy.dtype) == (x.shape, dtype, y.shape, dtype)
    assert (z.shape, w.shape) == ((3, 4), (4,))
    room = {"float16": 4e-3, "bfloat16": 3e-2}.get(dtype, 1e-5)
    for got, expected in ((dx, expected_x), (dy, expected_y)):
        error = tf.abs(tf.cast(got, tf.float64) - expected)
        assert float(tf.reduce_max(error)) < room * 4


def test_r13_second_derivative() -> None:
    x = tf.Variable(0.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tutorial("log1pexp", "tf").log1pexp(x)
        first = inner.gradient(y, x)
    assert float(outer.gradient(first, x)) == pytest.approx(0.2350037, rel=1e-6)


def test_r14_recomputing_gives_the_same_gradient() -> None:
    module = tutorial("checkpoint", "tf")
    gradients = []
    for name in ("gate_recomputed", "gate_saved"):
        x = tf.linspace(-2.0, 2.0, 1000)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(module, name)(x)
        gradients.append(tape.gradient(y, x))
    assert float(tf.reduce_max(tf.abs(gradients[0] - gradients[1]))) < 1e-6


def _numbers(line: str) -> list[float]:
    text = re.sub(r"[A-Za-z_]\w*", " ", line)
    return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]
