"""From paths to rule files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.driver.discover import MAX_BYTES, discover, read

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
