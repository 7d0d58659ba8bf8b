"""The text of TensorFlow modules: formatted, minimal, the same every time."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.targets.emission import (
    tf_text,
)

pytestmark = pytest.mark.tf
RUNTIME = Path(__file__).parents[2] / "gradspec" / "runtime" / "tf"


def _after_imports(text: str) -> str:
    return text[text.index("@") :].rstrip()


def test_a_rule_reads_as_written_by_hand() -> None:
    text = tf_text("rule product(x, y) -> z:\n    z = x * y\n")
    assert _after_imports(text) == inspect.cleandoc(
        '''
        @custom_gradient
        def product(x: tf.Tensor, y: tf.Tensor) -> Result[tf.Tensor]:
            """The rule ``product``.

                rule product(x, y) -> z:
                    z = x * y

            Gradients: dx derived; dy derived
            """
            z = x * y

            def backward(dz):
                return dz * y, dz * x

            return z, backward
        '''
    )


def test_terms_of_one_shape_are_added_as_they_are() -> None:
    text = tf_text(
        "rule two(x, y) -> (z, w):\n    z = x * y\n    w = y**2\n"
        "    dx = dz * y\n    dy = dz * x + 2 * dw * y\n"
    )
    assert "sum_to(dz * x, y) + sum_to(2.0 * dw * y, y)" in text
    text = tf_text("rule both(x) -> (z, w):\n    z = sin(x)\n    w = cos(x)\n")
    assert "sum_to" not in text


def test_a_square_is_short() -> None:
    text = tf_text("rule square(x) -> y:\n    y = x**2\n")
    assert len(text.splitlines()) <= 35


def test_names_that_would_clash_get_others() -> None:
    text = tf_text("rule size(x[..., n]) -> y[..., n]:\n    y[i] = n * x[i]\n")
    assert "import size as size_" in text
    assert "n = size_(x, -1)" in text
    text = tf_text("rule hypot(x, y) -> z:\n    z = hypot(x, y)\n")
    assert "z = hypot_(x, y)" in text


def test_no_function_of_the_runtime_compares_tensors_by_the_operator() -> None:
    """In a graph of TensorFlow 1 it asks whether they are the same object."""
    files = (RUNTIME / "_special.py", RUNTIME.parent / "_formulas.py")
    text = "\n".join(file.read_text("utf-8") for file in files)
    plain = ("dtype", " if ", "shape")
    lines = [line for line in text.splitlines() if " == " in line or " != " in line]
    assert not [line for line in lines if not any(word in line for word in plain)]
