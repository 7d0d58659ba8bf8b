"""Names that a target's text needs for itself."""

from __future__ import annotations

from dataclasses import replace

from gradspec.plan.array import names
from gradspec.plan.program import joined_backward
from gradspec.plan.renaming import renamed
from tests.plan.building import WORDS, rule


def test_collisions_get_an_underscore() -> None:
    plan = rule("np x", {"y": "np * x"}, "y", {"dnp": "dy * x", "dx": "dy * np"})
    changed = renamed(plan, frozenset({"np"}))
    assert [i.name for i in changed.inputs] == ["np_", "x"]
    backward = joined_backward(changed, WORDS)
    used = [name for s in backward.statements for name in names(s.value)]
    assert "np" not in used and "np_" in used
    assert [s.name for s in backward.statements] == ["dnp_", "dx"]


def test_a_gradient_may_collide_too() -> None:
    plan = rule("x", {"type": "2 * x"}, "type", {"dx": "2 * dtype"})
    changed = renamed(plan, frozenset({"dtype"}))
    assert changed.outputs[0].name == "type_"
    assert changed.upstream == ("dtype_",)


def test_a_tangent_may_collide_too() -> None:
    plan = rule(
        "x x_dot", {"y": "x * x_dot"}, "y", {"dx": "dy * x_dot", "dx_dot": "dy * x"}
    )
    assert [i.name for i in renamed(plan, frozenset()).inputs] == ["x", "x_dot_"]


def test_without_collisions_nothing_changes() -> None:
    plan = rule("x", {"y": "2 * x"}, "y", {"dx": "2 * dy"})
    assert renamed(plan, frozenset({"np"})) is plan


def test_the_rule_itself() -> None:
    plan = rule("x", {"y": "2 * x"}, "y", {"dx": "2 * dy"})
    assert renamed(plan, frozenset({"f"})).name == "f_"


def test_a_renamed_rule_takes_no_other_rules_name() -> None:
    plan = rule("x", {"y": "2 * x"}, "y", {"dx": "2 * dy"})
    assert renamed(plan, frozenset({"f"}), ("f", "f_")).name == "f__"


def test_a_short_evaluation_is_renamed_too() -> None:
    plan = rule("np", {"y": "2 * np"}, "y", {"dnp": "2 * dy"})
    plan = replace(plan, double=replace(plan, wide=("y", "dnp")))
    double = renamed(plan, frozenset({"np", "y"})).double
    assert double is not None
    assert [i.name for i in double.inputs] == ["np_"]
    assert double.wide == ("y_", "dnp_")
