"""What is suggested is right: it has been tried, and what fails is not said."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from gradspec import mend
from gradspec.diagnostics import Diagnostic, Fix, warning
from gradspec.driver.run import compile_source
from gradspec.ir.rule import Rule
from gradspec.lower.module import LoweredModule
from gradspec.options import Options
from gradspec.pipeline import check_module, lower_module, read_module
from gradspec.source import Source, Span
from tests.checks.shipped import Shipped, shipped
from tests.checks.written import checked, compiled, written


def lowered(
    path: str, text: str, imports: Mapping[str, LoweredModule] | None = None
) -> LoweredModule:
    module = read_module(Source(path, text)).value
    assert module is not None
    found = lower_module(module, imports or {})
    assert found.value is not None and not found.failed, found.diagnostics
    return found.value


def _findings(text: str) -> tuple[Diagnostic, ...]:
    return checked(text, budget=3.0).diagnostics


def _help(text: str, code: str) -> str:
    return next(d.help for d in _findings(text) if d.code == code)


def _notes(text: str) -> str:
    return "; ".join(note for d in _findings(text) for note in d.notes)


# --- conditions that are assumed -----------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("f(p) -> y:\n    y = -p * log(p)", "say `assume p > 0`"),
        ("f(x[n]) -> y[n]:\n    y[i] = log(x[i])", "say `assume x[i] > 0`"),
        (
            "f(x[n], t) -> y:\n    y = sum(sqrt(x[i] - t) for i)",
            "say `assume x[i] - t >= 0`",
        ),
        (
            "f(x) -> y:\n    e = 1 - x\n    y = log(e) * sqrt(x)",
            "say `assume 1 - x > 0 and x >= 0`",
        ),
        # of a local, which no assumption can name: nothing is suggested
        (
            "f(x[n, m]) -> y[n]:\n    e[i, k] = x[i, k]**2 - 1\n"
            "    y[i] = sum(log(e[i, k]) for k)",
            "",
        ),
    ],
)
def test_an_assumption_that_is_suggested_mends(rule: str, said: str) -> None:
    text = f"rule {rule}\n"
    help = _help(text, "GS411")
    if not said:
        assert "`assume " not in help
        return
    assert said in help
    head, _, body = text.partition("\n")
    condition = said.removeprefix("say `").removesuffix("`")
    assert _findings(f"{head}\n    {condition}\n{body}") == ()


# --- values at single points ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        # one input 0 is a line on which the output has values
        (
            "re, im, b: static = -0.5) -> y:\n    assume b < 0\n    m = hypot(re, im)\n"
            "    y = im * max(m + b, 0) / m",
            "write `y = im * max(m + b, 0) / m if m != 0 else 0`",
        ),
        (
            "x, z) -> y:\n    y = log1p(x * x + z * z) / (x * x + z * z)",
            "write `y = log1p(x * x + z * z) / (x * x + z * z) if x * x + z * z != 0"
            " else 1`",
        ),
        # a pole, and a limit that depends on the direction: no value will do
        ("im, m, b: static = 1) -> y:\n    y = im * max(m + b, 0) / m", ""),
        (
            "re, im, b) -> y:\n    m = hypot(re, im)\n    y = im * max(m + b, 0) / m",
            "",
        ),
        # a limit that depends on the other input: 2 is it at t = 2 only
        ("x, t: nograd) -> y:\n    y = (exp(x * t) - cos(x)) / x", ""),
    ],
)
def test_a_value_for_a_hole_is_right_everywhere(body: str, said: str) -> None:
    source = Source("f.grad", f"rule f({body}\n")
    found = compile_source(source, "f.grad", Options(("numpy",)))[0].diagnostics
    help = next(d.help for d in found if d.code == "GS433" and d.headline[0] == "y")
    assert help.startswith(said or "give the limit there")


# --- causes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "never"),
    [
        # a condition that is never true at any point is no explanation
        (
            """
            rule f(x, alpha: static = 1) -> y:
                y = x * alpha
                dx = dy if alpha > 1e10 else dy * alpha
            """,
            "-alpha",
        ),
        (
            """
            rule f(x, s) -> y:
                y = x * s
                dx = dy if s > 0 else dy * s
            """,
            "abs(s)",
        ),
        # at one point only
        (
            """
            rule f(x) -> y:
                assume x >= 1
                assume x <= 1
                y = x**3
                dx = 2 * dy * x
            """,
            "everywhere",
        ),
        (
            """
            rule f(x[n]) -> y:
                assume x[i] == 1
                y = sum(x[i]**3 for i)
                dx[i] = 2 * dy * x[i]
            """,
            "everywhere",
        ),
    ],
)
def test_what_does_not_hold_is_not_told(text: str, never: str) -> None:
    assert never not in _notes(text)
    assert all(never not in d.help for d in _findings(text))


def test_a_ratio_that_holds_everywhere_is_told() -> None:
    text = """
        rule f(x[n]) -> y:
            y = sum(x[i]**3 for i)
            dx[i] = 6 * dy * x[i]**2
        """
    assert "it is 2 times the derivative everywhere" in _notes(text)


def test_a_cause_stands_beside_calls_of_other_rules() -> None:
    """The part that is mended is that of the text, though calls are looked into."""
    text = """
        rule bessel(x) -> y:
            y = i1(x)

        rule scaled(x) -> y:
            y = exp(-abs(x)) * bessel(x)
            dx = dy * (exp(abs(x)) * i1_slope(x) - bessel(x) * exp(-abs(x)) * sign(x))
        """
    assert "the sign of the argument of `exp(abs(x))` is wrong" in _notes(text)
    assert "- bessel(x) * exp(-abs(x))" in _help(text, "GS401")


def test_a_caret_has_a_cause() -> None:
    for one in shipped():
        for found in checked(one.text, budget=1.0).diagnostics:
            has_caret = any(label.message == "probably here" for label in found.labels)
            assert not has_caret or found.notes, one.name


def test_leaving_a_line_out_is_not_suggested_where_another_uses_it() -> None:
    text = """
        rule f(x, z) -> y:
            y = sin(x) * z
            dx = 2 * dy * cos(x) * z
            dz = dx * 0 + dy * sin(x)
        """
    help = _help(text, "GS401")
    assert "write `dx = " in help
    assert "leave the line out" not in help


LINE = re.compile(r"write `((\w+)(?:\[[^\]]*\])? = [^`]*)`")


@pytest.mark.parametrize("one", shipped(), ids=lambda one: one.name)
def test_a_line_that_is_suggested_makes_the_rule_right(one: Shipped) -> None:
    """Read from the message and put into the text by other means than the checker's."""
    for found in checked(one.text, budget=3.0).diagnostics:
        suggested = LINE.search(found.help)
        if not suggested:
            continue
        line, name = suggested.groups()
        old = re.compile(rf"^    {name}(\[[^\]]*\])? = .*\n?(?:^     .*\n?)*", re.M)
        assert old.search(one.text)
        text = old.sub(lambda _, line=line: f"    {line}\n", one.text, count=1)
        headlines = [d.headline for d in checked(text, budget=3.0).diagnostics]
        assert found.headline not in headlines


