"""Ranked rules written out at given sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradspec.derive.vjp import cotangents
from gradspec.ir.elements import EVALUATED, OutOfRange, element, places
from gradspec.ir.expr import show
from gradspec.ir.rule import Rule
from gradspec.ir.unroll import (
    axis_names,
    count,
    index_inputs,
    unroll,
)
from gradspec.ir.walk import closed_cotangents, closed_outputs
from gradspec.lower.lowering import lower
from gradspec.source import Source
from gradspec.symbolic.enclose import enclose
from gradspec.symbolic.proof.prove import search
from gradspec.syntax.parse import parse
from tests.ir.well_formed import verify


def ranked(text: str) -> Rule:
    parsed = parse(Source("t.grad", text))
    assert parsed.value is not None, parsed.diagnostics
    lowered = lower(parsed.value, {})
    assert not lowered.failed, lowered.diagnostics
    assert lowered.value is not None
    return lowered.value.rules[0]


def shown(rule: Rule) -> dict[str, str]:
    return {let.name: show(let.value) for let in rule.forward}


SOFTMAX = """
rule softmax(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i] - max(x[j] for j))
    y[i] = e[i] / sum(e[j] for j)
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))
"""

LINEAR = """
rule linear(x[..., k], w[m, k], b[m]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l) + b[i]
"""


def test_elements_are_inputs_and_reductions_are_written_out() -> None:
    rule = unroll(ranked(LINEAR), {"k": 2, "m": 2}).rule
    names = [i.name for i in rule.inputs]
    first = ["x[0]", "x[1]", "w[0, 0]", "w[0, 1]", "w[1, 0]", "w[1, 1]"]
    assert names == [*first, "b[0]", "b[1]"]
    assert shown(rule) == {
        "y[0]": "x[0] * w[0, 0] + x[1] * w[0, 1] + b[0]",
        "y[1]": "x[0] * w[1, 0] + x[1] * w[1, 1] + b[1]",
    }
    assert not rule.has_axes
    assert verify(rule) == ()


def test_locals_and_declared_gradients_are_unrolled() -> None:
    rule = unroll(ranked(SOFTMAX), {"n": 2}).rule
    assert verify(rule) == ()
    assert shown(rule)["e[1]"] == "exp(x[1] - max(x[0], x[1]))"
    entry = rule.backward[1]
    assert entry.is_declared
    assert show(entry.value) == "y[1] * (dy[1] - (dy[0] * y[0] + dy[1] * y[1]))"


def test_the_unrolled_rule_is_differentiated_and_proved_as_any_other() -> None:
    text = """
rule normalised(x[..., n]) -> y[..., n]:
    s = sum(exp(x[j]) for j)
    y[i] = exp(x[i]) / s
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))
"""
    for size in (1, 2, 3):
        rule = unroll(ranked(text), {"n": size}).rule
        stated, derived = closed_cotangents(rule), cotangents(rule)
        for name, value in derived.items():
            assert search(stated[f"d{name}"], value, wrt=name).proof


def test_sizes_conditions_and_constant_indices_are_decided() -> None:
    rule = ranked(
        """
rule r(x[n], m[2]) -> (y[n], z[]):
    y[i] = sum(x[j] for j if j <= i) / n
    z = m[1] * mean(x[j] for j) + x[n - 1]
"""
    )
    assert shown(unroll(rule, {"n": 2}).rule) == {
        "y[0]": "x[0] / 2",
        "y[1]": "(x[0] + x[1]) / 2",
        "z": "m[1] * ((x[0] + x[1]) / 2) + x[1]",
    }


def test_conditions_on_data_stay() -> None:
    text = """
rule r(x[n]) -> (s[], m[], a[], p[], l[]):
    s = sum(x[j] for j if x[j] > 0)
    m = max(x[j] for j if x[j] < 3)
    a = mean(x[j] for j if x[j] > 0)
    p = prod(x[j] for j if x[j] > 0)
    l = logsumexp(x[j] for j if x[j] > 0)
"""
    rule = unroll(ranked(text), {"n": 3}).rule
    values = closed_outputs(rule)
    at = {"x[0]": 4, "x[1]": -1, "x[2]": 2}
    found = {name: float(enclose(value, at).mid()) for name, value in values.items()}
    assert found["s"] == 6
    assert found["m"] == 2
    assert found["a"] == 3
    assert found["p"] == 8
    assert found["l"] == pytest.approx(4.126928011042972)


def test_empty_reductions_are_what_frameworks_make_of_them() -> None:
    text = """
rule r(x[n]) -> (s[], p[], m[], a[]):
    s = sum(x[j] for j)
    p = prod(x[j] for j)
    m = max(x[j] for j)
    a = mean(x[j] for j)
"""
    found = shown(unroll(ranked(text), {"n": 0}).rule)
    assert found == {"s": "0", "p": "1", "m": "-inf", "a": "0 / 0"}


def test_given_integers_stand_as_indices() -> None:
    rule = ranked(
        """
rule nll(x[..., n], t[...]: int) -> loss[...]:
    loss = logsumexp(x[j] for j) - x[t]
    dx[i] = dloss * (exp(x[i] - logsumexp(x[j] for j)) - (1 if i == t else 0))
"""
    )
    assert index_inputs(rule) == {"t": "n"}
    made = unroll(rule, {"n": 2}, {"t": 1}).rule
    assert [i.name for i in made.inputs] == ["x[0]", "x[1]"]
    assert shown(made)["loss"] == "log(exp(x[0]) + exp(x[1])) - x[1]"
    with pytest.raises(OutOfRange):
        unroll(rule, {"n": 2}, {"t": 2})


def test_rows_of_given_integers() -> None:
    rule = ranked(
        """
