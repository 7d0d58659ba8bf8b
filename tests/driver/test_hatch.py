"""The build hook of hatchling: wheels, source distributions, and editable installs."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_editable, build_sdist, build_wheel

PROJECT = """\
[build-system]
requires = ["hatchling", "gradspec"]
build-backend = "hatchling.build"

[project]
name = "softlib"
version = "1.0"

[tool.hatch.build]
dev-mode-dirs = ["src"]

[tool.hatch.build.targets.wheel]
packages = ["src/softlib"]

[tool.hatch.build.hooks.gradspec]

[tool.gradspec]
paths = ["src/softlib/rules"]
targets = ["numpy", "jax"]
out = "src/softlib/kernels"
"""
RULE = "rule twice(x) -> y:\n    y = 2 * x\n"
MODULES = [f"softlib/kernels/{target}/act.py" for target in ("numpy", "jax")]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a rule, whose modules are not tracked."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src/softlib/rules").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / ".gitignore").write_text("kernels/\ndist/\n")
    (tmp_path / "src/softlib/__init__.py").touch()
    (tmp_path / "src/softlib/rules/act.grad").write_text(RULE)
    return tmp_path


def test_what_is_built_has_the_modules(project: Path) -> None:
    with zipfile.ZipFile(project / "dist" / build_wheel("dist")) as wheel:
        names = wheel.namelist()
        text = wheel.read(MODULES[0]).decode()
    runtime = ["softlib/kernels/jax/_gradspec.py", "softlib/kernels/py.typed"]
    assert {*MODULES, *runtime, "softlib/kernels/__init__.py"} <= {*names}
    assert text == (project / "src" / MODULES[0]).read_text()
    with tarfile.open(project / "dist" / build_sdist("dist")) as source:
        assert {f"softlib-1.0/src/{name}" for name in MODULES} <= {*source.getnames()}


def test_an_editable_install_writes_them(project: Path) -> None:
    with zipfile.ZipFile(project / "dist" / build_editable("dist")) as wheel:
        (path,) = (name for name in wheel.namelist() if name.endswith(".pth"))
        assert wheel.read(path).decode().strip() == str(project / "src")
    assert all((project / "src" / name).is_file() for name in MODULES)


def test_a_rule_with_an_error_ends_the_build(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "src/softlib/rules/act.grad").write_text(f"{RULE}    dx = dy\n")
    with pytest.raises(SystemExit):
        build_wheel("dist")
    said = capfd.readouterr()
    assert "error[GS401]: dx of twice is not the derivative" in said.out + said.err
    assert not (project / "dist").exists() or not [*(project / "dist").glob("*.whl")]
