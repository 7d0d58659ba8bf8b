"""The text of TensorFlow modules: formatted, minimal, the same every time."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable

import black
import pytest

from gradspec.plan.plan import ModulePlan
from gradspec.targets import tf as target
from tests.targets.emission import APART, RULES, planned, planned_apart, tf_text

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("write", [target.module, target.traced_module])
def test_black_would_change_nothing(write: Callable[[ModulePlan], str]) -> None:
    text = write(planned(RULES))
    assert black.format_str(text, mode=black.Mode()) == text


@pytest.mark.xdist_group(APART)
def test_the_same_text_every_time() -> None:
    assert target.module(planned_apart(RULES)) == target.module(planned(RULES))


def test_a_simple_rule_has_nothing_that_it_does_not_need() -> None:
    text = tf_text("rule negative(x) -> y:\n    y = -x\n")
    helpers = ("_promote", "_unbroadcast", "_widen", "functools", "tf.function")
    assert [name for name in helpers if name in text] == []


def test_a_core_reads_as_written_by_hand() -> None:
    text = tf_text("rule product(x, y) -> z:\n    z = x * y\n")
    start = text.index("@_rule")
    assert text[start : text.index("@_unconverted")].rstrip() == inspect.cleandoc(
        """
        @_rule
        def _product(x, y):
            dtype = x.dtype
            kept = x, y
            x, y = _widen(x, y)
            z = x * y

            def backward(dz):
                x, y, dz = _widen(*kept, dz)
                dx = _unbroadcast(dz * y, x)
                dy = _unbroadcast(dz * x, y)
                return tf.cast(dx, dtype), tf.cast(dy, dtype)

            return tf.cast(z, dtype), backward
        """
    )


def test_statics_are_closed_over_once_for_each_value() -> None:
    text = tf_text("rule power(x, k: static = 2.0) -> y:\n    y = k * sin(x)\n")
    start = text.index("@functools.lru_cache")
    assert text[start : text.index("@tf.keras.utils")].rstrip() == inspect.cleandoc(
        """
        @functools.lru_cache
        def _power(k):
            @_rule
            def power(x):
                dtype = x.dtype
                kept = (x,)
                (x,) = _widen(x)
                y = k * tf.sin(x)

                def backward(dy):
                    x, dy = _widen(*kept, dy)
                    return tf.cast(dy * k * tf.cos(x), dtype)

                return tf.cast(y, dtype), backward

            return power
        """
    )


def test_what_is_imported_is_used() -> None:
    text = tf_text(RULES)
    tree = ast.parse(text)
    imports = [n for n in tree.body if isinstance(n, ast.Import)]
    names = [alias.asname or alias.name for n in imports for alias in n.names]
    assert "tf" in names
    assert all(f"{name}." in text.split("import tensorflow as tf")[1] for name in names)


def test_names_that_would_clash_get_others() -> None:
    text = tf_text("rule widen(x) -> y:\n    y = exp(x)\n")
    assert "def _widen2(x):" in text
    assert "return _widen2(x)" in text
    text = tf_text("rule hypot(x, y) -> z:\n    z = hypot(x, y)\n")
    assert "def _hypot2(x, y):" in text
    assert "z = _hypot(x, y)" in text
