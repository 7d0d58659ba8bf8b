"""Results by rule: what has not changed is not worked out again, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gradspec import pipeline
from gradspec.driver import cache, rule_cache
from gradspec.driver.discover import Entry
from gradspec.driver.results import FileResult
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
    real_check, real = pipeline.check, search.stabilise

    def check(rule, seconds):  # type: ignore[no-untyped-def]
        done.append(f"check {rule.name}")
        return real_check(rule, seconds)

    def stabilise(rule):  # type: ignore[no-untyped-def]
        done.append(f"stabilise {rule.rule.name}")
        return real(rule)

    monkeypatch.setattr(pipeline, "check", check)
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
    shelf = rule_cache.shelf()
    assert shelf is not None
    assert len(list(shelf.path.glob("*.json"))) >= 10
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
    shelf = rule_cache.shelf()
    assert shelf is not None
    for lines, text in enumerate(
        ("", "{", "[]", '{"nodes": [], "top": {"n": 3}}', '{"top": 1}', "1"), 1
    ):
        for path in shelf.path.glob("*.json"):
            path.write_text(text, "utf-8")
        counted.clear()
        again = compiled(LOST + "\n" * lines)
        assert set(counted) == {"check lost", "stabilise lost"}, text
        texts = (
            m.text.partition("\n")[2] for m in (again.modules[0], first.modules[0])
        )
        assert len(set(texts)) == 1, "but for the digest of the file"


def test_an_entry_of_another_type_counts_as_none(
    compiled: Compile, counted: list[str]
) -> None:
    compiled(LOST)
    shelf = rule_cache.shelf()
    assert shelf is not None
    for path in shelf.path.glob("*.json"):
        path.write_text('{"nodes": [], "top": "a text"}', "utf-8")
    counted.clear()
    assert compiled(LOST + "\n").modules
    assert set(counted) == {"check lost", "stabilise lost"}


def test_workers_share_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.grad").write_text(LOST + "\n" + ROWS, "utf-8")
    entries = [Entry(str(folder / f"{n}.grad"), f"{n}.grad") for n in ("a", "b")]
    options = Options(("numpy",))
    together = compile_entries(entries, options, 2, lambda _: None)
    shelf = rule_cache.shelf()
    assert shelf is not None
    assert list(shelf.path.glob("*.json")), "results of both"
    assert [p for p in shelf.path.iterdir() if p.suffix != ".json"] == []
    for one in together:
        again = compile_entry(
            Entry(one.display, Path(one.display).name), replace(options, trace=False)
        )
        assert again == one


def test_old_results_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_cache, "MAX_ENTRIES", 2)
    shelf = rule_cache.shelf()
    assert shelf is not None
    for number in range(5):
        shelf.put(f"{number}", "{}")
    for number in range(5):
        monkeypatch.setattr(cache, "tool", lambda n=number: f"version {n}")
        other = rule_cache.shelf()
        assert other is not None
        other.put("x", "{}")
    rule_cache.prune()
    assert len(list(shelf.path.parent.iterdir())) == 3
