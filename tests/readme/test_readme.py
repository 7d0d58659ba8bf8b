"""What the README shows is what gradspec does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gradspec

TEXT = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
RULES = [text for language, text in BLOCKS if not language]
PYTHON = [text for language, text in BLOCKS if language == "python"]
(REFUSAL,) = [text for language, text in BLOCKS if language == "text"]


@pytest.mark.parametrize("target", ["torch", "tf", "numpy"])
def test_the_modules_shown_are_those_emitted(target: str) -> None:
    shown = PYTHON[("torch", "tf", "numpy").index(target)]
    emitted = gradspec.compile_text(RULES[0], target, name="activations.grad")
    assert shown.rstrip() in emitted


def test_the_rules_shown_compile_on_every_target() -> None:
    for text in RULES:
        for target in ("numpy", "torch", "tf"):
            assert gradspec.compile_text(text, target)


def test_the_refusal_shown_is_the_one_given() -> None:
    rule = (
        "rule mish(x) -> y:\n"
        "    y = x * tanh(log(1 + exp(x)))\n"
        "    dx = dy * (tanh(log(1 + exp(x))) + x * (1 - tanh(log(1 + exp(x)))**2))\n"
    )
    with pytest.raises(gradspec.CompileError) as caught:
        gradspec.compile_text(rule, name="mish.grad")
    assert REFUSAL.strip() in str(caught.value)


def test_the_python_shown_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    for name in ("activations.grad", "rules/activations.grad"):
        (tmp_path / name).write_text(RULES[0])
    names: dict[str, object] = {}
    exec(compile(PYTHON[3], "README.md", "exec"), names)
    assert "def cube(" in str(names["text"])
    assert (tmp_path / "generated" / "torch" / "activations.py").is_file()


def test_every_page_that_is_named_exists() -> None:
    root = Path(__file__).parents[2]
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (root / target).exists(), target
