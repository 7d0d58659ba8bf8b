"""Names that a target's text needs for itself."""

from __future__ import annotations

from importlib import import_module

import pytest

from gradspec.plan import sharing
from gradspec.plan.arrays import names
from gradspec.plan.program import rename_reserved
from gradspec.targets import TARGETS
from gradspec.targets.emitting import emit
from tests.plan.building import WORDS, rule
from tests.targets.ranked_numpy import lowered, planned

RESERVED = [
    (target, name)
    for target in TARGETS
    for name in sorted(import_module(f"gradspec.targets.{target}").OPERATORS.reserved)
]


def codes(text: str, target: str) -> list[str]:
    return [d.code for d in emit(planned(lowered(text)), target).diagnostics]


@pytest.mark.parametrize(("target", "name"), RESERVED)
def test_public_names_are_not_changed_but_refused(target: str, name: str) -> None:
    other = "rule other(x) -> y:\n    y = 2 * x\n"
    assert codes(f"rule {name}(x) -> y:\n    y = 2 * x\n\n{other}", target) == ["GS503"]
    given = f"rule f({name}, x) -> y:\n    y = {name} * x\n\n{other}"
    assert codes(given, target) == ["GS503"]
    local = f"rule f(x) -> y:\n    {name} = exp(x)\n    y = {name} * sin({name})\n"
    assert codes(local, target) == []


def test_what_is_refused_is_left_out_and_told() -> None:
    text = "rule np(x) -> y:\n    y = 2 * x\n\nrule f(x) -> y:\n    y = 3 * x\n"
    outcome = emit(planned(lowered(text)), "numpy")
    (told,) = outcome.diagnostics
    assert told.headline.startswith("the rule np cannot be emitted for numpy")
    assert outcome.value is not None and "def f(" in outcome.value.text
    assert "def np(" not in outcome.value.text
    assert emit(planned(lowered(text)), "torch").diagnostics == ()


@pytest.mark.parametrize("target", TARGETS)
def test_an_input_beside_what_is_called_its_tangent(target: str) -> None:
    text = "rule f(x, x_dot) -> y:\n    y = x * x_dot\n"
    assert codes(text, target) == ["GS503"]
    assert codes(text.replace("x_dot", "x_dots"), target) == []


def test_locals_and_outputs_get_an_underscore() -> None:
    plan = rule("x", {"np": "exp(x)", "y": "np * x"}, "y", {"dx": "dy * np"})
    changed = rename_reserved(plan, frozenset({"np"}))
    backward = sharing.backward(changed, WORDS, by_output=False)
    used = [name for s in backward.statements for name in names(s.value)]
    assert "np" not in used and "np_" in used


def test_a_gradient_may_collide_too() -> None:
    plan = rule("x", {"type": "2 * x"}, "type", {"dx": "2 * dtype"})
    changed = rename_reserved(plan, frozenset({"dtype"}))
    assert changed.outputs[0].name == "type_"
    assert changed.cotangents == ("dtype_",)


def test_without_collisions_nothing_changes() -> None:
    plan = rule("x", {"y": "2 * x"}, "y", {"dx": "2 * dy"})
    assert rename_reserved(plan, frozenset({"np"})) is plan
