"""Names of the author that are Python's, the text's or a class's own, and clashes of names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gradspec.lower.lowering import lower
from gradspec.source import Source
from gradspec.syntax.parse import parse
from tests.calling import Array, by_target, called, cotangent
from tests.targets.emission import LEARNED, module_of, text_of

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

rule {npt}({needs}, {value}) -> {residuals}:
    {residuals} = {needs} * {value}

rule {primals}({tangents}, {floats}) -> {dtype}:
    {dtype} = {tangents} * {floats}

rule {size}(x[..., n]) -> y[..., n]:
    y[i] = n * x[i]
"""
"""Names of Python, and of what emitted modules import or define."""

WORDS = sorted(set(re.findall(r"{(\w+)}", RULES)))
OWN = RULES.format(**{word: word for word in WORDS})
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
    "npt": (X, T),
    "primals": (X, T),
    "size": (X,),
}


@by_target
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_rule_of_such_names_is_the_rule_by_other_names(
    target: str, name: str
) -> None:
    given = ARGUMENTS[name]
    own = called(target, module_of(OWN, target), name, given)
    other = called(target, module_of(OTHERS, target), f"{name}_of", given)
    for got, wanted in zip((*own[0], *own[1]), (*other[0], *other[1]), strict=True):
        assert got is not None
        np.testing.assert_array_equal(got, wanted)


@by_target
def test_statics_and_faults_are_told_by_the_names_that_the_author_gave(
    target: str,
) -> None:
    rules = module_of(OWN, target)
    assert rules.isinstance(X, T, len=3).shape == X.shape
    assert rules.float(X, k=3.0).shape == X.shape
    assert {"type", "float", "tuple", "isinstance", "max"} <= set(rules.__all__)
    with pytest.raises(TypeError, match=r"isinstance|integer"):
        rules.isinstance(X, T, len="2")


@by_target
def test_a_gradient_is_not_taken_for_what_the_text_needs(target: str) -> None:
    """The gradient of ``type`` is called ``dtype``, as the type of the arguments is."""
    rules = module_of("rule f(type, kept) -> y:\n    y = type * exp(kept)\n", target)
    outputs, gradients = called(target, rules, "f", (X, T))
    for got, wanted in zip(gradients, (np.exp(T), X * np.exp(T)), strict=True):
        np.testing.assert_allclose(got, cotangent(outputs[0]) * wanted, rtol=1e-14)


def test_what_is_imported_gets_another_name() -> None:
    text = text_of(OWN, "tf")
    assert "import size as size_" in text and "n = size_(x, -1)" in text
    text = text_of("rule hypot(x, y) -> z:\n    z = hypot(x, y)\n", "tf")
    assert "z = hypot_(x, y)" in text
    text = text_of("rule slopes(x) -> y:\n    y = 2 * x\n", "jax")
    assert "@slopes_(_slopes)" in text


@pytest.mark.torch
def test_classes_give_way_to_one_another_and_to_rules() -> None:
    torch = pytest.importorskip("torch")
    rules = module_of(
        "rule ab(x) -> y:\n    y = exp(x)\n\nrule Ab(rule) -> y:\n    y = rule\n",
        "torch",
    )
    x = torch.tensor([0.5])
    assert torch.equal(rules.Ab(x), x) and torch.equal(rules.ab(x), torch.exp(x))


LAYER = "rule prelu(x, a: param = 1) -> y:\n    y = a * x\n\n"


CLASHES = {
    "f_vjp": ("rule f(x) -> y:\n    y = 2 * x\n\n", "the pullback of `f`"),
    "f_jvp": ("rule f(x) -> y:\n    y = 2 * x\n\n", "the pushforward of `f`"),
    "Prelu": (LAYER, "the layer of `prelu`"),
    "init_prelu": (LAYER, "the initial values of `prelu`"),
}


@pytest.mark.parametrize("name", CLASHES)
def test_what_belongs_to_a_rule_is_the_name_of_no_other(name: str) -> None:
    text, what = CLASHES[name]
    other = f"rule {name}(x) -> y:\n    y = 3 * x\n\n"
    for whole in (text + other, other + text):
        (told,) = lower(parse(Source("a", whole)).value, {}).diagnostics
        assert told.code == "GS204" and what in told.headline
        assert whole[told.labels[0].span.start :].startswith(f"{name}(x)")
    layers = LAYER.replace("prelu", "pre_lu") + LAYER.replace("prelu", "preLu")
    (told,) = lower(parse(Source("a", layers)).value, {}).diagnostics
    assert "the layer of `preLu` in emitted modules, and of `pre_lu`" in told.headline


def test_a_variable_of_another_rule_changes_no_public_name() -> None:
    text = (
        "rule f(x) -> y:\n    y = 2 * x\n\nrule g(f_vjp, x) -> y:\n    y = f_vjp * x\n"
    )
    rules = module_of(text, "numpy")
    assert {"f_vjp", "g_vjp"} <= {*rules.__all__}
    assert rules.g_vjp(3.0, 2.0)[1](1.0) == (2.0, 3.0)


@pytest.mark.torch
def test_no_name_of_torchs_class_is_forgotten() -> None:
    torch = pytest.importorskip("torch")
    from gradspec.targets.torch.rule import OWN

    public = {name for name in dir(torch.nn.Module()) if not name.startswith("_")}
    assert public <= {*OWN.split()}
    layer = module_of(LEARNED, "torch").Mixture(3, 4, device_=2)
    assert sorted(layer.state_dict()) == ["s", "to_", "w"]


@pytest.mark.tf
def test_no_name_of_keras_class_is_forgotten() -> None:
    tf = pytest.importorskip("tensorflow")
    from gradspec.targets.tf.rule import OWN

    public = {n for n in dir(tf.keras.layers.Layer()) if not n.startswith("_")}
    assert public <= {*OWN.split()}
