"""The text of modules: short, and only what a rule needs. The cases in `tests/cases` show how
whole modules read."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

import pytest

from gradspec.targets import TARGETS
from tests.targets.emission import ELEMENTWISE, text_of

LINES = {"numpy": 50, "torch": 45, "tf": 35, "jax": 45}
ABSENT = {
    "numpy": ("sum_to", "_special", "_axes", "math"),
    "torch": ("residuals", "needs", "kinds", "sum_to", "_special", "_axes", "math"),
    "tf": ("sum_to", "_special", "_axes", "math", "nograd"),
    "jax": ("functools", "jax.numpy", "symbolic_zeros", "_special", "_axes"),
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_simple_rule_has_nothing_that_it_does_not_need(target: str) -> None:
    text = text_of("rule double(x) -> y:\n    y = 2 * x\n", target)
    assert [word for word in ABSENT[target] if word in text] == []
    assert len(text.splitlines()) <= LINES[target]


FRAMEWORK = {"numpy": "numpy", "torch": "torch", "tf": "tensorflow", "jax": "jax"}


@pytest.mark.parametrize("target", TARGETS)
def test_modules_import_the_framework_and_their_runtime_alone(target: str) -> None:
    text = text_of(ELEMENTWISE.read_text("utf-8"), target)
    names = re.findall(r"^(?:from|import) (\S+)", text, re.M)
    own = {"__future__", "collections.abc", "functools", "math", "typing", "scipy"}
    for name in names:
        known = name in own or name in ("._gradspec", "._special", "._axes")
        assert known or name.split(".")[0] in (FRAMEWORK[target], "scipy"), name


def test_terms_of_one_shape_are_added_as_they_are() -> None:
    text = text_of(
        "rule two(x, y) -> (z, w):\n    z = x * y\n    w = y**2\n"
        "    dx = dz * y\n    dy = dz * x + 2 * dw * y\n",
        "tf",
    )
    assert "sum_to(dz * x, y) + sum_to(2.0 * dw * y, y)" in text
    text = text_of("rule both(x) -> (z, w):\n    z = sin(x)\n    w = cos(x)\n", "tf")
    assert "sum_to" not in text


def test_a_rule_of_many_inputs_is_python() -> None:
    names = [f"x{k}" for k in range(20)]
    text = text_of(
        f"rule wide({', '.join(names)}) -> y:\n    y = {' + '.join(names)}\n", "torch"
    )
    ast.parse(text)
    assert "dx0 = dx1 = dx2 = dx3 = dx4 = dx5 = dx6 = dx7 = None\n" in text


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
def test_the_gradient_decides_how_jax_is_told(gradient: str, way: str) -> None:
    text = text_of(
        f'rule r(x) -> y:\n    y = x\n    override dx = {gradient} because "a test"\n',
        "jax",
    )
    assert f'@rule("r", by={way})\n' in text


def test_no_function_of_tensorflows_runtime_compares_tensors_by_the_operator() -> None:
    """In a graph of TensorFlow 1 it asks whether they are the same object."""
    runtime = files("gradspec").joinpath("runtime")
    modules = runtime.joinpath("tf", "_special.py"), runtime.joinpath("_formulas.py")
    text = "\n".join(module.read_text("utf-8") for module in modules)
    plain = ("dtype", " if ", "shape")
    lines = [line for line in text.splitlines() if " == " in line or " != " in line]
    assert not [line for line in lines if not any(word in line for word in plain)]
