"""The text of JAX modules: the formulas and nothing else, the same every time."""

from __future__ import annotations

import inspect

import pytest

from tests.targets.emission import jax_text

SUM = """
rule scores(x[..., n], g[n]) -> (y[..., n], at: int):
    y[i] = g[i] * exp(x[i])
    at = 1 if x[0] > 0 else 0
"""


def _of(text: str, start: str, end: str) -> str:
    return text[text.index(start) : text.index(end)].rstrip()


def test_a_simple_rule_has_nothing_that_it_does_not_need() -> None:
    text = jax_text("rule negative(x) -> y:\n    y = -x\n")
    assert "from ._gradspec import Array, floats, round_to, slopes\n" in text
    absent = ("import functools", "jax.numpy", "symbolic_zeros", "_special", "_axes")
    assert [name for name in absent if name in text] == []
    assert len(text.splitlines()) <= 40


def test_a_core_reads_as_written_by_hand() -> None:
    text = jax_text("rule square(x) -> y:\n    y = x**2\n")
    assert _of(text, "@jax.custom_jvp", "def square") == inspect.cleandoc(
        """
        @jax.custom_jvp
        def _square(x: Array) -> Any:
            return x * x


        @slopes(_square)
        def _square_slopes(x: Array, _y: Array) -> Any:
            return 2.0 * x
        """
    )


def test_several_inputs_have_a_slope_each() -> None:
    text = jax_text("rule product(x, y) -> z:\n    z = x * y\n")
    assert _of(text, "@slopes", "def product") == inspect.cleandoc(
        """
        @slopes(_product)
        def _product_slopes(x: Array, y: Array, _z: Array) -> Any:
            return y, x
        """
    )


def test_with_axes_the_backward_pass_is_transposed() -> None:
    text = jax_text(SUM)
    assert _of(text, "@pullback", "def scores") == inspect.cleandoc(
        """
        @pullback(_scores, constant=(1,))
        def _scores_pullback(x: Array, _g: Array, y: Array, _at: Array, dy: Array) -> Any:
            dx = dy * y
            dg = batch_sum(dy * jnp.exp(x), 1)
            return dx, dg
        """
    )


@pytest.mark.parametrize(
    ("gradient", "way"),
    [
        ("-2 * dy", "lasting"),
        ("dy * x if x > 0 else 0", "lasting"),
        ("clip(dy, -1, 1)", "jax.custom_vjp"),
        ("dy * dy", "jax.custom_vjp"),
        ("2", "jax.custom_vjp"),
    ],
)
def test_the_gradient_decides(gradient: str, way: str) -> None:
    text = jax_text(
        f'rule r(x) -> y:\n    y = x\n    override dx = {gradient} because "a test"\n'
    )
    other = {"lasting", "jax.custom_jvp", "jax.custom_vjp"} - {way}
    assert f"@{way}\n" in text
    assert not any(f"@{name}\n" in text for name in other)


def test_names_of_the_text_give_way_to_the_authors() -> None:
    text = jax_text(
        "rule primals(tangents, floats) -> dtype:\n    dtype = tangents * floats\n"
    )
    assert "dtype_, tangents, floats = floats_(" in text


def test_builtins_may_be_names_of_inputs() -> None:
    text = jax_text(
        "rule f(float, n: static int = 2, len: static = 1.0) -> y:\n"
        "    y = len * float**n\n"
    )
    assert "whole(n), number(len))" in text
