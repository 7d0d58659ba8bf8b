"""Each fault has its code, and its place is the smallest guilty piece."""

from __future__ import annotations

import pytest

from tests.lower.grad_text import faults, lowered

TWO = "rule two(x, k: static = 1) -> (a, b):\n    a = x * k\n    b = x\n"


def body(*lines: str, header: str = "f(x, t: nograd, k: static = 1) -> y") -> str:
    return f"rule {header}:\n" + "".join(f"    {line}\n" for line in lines)


def y(expression: str) -> str:
    return body(f"y = {expression}")


def ranked(*lines: str) -> str:
    return body(*lines, header="f(x[..., n], w[m, n], c[3], s: int) -> (y[..., n], z)")


ONE = [
    # names
    (y("x + rte"), "GS201", "rte"),
    (y("x + sigmoid"), "GS201", "sigmoid"),
    (y("sigmod(x)"), "GS202", "sigmod"),
    (y("k(1 + x)"), "GS202", "k"),
    (y("sum(x)"), "GS202", "sum"),
    ("def f(a) = a + n\n", "GS201", "n"),
    # calls
    (y("exp(x, 2)"), "GS203", "2"),
    (y("exp()"), "GS203", "exp()"),
    (y("clip(x, 1)"), "GS203", "clip(x, 1)"),
    (y("exp(q=x)"), "GS203", "q=x"),
    (y("exp(x, x=x)"), "GS203", "x=x"),
    (y("max(x, t, 2)"), "GS203", "2"),
    (TWO + y("two.a(x, 3)"), "GS203", "3"),
    ("def g(a, b) = a\n" + y("g(x)"), "GS203", "g(x)"),
    (TWO + y("two(x)"), "GS218", "two"),
    (TWO + y("two.c(x)"), "GS218", "two.c"),
    (y("exp.a(x)"), "GS218", "exp.a"),
    (TWO + y("two.a(x, k=t)"), "GS223", "t"),
    ("def g(v, q) = two.a(v, k=2 * q)\n" + TWO + y("g(x, x + 1)"), "GS223", "x + 1"),
    ("rule r(v[n]) -> u:\n    u = v[0]\n" + y("r(x)"), "GS219", "r"),
    ("rule r(v[]) -> u:\n    u = v\n" + y("r(2 * x)"), "GS219", "2 * x"),
    (
        "rule r(v[]) -> u:\n    u = v\ndef g(a, b) = a + r(b)\n" + y("g(x, x)"),
        "GS219",
        "x",
    ),
    (y("f(x)"), "GS225", "f"),
    # declarations
    (body("y = 1", header="f(x, x) -> y"), "GS205", "x"),
    (body("x = 1", header="f(x) -> x"), "GS205", "x"),
    ("def g(a, a) = a\n", "GS205", "a"),
    (body("y = t", header="f(t, dt) -> y"), "GS210", "dt"),
    (body("y = x", "dy = x", header="f(x) -> (y, dy)"), "GS210", "dy"),
    (body("y = x", header="f(x, k: static = pi) -> y"), "GS223", "pi"),
    (body("y = x", header="f(x, k: static int = inf) -> y"), "GS223", "inf"),
    (body("y = x", header="f(x, k: static = 1 / 0) -> y"), "GS223", "1 / 0"),
    (body("y = x", header="f(x, k: static int = 1.5) -> y"), "GS223", "1.5"),
    (body("y = x", header="f(x = 2) -> y"), "GS223", "2"),
    (body("y = x", header="f(x, k[n]: static) -> y"), "GS223", "[n]"),
    (body("y[i] = x", header="f(x) -> y[..., n]"), "GS243", "n"),
    (body("y[i] = x[i]", header="f(x[n], n) -> y[..., n]"), "GS242", "n"),
    (body("y = 1", header="f(x[0]) -> y"), "GS242", "0"),
    # assignments
    (body("x = 2", "y = t"), "GS206", "x"),
    (body("y = x", "dy = x"), "GS206", "dy"),
    (ranked("n = 2", "y[i] = 1", "z = 1"), "GS206", "n"),
    (body("y = x", "y = t"), "GS207", "y"),
    (body("y = x", "dx = dy", 'override dx = dy because "it"'), "GS207", "dx"),
    (body("y = a", "a = x"), "GS208", "a"),
    (body("y = y + 1"), "GS208", "y"),
    (body("y = x", "g = dx", "b = g"), "GS208", "dx"),
    (body("a = x"), "GS209", "y"),
    (body("y = x", "dt = dy"), "GS212", "dt"),
    (body("y = x", "dk = dy"), "GS212", "dk"),
    (body("y = x", "dx = dk"), "GS212", "dk"),
    (body("y = x", 'override dq = 1 because "it"'), "GS212", "dq"),
    (body("y = x * dy"), "GS213", "dy"),
    (body("g = 2 * dy", "y = x * g"), "GS213", "g"),
    # clauses
    (body("assume y > 0", "y = x"), "GS214", "y"),
    (body("assume a > 0", "a = x", "y = a"), "GS214", "a"),
    (body("assume u > 0", "y = x", "solve u: u == dy - u"), "GS214", "u"),
    (body("assume q > 0", "y = x"), "GS201", "q"),
    (body("assume x", "y = x"), "GS240", "x"),
    (body("a = x", "y = a", "surrogate a = x"), "GS215", "a"),
    (body("y = 1", "surrogate y = 2 * y"), "GS215", "y"),
    (body("y = 1", "surrogate y = dy"), "GS213", "dy"),
    (body("y = 1", "surrogate y = x", "surrogate y = x"), "GS207", "y"),
    (body("y = 1", "surrogate y = x", header="f(x) -> (y: int)"), "GS215", "y"),
    (body("y = x", "save q"), "GS216", "q"),
    # equations
    (ranked("solve y: w[i, 0] * y[0] == c[i]", "z = x[0]"), "GS230", "i"),
    (
        ranked("solve y: sum(w[i, j] * y[j] for j) == 1", "z = x[0]"),
        "GS268",
        "sum(w[i, j] * y[j] for j) == 1",
    ),
    (body("solve y: x + t == 1"), "GS268", "solve y: x + t == 1"),
    (body("y = x", "solve dx: dx * x == dy"), "GS206", "dx"),
    (body("solve y: y + dy == x"), "GS213", "dy"),
    (ranked("solve y[i + 1]: y[i] == x[i]", "z = x[0]"), "GS236", "i + 1"),
    (body("y = x", "save k"), "GS216", "k"),
    (body("y = x", "recompute x"), "GS216", "x"),
    (body("y = x", "g = dy", "dx = g", "save g"), "GS216", "g"),
    (body("y = x", "save y", "recompute y"), "GS216", "y"),
    # examples
    (body("y = x", "example x = 1: y = 1"), "GS217", "example x = 1: y = 1"),
    (body("y = x", "example x = 1, t = 1, q = 2: y = 1"), "GS217", "q"),
    (body("y = x", "example x = 1, t = 1: dt = 1"), "GS217", "dt"),
    (body("y = x", "example x = 1, t = 1, x = 2: y = 1"), "GS217", "x = 2"),
    (body("y = x", "example x = true, t = 1: y = 1"), "GS217", "true"),
    (body("y = x", "example x = 1, t = 1, k = inf: y = 1"), "GS217", "inf"),
    (body("y = x", "example x = 1, t = 1, k = [1]: y = 1"), "GS217", "[1]"),
    (body("y = x", "example x = [1, [2]], t = 1: y = 1"), "GS217", "[1, [2]]"),
    (body("y = x", "example x = [1, 2], t = [1, 2, 3]: y = 1"), "GS217", "[1, 2, 3]"),
    (
        body("y = x", "example x = [1]: y = 1", header="f(x[]) -> y"),
        "GS217",
        "[1]",
    ),
    (
        body("y[i] = x[i]", "example x = 1: y = [1]", header="f(x[n]) -> y[n]"),
        "GS217",
        "1",
    ),
    (
        body("y[i] = x[i]", "example x = [1, 2]: y = [1]", header="f(x[n]) -> y[n]"),
        "GS217",
        "[1]",
    ),
    (
        body("y = x * n", "example x = 1, n = 1.5: y = 1", header="f(x, n: int) -> y"),
        "GS217",
        "1.5",
    ),
    (body("y = x", "example x = [1, 2], t = 1: dx = 1"), "GS217", "1"),
    # indices
    (ranked("y[i] = x[i] * w[i, i]", "z = 1"), "GS230", "i"),
    (ranked("y[i] = x[i]", "z = sum(x[j] * w[j, 0] for j)"), "GS230", "j"),
    (ranked("y[i] = x[i] + x[j]", "z = 1"), "GS231", "j"),
    (ranked("y[i] = x", "z = 1"), "GS232", "x"),
    (ranked("y[i] = x[i, i]", "z = 1"), "GS232", "x[i, i]"),
    (ranked("y[i] = s[i]", "z = 1"), "GS232", "s[i]"),
    (ranked("y = x[0]", "z = 1"), "GS232", "y"),
    (ranked("y[i] = x[i]", "z[i] = 1"), "GS232", "z"),
    (ranked("y[i] = x[i]", "z = sum(2 for j)"), "GS233", "j"),
    (ranked("a[j] = 2", "y[i] = x[i]", "z = 1"), "GS233", "j"),
    (ranked("y[i] = sum(x[j] for j in i)", "z = 1"), "GS238", "i"),
    (ranked("y[i] = sum(x[j] for j in j)", "z = 1"), "GS238", "j"),
    (ranked("y[i] = x[i]", "z = sum(x[j] for j in 2.5)"), "GS238", "2.5"),
    (ranked("y[i] = x[i]", "z = sum(x[j] for j in -1)"), "GS238", "-1"),
    (ranked("y[i] = x[i]", "z = sum(x[j] for j in 0)"), "GS238", "0"),
    (ranked("y[i] = x[i]", "z = sum(x[j] for j in s)"), "GS238", "s"),
    (ranked("y[i] = x[i]", "z = sum(x[j] for j in n + 1)"), "GS238", "n + 1"),
    (ranked("y[i] = x[i]", "z = sum(x[j] for j in q)"), "GS201", "q"),
    (ranked("u[i in q] = 1", "y[i] = x[i]", "z = 1"), "GS201", "q"),
    (ranked("y[i in m] = x[i]", "z = 1"), "GS230", "y"),
    (ranked("u[i in 2] = 1", "y[i] = x[i] * u[i]", "z = 1"), "GS230", "i"),
    (ranked("y[i] = x[i]", "z = sum(1 for n in 2)"), "GS236", "n"),
    (body("y = sum(x**j for j in 3)"), "GS238", "sum(x**j for j in 3)"),
    (body("y = sum(x**j for j in k)"), "GS238", "k"),
    (
        body("y = sum(x[j] for j in k)", header="f(x[n], k: static int = -2) -> y"),
        "GS238",
        "k",
    ),
    ("def g(a, m) = sum(a**j for j in m)\n", "GS238", "m"),
    (ranked("y[i] = x[i]", "z = c[3]"), "GS234", "3"),
    (ranked("y[i] = x[i]", "z = x[-1]"), "GS234", "-1"),
    (ranked("y[0] = x[0]", "z = 1"), "GS236", "0"),
    (ranked("y[i] = x[i]", "z = sum(x[s] for s)"), "GS236", "s"),
    (ranked("y[i] = x[i]", "z = sum(x[j] for j, j)"), "GS236", "j"),
    (ranked("y[i] = x[i]", "z = x[s / 2]"), "GS241", "s / 2"),
    (body("y[i] = x[i]", header="f(x[..., n]) -> y[n]"), "GS237", "x[i]"),
    (body("y = x", header="f(x) -> y[]"), "GS237", "x"),
    # types
    (y("x * (x > 0)"), "GS240", "(x > 0)"),
    (y("1 if x else 0"), "GS240", "x"),
    (y("1 if x > 0 and t else 0"), "GS240", "t"),
    (y("1 if not x else 0"), "GS240", "x"),
    (y("exp(x > 0)"), "GS240", "x > 0"),
    (y("x > 0"), "GS240", "x > 0"),
    (y("1 if (x > 0) == 1 else 0"), "GS240", "(x > 0)"),
    (y("x if x > 0 else t > 0"), "GS240", "x"),
    ("def g(c) = 1 if c else c + 1\n", "GS240", "c"),
    ("def g(c) = 1 if c else 2\n" + y("g(x)"), "GS240", "x"),
    (ranked("y[i] = x[i]", "z = sum(x[j] > 0 for j)"), "GS240", "x[j] > 0"),
    (body("y = 2 * x", header="f(x) -> (y: int)"), "GS241", "2 * x"),
    (body("y = x", header="f(x) -> (y: bool)"), "GS240", "x"),
    (y("polygamma(x, x)"), "GS241", "x"),
    # definitions
    (TWO + TWO, "GS204", "two"),
    ('from "g.grad" import g, g\n' + y("x"), "GS204", "g"),
]


