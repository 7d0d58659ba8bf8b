"""`exact` definitions keep their form; `--as-written` keeps that of all."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradspec
from gradspec.ir.rule import Judged
from gradspec.ir.walk import closed_outputs
from gradspec.stabilise.stabilise import as_written, stabilise
from gradspec.symbolic.arithmetic_model import Machine
from tests.derive.rules import completed
from tests.stabilise.rules import stable, texts, unary

NAIVE = "log(1 + exp(x))"


def test_without_a_mark_it_is_rewritten() -> None:
    assert texts(stable(unary(NAIVE)).rule)["y"] != NAIVE


def test_an_exact_output_keeps_its_form_and_its_gradient_is_derived_well() -> None:
    found = texts(stable(f"rule f(x) -> y:\n    exact y = {NAIVE}\n").rule)
    assert found["y"] == NAIVE
    assert found["dx"] == texts(stable(unary(NAIVE)).rule)["dx"]
    assert "sigmoid" in found["dx"]


def test_what_uses_an_exact_local_does_not_look_into_it() -> None:
    text = "rule f(x) -> y:\n    {} = 1 + exp(x)\n    y = log(s)\n"
    assert texts(stable(text.format("s")).rule)["y"] != "log(s)"
    found = texts(stable(text.format("exact s")).rule)
    assert (found["s"], found["y"]) == ("1 + exp(x)", "log(s)")


def test_an_exact_cotangent_stays_as_it_was_declared() -> None:
    declared = "dy * (1 - 1 / (1 + exp(x)))"
    text = "rule f(x) -> y:\n    y = log(1 + exp(x))\n    {}dx = " + declared + "\n"
    assert texts(stable(text.format("")).rule)["dx"] != declared
    found = texts(stable(text.format("exact ")).rule)
    assert found["dx"] == declared
    assert found["y"] != NAIVE


def test_an_exact_choice_has_no_guard_and_no_float64() -> None:
    text = "rule f(x) -> y:\n    {}y = sqrt(x) if x > 0 else 0\n"
    assert texts(stable(text.format("")).rule)["y"] != "sqrt(x) if x > 0 else 0"
    assert texts(stable(text.format("exact ")).rule)["y"] == "sqrt(x) if x > 0 else 0"
    lost = "rule f(x, t) -> y:\n    {}y = t * x - sin(t) * sin(x)\n"
    assert "y" in stable(lost.format("")).wide
    assert "y" not in stable(lost.format("exact ")).wide


def test_the_harm_of_an_exact_definition_is_still_told() -> None:
    text = "rule f(x) -> y:\n    y = tanh(x)\n    {}dx = dy * (1 - tanh(x)**2)\n"
    assert not stable(text.format("")).losses
    (loss,) = stable(text.format("exact ")).losses
    assert (loss.name, loss.kind) == ("dx", "saturation")


def test_an_exact_local_over_an_axis() -> None:
    text = (
        "rule f(x[..., n]) -> y[..., n]:\n"
        "    {} = exp(x[i])\n    y[i] = e[i] / sum(e[j] for j)\n"
    )
    assert "max" in str(texts(stable(text.format("e[i]")).rule))
    found = texts(stable(text.format("exact e[i]")).rule)
    assert found["e"] == "exp(x[i])"
    assert found["y"] == "e[i] / sum(e[j] for j)"


def without_digest(text: str) -> str:
    return re.sub(r"SHA-256 \w+", "", text)


def test_marks_change_no_function() -> None:
    rule = "rule f(x) -> y:\n    exact y = x * x + exp(x)\n"
    text = gradspec.compile_text(rule)
    other = gradspec.compile_text(rule.replace("exact ", ""))
    assert without_digest(text.replace("exact ", "")) == without_digest(other)


# --- as written ------------------------------------------------------------------------


@pytest.mark.parametrize("form", [NAIVE, "exp(x) - 1", "sqrt(1 + x**2)", "x - sin(x)"])
def test_as_written_no_other_form_is_looked_for(form: str) -> None:
    done = as_written(Judged(completed(unary(form)), ()))
    assert texts(done.rule)["y"] == form.replace("x**2", "square(x)")
    assert not done.rewrites and not done.wide and done.as_written


def test_as_written_branches_are_guarded_all_the_same() -> None:
    done = as_written(Judged(completed(unary("sqrt(x) if x > 0 else 0")), ()))
    assert texts(done.rule)["y"] == "sqrt(x if x > 0 else 1) if x > 0 else 0"


def test_as_written_calls_and_axes_are_evaluated() -> None:
    text = (
        "rule soft(x) -> y:\n    y = log(1 + exp(x))\n\n"
        "rule g(x) -> y:\n    y = soft(3 * x)\n\n"
        "rule m(x[n]) -> y[n]:\n    y[i] = exp(x[i]) / sum(exp(x[j]) for j)\n"
    )
    written = gradspec.compile_text(text, as_written=True)
    assert "np.log(1.0 + np.exp(3.0 * x))" in written
    assert ".max" not in written
    assert written.count("Evaluation: as written") == 3
    chosen = gradspec.compile_text(text)
    assert "Evaluation" not in chosen and ".max" in chosen
    assert "1.0 + np.exp(3.0 * x)" not in chosen


def test_as_written_computes_the_same_where_floating_point_allows() -> None:
    rule = Judged(completed(unary("log(1 + exp(x))")), ())
    forms = [closed_outputs(r.rule)["y"] for r in (stabilise(rule), as_written(rule))]
    assert forms[0] != forms[1]
    machine = Machine({"x": np.linspace(-3.0, 3.0, 41)}, np.float64)
    np.testing.assert_allclose(*map(machine.run, forms), rtol=1e-14)
