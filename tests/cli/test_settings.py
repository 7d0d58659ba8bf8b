"""`[tool.gradspec]` of pyproject.toml, and findings that the user ignores."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradspec.cli import cli

ROUNDED = "rule f(x, y: nograd) -> z:\n    assume y > 0\n    z = x / y\n    dx = dz / (y + 1e-19)"
UNUSED = "rule f(x, unused: nograd) -> y:{}\n    y = x**2\n"
TABLE = '[tool.gradspec]\npaths = ["rules"]\ntargets = ["numpy"]\nout = "made"\n'


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "f.grad").write_text(UNUSED.format(""), "utf-8")
    (tmp_path / "pyproject.toml").write_text(TABLE, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_stands_in_for_options(project: Path) -> None:
    result = run("compile")
    assert result.exit_code == 0 and "GS408" in result.stderr
    assert (project / "made" / "numpy" / "f.py").is_file()


def test_paths_are_relative_to_the_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "rules")
    assert run("compile").exit_code == 0
    assert (project / "made" / "numpy" / "f.py").is_file()


def test_options_go_before_the_table(project: Path) -> None:
    result = run("compile", "--target", "torch", "--out", "other")
    assert result.exit_code == 0 and not (project / "made").exists()
    assert (project / "other" / "torch" / "f.py").is_file()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "pats = 1",
            "no key 'pats'; it has paths, targets, out, strict, budget, ignore",
        ),
        ("strict = 1", "strict of [tool.gradspec] is true or false"),
        ("budget = -1", "budget of [tool.gradspec] is a number of seconds"),
        ("ignore = [", "cannot read"),
    ],
)
def test_a_wrong_table_is_refused(project: Path, line: str, message: str) -> None:
    (project / "pyproject.toml").write_text(TABLE + line, "utf-8")
    result = run("check")
    assert result.exit_code == 1 and message in result.stderr


def test_codes_are_ignored_by_every_command(project: Path) -> None:
    table, options = TABLE + 'ignore = ["GS408"]', ("--ignore", "GS408")
    for command in ("compile", "check", "test", "audit"):
        (project / "pyproject.toml").write_text(TABLE, "utf-8")
        results = [run(command, *options)]
        (project / "pyproject.toml").write_text(table, "utf-8")
        results.append(run(command))
        for result in results:
            assert result.exit_code == 0 and "GS408" not in result.stderr, command


@pytest.mark.parametrize(
    ("comment", "is_quiet"),
    [
        ("  # gradspec: ignore[GS408]", True),
        ("  # gradspec: ignore[GS434, gs408]", True),
        ("  # gradspec: ignore[GS434]", False),
        ("  # not needed", False),
    ],
)
def test_a_comment_is_heeded_on_its_line(
    project: Path, comment: str, is_quiet: bool
) -> None:
    (project / "rules" / "f.grad").write_text(UNUSED.format(comment), "utf-8")
    assert ("GS408" not in run("check").stderr) is is_quiet


def test_an_error_is_not_ignored_but_one_of_rounding(project: Path) -> None:
    file = project / "rules" / "f.grad"
    file.write_text(ROUNDED + "\n", "utf-8")
    assert run("check").exit_code == 1
    result = run("check", "--ignore", "gs416")
    assert result.exit_code == 0 and "dx agrees" in result.stdout
    assert run("compile").exit_code == 1
    file.write_text(f"{ROUNDED}  # gradspec: ignore[GS416]\n", "utf-8")
    assert run("compile").exit_code == 0
    file.write_text("rule f(x) -> y:\n    y = x\n    dx = 2 * dy\n", "utf-8")
    assert run("check", "--ignore", "GS401").exit_code == 1


def test_an_unknown_code_is_refused(project: Path) -> None:
    result = run("check", "--ignore", "GS999")
    assert result.exit_code == 2 and "there is no code GS999" in result.stderr


def test_standard_input_is_checked_and_compiled(project: Path) -> None:
    checked = CliRunner().invoke(cli, ["check", "-"], input=UNUSED.format(""))
    assert checked.exit_code == 0 and "stdin.grad:1  f" in checked.stdout
    CliRunner().invoke(cli, ["compile", "-"], input=UNUSED.format(""))
    assert (project / "made" / "numpy" / "stdin.py").is_file()


def test_quiet_prints_findings_only(project: Path) -> None:
    for command in ("check", "compile"):
        result = run(command, "-q")
        assert result.stdout == "" and "GS408" in result.stderr
