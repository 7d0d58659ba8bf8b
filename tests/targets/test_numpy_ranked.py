"""Rules over named axes in NumPy: values, gradients, shapes, and what is refused."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import black
import numpy as np
import pytest

from gradspec.ir.rule import Rule
from tests.targets.ranked_numpy import (
    arguments,
    batchings,
    emitted,
    expected,
    slope,
    statics,
)

RULES = """
rule softmax(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i] - max(x[j] for j))
    y[i] = e[i] / sum(e[j] for j)
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))

rule linear(x[..., k], w[m, k], b[m]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l) + b[i]

rule layer_norm(x[..., n], g[n], b[n], eps: static = 1e-5) -> y[..., n]:
    mu = mean(x[i] for i)
    r = 1 / sqrt(mean((x[i] - mu)**2 for i) + eps)
    y[i] = (x[i] - mu) * r * g[i] + b[i]

rule cross_entropy(x[..., n], t: int) -> loss:
    loss = logsumexp(x[j] for j) - x[t]

rule attention(q[..., n, d], k[..., m, d], v[..., m, e]) -> o[..., n, e]:
    s[i, j] = sum(q[i, c] * k[j, c] for c) / sqrt(d)
    p[i, j] = exp(s[i, j] - logsumexp(s[i, l] for l))
    o[i, f] = sum(p[i, j] * v[j, f] for j)

rule causal(p[..., n, n], v[..., n, d]) -> y[..., n, d]:
    y[i, k] = sum(p[i, j] * v[j, k] for j if j <= i)

rule prefix(x[..., n]) -> (y[..., n], z[..., n], w[..., n]):
    y[i] = sum(x[j] for j if j <= i)
    z[i] = sum(x[j] for j if j > i)
    w[i] = sum(x[j] for j if i > j)

rule distances(x[..., n, d], z[..., m, d]) -> y[..., n, m]:
    y[i, j] = sum((x[i, k] - z[j, k])**2 for k)

rule bilinear(x[..., n], a[k, n, m], z[..., m]) -> y[..., k]:
    y[i] = sum(x[p] * a[i, p, q] * z[q] for p, q)

rule variation(x[..., n]) -> y:
    y = sum((x[i + 1] - x[i])**2 for i if i < n - 1)

rule scaled(x[..., n], s) -> y[..., n]:
    y[i] = s * x[i]

rule mean_square(x[n, m], t[n, m]: nograd) -> loss[]:
    loss = mean((x[i, j] - t[i, j])**2 for i, j)

rule reversed_row(x[..., n]) -> y[..., n]:
    y[i] = x[n - 1 - i] * i

rule columns(x[..., n, m]) -> y[..., m, n]:
    y[j, i] = exp(x[i, j]) / sum(exp(x[k, j]) for k)

rule gather_rows(x[..., n, m], t[..., n]: int) -> y[..., n]:
    y[i] = x[i, t[i]]

rule chosen_rows(x[..., n, d], t[..., n]: int) -> y[..., n, d]:
    y[i, k] = x[t[i], k]

rule embedding(w[n, d], t[..., m]: int) -> y[..., m, d]:
    y[i, k] = w[t[i], k]

rule lookup(w[v, d], t: int) -> y[..., d]:
    y[k] = w[t, k]

rule several(x[..., n], w[n, n]) -> (y[..., n], s, q[..., n, n]):
    y[i] = sum(w[i, j] * x[j] for j)
    s = sum(x[i] * x[i] for i)
    q[i, j] = x[i] * w[i, j]

rule extremes(x[..., n, m]) -> (a, b[..., n], c[..., m], d):
    a = max(x[i, j] for i, j)
    b[i] = min(x[i, j] for j)
    c[j] = logsumexp(x[i, j] for i)
    d = prod(x[i, j] for i, j)

rule nested(x[..., n], z[..., m]) -> y:
    y = sum(log(sum(exp(x[i] * z[j]) for j)) for i)

rule fixed(x[..., 3], m[2, 2]) -> y[..., 2]:
    y[i] = x[0] * m[i, 1] + x[2] * m[0, i]

rule squares(a[..., n, n]) -> (t, d[..., n], s[..., n, n]):
    t = sum(a[i, i] for i)
    d[i] = a[i, i]
    s[i, j] = (a[i, j] + a[j, i]) / 2

