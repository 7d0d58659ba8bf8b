"""The text of JAX modules: formatted, minimal, the same every time."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import black
import pytest

from gradspec.plan.plan import ModulePlan
from gradspec.targets import jax as target
from tests.targets.emission import APART, RULES, jax_text, planned, planned_apart


@pytest.mark.parametrize("write", [target.module, target.traced_module])
def test_black_would_change_nothing(write: Callable[[ModulePlan], str]) -> None:
    text = write(planned(RULES))
    assert black.format_str(text, mode=black.Mode()) == text


@pytest.mark.xdist_group(APART)
def test_the_same_text_every_time() -> None:
    assert target.module(planned_apart(RULES)) == target.module(planned(RULES))


def test_a_simple_rule_has_nothing_that_it_does_not_need() -> None:
    text = jax_text("rule negative(x) -> y:\n    y = -x\n")
    helpers = ("_promote", "_tangent", "_widen", "functools", "symbolic_zeros", "_like")
    assert [name for name in helpers if name in text] == []


def test_a_core_reads_as_written_by_hand() -> None:
    text = jax_text("rule square(x) -> y:\n    y = x**2\n")
    start = text.index("@jax.custom_jvp")
    assert text[start : text.index("def square")].rstrip() == inspect.cleandoc(
        """
        @jax.custom_jvp
        def _square(x):
            return x * x


        def _square_jvp(primals, tangents):
            (x,) = primals
            (x_dot,) = tangents
            y = _square(*primals)
            y_dot = 2.0 * x_dot * x
            return y, y_dot


        _square.defjvp(_square_jvp)


        @_frugal(1)
        def _square_again(x):
            return _narrow(_square(_widen(x)), x.dtype)
        """
    )


def test_an_input_that_stands_still_costs_nothing() -> None:
    text = jax_text("rule product(x, y) -> z:\n    z = x * y\n")
    start = text.index("def _product_jvp")
    assert text[start : text.index("def product")].rstrip() == inspect.cleandoc(
        """
        def _product_jvp(primals, tangents):
            x, y = primals
            x_dot, y_dot = tangents
            z = _product(*primals)
            z_dot = None
            if not _is_absent(x_dot):
                z_dot = x_dot * y
            if not _is_absent(y_dot):
                z_dot = _plus(z_dot, y_dot * x)
            return z, _tangent(z_dot, z)


        _product.defjvp(_product_jvp, symbolic_zeros=True)


        @_frugal(2)
        def _product_again(x, y):
            return _narrow(_product(_widen(x), _widen(y)), x.dtype)
        """
    )


@pytest.mark.parametrize(
    ("gradient", "way"),
    [
        ("-2 * dy", "_lasting(1)"),
        ("dy * x if x > 0 else 0", "_lasting(1)"),
        ("clip(dy, -1, 1)", "jax.custom_vjp"),
        ("dy * dy", "jax.custom_vjp"),
        ("2", "jax.custom_vjp"),
    ],
)
def test_the_gradient_decides(gradient: str, way: str) -> None:
    text = jax_text(
        f'rule r(x) -> y:\n    y = x\n    override dx = {gradient} because "a test"\n'
    )
    other = {"_lasting(1)", "jax.custom_jvp", "jax.custom_vjp"} - {way}
    assert f"@{way}\n" in text
    assert not any(f"@{name}\n" in text for name in other)


def test_names_of_the_text_give_way_to_the_authors() -> None:
    text = jax_text(
        "rule primals(tangents, backward) -> residuals:\n"
        "    residuals = tangents * backward\n"
    )
    assert "def _primals_jvp(primals, tangents2):" in text
    assert "tangents_dot, backward_dot = tangents2" in text
