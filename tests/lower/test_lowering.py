"""What sound files become."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gradspec.ir.expr import (
    Apply,
    Bound,
    Call,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    const,
    show,
)
from gradspec.ir.rule import (
    Kind,
    Origin,
    Shape,
)
from gradspec.ir.walk import nodes
from gradspec.lower.module import Type
from tests.lower.grad_text import forward, lowered, rule, rules, value

FIRST_FILE = Path(__file__).with_name("first_file.grad").read_text("utf-8")


def test_the_first_file_of_the_language_lowers_without_a_word() -> None:
    made = rules(FIRST_FILE)
    assert list(made) == [
        "log1pexp",
        "complex_op",
        "swish",
        "spike",
        "reverse_gradient",
        "bce",
        "softmax",
        "linear",
    ]
    origins = {n: [d.origin for d in rule.backward] for n, rule in made.items()}
    assert origins["complex_op"] == [Origin.WRITTEN, Origin.WRITTEN]
    assert origins["reverse_gradient"] == [Origin.OVERRIDE]
    assert origins["bce"] == []
    assert [show(a.condition) for a in made["bce"].assumes] == [
        "0 < p",
        "p < 1",
        "0 <= t",
        "t <= 1",
    ]
    assert show(made["spike"].surrogates[0].value) == "v / (1 + k * abs(v))"
    assert made["log1pexp"].examples[0].given == (("x", "100"),)
    assert made["log1pexp"].text.startswith("rule log1pexp(x) -> y:")


def test_a_def_is_put_in_place() -> None:
    assert (
        show(rules(FIRST_FILE)["swish"].forward[0].value)
        == "x * (1 / (1 + exp(-(beta * x))))"
    )


def test_defs_call_defs_in_any_order() -> None:
    text = (
        "def a(x) = b(x, y=2)\ndef b(x, y) = x - y\nrule f(x) -> z:\n    z = a(3 * x)\n"
    )
    assert forward(text) == {"z": "3 * x - 2"}


def test_rules_are_called_in_any_order_and_kept_as_calls() -> None:
    text = (
        "rule f(x) -> y:\n    y = g.b(x, k=3) + g.a(x)\n"
        "rule g(x, k: static = 2, m: static = 0.5) -> (a, b):\n"
        "    a = x * k\n    b = x * m\n"
    )
    made = rules(text)["f"].forward[0].value
    first, second = sorted(
        (n for n in nodes(made) if isinstance(n, Call)), key=lambda n: -n.output
    )
    assert (first.output, second.output) == (1, 0)
    assert [show(a) for a in first.args] == ["x", "3", "0.5"]
    assert [show(a) for a in second.args] == ["x", "2", "0.5"]
    assert show(made) == "g.b(x, k=3) + g.a(x)"


def test_own_names_shadow_built_ins_except_inside_themselves() -> None:
    text = (
        "rule softplus(x) -> y:\n    y = softplus(x) + 1\n"
        "rule f(x) -> y:\n    y = softplus(x)\n"
    )
    made = rules(text)
    assert not any(
        isinstance(n, Call) for n in nodes(made["softplus"].forward[0].value)
    )
    assert isinstance(made["f"].forward[0].value, Call)


def test_a_def_may_call_a_rule() -> None:
    text = (
        "def twice(x) = 2 * square(x)\n"
        "rule square(x) -> y:\n    y = x * x\n"
        "rule f(x) -> y:\n    y = twice(x + 1)\n"
    )
    assert forward(text) == {"y": "2 * square(x + 1)"}


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("-3 * x", "-3 * x"),
        ("-x**2", "-x**2"),
        ("(-x)**2", "(-x)**2"),
        ("x / 3", "x / 3"),
        ("0.10 * x", "0.1 * x"),
        ("+x", "x"),
        ("1 if 0 < x < y <= 2 else k", "1 if 0 < x and x < y and y <= 2 else k"),
        ("(x > 0) == (y > 0)", None),
        ("pi * x + inf", "pi * x + inf"),
        ("1 if x > 0 else 2 if y > 0 else 3", "1 if x > 0 else 2 if y > 0 else 3"),
        ("max(y=x, x=y)", "max(y, x)"),
    ],
)
def test_expressions(written: str, made: str | None) -> None:
    if made is None:
        assert value(f"1 if {written} else 0") == (
            "1 if x > 0 and y > 0 or not x > 0 and not y > 0 else 0"
        )
    else:
        assert value(written) == made


def test_constants_are_exact() -> None:
    made = rule("rule f(x, k: static = 1 / 3 - 0.1) -> y:\n    y = x * k\n")
    assert made.inputs[1].default == Fraction(7, 30)


def test_kinds_and_shapes() -> None:
    made = rule(
        "rule f(x, r[], v[n], b[..., n, 3]: nograd, t: int, m: bool,"
        " k: static int = 2) -> (y[..., n], c: int):\n"
        "    y[i] = x * r * v[i] + b[i, 0] if m else 0\n    c = t + k\n"
    )
    assert [(i.kind, i.shape) for i in made.inputs] == [
        (Kind.FLOAT, Shape(True, ())),
        (Kind.FLOAT, Shape(False, ())),
        (Kind.FLOAT, Shape(False, ("n",))),
        (Kind.NOGRAD, Shape(True, ("n", 3))),
        (Kind.INT, Shape(True, ())),
        (Kind.BOOL, Shape(True, ())),
        (Kind.STATIC_INT, Shape(True, ())),
    ]


def test_locals_belong_to_the_pass_that_they_use() -> None:
    made = rule(
        "rule f(x) -> y:\n    a = exp(x)\n    g = dy * a\n    h = g + 1\n    y = a + 1\n"
        "    b = a * 2\n    dx = g * (h - g) + 0 * b\n"
    )
    assert [let.name for let in made.forward] == ["a", "y", "b"]
    assert [let.name for let in made.backward_locals] == ["g", "h"]


def test_a_gradient_may_use_one_assigned_above() -> None:
    made = rule("rule f(x, y) -> z:\n    z = x + y\n    dx = dz\n    dy = dx\n")
    assert show(made.backward[1].value) == "dx"


def test_a_condition_may_have_a_name() -> None:
    text = "rule f(x) -> y:\n    positive = x > 0\n    y = x if positive else 0\n"
    assert forward(text)["y"] == "x if positive else 0"


def test_names_of_gradients_are_free_where_there_is_none() -> None:
    made = rule("rule euler(x, t: static, dt: static) -> y:\n    y = x + t * dt\n")
    assert [i.name for i in made.inputs] == ["x", "t", "dt"]


@pytest.mark.parametrize("opening", ["sin(", "-(", "1 / (", "two(", "d(", "2**("])
def test_expressions_may_be_as_deep_as_the_syntax_lets_them(opening: str) -> None:
    text = (
        "def d(x) = 2 * x\nrule two(x) -> y:\n    y = 2 * x\n"
        f"rule f(x) -> y:\n    y = {opening * 195}x{')' * 195}\n"
    )
    assert rule(text).name == "f"


# --- indices -------------------------------------------------------------------------


def test_the_range_of_an_index_is_the_axis_that_it_stands_on() -> None:
    made = rule(
        "rule matmul(a[..., m, k], b[..., k, n]) -> c[..., m, n]:\n"
        "    c[i, j] = sum(a[i, l] * b[l, j] for l)\n"
    )
    reduction = made.forward[0].value
    assert isinstance(reduction, Reduce)
    assert reduction.bounds == (Bound("l", "k"),)
    assert made.forward[0].axes == ("m", "n")


def test_locals_have_the_axes_of_their_indices() -> None:
    made = rules(FIRST_FILE)["softmax"]
    assert [(let.name, let.indices, let.axes) for let in made.forward] == [
        ("e", ("i",), ("n",)),
        ("y", ("i",), ("n",)),
    ]


def test_an_inner_index_of_the_same_name_is_another() -> None:
    text = "rule f(x[..., n]) -> y:\n    y = sum(x[i] * sum(x[i] for i) for i)\n"
    assert forward(text) == {"y": "sum(x[i] * sum(x[i2] for i2) for i)"}


def test_an_offset_gives_the_range_where_nothing_else_does() -> None:
    text = "rule f(x[..., n]) -> y:\n    y = sum(x[i + 1] for i if i + 1 < n)\n"
    reduction = rule(text).forward[0].value
    assert isinstance(reduction, Reduce)
    assert reduction.bounds == (Bound("i", "n"),)


def test_a_comparison_gives_the_range_where_nothing_else_does() -> None:
    made = rule(
        "rule f(x[..., n]) -> y:\n"
        "    c[i] = sum(x[j] for j if j <= i)\n"
        "    y = sum(c[i] * sum(1 for j if abs(i - j) <= 1) for i)\n"
    )
    assert made.forward[0].axes == ("n",)
    (counted,) = (
        n for n in nodes(made.forward[1].value) if isinstance(n, Reduce) and n.where
    )
    assert counted.bounds == (Bound("j", "n"),)


def test_a_place_of_nth_ranges_over_the_axis_that_is_ordered() -> None:
    made = rule(
        "rule f(x[..., n], k: static int) -> y:\n"
        "    p[i] = nth(i, x[j] for j)\n"
        "    q[i in k] = nth(i, x[j] for j)\n"
        "    y = x[p[0]] + x[q[0]]\n"
    )
    whole, part = made.forward[:2]
    assert (whole.axes, part.axes) == (("n",), ("k",))
    assert show(whole.value) == show(part.value) == "nth(i, x[j] for j)"
    assert part.value == Select(
        Apply("lt", (Idx("i"), Size("n"))), whole.value, const(-1)
    )


def test_a_comparison_with_two_axes_gives_no_range() -> None:
    _, found = lowered(
        "rule f(x[..., n], z[..., m]) -> y:\n"
        "    c[i] = sum(x[j] * z[k] for j, k if j <= i and k <= i)\n"
        "    y = x[0]\n"
    )
    assert [d.code for d in found] == ["GS233"]


def test_a_convolution_has_a_sum_of_indices() -> None:
    text = (
        "rule conv(x[..., n], w[k]) -> y[..., n]:\n"
        "    y[i] = sum((x[i + j] if i + j < n else 0) * w[j] for j)\n"
    )
    reduction = rule(text).forward[0].value
    assert isinstance(reduction, Reduce)
    assert reduction.bounds == (Bound("j", "k"),)


def test_integers_stand_as_indices() -> None:
    made = rule(
        "rule pick(x[..., n], t: int) -> (y, z[..., n]):\n"
        "    y = x[t] + x[n - 1] + x[0]\n    z[i] = x[n - 1 - i] * i\n"
        "    dx[i] = (dy if i == t else 0) + dz[i] * i\n"
    )
    assert show(made.forward[0].value) == "x[t] + x[n - 1] + x[0]"


def test_assumptions_hold_for_every_index() -> None:
    made = rule(
        "rule f(p[..., n], q[..., n]) -> y:\n"
        "    assume p[i] > 0, sum(p[i] for i) <= 1, p[i] <= q[j]\n"
        "    y = sum(p[i] * log(p[i]) + q[i] for i)\n"
    )
    assert [a.indices for a in made.assumes] == [
        (("i", "n"),),
        (),
        (("i", "n"), ("j", "n")),
    ]


def test_a_static_integer_can_be_a_size() -> None:
    text = (
        "rule one_hot(t: int, m: static int) -> y[..., m]:\n"
        "    y[i] = 1 if i == t else 0\n"
    )
    assert rule(text).outputs[0].shape == Shape(True, ("m",))


def test_rank_0_values_may_be_written_with_empty_brackets() -> None:
    text = "rule f(x[]) -> y[]:\n    y[] = x[] * x\n    dx[] = 2 * x * dy[]\n"
    assert forward(text) == {"y": "x * x"}


# --- defs and types ------------------------------------------------------------------


def test_parameters_have_the_type_that_the_body_asks_for() -> None:
    module, found = lowered(
        "def pick(c, a, b) = a if c else b\n"
        "def deep(n, x) = polygamma(n + 1, x)\n"
        "def gated(x, b) = swish(x, beta=2 * b)\n"
        "rule swish(x, beta: static) -> y:\n    y = x * sigmoid(beta * x)\n"
    )
    assert found == ()
    types = {f.name: [p.type for p in f.parameters] for f in module.functions}
    assert types["pick"] == [Type.BOOL, Type.REAL, Type.REAL]
    assert types["deep"] == [Type.INT, Type.REAL]
    gated = next(f for f in module.functions if f.name == "gated")
    assert [p.is_static for p in gated.parameters] == [False, True]


def test_places_lead_back_to_the_text() -> None:
    text = "def s(t) = exp(-t)\nrule f(x) -> y:\n    y = x * s(x)\n    b = x\n"
    made = rule(text)
    spans = {
        show(n): made.source.slice(n.span)
        for n in nodes(made.forward[0].value)
        if n.span
    }
    assert spans["x * exp(-x)"] == "x * s(x)"
    assert spans["exp(-x)"] == "s(x)", "what a def puts in place stands at its call"
    assert spans["x"] == "x"


def test_every_reference_of_an_elementwise_rule_is_bare() -> None:
    for made in rules(FIRST_FILE).values():
        if not made.has_axes:
            values = (let.value for let in made.forward)
            refs = (n for v in values for n in nodes(v) if isinstance(n, Ref))
            assert all(n.indices == () for n in refs)