@pytest.mark.parametrize(("text", "code", "guilty"), ONE)
def test_a_fault_is_found_once_and_at_its_place(
    text: str, code: str, guilty: str
) -> None:
    assert faults(text) == [(code, guilty)]


def test_all_faults_of_a_file_are_reported_in_the_order_of_the_text() -> None:
    text = (
        "def g(a) = a + q\n"
        "rule f(x, x) -> y:\n    y = foo(x) + bar\n    x = 1\n"
        "rule h(x) -> (y, z):\n    y = x[0] + nope\n"
        "rule good(x) -> y:\n    y = 2 * x\n"
    )
    assert [code for code, _ in faults(text)] == [
        "GS201",
        "GS205",
        "GS202",
        "GS201",
        "GS206",
        "GS209",
        "GS232",
        "GS201",
    ]
    module, _ = lowered(text)
    assert [rule.name for rule in module.rules] == ["good"]
    assert module.failed == ("g", "f", "h")


def test_the_use_of_a_faulty_local_is_no_second_fault() -> None:
    text = body("a = foo(x)", "b = 2 * a", "y = b + a", "dx = dy * a", "save a")
    assert faults(text) == [("GS202", "foo")]


def test_a_faulty_ranked_local_gives_no_faults_of_indices() -> None:
    text = ranked("a[i] = foo(x[i])", "y[i] = a[i]", "z = sum(a[j] for j)")
    assert faults(text) == [("GS202", "foo")]


