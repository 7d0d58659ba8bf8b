"""SymPy differentiates every rule by itself, and comes to the same derivatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.checks import instances
from gradspec.checks.witness import witnesses
from gradspec.derive.complete import complete
from gradspec.ir.expr import ONE, Apply
from gradspec.lower.lowering import lower
from gradspec.options import Options
from gradspec.source import Source
from gradspec.syntax.parse import parse
from tests.checks.written import written

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "rules").glob("*/*.grad"))
CORPUS = sorted((ROOT / "tests/corpus").rglob("*.grad"))[::12]


def _told(path: Path) -> tuple[int, int]:
    """How many rules there are, and on how many SymPy has a word."""
    module = parse(Source(path.name, path.read_text("utf-8"))).value
    lowered = module and lower(module, {}).value
    rules = [
        rule
        for rule in (lowered.rules if lowered else ())
        if not any(one.is_equation for one in rule.definitions)  # it is not asked
    ]
    outcomes = [witnesses(complete(rule).value) for rule in rules]
    assert [d.notes for o in outcomes for d in o.diagnostics] == []
    return len(rules), sum(bool(o.value) for o in outcomes)


@pytest.mark.parametrize("paths", [SHIPPED, CORPUS], ids=["shipped", "corpus"])
def test_sympy_agrees_on_nearly_every_rule(paths: list[Path]) -> None:
    rules, told = map(sum, zip(*map(_told, paths), strict=True))
    assert told > 0.9 * rules > 50


TEXTS = {
    "conditionals": "rule f(x, z) -> y:\n    y = x * z if x > z else max(abs(x), z**3)\n",
    "steps": "rule f(x) -> y:\n    y = x * floor(x) + (x % 0.7)**2 + relu(x) * sign(x)\n",
    "numbers": "rule f(x) -> y:\n    y = lgamma(1e300) / 1e300 * x + x**2.5 * 3**x / 1e-30\n",
    "bessel": "rule f(x) -> y:\n    y = i1(x) * i0e(x) + sinc(x)\n",
    "axes": "rule f(x[n], z[n]) -> y[n]:\n    y[i] = x[i] / sum(exp(z[j]) for j)\n",
    "surrogate": "rule f(x) -> y:\n    y = heaviside(x)\n    surrogate y = sigmoid(x)\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_wrong_derivation_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = written(TEXTS[name])
    assert {one.input for one in witnesses(rule).value or ()} >= {"x"}
    right = instances.cotangents
    monkeypatch.setattr(
        instances,
        "cotangents",
        lambda rule: {n: Apply("add", (e, ONE)) for n, e in right(rule).items()},
    )
    (found,) = witnesses(rule).diagnostics
    assert found.code == "GS751"
    assert [note.partition(": ")[0] for note in found.notes] == ["gradspec", "SymPy"]


def test_the_override_of_a_rule_that_is_called_has_no_witness() -> None:
    text = """
        rule g(x) -> y:
            y = x
            override dx = -dy because "it is reversed"

        rule f(x) -> y:
            y = g(x)**2
        """
    assert witnesses(written(text)).value == ()


def test_the_evidence_says_so(tmp_path: Path) -> None:
    from gradspec.driver.discover import discover
    from gradspec.driver.run import compile_entries
    from gradspec.measure.witnesses import of_file
    from gradspec.report.summary import evidence

    path = tmp_path / "f.grad"
    path.write_text("rule f(x) -> y:\n    y = x * tanh(x)\n", "utf-8")
    entries = discover([str(path)]).value or ()
    results = compile_entries(entries, Options(), 1, lambda _: None)
    told = of_file(Options(), entries[0]).value or ()
    line = evidence(results, told)
    assert "dx derived" in line
    assert line.endswith("SymPy's derivative agrees at 4 points")
