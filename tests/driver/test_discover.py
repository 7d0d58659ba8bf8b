"""From paths to rule files."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from gradspec.driver.discover import MAX_BYTES, discover, read
from gradspec.driver.load import load
from gradspec.report.diagnostics import render
from gradspec.source import Source

RULE = "rule double(x) -> y:\n    y = 2 * x\n"


def _codes(*paths: Path) -> list[str]:
    return [d.code for d in discover(str(p) for p in paths).diagnostics]


def test_a_folder_gives_its_files_in_order_with_paths_below_it(tmp_path: Path) -> None:
    for name in ("b.grad", "a/z.grad", "a/c.grad", ".hidden/d.grad", "a/note.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(RULE)
    entries = discover([str(tmp_path)]).value or ()
    assert [e.below for e in entries] == ["a/c.grad", "a/z.grad", "b.grad"]
    assert [e.module_path for e in entries] == ["a/c.py", "a/z.py", "b.py"]


def test_a_file_is_below_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.grad").write_text(RULE)
    (entry,) = discover([str(tmp_path / "deep" / "a.grad")]).value or ()
    assert entry.below == "a.grad"


def test_the_same_file_twice_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.grad"
    path.write_text(RULE)
    assert len(discover([str(path), str(path)]).value or ()) == 1


@pytest.mark.parametrize("name", ["my-rules.grad", "1st.grad", "lambda.grad"])
def test_a_name_that_cannot_be_imported(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(RULE)
    assert _codes(tmp_path) == ["GS604"]


def test_paths_that_name_nothing_useful(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "empty").mkdir()
    assert _codes(tmp_path / "none", tmp_path / "a.txt", tmp_path / "empty") == [
        "GS601",
        "GS602",
        "GS603",
    ]


def test_two_files_for_one_module(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "relu.grad").write_text(RULE)
    one, two = tmp_path / "a" / "relu.grad", tmp_path / "b" / "relu.grad"
    assert _codes(one, two) == ["GS605"]
    assert _codes(tmp_path) == []


def test_a_module_and_a_package_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "relu").mkdir()
    (tmp_path / "relu" / "leaky.grad").write_text(RULE)
    (tmp_path / "relu.grad").write_text(RULE)
    assert _codes(tmp_path) == ["GS605"]


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.grad"
    path.write_bytes(b"\xef\xbb\xbfrule f(x) -> y:\r\n    y = x\r\n")
    source = read(str(path), str(tmp_path)).value
    assert source is not None
    assert source.text == "rule f(x) -> y:\n    y = x\n"


def test_a_file_that_is_not_utf8_shows_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.grad"
    path.write_bytes(b"# fine\n# caf\xe9\n")
    (found,) = read(str(path), str(tmp_path)).diagnostics
    assert found.code == "GS606"
    label = found.labels[0]
    assert label.source.position(label.span.start) == (2, 6)


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "a.grad"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES * 10)
    assert [d.code for d in read(str(path), str(tmp_path)).diagnostics] == ["GS608"]


def test_a_missing_file(tmp_path: Path) -> None:
    assert [
        d.code for d in read(str(tmp_path / "a.grad"), str(tmp_path)).diagnostics
    ] == ["GS607"]


SECRET = "PASSWORD = hunter2\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A source folder with all that must not be read, and secrets beside it."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.grad").write_text(RULE)
    for name in ("secret.env", "secret.grad"):
        (tmp_path / name).write_text(SECRET)
    (root / "secret.txt").write_text(SECRET)
    (root / "env.grad").symlink_to(tmp_path / "secret.env")
    (root / "text.grad").symlink_to("secret.txt")
    (root / "outside.grad").symlink_to(tmp_path / "secret.grad")
    (root / "above").symlink_to(tmp_path)
    (root / "loop.grad").symlink_to("loop.grad")
    (root / "zero.grad").symlink_to("/dev/zero")
    (root / "stdin.grad").symlink_to("/dev/stdin")
    os.mkfifo(root / "pipe.grad")
    return root


LINKS = ("env", "text", "outside", "loop", "zero", "stdin", "pipe")


def test_only_regular_rule_files_below_the_root_are_read(root: Path) -> None:
    entries = discover([str(root)]).value or ()
    assert {e.below for e in entries} == {f"{name}.grad" for name in ("a", *LINKS)}
    for entry in entries:
        outcome = read(entry.display, entry.root)
        alone = discover([entry.display]).value or ()
        assert {read(e.display, e.root) for e in alone} <= {outcome}
        if entry.below != "a.grad":
            assert [d.code for d in outcome.diagnostics] == ["GS607"]
            assert "hunter2" not in str(outcome)


@pytest.mark.parametrize(
    "path",
    [
        *(f"{name}.grad" for name in LINKS),
        *("secret.txt", "../secret.env", "../secret.grad", "../../../../dev/stdin"),
        *("above/secret.grad", "sub", ".", "", "none.grad", "sub/../../secret.grad"),
        *("/dev/stdin", "~/.grad", "file:///etc/passwd", "\x1b[31m.grad", "\0.grad"),
        "a" * 5000 + ".grad",
    ],
    ids=lambda path: ascii(path[:30]),
)
def test_only_those_are_imported(root: Path, path: str) -> None:
    text = f'from "{path}" import g\n\nrule f(x) -> y:\n    y = g(x)\n'
    source = Source(f"{root}/a.grad", text)
    found = load(source, str(root)).diagnostics
    assert found[0].code in ("GS609", "GS114", "GS113"), found
    shown = "\n".join(render(d) for d in found)
    assert "hunter2" not in shown and "\x1b[31m" not in click.unstyle(shown)


def test_links_inside_of_the_root_are_followed(root: Path) -> None:
    (root / "sub" / "link.grad").symlink_to("../a.grad")
    text = 'from "sub/link.grad" import double\n\nrule f(x) -> y:\n    y = double(x)\n'
    assert not load(Source(f"{root}/b.grad", text), str(root)).diagnostics


def test_a_folder_that_cannot_be_listed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.grad").write_text(RULE)
    scandir = os.scandir

    def refusing(path: str) -> object:  # root may list all
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    (found,) = discover([str(tmp_path)]).diagnostics
    assert found.code == "GS607"
    assert "closed: Permission denied" in found.headline


def test_a_path_that_the_system_refuses_is_told(tmp_path: Path) -> None:
    assert _codes(tmp_path / ("a" * 5000), Path("a" * 5000 + ".grad")) == ["GS607"] * 2


@pytest.mark.parametrize("name", ["\x1b[31m", "a\nb", "\x9b2J", "\u202e", "\udcff"])
def test_a_name_that_a_terminal_would_obey(tmp_path: Path, name: str) -> None:
    folder = tmp_path / f"d{name}"
    folder.mkdir()
    (folder / "a.grad").write_text(RULE)
    (tmp_path / f"{name}.grad").write_text(RULE)
    assert set(_codes(tmp_path, folder, folder / "a.grad")) == {"GS604"}
    outcome = discover(map(str, (tmp_path, folder, folder / "none")))
    assert not outcome.value
    shown = "".join(d.headline + d.help for d in outcome.diagnostics)
    assert shown.isprintable()


@pytest.mark.parametrize("name", ["__init__", "__pycache__", "_gradspec"])
def test_a_name_that_is_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.grad").write_text(RULE)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "__init__.grad").write_text(RULE)
    assert _codes(tmp_path) == ["GS604", "GS604"]
