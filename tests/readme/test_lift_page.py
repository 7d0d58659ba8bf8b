"""The session of docs/lift.md is what `gradspec lift` prints and writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import gradspec
from gradspec.cli import cli

TEXT = (Path(__file__).parents[2] / "docs" / "lift.md").read_text("utf-8")
FILES = re.findall(
    r"^```python\n(# (\S+\.py)\n.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
)


def _block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text, name in FILES:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    result = CliRunner().invoke(cli, ["lift", "model", "--out", "rules"])
    assert result.exit_code == 1
    assert result.output.startswith(_block("text"))
    written = Path("rules/model/act.grad").read_text()
    assert _block("grad") in written
    assert gradspec.compile_text(_block("grad"), "torch")
