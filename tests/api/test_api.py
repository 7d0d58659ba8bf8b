"""gradspec from Python."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

import gradspec

GOOD = "rule softplus(x) -> y:\n    y = log(1 + exp(x))\n"
UNUSED = "rule half(x, z) -> y:\n    y = x / 2\n"
WRONG = "rule f(x) -> y:\n    y = sin(x)\n    dx = dy * sin(x)\n"


def test_compile_text_gives_a_module_that_imports_its_runtime_alone() -> None:
    text = gradspec.compile_text(GOOD)
    imported = [
        line.split()[1]
        for line in text.splitlines()
        if line.startswith(("import", "from"))
    ]
    own = [name for name in imported if name.startswith(".")]
    assert {*own} == {"._gradspec", "._special"}
    assert not [name for name in imported if name.startswith("gradspec")]
    files = gradspec.runtime_files("numpy")
    assert {f"{name[1:]}.py" for name in own} <= {*files}
    assert gradspec.__version__ in files["_gradspec.py"].splitlines()[0]


def test_files_of_text_and_runtime_make_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copied_rules"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "ops.py").write_text(gradspec.compile_text(GOOD))
    for name, text in gradspec.runtime_files("numpy").items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("copied_rules.ops")
    assert module.softplus(1000.0) == 1000.0


def test_compile_text_with_a_fault_raises_with_the_place() -> None:
    with pytest.raises(gradspec.CompileError) as caught:
        gradspec.compile_text(WRONG, name="mine.grad")
    assert "mine.grad:3:" in str(caught.value)
    assert caught.value.diagnostics[0].is_error


def test_load_imports_and_inspect_finds_the_source(tmp_path: Path) -> None:
    path = tmp_path / "mine.grad"
    path.write_text(GOOD)
    module = gradspec.load(path)
    assert module.softplus(1000.0) == 1000.0
    assert "def softplus(" in inspect.getsource(module.softplus)
    assert gradspec.load(path) is module
    path.write_text(GOOD.replace("softplus", "other"))
    assert hasattr(gradspec.load(path), "other")


def test_compile_paths_writes_and_reports(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.grad").write_text(GOOD)
    result = gradspec.compile_paths(
        tmp_path / "rules", targets=["torch", "numpy"], out=tmp_path / "out"
    )
    assert tmp_path / "out" / "torch" / "a.py" in result.written
    assert [rule.name for file in result.files for rule in file.rules] == ["softplus"]
    again = gradspec.compile_paths(
        tmp_path / "rules", targets=["torch", "numpy"], out=tmp_path / "out"
    )
    assert (again.written, again.outputs) == ((), result.outputs)


def test_unknown_targets_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="caffe"):
        gradspec.compile_text(GOOD, target="caffe")
    with pytest.raises(gradspec.CompileError, match="GS601"):
        gradspec.load(tmp_path / "none.grad")


def test_imports_are_relative_to_the_named_file(tmp_path: Path) -> None:
    (tmp_path / "common.grad").write_text("def half(t) = t / 2\n")
    path = tmp_path / "mine.grad"
    path.write_text(
        'from "common.grad" import half\n\nrule f(x) -> y:\n    y = half(x)\n'
    )
    assert gradspec.load(path).f(3.0) == 1.5


def test_load_takes_a_text() -> None:
    module = gradspec.load(GOOD)
    assert module.softplus(1000.0) == 1000.0
    assert gradspec.load(GOOD) is module
    with pytest.raises(gradspec.CompileError, match=r"rules\.grad:3:"):
        gradspec.load(WRONG)


def test_imports_of_a_text_are_relative_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "common.grad").write_text("def half(t) = t / 2\n")
    monkeypatch.chdir(tmp_path)
    text = 'from "common.grad" import half\n\nrule f(x) -> y:\n    y = half(x)\n'
    assert gradspec.load(text).f(3.0) == 1.5


def test_load_warns_at_the_line_of_its_caller(tmp_path: Path) -> None:
    path = tmp_path / "mine.grad"
    path.write_text(UNUSED)
    for source, name in (
        (path, path.as_posix()),
        (path, path.as_posix()),
        (UNUSED, "rules.grad"),
    ):
        with pytest.warns(gradspec.GradspecWarning) as caught:
            gradspec.load(source)
        (found,) = caught
        assert str(found.message).startswith("GS408: ")
        assert str(found.message).endswith(f"({name}:1:14)")
        assert found.filename == __file__
        assert found.message.diagnostic.code == "GS408"


@pytest.mark.parametrize(
    "target",
    [
        "numpy",
        *(
            pytest.param(name, marks=getattr(pytest.mark, name))
            for name in ("torch", "tf", "jax")
        ),
    ],
)
def test_an_edited_file_gives_a_new_module(tmp_path: Path, target: str) -> None:
    """The file itself or one that it imports; the old module stays as it is."""
    pytest.importorskip({"tf": "tensorflow"}.get(target, target))
    common, path = tmp_path / "common.grad", tmp_path / "edited.grad"
    common.write_text("def part(t) = t / 2\n")
    text = 'from "common.grad" import part\n\nrule f(x) -> y:\n    y = part(x)\n'
    path.write_text(text)
    first = gradspec.load(path, target)
    common.write_text("def part(t) = t / 4\n")
    second = gradspec.load(path, target)
    path.write_text(text.replace("part(x)", "1 + part(x)"))
    third = gradspec.load(path, target)
    assert [float(module.f(3.0)) for module in (first, second, third)] == [
        1.5,
        0.75,
        1.75,
    ]
    path.write_text(text)
    assert gradspec.load(path, target) is second
    assert importlib.reload(second).f(3.0) == 0.75
