"""Results on disk: what has not changed is not worked out again, wherever it stands, and
nothing is taken from an entry that is not as it was written."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import gradspec
from gradspec import pipeline
from gradspec.driver import cache
from gradspec.driver.cache import FileResult
from gradspec.driver.discover import Entry
from gradspec.driver.run import compile_entries, compile_entry
from gradspec.options import Options
from gradspec.stabilise import stabilise as search

LOST = """rule lost(x) -> y:
    y = 1 - cos(x)
    dx = dy * sin(x)
"""
SLOPE = """rule slope(x, a: static = 0.5) -> y:
    assume a > 0
    y = log(1 + exp(a * x)) / a
"""
CALLS = """rule twice(x) -> y:
    y = lost(x) + lost(2 * x)
"""
ROWS = """rule centred(x[..., n]) -> y[..., n]:
    y[i] = x[i] - mean(x[j] for j)
"""
WARNS = """rule warns(p, b) -> y:
    assume p >= 0, p <= 1
    y = -log(1 - clip(p, 1e-15, 1 - 1e-15)) * b
"""
BOTH = ("numpy", "torch")

Compile = Callable[..., FileResult]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages that were gone through, and for which rules."""
    done: list[str] = []
    real_check, real = pipeline.check_and_mend, search.stabilise

    def check(rule, *others):  # type: ignore[no-untyped-def]
        done.append(f"check {rule.name}")
        return real_check(rule, *others)

    def stabilise(rule, *others):  # type: ignore[no-untyped-def]
        done.append(f"stabilise {rule.rule.name}")
        return real(rule, *others)

    monkeypatch.setattr(pipeline, "check_and_mend", check)
    monkeypatch.setattr(search, "stabilise", stabilise)
    return done


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    path = tmp_path / "f.grad"

    def run(*rules: str, options: Options = Options(BOTH)) -> FileResult:
        path.write_text("\n".join(rules), "utf-8")
        return compile_entry(Entry(str(path), "f.grad"), options)

    return run


def test_only_the_rule_that_changed_costs(
    compiled: Compile, counted: list[str]
) -> None:
    compiled(LOST, SLOPE, ROWS)
    counted.clear()
    changed = SLOPE.replace("1 + exp", "2 + exp")
    compiled("# a comment\n", LOST, changed, ROWS)
    assert set(counted) == {"check slope", "stabilise slope"}


