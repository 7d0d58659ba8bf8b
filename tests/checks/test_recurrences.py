"""Gradients of recurrences: derived, proved at every size, or refuted with a point."""

from __future__ import annotations

import re

import pytest

from gradspec.checks.check import check
from gradspec.ir.rule import Rule, Status
from tests.checks.recurrences import BACKWARDS, LINEAR, RIGHT, STRIDED, WRONG
from tests.checks.written import written


def _verdicts(rule: Rule) -> dict[str, tuple[Status, str]]:
    outcome = check(rule, 10.0)
    assert outcome.value is not None
    return {v.input: (v.status, v.sizes) for v in outcome.value.verdicts}


@pytest.mark.parametrize("text", RIGHT, ids=lambda text: text.split("(")[0].split()[1])
def test_a_right_adjoint_is_proved_at_every_size(text: str) -> None:
    rule = written(text)
    verdicts = _verdicts(rule)
    assert {verdicts[name] for name in rule.declared} == {(Status.PROVED, "every size")}


@pytest.mark.parametrize(("text", "old", "new", "name"), WRONG)
def test_a_wrong_adjoint_is_refuted(text: str, old: str, new: str, name: str) -> None:
    assert text.count(old) >= 1
    assert _verdicts(written(_last(text, old, new)))[name][0] is Status.REFUTED


def _last(text: str, old: str, new: str) -> str:
    """The text with the last place changed: the gradients follow the formulas."""
    before, _, after = text.rpartition(old)
    return before + new + after


@pytest.mark.parametrize("text", RIGHT, ids=lambda text: text.split("(")[0].split()[1])
def test_what_is_left_out_is_derived(text: str) -> None:
    """A wrong derivation is found by the chain rule on elements (`recheck`)."""
    rule = written(_forward(text))
    assert all(d.is_derived for d in rule.backward)
    assert len(rule.backward) == len([i for i in rule.inputs if i.takes_gradient])
    found = {status for status, _ in _verdicts(rule).values()}
    assert found <= {Status.DERIVED, Status.NONE}


def _forward(text: str) -> str:
    """A rule without the statements that use an upstream gradient, in whatever way."""
    head, *statements = re.split(r"\n    (?=\w)", text.strip())
    late = {f"d{name}" for name in re.findall(r"(\w+)\[", head.split("->")[1])}
    kept = []
    for statement in statements:
        name, _, value = statement.partition("=")
        if late.isdisjoint(re.findall(r"\w+", value)):
            kept.append(statement)
        else:
            late.add(name.split("[")[0].strip())
    return "\n    ".join((head, *kept)) + "\n"


def test_an_adjoint_of_the_author_serves_what_he_left_out() -> None:
    rule = written(LINEAR)
    assert [let.name for let in rule.backward_locals] == ["g"]
    assert {d.input for d in rule.backward if d.is_derived} == {"h0"}


def test_a_gradient_without_an_adjoint_agrees() -> None:
    text = """
    rule total(x[n]) -> y[n]:
        y[t] = x[t] + (y[t - 1] if t > 0 else 0)
        dx[i] = sum(dy[t] for t if t >= i)
    """
    assert _verdicts(written(text))["x"] == (Status.AGREES, "sizes 1 to 3")
    wrong = text.replace("t >= i", "t > i")
    assert _verdicts(written(wrong))["x"][0] is Status.REFUTED


def test_a_step_that_varies_agrees_where_it_is_assumed_to_be_one() -> None:
    outcome = check(written(STRIDED), 10.0)
    assert outcome.value is not None and not outcome.diagnostics
    assert {v.status for v in outcome.value.verdicts if v.input != "k"} <= {
        Status.PROVED,
        Status.AGREES,
    }


def test_a_surrogate_in_a_step() -> None:
    rule = written("""
    rule spike(v, k: static = 25.0) -> s:
        s = 1 if v > 0 else 0
        surrogate s = v / (1 + k * abs(v))

    rule lif(x[..., n], beta) -> s[..., n]:
        v[t] = (beta * v[t - 1] - s[t - 1] if t > 0 else 0) + x[t]
        s[t] = spike(v[t] - 1)
    """)
    assert [let.name for let in rule.backward_locals] == ["grad_v", "grad_s"]
    assert _verdicts(rule)["x"][0] is Status.DERIVED


def test_an_empty_axis_has_no_first_element() -> None:
    """A start that is missing leaves every element without a value."""
    text = BACKWARDS.replace(" if t < n - 1 else 0)\n    u", ")\n    u")
    outcome = check(written(text), 1.0)
    assert {d.code for d in outcome.diagnostics} & {"GS250", "GS420"}