def test_what_calls_a_faulty_rule_is_told_in_one_note() -> None:
    text = (
        "rule bad(x) -> y:\n    y = foo(x)\n"
        "rule user(x) -> y:\n    y = bad(x) + bad(2 * x)\n"
        "rule far(x) -> y:\n    y = user(x)\n"
    )
    assert faults(text) == [("GS202", "foo"), ("GS222", "bad"), ("GS222", "user")]
    _, found = lowered(text)
    assert [d.is_error for d in found] == [True, False, False]


def test_recursion_prints_the_circle() -> None:
    text = (
        "rule a(x) -> y:\n    y = b(x)\n"
        "rule b(x) -> y:\n    y = c(x)\n"
        "def c(x) = a(x) + q\n"
        "rule outside(x) -> y:\n    y = a(x)\n"
    )
    _, found = lowered(text)
    assert [d.code for d in found] == ["GS225", "GS201", "GS222"]
    assert "a -> b -> c -> a" in found[0].headline


def test_names_nearby_are_offered() -> None:
    text = "rule f(x, rate: static = 1) -> y:\n    y = x * rte + sigmod(x)\n"
    _, found = lowered(text)
    assert "`rate`" in found[0].help
    assert "`sigmoid`" in found[1].help


def test_a_local_with_the_name_of_a_gradient_is_told_so() -> None:
    text = "rule f(x) -> y:\n    dx = x - 1\n    y = dx**2\n"
    _, (found,) = lowered(text)
    assert found.code == "GS213"
    assert "gradient of `x`" in found.help


