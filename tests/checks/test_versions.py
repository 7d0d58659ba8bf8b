"""Two versions of a rule: what is proved to be the same, and where they differ."""

from __future__ import annotations

import pytest

from gradspec.checks.versions import compare_rules
from gradspec.driver.load import load
from gradspec.ir.rule import Rule
from gradspec.source import Source

SOFTMAX = (
    "rule f(x[..., n]) -> y[..., n]:\n    y[i] = exp(x[i]) / sum(exp(x[j]) for j)\n"
)
STABLE = (
    "rule f(x[..., k]) -> y[..., k]:\n    e[i] = exp(x[i] - max(x[j] for j))\n"
    "    y[i] = e[i] / sum(e[j] for j)\n"
    "    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))\n"
)
RNN = (
    "rule f(a[..., n], x[..., n], h0) -> h[..., n]:\n"
    "    h[t] = a[t] * (h[t - 1] if t > 0 else h0) + x[t]\n"
)
TWICE = "rule g(x) -> y:\n    y = 2 * x\n\n"
KEPLER = "rule f(a) -> x:\n    assume 0 < a, a < 1\n    solve x: x == a * sin(x) + 1\n"
SURROGATE = "    s = 1 if v > 0 else 0\n    surrogate s = sigmoid(v)\n"


def f(*body: str, head: str = "x") -> str:
    return f"rule f({head}) -> y:\n" + "".join(f"    {line}\n" for line in body)


SAME = [
    ("its documentation", f("y = x**2"), f('"""The square."""', "y = x**2"), "same text"),
    ("a declared gradient", f("y = tanh(x)"), f("y = tanh(x)", "dx = dy / cosh(x)**2"), "proved"),
    ("a rewriting", f("y = x / (1 + exp(-x))"), f("y = x * sigmoid(x)"), "proved"),
    ("the name of the output", f("y = x * x"), "rule f(x) -> z:\n    z = x**2\n", "proved"),
    ("a def", "def s(t) = t + t\n" + f("y = s(x)"), f("y = 2 * x"), "proved"),
    ("a called rule", TWICE + f("y = g(x)"), f("y = x + x"), "proved"),
    ("a hole that is filled", f("y = sin(x) / sin(x)"), f("y = 1 + 0 * x"), "proved"),
    ("rounding", f("y = x * sqrt(2 / pi)"), f("y = x * 0.7978845608028654"), "rounding"),
    ("an option", f("y = sigmoid(x)"), f("y = sigmoid(b * x)", head="x, b: static = 1"), "proved"),
    ("the names of axes", SOFTMAX, SOFTMAX.replace("n]", "m]"), "same text"),
    ("an evaluation over axes", SOFTMAX, STABLE, "proved"),
    ("a recurrence, in words", RNN, RNN.replace(":\n", ':\n    """A filter."""\n', 1), "same text"),
    ("a recurrence, in order", RNN, RNN.replace("a[t] * (h[t - 1] if t > 0 else h0) + x[t]",
     "x[t] + (a[t] * h[t - 1] if t > 0 else a[t] * h0)"), "proved"),
    ("an equation", KEPLER, KEPLER.replace("a * sin(x) + 1", "1 + sin(x) * a"), "proved"),
    ("a position", "rule f(x[..., n], t: int) -> y:\n    y = x[t]\n",
     "rule f(x[..., n], t: int) -> y:\n    y = sum(x[j] for j if j == t)\n", "agrees"),
]  # fmt: skip

