"""The runtime is written beside the modules that import it, and kept up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gradspec
from gradspec.driver.write import required_files, runtime_files
from gradspec.targets import TARGETS

RULE = "rule softplus(x) -> y:\n    y = log(1 + exp(x))\n"


@pytest.mark.parametrize("target", TARGETS)
def test_each_runtime_names_its_version_first(target: str) -> None:
    core = runtime_files(target)["_gradspec.py"]
    assert f"gradspec {gradspec.__version__}" in core.splitlines()[0]


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_file_imports_comes_with_it(target: str) -> None:
    files = required_files(target, ["_axes.py"])
    for text in files.values():
        for line in text.splitlines():
            if line.startswith("from ._"):
                assert f"{line.split()[1][1:]}.py" in files


def _compile(tmp_path: Path, *options: str) -> int:
    target = () if "--target" in options else ("--target", "numpy")
    arguments = ["compile", "a.grad", *target, "--out", "out"]
    command = [sys.executable, "-m", "gradspec", *arguments, *options]
    return subprocess.run(
        command, capture_output=True, check=False, cwd=tmp_path
    ).returncode


def test_a_stale_runtime_is_reported_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text(RULE)
    assert _compile(tmp_path) == 0
    core = tmp_path / "out" / "numpy" / "_gradspec.py"
    text = core.read_text()
    assert text == runtime_files("numpy")["_gradspec.py"]
    core.write_text(text.replace("of", "for", 1))
    assert _compile(tmp_path, "--check") == 1
    assert _compile(tmp_path) == 0
    assert core.read_text() == text
    assert _compile(tmp_path, "--check") == 0


def test_an_upgrade_alone_changes_a_line_of_the_runtime(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text(RULE)
    assert _compile(tmp_path) == 0
    core, module = (tmp_path / "out/numpy" / name for name in ("_gradspec.py", "a.py"))
    assert gradspec.__version__ not in module.read_text()
    text = core.read_text()
    for version in ("0.0.1", "12.10.0rc1"):
        core.write_text(text.replace(gradspec.__version__, version, 1))
        assert _compile(tmp_path, "--check") == 0
        made = gradspec.compile_paths(tmp_path / "a.grad", out=tmp_path / "out")
        assert made.written == (core,) and made.diagnostics == ()
        assert core.read_text() == text


def test_a_module_of_another_version_is_reported(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.grad").write_text(RULE)
        made = gradspec.compile_paths(tmp_path / f"{name}.grad", out=tmp_path / "out")
        assert made.diagnostics == ()
    core = tmp_path / "out" / "numpy" / "_gradspec.py"
    core.write_text(core.read_text().replace(gradspec.__version__, "0.0.9", 1))
    made = gradspec.compile_paths(tmp_path / "b.grad", out=tmp_path / "out")
    assert [d.code for d in made.diagnostics] == ["GS613"]
    assert "a.py was written by gradspec 0.0.9" in made.diagnostics[0].headline
    assert gradspec.compile_paths(tmp_path, out=tmp_path / "out").diagnostics == ()


def test_only_what_is_imported_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text("rule square(x) -> y:\n    y = x**2\n")
    assert _compile(tmp_path) == 0
    written = {path.name for path in (tmp_path / "out" / "numpy").iterdir()}
    assert written == {"__init__.py", "_arguments.py", "_gradspec.py", "a.py"}


def test_an_output_folder_that_would_hide_a_framework_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.grad").write_text(RULE)
    (tmp_path / "out").mkdir()
    assert _compile(tmp_path, "--out", ".") == 1
    assert _compile(tmp_path, "--out", "out/..", "--check") == 1
    assert _compile(tmp_path, "--out", ".", "--target", "tf") == 0
    assert not (tmp_path / "numpy").exists()
    monkeypatch.syspath_prepend(tmp_path / "out")
    for target in ("numpy", "torch", "jax", "all"):
        with pytest.raises(gradspec.CompileError, match="GS614"):
            gradspec.compile_paths(tmp_path / "a.grad", target, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