rule shifted(x[..., n]) -> y[..., n]:
    y[i] = (x[i + 2] if i + 2 < n else 0) + (x[i - 1] if i >= 1 else x[0])

rule pairs(x[..., 4]) -> y[..., 2]:
    y[i] = x[2 * i] * x[2 * i + 1]

rule quadratic(x[..., n], mu[n], p[n, n]) -> y:
    y = sum((x[i] - mu[i]) * p[i, j] * (x[j] - mu[j]) for i, j)

rule product4(a[n, n], b[m, m]) -> c[n, m, n, m]:
    c[i, j, k, l] = a[i, k] * b[j, l]

rule masked(x[..., n], keep[..., n]: bool) -> y[..., n]:
    y[i] = x[i] if keep[i] else -x[i]**2

rule window(x[..., n], w[k], m: static int) -> y[..., m]:
    y[i] = sum(x[i + j] * w[j] for j)

rule first_axis(x[n], z[n, m]) -> y[m]:
    y[j] = sum(x[i] * z[i, j] for i)

rule averaged(x[..., n], b: static = 0.5) -> (y, z):
    y = mean(x[i]**2 for i if i > 0 or n < 2)
    z = log(mean(exp(x[i] / b) for i))
"""

NAMES = [
    line.split("(")[0].split()[1] for line in RULES.splitlines() if line[:4] == "rule"
]


@cache
def _module() -> tuple[dict[str, Rule], ModuleType, str]:
    rules, module, text = emitted(RULES)
    return {rule.name: rule for rule in rules}, module, text


def _sizes(rule: Rule, choice: int) -> dict[str, int]:
    axes = [a for v in (*rule.inputs, *rule.outputs) for a in v.shape.axes]
    names = list(dict.fromkeys(a for a in axes if isinstance(a, str)))
    sizes = {a: 1 if choice else 2 + p % 3 for p, a in enumerate(names)}
    if any(i.name in sizes for i in rule.static_inputs):
        sizes["m"], sizes["n"] = 2, sizes["k"] + 1
    return sizes


@pytest.mark.parametrize("choice", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients(name: str, choice: int) -> None:
    rules, module, _ = _module()
    rule = rules[name]
    sizes = _sizes(rule, choice)
    extra = statics(rule, sizes)
    for number, batch in enumerate(batchings(rule)):
        rng = np.random.default_rng(zlib.crc32(name.encode()) + number)
        given = arguments(rule, sizes, rng, batch)

        def call(**values: Any) -> Any:
            return getattr(module, name)(**values, **extra)

        result, pullback = getattr(module, f"{name}_vjp")(**given, **extra)
        outputs = result if isinstance(result, tuple) else (result,)
        for found, wanted in zip(outputs, expected(rule, sizes, given), strict=True):
            np.testing.assert_allclose(
                *np.broadcast_arrays(found, wanted), rtol=1e-11, atol=1e-15
            )
        weights = [rng.normal(size=np.shape(output)) for output in outputs]
        gradients = pullback(*weights)
        for i, gradient in zip(rule.tensor_inputs, gradients, strict=True):
            if not i.takes_gradient:
                assert gradient is None
                continue
            assert np.shape(gradient) == given[i.name].shape
            wanted = slope(call, given, i.name, weights)
            np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("choice", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_tangents_are_the_transpose_of_gradients(name: str, choice: int) -> None:
    rules, module, _ = _module()
    rule = rules[name]
    sizes = _sizes(rule, choice)
    extra = statics(rule, sizes)
    for number, batch in enumerate(batchings(rule)):
        rng = np.random.default_rng(zlib.crc32(name.encode()) + number)
        given = arguments(rule, sizes, rng, batch)
        result, pullback = getattr(module, f"{name}_vjp")(**given, **extra)
        outputs = result if isinstance(result, tuple) else (result,)
        weights = [rng.normal(size=np.shape(output)) for output in outputs]
        gradients = pullback(*weights)
        moves = [
            rng.normal(size=np.shape(v)) if i.takes_gradient else None
            for i, v in zip(rule.tensor_inputs, given.values(), strict=True)
        ]
        values, found = getattr(module, f"{name}_jvp")(
            tuple(given.values()), tuple(moves), **extra
        )
        tangents = found if isinstance(found, tuple) else (found,)
        values = values if isinstance(values, tuple) else (values,)
        for value, tangent, output in zip(values, tangents, outputs, strict=True):
            np.testing.assert_allclose(value, output, rtol=1e-12)
            assert np.shape(tangent) == np.shape(output)
        forth = sum(np.sum(w * t) for w, t in zip(weights, tangents, strict=True))
        back = sum(
            np.sum(g * m)
            for g, m in zip(gradients, moves, strict=True)
            if m is not None
        )
        np.testing.assert_allclose(forth, back, rtol=1e-10, atol=1e-12)


def test_tangents_do_not_share_memory_with_what_was_given() -> None:
    rule = "rule turned(a[..., n, m]) -> b[..., m, n]:\n b[i, j] = a[j, i]\n"
    a_dot = np.ones((2, 3))
    _, b_dot = emitted(rule)[1].turned_jvp((np.zeros((2, 3)),), (a_dot,))
    assert not np.shares_memory(a_dot, b_dot)


def test_an_input_that_does_not_move_has_no_tangent() -> None:
    module = _module()[1]
    x, w, b = np.ones((4, 2)), np.ones((3, 2)), np.ones(3)
    y, y_dot = module.linear_jvp((x, w, b), (None, None, 2 * b))
    np.testing.assert_array_equal(y, np.full((4, 3), 3.0))
    np.testing.assert_array_equal(y_dot, np.full((4, 3), 2.0))


def test_the_text_is_in_blacks_form() -> None:
    text = _module()[2]
    assert black.format_str(text, mode=black.Mode()) == text


# --- shapes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shapes", "message"),
    [
        ("linear", [(2, 5), (3, 4), (3,)], r"linear: w must have the shape \[m, k\]"),
        ("linear", [(5,), (3, 5, 1), (3,)], r"with k = 5, not \(3, 5, 1\)"),
        ("linear", [(5,), (3, 5), (2, 3)], r"linear: b must have the shape \[m\]"),
        ("linear", [(), (3, 5), (3,)], r"x must have the shape \[..., k\], not \(\)"),
        (
            "fixed",
            [(4,), (2, 2)],
            r"fixed: x must have the shape \[..., 3\], not \(4,\)",
        ),
        ("squares", [(2, 3)], r"a must have the shape \[..., n, n\] with n = 2"),
        ("scaled", [(2, 3), (4,)], "broadcast"),
    ],
)
def test_shapes_that_contradict_the_declaration(
    name: str, shapes: list[tuple[int, ...]], message: str
) -> None:
    module = _module()[1]
    for suffix in ("", "_vjp"):
        with pytest.raises(ValueError, match=message):
            getattr(module, name + suffix)(*(np.ones(shape) for shape in shapes))


def test_a_static_that_is_a_size_is_checked_too() -> None:
    module = _module()[1]
    assert module.window(np.ones(4), np.ones(2), m=3).shape == (3,)
    with pytest.raises(IndexError, match="axis of size 4"):
        module.window(np.ones(4), np.ones(2), m=4)


@pytest.mark.parametrize("t", [-1, 3])
def test_a_position_outside_is_an_error(t: int) -> None:
    module = _module()[1]
    with pytest.raises(IndexError, match="axis of size 3"):
        module.cross_entropy(np.ones(3), np.array(t))
    with pytest.raises(IndexError, match="axis of size 3"):
        module.embedding(np.ones((3, 2)), np.array([0, t]))


# --- arrays ----------------------------------------------------------------------------


def test_results_do_not_share_memory_with_what_was_given() -> None:
    module = _module()[1]
    a = np.ones((2, 2))
    for value in (*module.squares(a), module.columns(a)):
        assert not np.shares_memory(a, value)
    _, pullback = module.scaled_vjp(np.ones(3), 1.0)
    dy = np.ones(3)
    assert not any(np.shares_memory(dy, gradient) for gradient in pullback(dy))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_types_are_those_of_the_inputs(dtype: type) -> None:
    module = _module()[1]
    x, w, b = np.ones((4, 2), dtype), np.ones((3, 2), dtype), np.ones(3, dtype)
    y, pullback = module.linear_vjp(x, w, b)
    assert y.dtype == dtype
    assert all(gradient.dtype == dtype for gradient in pullback(y))


def test_half_sums_are_computed_in_float32() -> None:
    x = np.full(4096, 1.0, np.float16)
    loss = _module()[1].mean_square(x[None], np.zeros_like(x[None]))
    assert loss == 1.0


def test_strided_and_transposed_arrays() -> None:
    module = _module()[1]
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(6, 8))[::2, ::2], rng.normal(size=(4, 3)).T
    b = rng.normal(size=3)
    y, pullback = module.linear_vjp(x, w, b)
    np.testing.assert_allclose(y, x @ w.T + b)
    dy = rng.normal(size=(3, 3)).T
    dx, dw, db = pullback(dy)
    np.testing.assert_allclose(dx, dy @ w)
    np.testing.assert_allclose(dw, dy.T @ x)
    np.testing.assert_allclose(db, dy.sum(axis=0))


def test_empty_batches() -> None:
    y, pullback = _module()[1].linear_vjp(np.ones((0, 2)), np.ones((3, 2)), np.ones(3))
    assert y.shape == (0, 3)
    dx, dw, db = pullback(y)
    assert (dx.shape, dw.shape, db.shape) == ((0, 2), (3, 2), (3,))
    assert not dw.any()


def test_empty_axes() -> None:
    module = _module()[1]
    y, pullback = module.linear_vjp(np.ones((2, 0)), np.ones((3, 0)), np.ones(3))
    np.testing.assert_array_equal(y, np.ones((2, 3)))
    assert [g.shape for g in pullback(y)] == [(2, 0), (3, 0), (3,)]
    y, pullback = module.embedding_vjp(np.ones((3, 2)), np.zeros((2, 0), int))
    assert y.shape == (2, 0, 2)
    np.testing.assert_array_equal(pullback(y)[0], np.zeros((3, 2)))
    assert module.softmax(np.ones((2, 0))).shape == (2, 0)


def test_masked_entries_of_a_softmax() -> None:
    y, pullback = _module()[1].softmax_vjp(np.array([0.0, -np.inf, 0.0]))
    np.testing.assert_array_equal(y, [0.5, 0.0, 0.5])
    assert pullback(np.array([1.0, 5.0, 2.0]))[0][1] == 0.0


def test_logsumexp_of_infinities() -> None:
    loss = _module()[1].cross_entropy
    assert loss(np.array([-np.inf, 1000.0]), 1) == 0.0
    assert np.isnan(loss(np.array([np.nan, 1.0]), 1))


def test_numbers_broadcast_as_upstream() -> None:
    _, pullback = _module()[1].squares_vjp(np.ones((2, 2)))
    np.testing.assert_allclose(pullback(1.0, 0.0, 0.0)[0], np.eye(2))


def test_the_shipped_rules_are_emitted() -> None:
    folder = Path(__file__).parents[2] / "rules" / "tensor"
    for path in sorted(folder.glob("*.grad")):
        text = path.read_text(encoding="utf-8")
        rules, module, source = emitted(text)
        assert all(hasattr(module, f"{rule.name}_vjp") for rule in rules)
        assert source.count("_vjp(") >= text.count("\nrule ")


def test_a_gradient_that_is_zero() -> None:
    _, module, _ = emitted("rule f(x[..., n], a) -> y[..., n]:\n y[i] = 0 * x[i] + a\n")
    _, pullback = module.f_vjp(np.ones((2, 3)), np.float32(1.0))
    dx, da = pullback(np.ones((2, 3)))
    np.testing.assert_array_equal(dx, np.zeros((2, 3)))
    assert da == 6.0


def test_what_a_static_leaves_out_has_gradient_zero() -> None:
    _, module, _ = emitted(
        "rule f(x[..., n], k: static int = 2) -> y[..., n]:\n y[i] = x[i]**k\n"
    )
    x = np.arange(3.0)
    np.testing.assert_array_equal(module.f_vjp(x, k=0)[1](1.0)[0], np.zeros(3))
    np.testing.assert_array_equal(module.f_vjp(x, k=3)[1](1.0)[0], 3.0 * x**2)
