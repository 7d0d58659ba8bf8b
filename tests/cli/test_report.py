"""`gradspec compile --report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradspec.cli import cli

TEXT = """\
rule square(x) -> y:
    y = x**2

rule gate(x) -> y:
    u = exp(-x)
    y = x * u
    dx = dy * u * (1 - x)
    save u

rule outer(x[..., n], w[m]) -> y[..., n, m]:
    y[i, j] = sin(x[i] * w[j])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "f.grad").write_text(TEXT, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    given = ["compile", str(folder / "f.grad"), "--out", str(folder / "out")]
    done = CliRunner().invoke(cli, [*given, "--target", "torch,jax", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_row_for_each_rule_and_target(folder):
    lines = run(folder, "--report").splitlines()
    cells = [line.split() for line in lines[1:5]]
    assert lines[0].split()[:3] == ["rule", "target", "keeps"]
    assert [row[:3] for row in cells] == [
        ["square", "torch", "x"],
        ["square", "jax", "x"],
        ["gate", "torch", "x"],
        ["gate", "jax", "x"],
    ]
    assert "u 4 B" in lines[3]
    assert "1 + 2" in lines[1]
    assert "[..., n, m] 4 B" in lines[5]


def test_the_same_from_the_cache(folder):
    assert (
        run(folder, "--report").splitlines()[:5]
        == (run(folder, "--report").splitlines()[:5])
    )


def test_as_json(folder):
    (file,) = json.loads(run(folder, "--report", "--format", "json"))["files"]
    assert [(c["rule"], c["target"]) for c in file["costs"][:4]] == [
        ("square", "torch"),
        ("square", "jax"),
        ("gate", "torch"),
        ("gate", "jax"),
    ]
    square, _, gate, _, outer, _ = file["costs"]
    assert square["kept"] == ["x"]
    assert square["forward"] == {
        "calls": 1,
        "transcendental": 0,
        "arrays": 3,
        "fused": 2,
    }
    assert gate["beyond"] == [{"name": "u", "bytes_per_element": 4}]
    assert outer["largest"] == {"axes": ["...", "n", "m"], "bytes_per_element": 4}


def test_it_is_not_told_unasked(folder):
    (file,) = json.loads(run(folder, "--format", "json"))["files"]
    assert "costs" not in file
