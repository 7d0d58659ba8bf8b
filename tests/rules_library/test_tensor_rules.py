"""The shipped rules with axes, checked by a reader that shares no code with the compiler."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from mpmath import mp, mpf

from tests.rules_library.rule_numbers import value
from tests.rules_library.rule_reading import split
from tests.rules_library.tensor_reading import (
    Array,
    Arrays,
    Sizes,
    TensorRule,
    read,
)
from tests.rules_library.test_rules_library import assert_agrees, same

FOLDER = Path(__file__).parents[2] / "rules" / "tensor"
RULES = [rule for path in sorted(FOLDER.glob("*.grad")) for rule in read(path)]

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


@pytest.fixture(autouse=True)
def _precision():
    with mp.workdps(40):
        yield


def test_there_are_enough_and_about_half_declare_a_gradient():
    assert len(RULES) >= 60
    assert len({rule.name for rule in RULES}) == len(RULES)
    share = sum(bool(rule.declared) for rule in RULES) / len(RULES)
    assert 0.4 < share < 0.7


@every_rule
def test_the_docstring_says_what_it_is_and_where_it_comes_from(rule: TensorRule):
    first, *rest = rule.doc.split("\n")
    assert first.endswith(".")
    assert any(line.strip().startswith("Source: ") for line in rest)


# --- examples ------------------------------------------------------------------------


def parsed(text: str) -> Any:
    text = text.strip()
    return [parsed(p) for p in split(text[1:-1])] if text.startswith("[") else text


def texts(written: Any, place: tuple[int, ...] = ()) -> dict[tuple[int, ...], str]:
    if not isinstance(written, list):
        return {place: written}
    parts = (texts(item, (*place, i)) for i, item in enumerate(written))
    return {where: text for part in parts for where, text in part.items()}


def numbers(written: Any) -> Array:
    words = {"true": "1", "false": "0"}
    return {p: mpf(words.get(text, text)) for p, text in texts(written).items()}


def bindings(text: str) -> dict[str, Any]:
    pairs = (part.split(" = ") for part in split(text))
    return {name: parsed(right) for name, right in pairs}


def upstream(rule: TensorRule, inputs: Arrays, given: Arrays) -> Arrays:
    """Those that are given; 1 for the others."""
    known = rule.forward(inputs).known
    return {
        output: given.get(f"d{output}", dict.fromkeys(known[output], mpf(1)))
        for output in rule.outputs
    }


@every_rule
def test_every_number_of_every_example_is_right(rule: TensorRule):
    assert len(rule.examples) >= 2
    for example in rule.examples:
        left, wanted = map(bindings, example.split(": "))
        given = {name: numbers(written) for name, written in left.items()}
        inputs = rule.complete({n: v for n, v in given.items() if n in rule.kinds})
        assert rule.admits(inputs)
        slopes = rule.true_gradient(inputs, upstream(rule, inputs, given))
        found = rule.forward(inputs).known
        found = {name: found[name] for name in rule.outputs}
        found |= {f"d{name}": array for name, array in slopes.items()}
        assert list(wanted) == list(found)
        for name, written in wanted.items():
            listed = texts(written)
            assert list(listed) == list(found[name])
            for place, text in listed.items():
                assert_agrees(text, value(found[name][place]))


# --- declared gradients --------------------------------------------------------------


def draw(rng: random.Random, rule: TensorRule, sizes: Sizes) -> Arrays:
    """One choice of all inputs; the numbers of a call are of one kind, so that small
    ones meet small ones and every assumption is met now and then.
    """
    scale = rng.choice((rng.random, rng.random, lambda: rng.gauss(0, 1)))
    given: Arrays = {}
    for name, kind in rule.kinds.items():
        shape = [int(a) if a.isdigit() else sizes[a] for a in rule.axes[name]]
        places = list(product(*map(range, shape)))
        if kind == "int":
            given[name] = {p: mpf(rng.randrange(2)) for p in places}
        elif kind == "bool":
            given[name] = {p: mpf(not any(p) or rng.random() < 0.5) for p in places}
        elif kind == "static int":
            given[name] = {(): mpf(sizes[name])}
        elif "static" not in kind:
            given[name] = {p: mpf(scale()) for p in places}
    return rule.complete(given)


def sample(rule: TensorRule) -> Arrays:
    rng = random.Random(rule.name)
    names = dict.fromkeys(a for axes in rule.axes.values() for a in axes)
    for _ in range(500):
        sizes = {a: rng.choice((2, 3)) for a in names if not a.isdigit()}
        if {"n", "k", "m"} <= set(sizes) and "static int" in rule.kinds.values():
            sizes["m"] = sizes["n"] - sizes["k"] + 1
        inputs = draw(rng, rule, sizes) if min(sizes.values(), default=1) > 0 else {}
        if inputs and rule.admits(inputs):
            return inputs
    raise AssertionError("the assumptions leave hardly a point")


@pytest.mark.parametrize("rule", [r for r in RULES if r.declared], ids=lambda r: r.name)
def test_declared_gradients_are_the_derivatives(rule: TensorRule):
    inputs = sample(rule)
    rng = random.Random(1)
    seeds = upstream(rule, inputs, {})
    seeds = {n: {p: mpf(rng.gauss(0, 1)) for p in a} for n, a in seeds.items()}
    true = rule.true_gradient(inputs, seeds)
    for name, stated in rule.gradient(inputs, seeds).items():
        assert list(stated) == list(true[name])
        for place, slope in stated.items():
            assert same(slope, true[name][place])


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("softmax", "sum(dy[j] * y[j] for j)", "sum(dy[j] for j)"),
        ("gram", "(dg[i, j] + dg[j, i])", "2 * dg[i, j]"),
        ("mse", "(x[i] - t[i]) / n", "(x[i] - t[i])"),
    ],
)
def test_a_wrong_rule_is_seen(tmp_path: Path, rule: str, right: str, wrong: str):
    (path,) = (p for p in FOLDER.glob("*.grad") if f"rule {rule}(" in p.read_text())
    text = path.read_text()
    assert right in text
    (tmp_path / "wrong.grad").write_text(text.replace(right, wrong))
    (spoiled,) = (r for r in read(tmp_path / "wrong.grad") if r.name == rule)
    with pytest.raises(AssertionError):
        test_declared_gradients_are_the_derivatives(spoiled)
