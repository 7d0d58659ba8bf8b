"""The shipped rules, checked by a reader that shares no code with the compiler.

Every number of every example is computed again, and no example sits on a kink. Declared
gradients are proved by the compiler and tried in every framework.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpmath import mp, mpf

from tests.rules_library.rule_numbers import value
from tests.rules_library.rule_reading import Rule, Values, read, split

LIBRARY = Path(__file__).parents[2] / "rules"
FILES = sorted(p for p in LIBRARY.glob("*/*.grad") if p.parent.name != "tensor")
"""Rules with axes have a reader of their own, and `test_tensor_rules`."""

RULES = [rule for path in FILES for rule in read(path.resolve()).rules]
FAMILIES = {
    "activations",
    "control",
    "losses",
    "special",
    "stable",
    "surrogates",
    "tutorial",
}
ON_PURPOSE_AT_A_KINK = {"piecewise"}
"""A published case, which shows the value at the kink."""

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


@pytest.fixture(autouse=True)
def _precision():
    with mp.workdps(60):
        yield


# --- the library ---------------------------------------------------------------------


def test_it_has_every_family_and_enough_rules():
    assert {path.parent.name for path in FILES} >= FAMILIES
    assert len(RULES) >= 75


def test_rule_names_are_unique():
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


def test_about_half_of_the_rules_declare_a_gradient():
    share = sum(bool(rule.declared) for rule in RULES) / len(RULES)
    assert 0.4 < share < 0.7


@every_rule
def test_the_docstring_says_what_it_is_and_where_it_comes_from(rule: Rule):
    first, *rest = rule.doc.split("\n")
    assert first.endswith(".")
    assert any(line.strip().startswith("Source: ") for line in rest)


# --- examples ------------------------------------------------------------------------


def bindings(text: str) -> dict[str, list[str] | str]:
    parts = [part.split(" = ") for part in split(text)]
    return {
        name: split(right[1:-1]) if right.startswith("[") else right
        for name, right in parts
    }


def number(text: str) -> mpf:
    return mpf({"true": "1", "false": "0"}.get(text, text))


def cases(rule: Rule, given: dict[str, list[str] | str]) -> list[tuple[Values, Values]]:
    """The points and upstream gradients of an example, one for each element."""
    size = max((len(v) for v in given.values() if isinstance(v, list)), default=1)
    columns = {
        name: [number(x) for x in (v if isinstance(v, list) else [v] * size)]
        for name, v in given.items()
    }
    found = []
    for k in range(size):
        row = {name: column[k] for name, column in columns.items()}
        inputs = {name: row[name] for name in rule.kinds if name in row}
        upstream = {name: row.get(f"d{name}", mpf(1)) for name in rule.upstream}
        found.append((rule.complete(inputs), upstream))
    return found


def results(rule: Rule, point: Values, upstream: Values) -> Values:
    known = rule.forward(point)
    outputs = {name: value(known[name]) for name in rule.outputs}
    slopes = rule.gradient(point, upstream)
    return outputs | {f"d{name}": slope for name, slope in slopes.items()}


def half_a_digit(text: str) -> mpf:
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return mpf(10) ** (int(exponent or 0) - decimals) / 2


def significant(text: str) -> int:
    return len(re.sub(r"[-.]|[eE].*", "", text).lstrip("0"))


def assert_agrees(written: str, found: mpf) -> None:
    """Exact, or eight digits and right to the last of them."""
    if abs(number(written) - found) <= mpf(10) ** -30 * (abs(found) or 1):
        return
    assert abs(number(written) - found) <= half_a_digit(written) * (1 + mpf(10) ** -9)
    assert significant(written) >= 8


def expected_columns(
    rule: Rule, name: str, given: dict[str, list[str] | str], rows: list[Values]
) -> list[mpf]:
    """The gradient of a number that meets a vector is summed, as for broadcasting."""
    column = [row[name] for row in rows]
    is_gradient = name not in rule.outputs
    if is_gradient and not isinstance(given.get(name[1:], ""), list):
        return [sum(column)]
    return column


@every_rule
def test_every_number_of_every_example_is_right(rule: Rule):
    assert len(rule.examples) >= 2
    for example in rule.examples:
        given, wanted = map(bindings, example.split(": "))
        with mp.workdps(120):
            rows = [results(rule, *case) for case in cases(rule, given)]
            assert set(wanted) == set(rows[0])
            for name, written in wanted.items():
                texts = written if isinstance(written, list) else [written]
                found = expected_columns(rule, name, given, rows)
                assert len(texts) == len(found)
                for text, truth in zip(texts, found, strict=True):
                    assert_agrees(text, truth)


@every_rule
def test_no_example_sits_on_a_kink_or_outside_the_domain(rule: Rule):
    for example in rule.examples:
        for point, upstream in cases(rule, bindings(example.split(": ")[0])):
            assert rule.admits(point)
            if rule.name in ON_PURPOSE_AT_A_KINK:
                continue
            slopes = rule.true_gradient(point, upstream)
            for name in slopes:
                assert_smooth(rule, point, upstream, name, slopes[name])


def assert_smooth(
    rule: Rule, point: Values, upstream: Values, name: str, slope: mpf
) -> None:
    step = mpf(10) ** -12 * (abs(point[name]) or 1)
    here = rule.forward(point)
    for moved in (point[name] - step, point[name] + step):
        beside = {**point, name: moved}
        if not rule.admits(beside):
            continue
        there = rule.forward(beside)
        for output in upstream:
            jump = abs(value(there[output]) - value(here[output]))
            assert jump <= mpf(10) ** -4 * (1 + abs(value(here[output])))
        change = abs(rule.true_gradient(beside, upstream)[name] - slope)
        assert change <= mpf(10) ** -6 * (1 + abs(slope))


@every_rule
def test_examples_stay_within_single_precision(rule: Rule):
    for example in rule.examples:
        for text in re.findall(r"(?<![\w.])-?\d[\d.]*(?:e-?\d+)?", example):
            assert number(text) == 0 or mpf("1e-36") < abs(number(text)) < mpf("1e37")


def test_constants_are_read_exactly():
    (selu,) = (rule for rule in RULES if rule.name == "selu")
    written = "1.0507009873554804934193349852946"
    assert value(selu.forward({"x": mpf(1)})["scale"]) == mpf(written)
