"""Names of the author that are Python's own stay as they are, and break nothing."""

from __future__ import annotations

import re
from types import ModuleType

import numpy as np
import pytest

from tests.targets.emission import module_of
from tests.targets.vjps import TARGETS, Array, upstream_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

RULES = """
rule {type}(x) -> y:
    y = x * sigmoid(x)

rule {float}(x[..., d], k: static = 2.0) -> y[..., d]:
    m = mean(x[j] for j)
    y[i] = (x[i] - m) * k

rule {tuple}(x, t) -> (a, b):
    a = x * t
    b = x * exp(t)

rule {isinstance}({map}, {type}, {len}: static int = 2) -> {int}:
    {float} = {map} * {type}
    {int} = {float} + sin({float})**{len}

rule {max}(x[..., d], {min}[d]: param = 1) -> {sum}[..., d]:
    {bool} = mean(x[j]**2 for j)
    {sum}[i] = x[i] / sqrt({bool} + 1) * {min}[i]

rule {value_error}(x, {getattr}: param = 0.5) -> y:
    y = x * {getattr}
"""
WORDS = sorted(set(re.findall(r"{(\w+)}", RULES)))
PYTHONS = RULES.format(**{word: word for word in WORDS})
OTHERS = RULES.format(**{word: f"{word}_of" for word in WORDS})

X = np.linspace(-2.0, 3.0, 12).reshape(3, 4)
T = np.linspace(0.5, 1.5, 12).reshape(3, 4)
ROW = np.linspace(1.0, 2.0, 4)
ARGUMENTS: dict[str, tuple[Array, ...]] = {
    "type": (X,),
    "float": (X,),
    "tuple": (X, T),
    "isinstance": (X, T),
    "max": (X, ROW),
    "value_error": (X, np.array(0.5)),
}


def _module(rules: str, target: str) -> ModuleType:
    pytest.importorskip(TARGETS[target][0])
    return module_of(rules, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_rule_named_like_a_builtin_is_the_rule_by_another_name(
    target: str, name: str
) -> None:
    vjp = TARGETS[target][2]
    own = vjp(_module(PYTHONS, target), name, ARGUMENTS[name])
    other = vjp(_module(OTHERS, target), f"{name}_of", ARGUMENTS[name])
    for got, wanted in zip((*own[0], *own[1]), (*other[0], *other[1]), strict=True):
        assert got is not None
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("target", TARGETS)
def test_statics_and_faults_are_told_by_the_names_that_the_author_gave(
    target: str,
) -> None:
    rules = _module(PYTHONS, target)
    assert rules.isinstance(X, T, len=3).shape == X.shape
    assert rules.float(X, k=3.0).shape == X.shape
    assert {"type", "float", "tuple", "isinstance", "max"} <= set(rules.__all__)
    with pytest.raises(TypeError, match=r"isinstance|integer"):
        rules.isinstance(X, T, len="2")


@pytest.mark.parametrize("target", TARGETS)
def test_a_gradient_is_not_taken_for_what_the_text_needs(target: str) -> None:
    """The gradient of ``type`` is called ``dtype``, as the type of the arguments is."""
    rules = "rule f(type, kept) -> y:\n    y = type * exp(kept)\n"
    vjp = TARGETS[target][2]
    outputs, gradients = vjp(_module(rules, target), "f", (X, T))
    upstream = upstream_of(outputs[0])
    for got, wanted in zip(gradients, (np.exp(T), X * np.exp(T)), strict=True):
        assert got is not None
        np.testing.assert_allclose(got, upstream * wanted, rtol=1e-14)
