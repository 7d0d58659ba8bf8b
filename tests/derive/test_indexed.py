"""Cotangents of ranked rules against those of the rules written out, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest

from gradspec.derive.complete import complete
from gradspec.derive.indexed import (
    closed_cotangent,
    indexed_cotangents,
    same,
)
from gradspec.derive.vjp import cotangents
from gradspec.ir.elements import OutOfRange
from gradspec.ir.expr import Bound, Idx, Reduce, Ref, show
from gradspec.ir.rule import Rule
from gradspec.ir.unroll import axis_names, unroll
from gradspec.ir.walk import closed_cotangents
from gradspec.symbolic.enclose import enclose
from tests.derive.rules import RULES
from tests.ir.test_unroll import ranked
from tests.ir.well_formed import verify

_INTEGERS: dict[str, int | tuple[int, ...]] = {
    "embedding": (0, 1, 0),
    "cross_entropy": 0,
    "focal": 0,
}


def at_sizes(name: str) -> Iterator[tuple[Rule, Rule]]:
    """The rule completed over indices, and as written, both written out."""
    rule = ranked(RULES[name])
    axes = axis_names(rule)
    for sizes in product((1, 2, 3), repeat=len(axes)):
        extents = dict(zip(axes, sizes, strict=True))
        integers: dict[str, int | tuple[int, ...]] = {}
        if name in _INTEGERS:
            value = _INTEGERS[name]
            rows = value if isinstance(value, int) else value[: extents["b"]]
            integers = {"t": rows}
        try:
            written = unroll(rule, extents, integers).rule
            found = unroll(complete(rule).value, extents, integers).rule
        except OutOfRange:
            assert name == "embedding"
            continue
        yield found, written


def point(rule: Rule, salt: int) -> dict[str, Fraction]:
    """Numbers that are all different, of both signs."""
    names = [i.name for i in rule.inputs] + [f"d{o.name}" for o in rule.outputs]
    values = ((p * 37 + salt * 11) % 29 for p in range(len(names)))
    found = {
        name: Fraction(2 * value - 27, 16)
        for name, value in zip(names, values, strict=True)
    }
    return found | {i.name: abs(found[i.name]) for i in rule.static_inputs}


@pytest.mark.parametrize("name", RULES)
def test_every_element_is_that_of_the_rule_written_out(name: str) -> None:
    checked = 0
    for found, written in list(at_sizes(name))[:27]:
        stated, derived = closed_cotangents(found), cotangents(written)
        for salt in (1, 2):
            at = point(written, salt)
            for key, value in derived.items():
                ours = enclose(stated[f"d{key}"], at)
                theirs = enclose(value, at)
                if not theirs.is_finite():  # focal of one class: 1 - p is 0
                    assert name == "focal"
                    continue
                assert ours.overlaps(theirs), (key, show(value))
                assert float(ours.rad()) < 1e-20
                checked += 1
    assert checked > 0


@pytest.mark.parametrize("name", RULES)
def test_completed_rules_are_well_formed(name: str) -> None:
    rule = complete(ranked(RULES[name])).value
    assert verify(rule) == ()
    assert all(rule.cotangent_of(i) for i in rule.inputs if i.takes_gradient)


def derived(name: str) -> dict[str, str]:
    found = indexed_cotangents(ranked(RULES[name]))
    return {key: show(entry.value) for key, entry in found.items()}


@pytest.mark.parametrize(
    ("value", "derivative"),
    [
        ("(x if b > 0 else 0) + x", "dy * ((1 if b > 0 else 0) + 1)"),
        ("x + (x if b > 0 else 0)", "dy * (1 + (1 if b > 0 else 0))"),
        ("(x if b > 0 else 0) * x", "2 * dy * x if b > 0 else 0"),
    ],
)
def test_what_stands_beside_a_conditional_adds_up(value: str, derivative: str) -> None:
    made = complete(ranked(f"rule f(b: nograd, x) -> y:\n    y = {value}\n")).value
    (entry,) = made.backward
    assert entry.is_derived and show(entry.value) == derivative


def test_the_form_is_that_of_an_expert() -> None:
    softmax = "y[i] * (dy[i] - sum(dy[j] * y[j] for j))"
    assert derived("softmax") == {"x": softmax}
    assert derived("softmax_unshifted") == {"x": softmax}
    assert derived("linear") == {
        "x": "sum(dy[j] * w[j, i] for j)",
        "w": "dy[i] * x[j]",
        "b": "dy[i]",
    }
    assert derived("log_softmax") == {"x": "dy[i] - sum(dy[j] for j) * exp(y[i])"}
    assert derived("outer")["x"] == "sum(dy[j, i] * z[j] for j)"
    assert derived("attention")["v"] == "sum(dy[l, j] * p[l, i] for l)"


def test_the_maximum_that_shifts_passes_nothing_on() -> None:
    found = derived("causal_attention")["s"]
    assert "max" not in found
    assert "==" not in found


@pytest.mark.parametrize("free", ["i", "%0", "%1", "0"])
def test_a_normal_form_captures_no_index(free: str) -> None:
    whole = Reduce("sum", (Bound("j", "n"),), Ref("x", (Idx(free), Idx("j"))))
    other = Reduce("sum", (Bound("j", "n"),), Ref("x", (Idx("j"), Idx("j"))))
    assert same(whole, whole)
    assert not same(whole, other)


def test_what_is_gathered_is_scattered_back() -> None:
    assert derived("embedding") == {
        "x": "2 * x[i, j] * sum(dy[l, j] if t[l] == i else 0 for l)"
    }
    assert derived("cross_entropy") == {"x": "dy * (exp(l[i]) + (-1 if t == i else 0))"}


def test_a_product_is_safe_where_a_factor_is_zero() -> None:
    found = complete(ranked(RULES["product"])).value
    rule = unroll(found, {"n": 3}).rule
    at = {"x[0]": 0, "x[1]": 3, "x[2]": 5, "dy": 1}
    values = closed_cotangents(rule)
    got = [float(enclose(values[f"dx[{k}]"], at).mid()) for k in range(3)]
    assert got == [15, 0, 0]


@pytest.mark.parametrize(("values", "shares"), [((2, 2, 1), (0.5, 0.5, 0))])
def test_ties_share_evenly(values: tuple[int, ...], shares: tuple[float, ...]) -> None:
    found = complete(ranked("rule m(x[n]) -> y[]:\n    y = max(x[j] for j)\n")).value
    rule = unroll(found, {"n": 3}).rule
    at = {f"x[{k}]": v for k, v in enumerate(values)} | {"dy": 1}
    cotangent = closed_cotangents(rule)
    got = [float(enclose(cotangent[f"dx[{k}]"], at).mid()) for k in range(3)]
    assert got == list(shares)


def agree(text: str, name: str = "x") -> bool:
    """Whether what is declared is seen to be what is derived, for all sizes."""
    rule = ranked(text)
    stated = closed_cotangent(rule, rule.declared[name])
    return same(stated, closed_cotangent(rule, indexed_cotangents(rule)[name]))


SOFTMAX = RULES["softmax"]
NORM = RULES["layer_norm"]
RIGHT = (
    SOFTMAX + "    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))\n",
    SOFTMAX + "    dx[i] = sum(y[i] * (dy[i] - dy[k]) * y[k] for k)\n",
    RULES["softmax_unshifted"] + "    s = sum(dy[k] * y[k] for k)\n"
    "    dx[i] = y[i] * dy[i] - s * y[i]\n",
    RULES["log_softmax"] + "    dx[i] = dy[i] - exp(y[i]) * sum(dy[j] for j)\n",
    NORM + "    h[i] = (x[i] - mu) * r\n    a[i] = dy[i] * g[i]\n"
    "    dx[i] = r * (a[i] - mean(a[j] for j) - h[i] * mean(a[j] * h[j] for j))\n",
    RULES["linear"] + "    dx[l] = sum(w[i, l] * dy[i] for i)\n",
    RULES["distances"] + "    dx[i, l] = 2 * sum(dy[i, j] for j) * x[i, l]"
    " - 2 * sum(dy[i, j] * z[j, l] for j)\n",
    RULES["normalise"] + "    dx[i] = (dy[i] - y[i] * sum(y[j] * dy[j] for j))"
    " / sqrt(sum(x[j]**2 for j))\n",
)
WRONG = (
    SOFTMAX + "    dx[i] = y[i] * (dy[i] - sum(dy[j] for j))\n",
    SOFTMAX + "    dx[i] = y[i] * dy[i]\n",
    NORM + "    a[i] = dy[i] * g[i]\n    dx[i] = r * (a[i] - mean(a[j] for j))\n",
    NORM + "    h[i] = (x[i] - mu) * r\n    a[i] = dy[i] * g[i]\n"
    "    dx[i] = r * (a[i] - sum(a[j] for j) - h[i] * mean(a[j] * h[j] for j))\n",
    RULES["distances"] + "    dx[i, l] = 2 * sum(dy[i, j] for j) * x[i, l]\n",
)


@pytest.mark.parametrize("text", RIGHT)
def test_a_right_declaration_is_proved_for_all_sizes(text: str) -> None:
    assert agree(text)


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_declaration_is_not(text: str) -> None:
    assert not agree(text)
