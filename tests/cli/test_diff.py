"""`gradspec diff`: files, folders and revisions of git."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradspec.cli import cli

OLD = {
    "act.grad": 'from "lib/parts.grad" import twice\n\n'
    "rule kept(x) -> y:\n    y = twice(x)\n\n"
    "rule rewritten(x) -> y:\n    y = x / (1 + exp(-x))\n\n"
    "rule wrong(x) -> y:\n    y = 0.5 * x * x\n\n"
    "rule gone(x) -> y:\n    y = tanh(x)\n\n"
    "rule dropped(x) -> y:\n    y = sinh(x)\n",
    "lib/parts.grad": "def twice(t) = 2 * t\n\nrule half(x) -> y:\n    y = x / 2\n",
}
NEW = {
    "act.grad": OLD["act.grad"]
    .replace("x / (1 + exp(-x))", "x * sigmoid(x)")
    .replace("0.5", "0.25")
    .replace("rule gone(x) -> y:\n    y = tanh(x)", "rule here(x) -> y:\n    y = 2 * sigmoid(2 * x) - 1")
    .replace("rule dropped(x) -> y:\n    y = sinh(x)", "rule added(x, b) -> y:\n    y = b * x"),
    "lib/parts.grad": OLD["lib/parts.grad"],
}  # fmt: skip
TOLD = """\
same      act.rewritten  y proved
                         dx proved
CHANGED   act.wrong      y differs at x = 1: 0.5 was, 0.25 is
                         dx differs at x = 1, dy = 1: 1 was, 0.5 is
RENAMED   act.gone       it is act.here
"""


def run(*arguments: str, code: int = 0) -> str:
    """What the command says in this process, without workers."""
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done.output


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the old rules in a commit, the new ones in its work tree."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rules", OLD)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "rules")
    write(tmp_path / "rules", NEW)
    return tmp_path


def by_rule(said: str) -> list[str]:
    """The lines but for the order of rules and the total."""
    return sorted(" ".join(line.split()) for line in said.splitlines()[:-1])


def test_a_revision_is_compared_with_a_folder(repository: Path) -> None:
    said = run("diff", "HEAD:rules", "rules", code=1)
    lines = by_rule(said)
    assert set(by_rule(TOLD + "-")) <= set(lines)
    assert "REMOVED act.dropped HEAD:rules/act.grad:15" in lines
    assert "new act.added rules/act.grad:15" in lines
    total = "7 rules: 2 same (text), 1 same, 1 new, 1 CHANGED, 1 RENAMED, 1 REMOVED"
    assert said.splitlines()[-1] == total
    same = run("diff", "HEAD:rules", "HEAD:./rules")
    assert same == "6 rules: 6 same (text)\n"


def test_files_are_compared_whatever_their_names(repository: Path) -> None:
    write(repository / "other", {**NEW, "b.grad": NEW["act.grad"]})
    said = run(
        *("diff", "HEAD:rules/act.grad", "other/b.grad", "--format", "json"), code=1
    )
    rules = {one["rule"] or one["now"]: one for one in json.loads(said)["rules"]}
    assert {name: one["change"] for name, one in rules.items()} == {
        **{"added": "new", "dropped": "removed", "gone": "renamed", "kept": "same"},
        **{"rewritten": "changed", "wrong": "changed"},
    }
    assert not rules["rewritten"]["noticed"] and rules["wrong"]["noticed"]
    value = rules["wrong"]["values"][0]
    assert (value["point"], value["was"], value["is"]) == ("x = 1", "0.5", "0.25")


def test_a_pull_request_has_errors_at_rules(repository: Path) -> None:
    said = run("diff", "HEAD:rules", "rules", "--format", "github", code=1)
    wrong = next(line for line in said.splitlines() if "act.wrong" in line)
    assert wrong.startswith("::error file=rules/act.grad,line=9,title=changed::")
    assert len(said.splitlines()) == 3


def test_workers_say_the_same(repository: Path) -> None:
    command = [sys.executable, "-m", "gradspec", "diff", "HEAD:rules", "rules"]
    done = subprocess.run(
        [*command, "-j", "2"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    here = run("diff", "HEAD:rules", "rules", code=1)
    assert (done.returncode, done.stdout) == (1, here)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("HEAD:nothing", "GS620"),
        ("no-such-revision:rules", "GS620"),
        ("--upload-pack=touch x:rules", "GS601"),
        ("$(touch x):rules", "GS620"),
        ("HEAD:docs", "GS620"),
        ("missing", "GS601"),
    ],
)
def test_what_git_does_not_have_is_an_error(
    repository: Path, given: str, code: str
) -> None:
    assert code in run("diff", "--", given, "rules", code=2)
    assert not (repository / "x").exists()


def test_imports_of_a_revision_stay_below_its_folder(repository: Path) -> None:
    outside = 'from "../secret.grad" import f\n\nrule g(x) -> y:\n    y = f(x)\n'
    write(repository, {"secret.grad": "def f(t) = t\n", "rules/act.grad": outside})
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "outside")
    assert "GS609" in run("diff", "HEAD:rules", "rules", code=2)


def test_rules_with_an_error_are_not_compared(repository: Path) -> None:
    write(repository / "rules", {"act.grad": "rule f(x) -> y:\n    y = z\n"})
    assert "GS201" in run("diff", "HEAD:rules", "rules", code=2)


def test_git_is_needed_for_revisions_alone(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert "cannot run git" in run("diff", "HEAD:a", "rules", code=2)
    assert run("diff", "rules", "rules") == "6 rules: 6 same (text)\n"
