"""`compile --emit` prints the stages of rules and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_cli import run

RULES = """\
rule softmax(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)

rule spike(v, t: nograd, k: static = 2) -> (s, z):
    assume t > 0
    s = 1 if v > t else 0
    surrogate s = v / (1 + k * abs(v))
    z = t * log(1 + exp(v))
    example v = 1, t = 2: z = 2.62652338

rule code(x, k: int) -> (y, n):
    n = 2 * k
    y = n * x
"""

RULE = """\
rule softmax(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
    # evaluated as exp(x[i] - max(x[j] for j)) / sum(exp(x[j] - max(x[l] for l)) for j)
    #   as written, overflows for large x[0], large x[1], large -x[2]
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))  # derived
"""

PLAN = """\
plan softmax(x[..., n]) -> y[..., n], exact:
    n = x.shape[-1], y.shape[-1], dy.shape[-1]
    forward:
        # the formula as written overflows for large x[0], large x[1], large -x[2]
        y[..., n] = softmax(x, axis=-1)
    keeps: y
    gradients:
        dx[..., n] = y * (dy - expand(sum(dy * y, axes=-1), axes=-1))
    tangents:
        y_dot[..., n] = softmax(x, axis=-1) * (x_dot - expand(sum(x_dot * softmax(x, axis=-1), axes=-1), axes=-1))
"""

PROGRAM = """\
program softmax(x[..., n]) -> y[..., n] for torch, exact:
    n = x.shape[-1], y.shape[-1], dy.shape[-1]
    forward:
        # the formula as written overflows for large x[0], large x[1], large -x[2]
        y = softmax(x, axis=-1)
    keeps: y
    backward:
        dx = y * (dy - sum(dy * y, axes=-1, keep))
    pushforward:
        y_dot = y * (x_dot - sum(x_dot * y, axes=-1, keep))
"""

SPIKE = {
    "rule": [
        "rule spike(v, t: nograd, k: static = 2) -> (s, z):",
        "    assume t > 0",
        "    surrogate s = v / (1 + k * abs(v))",
        "    # evaluated as t * softplus(v)",
        "  # derived through the surrogate",
        "    example v = 1, t = 2: z = 2.62652338",
    ],
    "plan": [
        "plan spike(",
        "    gradients:",
        "dv[...] += ",
        "  # in the shape of v, t",
        "y_dot[...] = ",
    ],
    "program": [
        "program spike(v, t: nograd, k: static = 2) -> (s, z) for torch, surrogate:",
        "    keeps: v, t",
        "        dv += ",
        "        z_dot = ",
    ],
}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "a.grad").write_text(RULES, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("stage", "text"), [("rule", RULE), ("plan", PLAN), ("program", PROGRAM)]
)
def test_a_stage_of_every_rule(rules: Path, stage: str, text: str) -> None:
    target = ["--target", "torch"] if stage == "program" else []
    told = run("compile", "--emit", stage, "a.grad", *target, cwd=rules)
    assert told.startswith(text)
    for part in SPIKE[stage]:
        assert part in told
    assert told == run("compile", "a.grad", "--emit", stage, *target, cwd=rules)
    assert [path.name for path in rules.iterdir()] == ["a.grad"]


def test_a_printed_rule_is_a_rule_whose_gradients_are_proved(rules: Path) -> None:
    text = run("compile", "--emit", "rule", "a.grad", cwd=rules)
    (rules / "b.grad").write_text(text, "utf-8")
    told = run("check", "b.grad", cwd=rules)
    assert "dx proved" in told and "dv proved" in told


def test_each_target_has_its_program(rules: Path) -> None:
    targets = ("--target", "jax", "--target", "numpy")
    told = run("compile", "--emit", "program", "a.grad", *targets, cwd=rules)
    heads = [line for line in told.splitlines() if line.startswith("program softmax")]
    ends = " for numpy, exact:", " for jax, exact:"
    assert [head.partition("]")[2].partition("]")[2] for head in heads] == [*ends]


def test_what_cannot_be_printed_says_why(rules: Path) -> None:
    told = run("compile", "--emit", "program", "a.grad", cwd=rules, code=2)
    assert "Missing option '--target'" in told
    told = run("compile", "--emit", "rule", "--check", "a.grad", cwd=rules, code=2)
    assert "leave out --check" in told
    (rules / "a.grad").write_text("rule f(x) -> y:\n    y = x\n    dx = 2 * dy\n")
    told = run("compile", "--emit", "rule", "a.grad", cwd=rules, code=1)
    assert "GS401" in told and "rule f(x) -> y:\n" not in told
