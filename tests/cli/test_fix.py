"""Fixes: what `gradspec check --fix` does to wrong rules, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import gradspec
from gradspec.cli import cli
from gradspec.diagnostics import Fix
from gradspec.driver import fixing
from gradspec.driver.discover import Entry
from gradspec.driver.fixing import fix_entry
from gradspec.options import Options

EXPLAIN = Path(gradspec.__file__).parent / "explain"
HEAD = "rule f(x) -> y:\n"
RULES = "rule f(x, z) -> y:\n    y = {}\n    dx = {}\n    dz = {}\n"
SOFTMAX = "rule f(x[n]) -> y[n]:\n    y[i] = exp(x[i]) / sum(exp(x[j]) for j)\n    dx[i] = {}\n"

FIXED = {
    "a sign": (
        RULES.format("x / z", "dy / z", "dy * x / z**2"),
        RULES.format("x / z", "dy / z", "-dy * y / z"),
    ),
    "a factor, and a function for its derivative": (
        RULES.format("x**2 * sin(z)", "dy * x * sin(z)", "dy * x**2 * sin(z)"),
        RULES.format("x**2 * sin(z)", "2 * dy * sin(z) * x", "dy * x**2 * cos(z)"),
    ),
    "no upstream gradient": (
        HEAD + "    y = tanh(x)\n    dx = 1 - y**2\n",
        HEAD + "    y = tanh(x)\n    dx = dy * (1 - y**2)\n",
    ),
    "a sum that is missing": (
        SOFTMAX.format("dy[i] * y[i] * (1 - y[i])"),
        SOFTMAX.format("y[i] * (dy[i] - sum(dy[j] * y[j] for j))"),
    ),
    "no colon, a power, a product": (
        "rule f(x) -> y\n    y = 2x^2 + x²\n",
        HEAD + "    y = 2 * x**2 + x**2\n",
    ),
    "a bracket that can close at one place": (
        "rule f(x -> y:\n    y = exp(x\n    dx = dy * exp(x)\n",
        HEAD + "    y = exp(x)\n    dx = dy * exp(x)\n",
    ),
    "names of libraries": (
        HEAD + "    y = np.where(x > 0, np.arctan(x), torch.exp(x) - 1) * 2\n",
        HEAD + "    y = ((atan(x)) if (x > 0) else (exp(x) - 1)) * 2\n",
    ),
    "words of other languages": (
        "f(x, t: bool) -> (y):\n    y := x if t && x is 0 else 1\n"
        "rule g(x, int t) -> y:\n    'Words.'\n    let y = x if x = 0 else t\n",
        "rule f(x, t: bool) -> (y):\n    y = x if t and x == 0 else 1\n"
        'rule g(x, t: int) -> y:\n    """Words."""\n    y = x if x == 0 else t\n',
    ),
    "layout": (
        "  rule f(x) -> y:\n\ty = x\n\tdx = dy\nrule g(x) -> y: y = x\n",
        HEAD + "    y = x\n    dx = dy\nrule g(x) -> y:\n    y = x\n",
    ),
    "batch axes, and a rule that comes with gradspec": (
        "rule f(x[..., n]) -> y[..., n]:\n    y[..., i] = stop_gradient(x[..., i])\n",
        'from "gradspec:control/gradients" import stop_gradient\n\n'
        "rule f(x[..., n]) -> y[..., n]:\n    y[i] = stop_gradient(x[i])\n",
    ),
    "syntax first, then the gradient that it hid": (
        HEAD + "    y = sin(x)\n    dx = dy * sin(x)^2\n",
        HEAD + "    y = sin(x)\n    dx = dy * cos(x)\n",
    ),
}
LEFT = {
    "a guess of a name": "rule f(x, rate) -> y:\n    y = x * rat\n",
    "a bracket with two places": HEAD + "    y = 2 * (x + 1\n",
    "a domain": HEAD + "    y = log(x)\n",
    "an override": HEAD + '    y = x**2\n    override dx = 2 * dy * x because "why"\n',
    "a comment in the line": HEAD
    + "    y = x**2\n    dx = (dy *  # mine\n        x)\n",
    "what binds otherwise": HEAD + "    y = 1 if !x > 0 else 2\n",
    "a factor of what": HEAD + "    y = 1 / 2x\n",
}


def _fixed(text: str, tmp_path: Path) -> str:
    (tmp_path / "a.grad").write_text(text, "utf-8")
    entry = Entry(f"{tmp_path.as_posix()}/a.grad", "a.grad")
    found = fix_entry(Options(searches=False), entry).value
    assert found is not None and found.text.after is not None
    return found.text.after


@pytest.mark.parametrize("what", FIXED)
def test_what_is_safe_is_applied(what: str, tmp_path: Path) -> None:
    before, after = FIXED[what]
    assert gradspec.check_text(before).failed
    assert _fixed(before, tmp_path) == after
    assert not gradspec.check_text(after).failed


@pytest.mark.parametrize("what", LEFT)
def test_what_is_not_is_left_to_its_author(what: str, tmp_path: Path) -> None:
    assert gradspec.check_text(LEFT[what]).diagnostics
    assert _fixed(LEFT[what], tmp_path) == LEFT[what]


def test_fixes_that_do_not_help_together_are_tried_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fixing._with_all

    def apply(text: str, fixes: tuple[Fix, ...]) -> str:
        return f"{text}(" if len(fixes) > 1 else whole(text, fixes)

    monkeypatch.setattr(fixing, "_with_all", apply)
    fixed = _fixed(HEAD + "    y = 2x + x^2\n", tmp_path)
    assert fixed == HEAD + "    y = 2 * x + x**2\n"


def _run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, [*arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_the_command_writes_tells_and_checks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before, after = FIXED["no upstream gradient"]
    (tmp_path / "a.grad").write_text(before)
    (tmp_path / "right.grad").write_text(after)
    said = _run("check", "a.grad", "right.grad", "--fix")
    assert "a.grad: write `dx = dy * (1 - y**2)`" in said
    assert (tmp_path / "a.grad").read_text() == after
    assert "write" not in _run("check", "a.grad", "--fix")
    assert "standard input" in _run("check", "-", "--fix", code=2)


def test_sarif_has_fixes_and_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong, mended = FIXED["no upstream gradient"]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "first.grad").write_text(
        HEAD + "    y = sin(x) + 2π\n", "utf-8"
    )
    (tmp_path / "second.grad").write_text(wrong)
    (log,) = json.loads(_run("check", ".", "--format", "sarif", code=1))["runs"]
    known = {rule["id"]: rule for rule in log["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in log["results"]} == {*known}
    for code, rule in known.items():
        assert rule["help"]["markdown"] in (EXPLAIN / f"{code}.md").read_text("utf-8")
    (refuted,) = (r for r in log["results"] if r["ruleId"] == "GS401")
    first, second = refuted["fixes"]
    assert [fix["properties"]["safe"] for fix in (first, second)] == [True, False]
    (change,) = first["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "second.grad"}
    (edit,) = change["replacements"]
    place, lines = edit["deletedRegion"], wrong.splitlines()
    line = lines[place["startLine"] - 1]
    assert place["startLine"] == place["endLine"]
    new = line[: place["startColumn"] - 1] + edit["insertedContent"]["text"]
    new += line[place["endColumn"] - 1 :]
    assert new == mended.splitlines()[place["startLine"] - 1]


def test_fixes_go_through_the_cache() -> None:
    before, after = FIXED["a sign"]
    for _ in range(2):
        (one,) = gradspec.check_text(before).diagnostics
        assert one.fixes[0].apply_to(before) == after
        assert not one.tries