OTHER = [
    ("a number", f("y = 1.5 * x"), f("y = 1.6 * x"), "y x = 1 1.5 1.6"),
    ("an override", f("y = x"), f("y = x", 'override dx = -dy because "reversed"'), "dx dy = 1 1 -1"),
    ("a surrogate", f"rule f(v) -> s:\n{SURROGATE}", f"rule f(v) -> s:\n{SURROGATE[:-2]}/2)\n",
     "dv v = 1, dy = 1 0.1966119332 0.1175018561"),
    ("a threshold", f("y = x if x > 0.5 else 0"), f("y = x if x > 0.500001 else 0"), "y x = 0.50000"),
    ("the value at a border", f("y = 1 if x > 0.5 else 0"), f("y = 1 if x >= 0.5 else 0"), "y x = 0.5 0 1"),
    ("the gradient at a kink", f("y = relu(x)"), f("y = max(x, 0)"), "dx x = 0, dy = 1 0 0.5"),
    ("where several turn", "rule f(a[..., d], p[..., d], m: static = 1) -> y:\n"
     "    y = relu(sum((a[i] - p[i])**2 for i) + m)\n    da[i] = 2 * dy * (a[i] - p[i])\n",
     "rule f(a[..., d], p[..., d], m: static = 1) -> y:\n"
     "    y = relu(sum((a[i] - p[i])**2 for i) + m - 1)\n    da[i] = 2 * dy * (a[i] - p[i])\n", "y "),
    ("a new hole", f("y = x + 1"), f("y = (x * x - 1) / (x - 1)"), "y x = 1 2 undefined"),
    ("a called rule", TWICE + f("y = g(x)"), TWICE.replace("2", "3") + f("y = g(x)"), "y x = 1 2 3"),
    ("the default of an option", f("y = sigmoid(x)"), f("y = sigmoid(b * x)", head="x, b: static = 2"),
     "y x = 1 0.7310585786 0.880797078"),
    ("a range", SOFTMAX, SOFTMAX.replace("for j)", "for j if j <= i)"), "y[0] x[0] = 1, x[1] = 2"),
    ("an element that does not exist", "rule f(x[n]) -> y:\n    y = sum(x[i + 1] - x[i] for i if i < n - 1)\n",
     "rule f(x[n]) -> y:\n    y = sum(x[i + 2] - x[i + 1] for i if i < n - 1)\n", "y n = 2 a number an element that does not exist (x[2])"),
    ("the start of a recurrence", RNN, RNN.replace("t > 0", "t > 1"), "h[1] a[0] = "),
    ("outputs in another order", "rule f(x) -> (a, b):\n    a = cos(x)\n    b = sin(x)\n",
     "rule f(x) -> (b, a):\n    a = cos(x)\n    b = sin(x)\n", "a x = "),
    ("a number of an equation", KEPLER, KEPLER.replace("+ 1", "+ 2"), "x not compared"),
]  # fmt: skip

SIGNATURES = [
    ("x", "x, b: static = 2", False, "the input b: static = 2 is new"),
    ("x", "x, b: static", True, "the input b: static is new"),
    ("x, b: static = 1", "x, b: static = 2", True, "b: static = 1 was, b: static = 2 is"),
    ("x, b: static = 1", "x", True, "the input b: static = 1 is gone"),
    ("x, b", "x, b: nograd", True, "b was, b: nograd is"),
    ("x, b", "b, x", True, "inputs were x, b, are b, x"),
    ("x, b: param = 1", "x, b: param = 2", True, "b: param = 1 was, b: param = 2 is"),
    ("x", "x[]", True, "x was, x[] is"),
]  # fmt: skip


def rule(text: str) -> Rule:
    loaded = load(Source("f.grad", text), ".")
    assert loaded.module is not None and not loaded.diagnostics, text
    return loaded.module.rules[-1]


@pytest.mark.parametrize(
    ("old", "new", "how"), [c[1:] for c in SAME], ids=[c[0] for c in SAME]
)
def test_what_no_caller_notices_is_the_same(old: str, new: str, how: str) -> None:
    found = compare_rules(rule(old), rule(new), 4.0)
    assert not found.is_noticed
    assert how in {part.how.value for part in found.parts}
    if how != "agrees":
        assert {part.how.value for part in found.parts} <= {"same text", how}


@pytest.mark.parametrize(
    ("old", "new", "told"), [c[1:] for c in OTHER], ids=[c[0] for c in OTHER]
)
def test_what_differs_has_a_point_with_both_values(
    old: str, new: str, told: str
) -> None:
    found = compare_rules(rule(old), rule(new), 4.0)
    said = [f"{p.name} {p.point or p.how.value} {p.was} {p.now}" for p in found.parts]
    told = told.replace("dv v = 1, dy", "dv v = 1, ds")
    assert found.is_noticed and any(line.startswith(told) for line in said), said


@pytest.mark.parametrize(("old", "new", "noticed", "told"), SIGNATURES)
def test_signatures_are_compared_as_callers_use_them(
    old: str, new: str, noticed: bool, told: str
) -> None:
    uses = "b" in old and "b" in new
    before, after = (
        f("y = x * b" if uses else "y = x", head=head) for head in (old, new)
    )
    found = compare_rules(rule(before), rule(after), 4.0)
    assert (noticed, told) in found.signature


def test_assumptions_that_are_new_can_be_noticed() -> None:
    plain, narrow = f("y = log(x * x)"), f("assume x > 0", "y = 2 * log(x)")
    found = compare_rules(rule(plain), rule(narrow), 4.0)
    assert found.signature == ((True, "assumes x > 0 now"),)
    assert {part.how.value for part in found.parts} == {"proved"}
    assert not compare_rules(rule(narrow), rule(plain), 4.0).is_noticed
