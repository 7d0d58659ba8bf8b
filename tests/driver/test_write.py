"""Writing: whole files, only when changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec.driver.write import (
    CannotWrite,
    OutputFile,
    replace_text,
    stale,
    with_packages,
    write,
)

FILES = with_packages([OutputFile("tf/losses/huber.py", "x = 1\n")])


def test_every_folder_becomes_a_package() -> None:
    assert [f.path for f in FILES] == [
        "__init__.py",
        "tf/__init__.py",
        "tf/losses/__init__.py",
        "py.typed",
        "tf/losses/huber.py",
    ]


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    assert len(write(tmp_path, FILES)) == 5
    target = tmp_path / "tf" / "losses" / "huber.py"
    os.utime(target, (1, 1))
    assert write(tmp_path, FILES) == ()
    assert target.stat().st_mtime == 1
    target.write_text("x = 2\n")
    assert [f.path for f in stale(tmp_path, FILES)] == ["tf/losses/huber.py"]
    write(tmp_path, FILES)
    assert target.read_text() == "x = 1\n"


def test_a_package_file_of_the_user_stays(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("mine = True\n")
    write(tmp_path, FILES)
    assert (tmp_path / "__init__.py").read_text() == "mine = True\n"


def test_an_interrupt_leaves_the_old_text_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_text("old\n")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_text(path, "new\n")
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "tf").write_text("a file where a folder should be")
    with pytest.raises(CannotWrite, match=r"cannot write .*tf.*: "):
        write(tmp_path, FILES)


def test_a_folder_of_modules_does_not_pass_for_the_framework(tmp_path: Path) -> None:
    write(tmp_path / "out", with_packages([OutputFile("numpy/a.py", "x = 1\n")]))
    for where, code in ((tmp_path / "out", 1), (tmp_path, 0)):
        script = "import numpy" if code else "import out.numpy.a, numpy; numpy.zeros(1)"
        child = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(where)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.returncode == code, child.stderr
        assert ("hides NumPy" in child.stderr) == bool(code)
