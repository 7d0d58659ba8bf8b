"""Gradients of equations: derived, proved, in agreement where the equations hold, or
refuted with a point."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.checks.check import check
from gradspec.derive.complete import complete
from gradspec.ir.expr import show
from gradspec.ir.rule import Status
from gradspec.notebook.formulas import forward_formulas
from gradspec.source import Source
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse
from gradspec.syntax.printer import WIDTH, print_module
from tests.checks.equations import AGREES, CHOLESKY, KEPLER, LINEAR, PROVED, WRONG
from tests.checks.test_recurrences import _last
from tests.checks.written import written
from tests.corpus.texts import only


def _name(text: object) -> str:
    return str(text).split("(")[0].split()[-1]


def _verdicts(text: str) -> dict[str, Status]:
    outcome = check(written(text), 5.0)
    assert outcome.value is not None
    return {v.input: v.status for v in outcome.value.verdicts}


@pytest.mark.parametrize("text", PROVED, ids=_name)
def test_a_right_gradient_is_proved(text: str) -> None:
    assert {*_verdicts(text).values()} == {Status.PROVED}


@pytest.mark.parametrize("text", AGREES, ids=_name)
def test_what_is_not_proved_agrees_where_the_equations_hold(text: str) -> None:
    assert {*_verdicts(text).values()} == {Status.AGREES}


@pytest.mark.parametrize(("text", "old", "new", "name"), WRONG)
def test_a_wrong_gradient_is_refuted(text: str, old: str, new: str, name: str) -> None:
    assert old in text
    assert _verdicts(_last(text, old, new))[name] is Status.REFUTED


FACTORS = Path(__file__).parents[2] / "rules" / "linalg" / "factor.grad"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("cholesky", "0.5 if", "1 if"),
        ("cholesky", "l[k, i] * dl[k, j]", "l[i, k] * dl[k, j]"),
        (
            "cholesky",
            "s[i, k] for k if k >= j) == u[i, j]",
            "s[i, k] for k if k >= j) == u[j, i]",
        ),
        ("log_det", "2 * s[i, j] if", "s[i, j] if"),
        ("log_det", "if j < i else (s[i, i] if i == j else 0)", ""),
    ],
)
def test_a_wrong_gradient_of_a_shipped_factor_is_refuted(
    name: str, old: str, new: str
) -> None:
    text = only(FACTORS.read_text("utf-8"), (name,))
    assert _verdicts(_last(text, old, new))["a"] is Status.REFUTED


def test_a_refutation_shows_the_inputs_of_the_equation() -> None:
    wrong = _last(KEPLER, "du * sin(u)", "du * sin(m)")
    (found,) = check(written(wrong), 5.0).diagnostics
    assert found.code == "GS401"
    assert "at m = 1, e = 0.5, du = 1, where the derivative is 1.034667" in (
        found.labels[0].message
    )


CALLED = """
rule gate(v) -> s:
    s = tanh(v)
    surrogate s = tanh(v / 2)

"""

DERIVED = """
rule gated(x[n], w[n, n]) -> z[n]:
    solve z: z[i] == gate(sum(w[i, j] * z[j] for j) / 8 + x[i])

rule coupled(a, b) -> (x, y):
    assume abs(a) < 1, abs(b) < 1
    solve x: x == cos(a * y)
    solve y: y == sin(b * x) + a

rule implicit_euler(x[n], h0[]) -> h[n]:
    solve h: h[t] == (h[t - 1] if t > 0 else h0) + tanh(h[t]) / 4 + x[t]

rule both(a[n], b[n], c[n, n]) -> y[n]:
    s[t] = a[t] * (s[t - 1] if t > 0 else 1) + b[t]
    solve y: sum(c[i, j] * y[j] for j) + y[i]**3 == s[i]

rule anomaly(m, e) -> f:
    assume 0 <= e, e < 1
    f = 2 * atan(sqrt((1 + e) / (1 - e)) * tan(kepler(m, e) / 2))