rule embed(w[v, d], t[n]: int) -> y[n, d]:
    y[i, j] = w[t[i], j]
"""
    )
    made = unroll(rule, {"v": 2, "d": 1, "n": 2}, {"t": (1, 0)}).rule
    assert shown(made) == {"y[0, 0]": "w[1, 0]", "y[1, 0]": "w[0, 0]"}


def test_an_integer_that_is_not_given_becomes_a_choice() -> None:
    rule = ranked("rule pick(x[n], t[]: int) -> y[]:\n    y = x[t]\n")
    made = unroll(rule, {"n": 2}).rule
    assert shown(made) == {"y": "x[0] if t == 0 else x[1] if t == 1 else 0 / 0"}


def test_an_element_out_of_range_matters_only_where_it_is_used() -> None:
    inside = ranked(
        """
rule tv(x[n]) -> y[]:
    y = sum(abs(x[i + 1] - x[i]) for i if i < n - 1)
"""
    )
    assert shown(unroll(inside, {"n": 2}).rule) == {"y": "abs(x[1] - x[0])"}
    either = ranked(
        """
rule lag(x[n]) -> y[n]:
    y[i] = x[i - 1] if i > 0 else 0
"""
    )
    assert shown(unroll(either, {"n": 2}).rule) == {"y[0]": "0", "y[1]": "x[0]"}
    outside = ranked("rule bad(x[n]) -> y[n]:\n    y[i] = x[i + 1]\n")
    with pytest.raises(OutOfRange) as caught:
        unroll(outside, {"n": 2})
    assert caught.value.name == "x[2]"
    assert caught.value.span is not None
    assert outside.source.slice(caught.value.span) == "x[i + 1]"


def test_a_local_out_of_range_may_stay_unused() -> None:
    rule = ranked(
        """
rule tv(x[n]) -> y[]:
    d[i] = x[i + 1] - x[i]
    y = sum(d[i]**2 for i if i < n - 1)
"""
    )
    made = unroll(rule, {"n": 3}).rule
    assert verify(made) == ()
    assert [let.name for let in made.forward] == ["d[0]", "d[1]", "y"]


def test_convolution_at_sizes_that_fit_and_that_do_not() -> None:
    rule = ranked(
        """
rule conv(x[n], w[k], m: static int) -> y[m]:
    y[i] = sum(x[i + l] * w[l] for l)
"""
    )
    assert axis_names(rule) == ("n", "k", "m")  # the static is a size
    made = unroll(rule, {"n": 3, "k": 2, "m": 2}).rule
    assert shown(made)["y[1]"] == "x[1] * w[0] + x[2] * w[1]"
    with pytest.raises(OutOfRange):
        unroll(rule, {"n": 3, "k": 2, "m": 3})


def test_assumptions_hold_of_every_element() -> None:
    rule = ranked(
        """
rule r(p[n]) -> y[]:
    assume p[i] > 0, sum(p[i] for i) <= 1, n > 0
    y = sum(log(p[i]) for i)
"""
    )
    assumes = [show(a.condition) for a in unroll(rule, {"n": 2}).rule.assumes]
    assert assumes == ["p[0] > 0", "p[1] > 0", "p[0] + p[1] <= 1"]


def test_surrogates_overrides_and_what_is_missing() -> None:
    rule = ranked(
        """
rule r(x[n], w[n], b[]) -> y[n]:
    y[i] = (1 if x[i] > 0 else 0) * w[i] + b
    surrogate y[i] = tanh(x[i]) * w[i] + b
    override dw[i] = -dy[i] because "test"
"""
    )
    made = unroll(rule, {"n": 2}).rule
    assert verify(made) == ()
    assert [s.name for s in made.surrogates] == ["y[0]", "y[1]"]
    assert [e.name for e in made.backward if e.is_override] == ["dw[0]", "dw[1]"]
    assert len(made.backward) == 2
    assert show(cotangents(made)["b"]) == "dy[0] + dy[1]"


def test_nested_reductions_use_the_indices_around_them() -> None:
    rule = ranked(
        """
rule r(a[n, m]) -> y[]:
    y = sum(prod(a[i, j] for j) for i)
"""
    )
    found = shown(unroll(rule, {"n": 2, "m": 2}).rule)
    assert found == {"y": "a[0, 0] * a[0, 1] + a[1, 0] * a[1, 1]"}


def test_backward_locals_that_use_gradients() -> None:
    rule = ranked(
        """
rule r(x[n], w[n]) -> y[]:
    y = sum(x[i] * w[i] for i)
    g[i] = dy * w[i]
    dx[i] = g[i]
    dw[i] = x[i] * dy
"""
    )
    made = unroll(rule, {"n": 2}).rule
    assert verify(made) == ()
    assert show(closed_cotangents(made)["dx[1]"]) == "dy * w[1]"


def test_logsumexp_as_it_is_evaluated() -> None:
    rule = ranked("rule r(x[n]) -> y[]:\n    y = logsumexp(x[i] for i)\n")
    made = unroll(rule, {"n": 2}, joins=EVALUATED).rule
    top = "max(x[0], x[1])"
    assert shown(made)["y"] == f"{top} + log(exp(x[0] - {top}) + exp(x[1] - {top}))"


def test_elements_and_places() -> None:
    assert element("x", ()) == "x"
    assert list(places(("n", 2), {"n": 1})) == [(0, 0), (0, 1)]
    assert count(ranked(LINEAR), {"k": 2, "m": 3}) == 2 + 6 + 3 + 3


def test_an_elementwise_rule_stays_as_it_is() -> None:
    rule = ranked("rule r(x) -> y:\n    y = x * exp(x)\n")
    assert replace(unroll(rule, {}).rule, source=rule.source) == rule
