"""Effort is counted: what runs out of it is stopped and said, and gives no wrong
verdict. The clock is a brake, far beyond; here it is set to the budget."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gradspec import pipeline
from gradspec.checks.check import check
from gradspec.driver.cache import FileResult
from gradspec.driver.discover import Entry
from gradspec.driver.run import compile_entry, compile_source
from gradspec.ir.rule import Status
from gradspec.options import Options
from gradspec.source import Source
from gradspec.stabilise import stabilise as search
from gradspec.symbolic import limit
from tests.checks.written import written

LONG_PROOF = """
    rule f(x) -> y:
        y = (1 + x)**60
        dx = dy * 60 * (1 + 2 * x + x**2)**29 * (1 + x)
    """


@pytest.fixture(autouse=True)
def brake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "BRAKE", 1)


def test_a_proof_that_runs_out_of_steps_is_told() -> None:
    outcome = check(written(LONG_PROOF), 0.001)
    assert outcome.value is not None
    (verdict,) = outcome.value.verdicts
    assert verdict.status is Status.AGREES
    assert verdict.stopped == ("normal form",)
    (found,) = outcome.diagnostics
    assert found.code == "GS460"
    assert not found.is_error
    assert "(normal form)" in found.headline
    assert check(written(LONG_PROOF), 1.0).diagnostics == ()


def test_a_verdict_carries_its_evidence() -> None:
    text = """
        rule f(x, a: static = 2.0) -> y:
            assume x > 0, a < 5
            y = log(x**2)
            dx = 2 * dy / sqrt(x**2)
        """
    outcome = check(written(text), 2.0)
    assert outcome.value is not None
    verdict = outcome.value.verdicts[0]
    assert verdict.status is Status.PROVED
    assert verdict.assumed == ("x > 0",)
    assert verdict.bits == 256
    assert verdict.digits == 50
    assert verdict.points >= 20
    assert verdict.stopped == ()


def _compiled(text: str, budget: float, *targets: str) -> FileResult:
    options = Options(targets or ("numpy",), budget=budget)
    return compile_source(Source("f.grad", text), "f.grad", options)[0]


TWO = "rule f(x) -> y:\n    y = x\n\nrule g(x) -> y:\n    y = 2 * x\n"


def _endless(*_: object) -> None:
    while True:
        pass


def test_a_stage_that_runs_out_of_time_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stage, said in (
        ("check_and_mend", "checking f"),
        ("plan_module", "emitting g"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(pipeline, stage, _endless)
            result = _compiled(TWO, 0.5)
        found = result.diagnostics
        assert {d.code for d in found} == {"GS461"}
        assert result.modules == ()
        assert f"{said} was stopped after 0.5 s" in found[0].headline
    assert _compiled(TWO, 5.0).diagnostics == ()


SIGMOID = "rule f(x) -> y:\n    y = 1 - 1 / (1 + exp(x))\n"


def test_a_search_that_runs_out_of_time_leaves_the_rule_as_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "stabilise", _endless)
    result = _compiled(SIGMOID + "\n" + TWO.replace("f(", "h("), 0.5)
    assert {d.code for d in result.diagnostics} == {"GS463"}
    first = result.diagnostics[0]
    assert not first.is_error
    assert "stabilising f was stopped after 0.5 s" in first.headline
    (module,) = result.modules
    assert "1.0 - 1.0 / (1.0 + np.exp(x))" in module.text
    assert "evaluated as written" in first.headline
    assert "h" in {rule.name for rule in result.rules}


def test_what_another_run_may_find_is_not_cached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "f.grad"
    path.write_text(TWO, "utf-8")
    entry, options = Entry(str(path), "f.grad"), Options(("numpy",), budget=0.5)
    with monkeypatch.context() as patch:
        patch.setattr(search, "stabilise", _endless)
        late = compile_entry(entry, options)
    again = compile_entry(entry, replace(options, budget=20.0))
    assert {d.code for d in late.diagnostics} == {"GS463"}
    assert again.diagnostics == ()
    with monkeypatch.context() as patch:
        patch.setattr(search, "stabilise", _endless)
        assert compile_entry(entry, replace(options, budget=20.0)) == again
        short = compile_entry(entry, options)
    assert {d.code for d in short.diagnostics} == {"GS463"}, "another budget, no result"


def test_no_time_is_spent_on_emission_when_nothing_is_emitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "plan_module", lambda *_: pytest.fail("not needed"))
    source = Source("f.grad", "rule f(x) -> y:\n    y = x * x\n")
    result, _ = compile_source(source, "f.grad", Options())
    assert not result.failed


SUM = " + ".join
NAMES = [f"x{k}" for k in range(60)]
E6 = [f"{'exp(' * k}x{')' * k}" for k in range(6, 0, -1)]
AGREES, PROVED, REFUTED = Status.AGREES, Status.PROVED, Status.REFUTED

ADVERSARIES = {
    "nested exponentials": ("x", E6[0], f"dy * {' * '.join(E6)}", PROVED),
    "one of them missing": ("x", E6[0], f"dy * {' * '.join(E6[1:])}", REFUTED),
    "a huge power": ("x", "x**(10**6)", "dy * 10**6 * x**(10**6 - 1)", PROVED),
    "a huge power, off by one": (
        "x",
        "x**(10**6)",
        "dy * 10**6 * x**(10**6 - 2)",
        REFUTED,
    ),
    "a binomial": ("x", "(1 + x)**5000", "dy * 5000 * (1 + x)**4999", PROVED),
    "200 sines": (
        "x",
        SUM(f"sin({k} * x) / {k}" for k in range(1, 201)),
        f"dy * ({SUM(f'cos({k} * x)' for k in range(1, 201))})",
        PROVED,
    ),
    "200 sines, one wrong": (
        "x",
        SUM(f"sin({k} * x) / {k}" for k in range(1, 201)),
        f"dy * ({SUM(f'cos({k} * x)' for k in range(1, 200))} + cos(199 * x))",
        REFUTED,
    ),
    "200 factors": (
        "x",
        " * ".join(f"(x + {k})" for k in range(1, 201)),
        f"dy * y * ({SUM(f'1 / (x + {k})' for k in range(1, 201))})",
        AGREES,  # at -1 to -200 it has no value, and the derivative has one
    ),
    "60 inputs": (
        ", ".join(NAMES),
        f"log({SUM(f'exp({n})' for n in NAMES)})",
        "dy * exp(x0 - y)",
        PROVED,
    ),
    "equal but for 1e-30": ("x", "exp(x)", "dy * (exp(x) + 1e-30)", REFUTED),
    "equal but for 1e-300": ("x", "sin(x)", "dy * (cos(x) + 1e-300)", REFUTED),
    "huge rationals": (
        "x",
        f"x**2 * {'123456789' * 30} / {'987654321' * 30}",
        f"dy * 2 * x * {'123456789' * 30} / {'987654321' * 30}",
        PROVED,
    ),
    "huge arguments": (
        "x",
        "lgamma(1e300 * x**2 + 1)",
        "dy * 2e300 * x * digamma(1e300 * x**2 + 1)",
        PROVED,
    ),
    "60 kinks": (
        "x",
        SUM(f"abs(x - {k})" for k in range(60)),
        f"dy * ({SUM(f'sign(x - {k})' for k in range(60))})",
        PROVED,
    ),
    "a large angle": ("x", "cos(1000 * x)", "-1000 * dy * sin(1000 * x)", PROVED),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_adversaries_get_the_right_verdict(name: str) -> None:
    inputs, forward, backward, expected = ADVERSARIES[name]
    first = inputs.partition(",")[0]
    rule = written(
        f"rule f({inputs}) -> y:\n    y = {forward}\n    d{first} = {backward}\n"
    )
    outcome = check(rule, 6.0)
    assert outcome.value is not None
    assert outcome.value.verdicts[0].status is expected


def test_verdicts_do_not_depend_on_how_deep_python_may_recurse() -> None:
    """Frameworks and notebooks raise the limit, with which the adversaries are run."""
    _, forward, backward, _ = ADVERSARIES["200 factors"]
    rule = written(f"rule f(x) -> y:\n    y = {forward}\n    dx = {backward}\n")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        outcome = check(rule, 6.0)
        assert sys.getrecursionlimit() == 5000
    finally:
        sys.setrecursionlimit(before)
    assert outcome.value is not None
    assert outcome.value.verdicts[0].status is AGREES
