"""A project in the manner of real ones has the verdicts that are expected of it."""

from __future__ import annotations

from pathlib import Path

from gradspec.lift.lifting import lift
from tests.lift.project import expected, sections, unpack


def test_verdicts_of_a_project(tmp_path: Path) -> None:
    unpack(tmp_path)
    assert len(sections()) >= 50
    findings = lift([f"{tmp_path}"]).findings
    found = {
        (Path(f.file).relative_to(tmp_path).as_posix(), f.name): f.verdict
        for f in findings
    }
    assert found == expected()
    assert {f.framework for f in findings} == {"torch", "tf", "jax"}