def test_both_places_of_an_index_on_two_axes_are_shown() -> None:
    text = "rule f(x[n], w[m]) -> y:\n    y = sum(x[i] * w[i] for i)\n"
    _, found = lowered(text)
    places = [(p.source.slice(p.span), p.message) for p in found[0].labels]
    assert places == [("i", "ranges over `m`"), ("i", "ranges over `n`")]
    assert found[0].labels[0].span != found[0].labels[1].span


def test_defs_cannot_grow_without_bound() -> None:
    defs = ["def f0(x, y) = sin(x) * exp(y)\n"]
    defs += [
        f"def f{k}(x, y) = f{k - 1}(f{k - 1}(x, y), f{k - 1}(y, x + {k}))\n"
        for k in range(1, 40)
    ]
    assert [code for code, _ in faults("".join(defs))][:2] == ["GS224", "GS222"]


def test_locals_cannot_grow_without_bound() -> None:
    lines = ["a0 = x", *(f"a{k} = sin(a{k - 1})" for k in range(1, 600)), "y = a599"]
    assert [code for code, _ in faults(body(*lines))] == ["GS224"]


def test_a_rule_has_a_limit_of_statements() -> None:
    lines = [*(f"a{k} = sin(x)" for k in range(2000)), "y = a0"]
    assert faults(body(*lines)) == [("GS224", "f")]


