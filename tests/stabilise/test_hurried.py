"""Searches that run out of time: what is chosen by then stands, or what is written, in
float64 where that helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradspec.driver.imported import import_module
from gradspec.driver.run import compile_source
from gradspec.ir import closed
from gradspec.ir.rule import CheckedRule
from gradspec.options import Options
from gradspec.primitives.formula import formula
from gradspec.source import Source
from gradspec.stabilise import stabilise as search
from gradspec.stabilise.hurried import hurried
from gradspec.stabilise.part_way import PartWay
from gradspec.stabilise.so_far import keeping
from gradspec.symbolic.enclose import program
from tests.stabilise.rules import completed

CANCELS = "rule f(x) -> y:\n    assume x > 0\n    y = sqrt(x + 1) - sqrt(x)\n"
PLAIN = "rule f(x) -> y:\n    y = x * x\n"


def _endless(*_: object) -> None:
    while True:
        pass


def test_what_float64_mends_is_computed_in_it() -> None:
    found = hurried(CheckedRule(completed(CANCELS), ()))
    assert set(found.wide) == {"y", "dx"} and not found.as_written
    assert {r.name for r in found.rewrites} == {"y", "dx"}
    assert "in float32" in found.rewrites[0].reason


def test_what_is_kept_stays_as_it_is() -> None:
    exact = CANCELS.replace("y = ", "exact y = ")
    assert hurried(CheckedRule(completed(exact), ())).wide == ("dx",)
    assert (
        hurried(CheckedRule(completed("rule f(x) -> y:\n    y = 3 * x\n"), ())).wide
        == ()
    )


def test_a_search_that_is_stopped_leaves_no_bad_points_that_float64_avoids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "stabilise", _endless)
    result, _ = compile_source(
        Source("f.grad", CANCELS), "f.grad", Options(("numpy",), budget=1.0)
    )
    (late,) = [d for d in result.diagnostics if d.code == "GS463"]
    assert "as written, y, dx in float64" in late.headline
    module = import_module(result.modules[0])
    x = np.float32([1e8, 3e10])
    y, pullback = module.f_vjp(x)
    wide = np.float64(x)
    assert np.allclose(y, 1 / (np.sqrt(wide + 1) + np.sqrt(wide)), rtol=1e-6)
    (dx,) = pullback(np.ones_like(x))
    assert np.all(np.asarray(dx) != 0)


def test_what_is_chosen_of_some_results_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output has its conjugate, the gradient is as it is written, in float64."""
    monkeypatch.setattr(search._Work, "_derived", _endless)
    result, _ = compile_source(
        Source("f.grad", CANCELS), "f.grad", Options(("numpy",), budget=4.0)
    )
    (late,) = [d for d in result.diagnostics if d.code == "GS463"]
    assert "the forms of y are chosen" in late.headline
    assert "the rest is evaluated as written, dx in float64" in late.headline
    module = import_module(result.modules[0])
    x = np.float32([1e8, 3e10])
    y, pullback = module.f_vjp(x)
    wide = np.float64(x)
    assert np.allclose(y, 1 / (np.sqrt(wide + 1) + np.sqrt(wide)), rtol=1e-6)
    (dx,) = pullback(np.ones_like(x))
    true = -0.5 / np.sqrt(wide) / np.sqrt(wide + 1)
    assert np.allclose(dx, true / (np.sqrt(wide + 1) + np.sqrt(wide)), rtol=1e-3)


def test_each_stage_on_the_way_is_the_rule() -> None:
    """Whatever is chosen by then: the same function at every one of them."""
    checked = CheckedRule(completed(CANCELS), ())
    with keeping() as stages:
        search.stabilise(checked)
    assert stages[-1].done == ("y", "dx")
    assert stages[0].done == () and "y" in dict(stages[0].forms)
    for part in stages:
        found = hurried(checked, part)
        assert not found.as_written and set(part.wide) <= set(found.wide)
        dx = closed.cotangents(found.rule)["dx"]
        (value,) = program(dx).run({"x": 2.0, "dy": 1.0})
        assert abs(float(value.mid()) - 0.5 * (1 / 3**0.5 - 1 / 2**0.5)) < 1e-15


def test_a_form_that_is_not_finished_stands_only_where_it_is_no_worse() -> None:
    checked = CheckedRule(completed(PLAIN), ())
    begun = PartWay(checked.rule, (("y", formula("x**3 / x")),))
    assert begun.sound(checked.rule).forms == ()
    done = replace(begun, done=("y",))
    assert done.sound(checked.rule) == done
    assert hurried(checked, begun).rule == hurried(checked).rule
