"""The conformance matrix as it is shown."""

from __future__ import annotations

import pytest

from gradspec.measure.conformance import Cell, Matrix
from gradspec.measure.trials import TrialReport
from gradspec.report.summary import show_matrices, show_trials

OWN = Cell("f", "export", "error", "no such operation", plain="ok")
EXCUSED = Cell("f", "functionalize", "error", "NYI", plain="error", plain_message="NYI")
MATRIX = Matrix("torch", ("export", "functionalize"), ("f",), (OWN, EXCUSED))
ABSENT = Matrix("torch", (), (), (), "torch is not installed")


def test_what_plain_code_fails_at_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    show_matrices([MATRIX], "text")
    own, excused = capsys.readouterr().err.splitlines()
    assert own.startswith("error[GS530]: f on torch, export: error: no such operation")
    assert excused.startswith("note: f on torch, functionalize: error: NYI [plain")


def test_annotations_say_which_is_which(capsys: pytest.CaptureFixture[str]) -> None:
    show_matrices([MATRIX], "github")
    own, excused = capsys.readouterr().out.splitlines()
    assert own.startswith("::error title=GS530::f on torch, export")
    assert excused.startswith("::notice title=GS530::f on torch, functionalize")


def test_a_missing_framework_is_said_in_an_annotation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_matrices([ABSENT], "github")
    show_trials((TrialReport("torch", 0, 0, (), ABSENT.absent),), "github")
    line = "::error title=GS611::torch: torch is not installed"
    assert capsys.readouterr().out.splitlines() == [line, line]