def test_tries_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The more, the fewer nodes a rule has; none without a budget."""
    tries: list[Rule] = []
    monkeypatch.setattr(mend, "_judged_change", lambda rule, *_: tries.append(rule))
    fixes = (tuple(Fix("", Span(0, 0), "") for _ in range(50)),)
    for length, budget, least, most in ((2, 4, 24, 24), (80, 1, 1, 23), (2, 0, 0, 0)):
        terms = " + ".join(f"sin({k} * x) * exp({k} * z)" for k in range(1, length))
        rule = written(f"rule f(x, z) -> y:\n    y = {terms}\n    dx = dy * ({terms})")
        found = warning("GS000", "", rule.source, rule.name_span, tries=fixes)
        tries.clear()
        mend.keep_fixes_that_work(rule, (found,), pytest.fail, budget)
        assert least <= len(tries) <= most


# --- words ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (
            "x, y: nograd) -> z:\n    assume y > 0\n    z = x / (y + 1e-19)\n    dx = dz / y",
            ("GS416",),
        ),
        (
            "x, y: nograd) -> z:\n    z = x / y\n    dx = dz / (y + 1e-19)",
            ("GS416",),
        ),
        ("x) -> y:\n    y = x**2\n    dx = 2.000000000000001 * x * dy", ("GS416",)),
        (
            "x[n]) -> y:\n    y = sum(x[i]**2 for i)\n"
            "    dx[i] = 2.000000000000001 * x[i] * dy",
            ("GS416",),
        ),
        # ten times as much is a mistake, and so is a small number that is not right
        ("x) -> y:\n    y = x**2\n    dx = 2.00000000000001 * x * dy", ("GS401",)),
        ("x) -> y:\n    y = 6.6e-34 * x\n    dx = 3.3e-34 * dy", ("GS401",)),
        ("x, y: nograd) -> z:\n    z = x / y\n    dx = dz / (y + 1e-9)", ("GS401",)),
        # an override
        (
            "x, gate) -> y:\n    y = x\n"
            '    override dgate = dy * x because "straight through"',
            (),
        ),
        ("x, gate) -> y:\n    y = x", ("GS408",)),
        (
            "x, scale: static = 1) -> y:\n    y = x\n"
            '    override dx = scale * dy because "scaled"',
            ("GS417",),
        ),
        (
            "x, scale: static = 2) -> y:\n    y = x\n"
            '    override dx = scale * dy because "scaled"',
            (),
        ),
    ],
)
def test_codes(body: str, codes: tuple[str, ...]) -> None:
    found = _findings(f"rule f({body}\n")
    assert tuple(d.code for d in found) == codes
    rounded = [d for d in found if d.code == "GS416"]
    assert all("equal up to rounding" in d.headline for d in rounded)


@pytest.mark.parametrize(
    "form", ["0.3 * x - (0.1 * x + 0.2 * x)", "0.1 * x - x / 10", "x**2 - 0.01"]
)
def test_a_literal_is_not_blamed_where_the_value_is_0(form: str) -> None:
    assert "GS441" not in compiled(f"rule f(x) -> y:\n    exact y = {form}\n")


def test_a_difference_that_loses_its_digits_is_still_told() -> None:
    assert "GS441" in compiled("rule f(x) -> y:\n    exact y = cos(0.1 * x) - 1\n")


# --- defs of other files -------------------------------------------------------------------


def test_a_rule_that_uses_a_def_of_another_file_gets_suggestions() -> None:
    library = lowered("lib.grad", "def gate(t) = 1 / (1 + exp(-t))\n")
    text = (
        'from "lib.grad" import gate\n\n'
        "def half(t) = gate(t) / 2\n\n"
        "rule f(x) -> y:\n    y = x * half(x)\n"
        "    dx = dy * (half(x) - x * half(x) * (1 - gate(x)))\n"
    )
    module = lowered("f.grad", text, {"lib.grad": library})
    _, (found,) = check_module(module, Options(("numpy",)))
    assert found.notes[0].startswith("the sign of `x * ")
    assert found.help.startswith("write `dx = dy * (")