def test_the_same_bytes_and_diagnostics_as_without_the_cache(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = LOST, SLOPE, WARNS, ROWS, CALLS
    compiled(*every)
    assert len(list(_rules().glob("*.json"))) >= 10
    moved = "# a line above, and one more\n\n", SLOPE, *every[:1], *every[2:]
    kept = compiled(*moved)
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", "")
    fresh = compiled(*moved)
    assert kept == fresh
    assert fresh.diagnostics, "one of the rules has something to be told"
    assert [d.labels for d in kept.diagnostics] == [d.labels for d in fresh.diagnostics]


def test_what_a_result_depends_on_is_part_of_its_name(
    compiled: Compile, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(*rules: str, options: Options = Options(BOTH)) -> set[str]:
        counted.clear()
        compiled(*rules, options=options)
        return set(counted)

    both = {"check lost", "stabilise lost"}
    assert again(LOST) == both
    assert again(LOST + "\n") == set(), "the file is another, the rule the same"
    assert again(LOST.replace("cos(x)", "cos(x )")) == both, "places within a rule"
    assert again(LOST.replace("dy * sin(x)", "sin(x) * dy")) == both
    assert again(LOST, options=Options(BOTH, order=2)) == {"check lost"}
    assert again(LOST, options=Options(BOTH, strict=True)) == {"check lost"}
    assert again(LOST, options=Options(("jax",))) == set()
    called = LOST.replace("1 - cos(x)", "2 - cos(x)"), CALLS
    assert again(LOST, CALLS) == {"check twice", "stabilise twice"}
    assert "stabilise twice" in again(*called), "the rules that it calls"
    monkeypatch.setattr(cache, "tool", lambda: "another version")
    assert again(LOST) == both


def test_a_damaged_entry_counts_as_none(compiled: Compile, counted: list[str]) -> None:
    first = compiled(LOST)
    for path in _entries():
        kept = path.read_bytes()
        middle = len(kept) // 2
        flipped = bytes([*kept[:middle], kept[middle] ^ 1, *kept[middle + 1 :]])
        for data in (b"", b"{", b"\xff", kept[:-1], kept + b" ", flipped):
            for other in _entries():
                other.unlink(missing_ok=True)
            path.write_bytes(data)
            counted.clear()
            assert compiled(LOST) == first
            assert set(counted) == {"check lost", "stabilise lost"}, data
            assert path.read_bytes() != data


FORGED = (
    *("null", "1", "[]", "{}", '"a text"', "[[[1]]]", '{"nodes": [], "top": "a text"}'),
    *("[" * 100_000, '{"a":' * 100_000, '{"nodes": [{"d": ["Const", {"q": "1/0"}]}]}'),
    '{"nodes": [], "top": {"f": "0x1p99999999"}}',
)


@pytest.mark.parametrize("body", FORGED, ids=lambda body: body[:20])
def test_an_entry_of_another_form_counts_as_none(
    compiled: Compile, counted: list[str], body: str
) -> None:
    first = compiled(LOST)
    for path in _entries():
        path.write_text(f"{cache._seal(path, body)}\n{body}", "utf-8")
    counted.clear()
    assert compiled(LOST) == first
    assert set(counted) == {"check lost", "stabilise lost"}


def test_an_entry_under_another_name_counts_as_none(
    compiled: Compile, counted: list[str]
) -> None:
    compiled(LOST)
    was = [path.read_bytes() for path in _entries("results")]
    compiled(SLOPE)
    for path in _entries("results"):
        path.write_bytes(was[0])
    for path in _entries("rules"):
        path.unlink()
    assert "slope" in compiled(SLOPE).modules[0].text


def test_an_entry_names_no_other_place_to_write(compiled: Compile) -> None:
    """Even if its digest is right."""
    first = compiled(LOST)
    (path,) = _entries("results")
    for old, new in (
        ('"f.py"', '"../../f.py"'),
        ('"f.py"', '"/f.py"'),
        ('"numpy"', '"../numpy"'),
        ('f.grad"', 'g.grad"'),
    ):
        body = path.read_text("utf-8").partition("\n")[2]
        assert old in body
        forged = body.replace(old, new)
        path.write_text(f"{cache._seal(path, forged)}\n{forged}", "utf-8")
        assert compiled(LOST) == first


def test_entries_that_are_no_files_count_as_none(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compiled(LOST)
    makers: tuple[Callable[[Path], object], ...] = (
        *(Path.mkdir, os.mkfifo),
        *(lambda p: p.symlink_to("/dev/zero"), lambda p: p.symlink_to(p)),
    )
    for make in makers:
        for path in _entries():
            path.rmdir() if path.is_dir() else path.unlink()
            make(path)
        assert compiled(LOST) == first
    file = tmp_path / "a file"
    file.write_text("")
    for folder in (file, file / "below", Path("/dev/null")):
        monkeypatch.setenv("GRADSPEC_CACHE_DIR", str(folder))
        assert compiled(LOST) == first
        cache.prune()


def test_what_is_not_ours_is_not_dropped(tmp_path: Path) -> None:
    shelf = cache.Shelf(tmp_path, most=1)
    (tmp_path / "mine.json").write_text("{}")
    (tmp_path / "folder").mkdir()
    for number in range(3):
        shelf.put(f"{number}", number)
    shelf.prune()
    assert len(list(tmp_path.iterdir())) == 3
    assert (tmp_path / "mine.json").exists() and (tmp_path / "folder").exists()


def test_a_missing_import_is_looked_for_again(compiled: Compile) -> None:
    text = 'from "later.grad" import g\n\nrule f(x) -> y:\n    y = g(x)\n'
    first = compiled(text)
    assert [d.code for d in first.diagnostics if d.is_error] == ["GS609"]
    Path(first.display).with_name("later.grad").write_text("def g(t) = t * t\n")
    assert compiled(text).modules


def test_a_changed_import_is_compiled_again(tmp_path: Path, compiled: Compile) -> None:
    text = 'from "later.grad" import g\n\nrule f(x) -> y:\n    y = g(x)\n'
    found = []
    for factor in (2, 3):
        body = f"rule g(x) -> y:\n    y = {factor} * x\n"
        (tmp_path / "later.grad").write_text(body, "utf-8")
        found.append(compiled(text).modules[0].text)
    assert "2.0 * x" in found[0] and "3.0 * x" in found[1]


def test_loaded_modules_are_read_from_their_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from what Python compiled it to in another run; and where nothing is kept, from a
    folder of the process."""
    source = tmp_path / "f.grad"
    source.write_text(LOST)
    first = Path(str(gradspec.load(source).__file__))
    base = cache.folder()
    assert base is not None and first.is_relative_to(base)
    other = tmp_path / "other.py"
    other.write_text("raise AssertionError")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    stale = importlib.util.cache_from_source(str(first))
    py_compile.compile(str(other), stale, invalidation_mode=unchecked)
    for name in [name for name in sys.modules if name.endswith(".f")]:
        del sys.modules[name]
    assert gradspec.load(source).lost(0.0) == 0
    for folder in ("", "/dev/null"):
        monkeypatch.setenv("GRADSPEC_CACHE_DIR", folder)
        path = Path(str(gradspec.load(source).__file__))
        assert path.stat().st_uid == os.getuid()
        assert path.parent.parent.parent.stat().st_mode & 0o077 == 0


def _rules() -> Path:
    shelf = cache.rules()
    assert shelf is not None
    return shelf.path


def _entries(kind: str = "*") -> list[Path]:
    base = cache.folder()
    assert base is not None
    return sorted(base.glob(f"{kind}/*.json"))


def test_workers_share_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.grad").write_text(LOST + "\n" + ROWS, "utf-8")
    entries = [Entry(str(folder / f"{n}.grad"), f"{n}.grad") for n in ("a", "b")]
    options = Options(("numpy",))
    together = compile_entries(entries, options, 2, lambda _: None)
    assert list(_rules().glob("*.json")), "results of both"
    assert [p for p in _rules().iterdir() if p.suffix != ".json"] == []
    for one in together:
        again = compile_entry(
            Entry(one.display, Path(one.display).name), replace(options, trace=False)
        )
        assert again == one