def test_a_rule_needs_a_tensor() -> None:
    assert faults(body("y = 1", header="f() -> y")) == [("GS226", "f")]
    assert faults(body("y = k", header="f(k: static) -> y")) == [("GS226", "f")]
    assert faults(body("y = t", header="f(t: int) -> (y: int)")) == []


def test_an_unknown_function_always_has_a_cure() -> None:
    _, (module, unknown) = lowered(
        y("np.exp(x)") + body("z = q9q(x)", header="g(x) -> z")
    )
    assert module.help == "`exp` is a built-in: write `exp(x)`"
    assert "def q9q" in unknown.help


def test_shared_locals_are_not_large() -> None:
    lines = [
        "a0 = x",
        *(f"a{k} = a{k - 1} * a{k - 1}" for k in range(1, 100)),
        "y = a99",
    ]
    assert faults(body(*lines)) == []


def _recurrence(value: str, *others: str) -> str:
    inputs = ", ".join(("x[n]", *others))
    return f"rule f({inputs}) -> h[n]:\n    h[t] = {value}\n"


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        (body("y = y + 1"), "`y` is defined by itself"),
        (body("y = a", "a = x"), "`a` is used before it is assigned"),
        (body("y = x", "g = dx", "dx = dy"), "`dx` is used before it is assigned"),
        (
            "rule f(x[n]) -> y[n]:\n    y[i] = x[i]\n"
            "    dx[i] = dy[i] + (dx[i + 1] if i < n - 1 else 0)\n",
            "`dx` is defined by itself",
        ),
        (_recurrence("h[t] + x[t]"), "`h` is used in its own definition at a place"),
        (_recurrence("h[t - 1] + h[t + 1]"), "`h` is used in its own definition"),
        (_recurrence("x[t] + sum(h[s] for s)"), "`h` is used in its own definition"),
        (_recurrence("h[t - k]", "k: static int = 2"), "`h` is used in its own"),
        (
            "rule f(x[n]) -> (h[n], g[n]):\n    h[t] = x[t] + g[t]\n    g[t] = h[t]\n",
            "`h` is used in that of `g` at a place that is not earlier",
        ),
        (
            "rule f(x[n]) -> (h[n], g[n]):\n    h[t] = x[t] + g[t - 1]\n"
            "    g[t] = h[t + 1]\n",
            "`h` is used in that of `g` at a place that is not earlier",
        ),
    ],
)
def test_a_use_that_is_not_earlier(text: str, headline: str) -> None:
    _, (found, *_) = lowered(text)
    assert found.code == "GS208"
    assert found.headline.startswith(headline)


@pytest.mark.parametrize(
    "text",
    [
        _recurrence("x[t] + (h[t - 1] if t > 0 else 0)"),
        _recurrence("x[t] + (h[t + 2] if t < n - 2 else 0)"),
        _recurrence("x[t] + sum(h[s] * x[t - s] for s if s < t)"),
        _recurrence("x[t] + (h[t - 1 - 2] if t > 2 else 0)"),
        "rule f(x[n], k: static int = 2) -> h[n]:\n    assume k > 0\n"
        "    h[t] = x[t] + (h[t - k] if t >= k else 0)\n",
        "rule f(x[m, n]) -> h[m, n]:\n"
        "    h[i, j] = x[i, j] + (h[i - 1, n - 1 - j] if i > 0 else 0)\n",
        "rule f(x[m, n]) -> h[m, n]:\n"
        "    h[i, j] = x[i, j] + (h[i, j - 1] if j > 0 else h[i - 1, n - 1] if i > 0"
        " else 0)\n",
        "rule f(x[n, d]) -> y[n, d]:\n"
        "    a[t, i] = x[t, i] + (b[t - 1, i] if t > 0 else 0)\n"
        "    b[t, i] = 2 * a[t, i]\n    y[t, i] = b[t, i]\n",
    ],
)
def test_a_use_that_is_earlier(text: str) -> None:
    assert faults(text) == []
