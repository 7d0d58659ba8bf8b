"""`gradspec fmt`: layout only, idempotent, nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradspec.cli import cli

CROOKED = "rule f( x )->y: # head\n  y=(x)**2   # square\n"
STRAIGHT = "rule f(x) -> y:  # head\n    y = x**2  # square\n"


def fmt(*args: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["fmt", *args], input=input)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.grad"
    path.write_text(CROOKED, "utf-8")
    return path


def test_a_file_is_rewritten_once(file: Path) -> None:
    first, second = fmt(str(file)), fmt(str(file))
    assert file.read_text("utf-8") == STRAIGHT
    assert first.output == "1 of 1 files formatted\n"
    assert second.output == "0 of 1 files formatted\n"
    assert first.exit_code == second.exit_code == 0


def test_check_writes_nothing_and_fails(file: Path) -> None:
    result = fmt("--check", str(file))
    assert result.exit_code == 1 and f"would format {file}" in result.output
    assert file.read_text("utf-8") == CROOKED


def test_diff_shows_the_lines(file: Path) -> None:
    result = fmt("--diff", str(file))
    assert result.exit_code == 0 and file.read_text("utf-8") == CROOKED
    assert {"-  y=(x)**2   # square", "+    y = x**2  # square"} <= {
        *result.stdout.splitlines()
    }


def test_standard_input_goes_to_standard_output() -> None:
    result = fmt("-", input=CROOKED)
    assert result.exit_code == 0 and result.stdout == STRAIGHT


def test_a_file_with_a_syntax_error_is_left_alone(file: Path) -> None:
    file.write_text("rule f(x) -> y:\n  y=x **\n", "utf-8")
    result = fmt(str(file))
    assert result.exit_code == 1 and "error[GS101]" in result.stderr
    assert file.read_text("utf-8") == "rule f(x) -> y:\n  y=x **\n"
