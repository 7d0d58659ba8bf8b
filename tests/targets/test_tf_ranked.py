"""Rules over named axes in TensorFlow, against NumPy by differences and PyTorch by
derivatives of both orders; in graphs that know no shape.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import tf_module, torch_module
from tests.targets.ranked_rules import RULES

pytestmark = [pytest.mark.tf, pytest.mark.torch]
tf = pytest.importorskip("tensorflow")
torch = pytest.importorskip("torch")

Shapes = tuple[tuple[int, ...], ...]

LABELS = np.array([0, 2])

CASES: list[tuple[str, Shapes]] = [
    ("softmax", ((4,),)),
    ("softmax", ((2, 1, 3),)),
    ("log_softmax", ((2, 3),)),
    ("linear", ((3,), (4, 3), (4,))),
    ("linear", ((2, 5, 3), (4, 3), (4,))),
    ("layer_norm", ((2, 3), (3,), (3,))),
    ("cross_entropy", ((2, 3),)),
    ("cross_entropy", ((4, 1, 3),)),
    ("cross_entropy", ((3,),)),
    ("attention", ((2, 3), (4, 3), (4, 5))),
    ("attention", ((2, 1, 2, 3), (3, 4, 3), (1, 4, 1))),
    ("trace", ((2, 3, 3),)),
    ("outer", ((4, 1, 2), (3, 1))),
    ("mse", ((3,),)),
    ("scaled_rows", ((2, 3), (2,))),
    ("scaled_rows", ((4, 1, 3), (2,))),
    ("third", ((2, 4),)),
    ("prefix", ((2, 3),)),
    ("total", ((2, 3),)),
    ("positions", ((2, 3),)),
    ("two", ((2, 3), (3,))),
    ("smoothness", ((2, 3),)),
    ("embedding", ((3, 4),)),
    ("conv1d", ((2, 5), (3,))),
    ("largest", ((2, 3),)),
    ("window", ((3, 2),)),
]


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


@pytest.fixture(scope="module")
def others() -> ModuleType:
    return torch_module(RULES)


def _inputs(shapes: Shapes) -> list[Any]:
    made = np.random.default_rng(sum(map(sum, shapes)))
    return [made.normal(size=shape) for shape in shapes]


def _rule(rules: ModuleType, name: str) -> Callable[..., Any]:
    rule = getattr(rules, name)
    if name in ("cross_entropy", "embedding"):
        labels = tf.constant(LABELS) if "tf" in rules.__name__ else torch.tensor(LABELS)
        return lambda x: rule(x, labels)
    if name == "mse":
        return lambda x: rule(x, 0.3 * x.detach() if hasattr(x, "detach") else _aim(x))
    return rule  # type: ignore[no-any-return]


def _aim(x: Any) -> Any:
    return 0.3 * tf.stop_gradient(x)


def _tuple(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _in_torch(
    rule: Callable[..., Any], arrays: list[Any]
) -> tuple[list[Any], list[Any], list[Any]]:
    """Values, gradients, and gradients of what depends on the gradients."""
    inputs = [torch.tensor(a, requires_grad=True) for a in arrays]
    outputs = _tuple(rule(*inputs))
    total = sum(torch.sin(o * (k + 1)).sum() for k, o in enumerate(outputs))
    first = torch.autograd.grad(total, inputs, create_graph=True)
    second = torch.autograd.grad(sum(torch.sin(g).sum() for g in first), inputs)
    return tuple([t.detach().numpy() for t in ts] for ts in (outputs, first, second))  # type: ignore[return-value]


def _in_tf(rule: Callable[..., Any]) -> Callable[..., Any]:
    def both(*inputs: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(inputs)
            with tf.GradientTape() as inner:
                inner.watch(inputs)
                outputs = _tuple(rule(*inputs))
                total = sum(
                    tf.reduce_sum(tf.sin(o * (k + 1))) for k, o in enumerate(outputs)
                )
            first = inner.gradient(total, inputs)
            shape = sum(tf.reduce_sum(tf.sin(g)) for g in first)
        return outputs, first, outer.gradient(shape, inputs)

    return both


@pytest.mark.parametrize(("name", "shapes"), CASES)
def test_derivatives_of_both_orders_are_those_in_torch(
    rules: ModuleType, others: ModuleType, name: str, shapes: Shapes
) -> None:
    arrays = _inputs(shapes)
    known = _in_torch(_rule(others, name), arrays)
    eager = _in_tf(_rule(rules, name))
    signature = [tf.TensorSpec(None, tf.float64) for _ in arrays]
    for way in (eager, tf.function(eager, input_signature=signature)):
        found = way(*map(tf.constant, arrays))
        for ours, theirs in zip(found, known, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert tuple(one.shape) == other.shape
                np.testing.assert_allclose(one.numpy(), other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "shapes"), CASES[:15:2])
def test_compiled_by_xla(rules: ModuleType, name: str, shapes: Shapes) -> None:
    both, inputs = _in_tf(_rule(rules, name)), list(map(tf.constant, _inputs(shapes)))
    for ours, theirs in zip(
        tf.function(both, jit_compile=True)(*inputs), both(*inputs), strict=True
    ):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9)


def test_an_unknown_number_of_rows(rules: ModuleType) -> None:
    wanted = [tf.TensorSpec((None, 3), tf.float32)]
    graph = tf.function(rules.softmax, input_signature=wanted)
    for rows in (1, 4):
        np.testing.assert_allclose(
            graph(tf.ones((rows, 3))).numpy(), np.full((rows, 3), 1 / 3), rtol=1e-6
        )


def test_half_precision_is_rounded_once(rules: ModuleType) -> None:
    x = tf.constant(_inputs(((2, 3),))[0], tf.bfloat16)
    exact = rules.softmax(tf.cast(x, tf.float64)).numpy()
    found = rules.softmax(x)
    assert found.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(found, tf.float64).numpy(), exact, rtol=2**-8)


def test_labels_of_either_integer_type(rules: ModuleType) -> None:
    x = tf.constant(_inputs(((2, 3),))[0])
    narrow, wide = (
        rules.cross_entropy(x, tf.constant(LABELS, dtype))
        for dtype in (tf.int32, tf.int64)
    )
    np.testing.assert_array_equal(narrow.numpy(), wide.numpy())


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_outside_is_an_error(rules: ModuleType, label: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        rules.cross_entropy(tf.ones((2, 3)), tf.constant([0, label]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: m.linear(tf.ones((2, 3)), tf.ones((4, 5)), tf.ones(4)),
            r"linear: w must have the shape \[m, k\] with k = 3, not \(4, 5\)",
        ),
        (
            lambda m: m.softmax(tf.constant(1.0)),
            r"softmax: x must have the shape \[\.\.\., n\], not \(\)",
        ),
        (
            lambda m: m.mse(tf.ones((2, 3)), tf.ones(3)),
            r"mse: x must have the shape \[n\], not \(2, 3\)",
        ),
        (
            lambda m: m.window(tf.ones((2, 3))),
            r"window: x must have the shape \[\.\.\., k\] with k = 2, not \(2, 3\)",
        ),
        (
            lambda m: m.third(tf.ones((2, 3))),
            r"third: x must have the shape \[\.\.\., 4\], not \(2, 3\)",
        ),
    ],
)
def test_shapes_other_than_declared_are_refused(
    rules: ModuleType, call: Callable[[ModuleType], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(rules)


def test_shapes_that_a_graph_learns_late_are_refused_then(rules: ModuleType) -> None:
    signature = [tf.TensorSpec(None, tf.float32)] * 2
    graph = tf.function(rules.two, input_signature=signature)
    s, _ = graph(tf.ones((2, 3)), tf.ones(3))
    assert s.shape == (2,)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"two: w must have"):
        graph(tf.ones((2, 1)), tf.ones(3))
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph(tf.ones((2, 3)), tf.ones((2, 3)))


def test_masked_positions_have_no_probability(rules: ModuleType) -> None:
    x = tf.constant([0.0, -np.inf, 1.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = rules.softmax(x)[0]
    dx = tape.gradient(y, x).numpy()
    assert rules.softmax(x).numpy()[1] == 0 and dx[1] == 0 and np.isfinite(dx).all()
