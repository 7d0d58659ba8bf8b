"""Compiling files: workers give what one process gives, and an unchanged file is read back
from the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.driver import run
from gradspec.driver.discover import Entry, discover
from gradspec.options import Options

OPTIONS = Options(("numpy",))


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Entry, ...]:
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", str(tmp_path / "cache"))
    for name, form in (("a", "log(1 + exp(x))"), ("b", "1 - cos(x)"), ("c", "x * x")):
        text = f"rule {name}(x) -> y:\n    y = {form}\n"
        (tmp_path / f"{name}.grad").write_text(text, encoding="utf-8")
    found = discover([str(tmp_path)]).value
    assert found is not None
    return tuple(found)


def test_workers_give_the_same_in_the_same_order(
    entries: tuple[Entry, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    alone = run.compile_entries(entries, OPTIONS, 1, told.append)
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", "")
    again: list[str] = []
    together = run.compile_entries(entries, OPTIONS, 2, again.append)
    assert [r.modules for r in together] == [r.modules for r in alone]
    assert [r.display for r in together] == [e.display for e in entries]
    assert sorted(again) == told


def test_what_is_unchanged_is_not_compiled_again(
    entries: tuple[Entry, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run.compile_entries(entries, OPTIONS, 1, lambda _: None)
    changed = Path(entries[1].display)
    changed.write_text("rule b(x) -> y:\n    y = sin(x)\n", encoding="utf-8")
    compiled: list[str] = []
    compile_source = run.compile_source

    def watched(source, below, options):  # type: ignore[no-untyped-def]
        compiled.append(source.path)
        return compile_source(source, below, options)

    monkeypatch.setattr(run, "compile_source", watched)
    second = run.compile_entries(entries, OPTIONS, 1, lambda _: None)
    assert compiled == [entries[1].display]
    assert [second[0], second[2]] == [first[0], first[2]]
    assert "np.sin" in second[1].modules[0].text