rule anomalies(m[n], e[]) -> y[]:
    assume 0 <= e, e < 1
    y = sum(kepler(m[i], e) for i)
"""


@pytest.mark.parametrize("text", DERIVED.strip().split("\n\n"), ids=_name)
def test_what_is_left_out_is_derived(text: str) -> None:
    """A wrong derivation is found on elements (`recheck`)."""
    rule = written(f"{_forward(KEPLER)}{CALLED}{text}")
    assert all(d.is_derived for d in rule.backward)
    outcome = check(rule, 5.0)
    assert not outcome.diagnostics
    assert outcome.value is not None
    assert {v.status for v in outcome.value.verdicts} == {Status.DERIVED}


def _forward(text: str) -> str:
    return "".join(line for line in text.splitlines(True) if "    d" not in line[:5])


def test_the_adjoint_of_one_number_is_a_quotient() -> None:
    found = {d.name: show(d.value) for d in written(_forward(KEPLER)).definitions}
    assert found["grad_u"] == "du / (1 - e * cos(u))"
    assert found["dm"] == "grad_u"
    assert found["de"] == "grad_u * sin(u)"


def test_the_adjoint_of_a_system_is_a_system() -> None:
    rule = written(LINEAR.replace("    solve u", "    # ").split("#")[0])
    (adjoint,) = rule.backward_locals
    assert adjoint.is_equation
    assert "sum(grad_x[j] * a[j, i] for j)" in show(adjoint.value)
    assert complete(rule).value == rule


def test_examples_are_worked_out_by_solving() -> None:
    rule = (
        _forward(KEPLER) + "    example m = 1, e = 0.5: u = 1.498701, dm = 1.037362\n"
    )
    assert not check(written(rule), 5.0).diagnostics
    (found,) = check(written(rule.replace("1.498701", "1.4988")), 5.0).diagnostics
    assert found.code == "GS409"


@pytest.mark.parametrize(
    ("condition", "status"), [("y > 0", Status.PROVED), ("y < 0", Status.REFUTED)]
)
def test_an_assumption_chooses_the_solution(condition: str, status: Status) -> None:
    text = f"""
    rule branch(x) -> y:
        assume x > 0, {condition}
        solve y: y**2 == x
        dx = dy / (2 * sqrt(x))
    """
    assert _verdicts(text)["x"] is status


def test_the_start_chooses_the_solution() -> None:
    text = """
    rule branch(x) -> y:
        assume x > 0
        solve y from START: y**2 == x
        dx = dy / (2 * sqrt(x))
    """
    assert _verdicts(text.replace("START", "x"))["x"] is Status.AGREES
    assert _verdicts(text.replace("START", "-x"))["x"] is Status.REFUTED


def test_an_equation_without_a_solution_is_an_error() -> None:
    text = "rule none(a) -> x:\n    solve x: x**2 + a**2 + 1 == 0\n"
    assert [d.code for d in check(written(text), 5.0).diagnostics] == ["GS269"]


@pytest.mark.parametrize("text", (*PROVED, *AGREES), ids=_name)
def test_the_canonical_layout_says_the_same(text: str) -> None:
    module = parse(Source("test.grad", text)).value
    assert module is not None
    printed = print_module(module)
    again = parse(Source("test.grad", printed)).value
    assert again is not None
    assert (again.items, print_module(again)) == (module.items, printed)
    assert max(map(len, printed.splitlines())) <= WIDTH


def test_an_equation_in_a_notebook() -> None:
    text = CHOLESKY.strip() + "\n"
    module = parse(Source("test.grad", text)).value
    assert module is not None
    (item,) = module.items
    assert isinstance(item, nodes.RuleDef)
    rule = written(text)
    said = list(forward_formulas(rule, item))
    assert said[1] == (
        r"\text{solve } l \text{ if } j \le i: \quad"
        r" \sum_{k} l_{i, k} \, l_{j, k} = a_{i, j}"
    )
