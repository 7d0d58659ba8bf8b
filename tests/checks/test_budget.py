"""Time is kept: what runs out of it is stopped and said, and gives no wrong verdict."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gradspec import pipeline
from gradspec.checks.check import check
from gradspec.diagnostics import Diagnostic
from gradspec.driver.run import compile_source
from gradspec.ir.rule import Status
from gradspec.options import Options
from gradspec.source import Source
from tests.checks.written import written

SLOW_PROOF = """
    rule f(x) -> y:
        y = (1 + x)**5000
        dx = dy * 5000 * (1 + 2 * x + x**2)**2499 * (1 + x)
    """


def test_a_proof_that_runs_out_of_time_is_told() -> None:
    outcome = check(written(SLOW_PROOF), 0.3)
    assert outcome.value is not None
    (verdict,) = outcome.value.verdicts
    assert verdict.status is Status.AGREES
    assert verdict.stopped == ("simplify",)
    (found,) = outcome.diagnostics
    assert found.code == "GS460"
    assert not found.is_error
    assert "(simplify)" in found.headline


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
    assert 0 < verdict.seconds < 2
    assert verdict.stopped == ()


def _found(text: str, budget: float) -> tuple[Diagnostic, ...]:
    source = Source("f.grad", text)
    return compile_source(source, "f.grad", Options(("numpy",), budget=budget))[
        0
    ].diagnostics


def test_a_stage_that_runs_out_of_time_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(*_: object) -> None:
        while True:
            pass

    text = "rule f(x) -> y:\n    y = x\n\nrule g(x) -> y:\n    y = 2 * x\n"
    for stage, said in (("check", "checking"), ("stabilise", "stabilising")):
        with monkeypatch.context() as patch:
            patch.setattr(pipeline, stage, slow)
            found = _found(text, 0.1)
        assert {d.code for d in found} == {"GS461"}
        assert f"{said} f was stopped after 0.1 s" in found[0].headline
    assert _found(text, 5.0) == ()


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
PROVED, AGREES, REFUTED = Status.PROVED, Status.AGREES, Status.REFUTED

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
        AGREES,
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
def test_adversaries_get_the_right_verdict_in_time(name: str) -> None:
    inputs, forward, backward, expected = ADVERSARIES[name]
    first = inputs.partition(",")[0]
    rule = written(
        f"rule f({inputs}) -> y:\n    y = {forward}\n    d{first} = {backward}\n"
    )
    begun = time.process_time()
    outcome = check(rule, 6.0)
    assert time.process_time() - begun < 6.0
    assert outcome.value is not None
    assert outcome.value.verdicts[0].status is expected


def test_a_call_that_does_not_come_back_is_killed(tmp_path: Path) -> None:
    """C code that holds the interpreter's lock: no alarm gets through to it."""
    import os
    import subprocess
    import sys

    (tmp_path / "f.grad").write_text(
        "rule f(x) -> y:\n    y = (1 + x)**5000\n"
        "    dx = dy * 5000 * (1 + 2 * x + x**2)**2499 * (1 + x)\n\n"
        "rule g(x) -> y:\n    y = x * x\n    dx = 2 * dy * x\n",
        "utf-8",
    )
    program = (
        "import sys\n"
        "from flint import fmpz\n"
        "from gradspec.symbolic import consult\n"
        "number = (2**127 - 1) * (2**107 - 1) * (2**89 - 1)\n"
        "consult._vanishes = lambda *_: fmpz(number).factor()\n"
        "sys.argv = ['gradspec', 'check', 'f.grad', '--budget', '4']\n"
        "from gradspec.cli import main\n"
        "main()\n"
    )
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "GRADSPEC_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert time.monotonic() - begun < 30
    assert done.returncode == 0, done.stderr
    assert "dx agrees" in done.stdout
    assert "dx proved" in done.stdout
    assert "GS460" in done.stderr
    assert "(simplify)" in done.stderr
