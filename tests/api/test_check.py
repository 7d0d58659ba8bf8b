"""Checks of texts and files from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradspec
from gradspec.stabilise import stabilise as search

TEXT = """from "lib/shapes.grad" import hill

rule slope(x, t: nograd) -> y:
    y = sin(x) * t + hill(x)

rule wave(x) -> y:
    y = sin(x)
    dx = dy * (
        sin(x)
    )

rule row(x[n]) -> y[n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
"""
HILL = "rule hill(x) -> y:\n    y = x**2\n"


def _read(path: str) -> str | None:
    return HILL if path == "work/lib/shapes.grad" else None


def test_rules_come_with_gradients_verdicts_and_findings() -> None:
    found = gradspec.check_text(TEXT, name="work/mine.grad", read=_read)
    told = [
        (rule.name, *((g.formula, g.verdict.status.value) for g in rule.gradients))
        for rule in found.rules
    ]
    assert told == [
        ("slope", ("dx = dy * (t * cos(x) + 2 * x)", "derived")),
        ("wave", ("dx = dy * (sin(x))", "refuted")),
        ("row", ("dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))", "derived")),
    ]
    assert found.failed and [d.code for d in found.diagnostics] == ["GS401"]
    for rule in found.rules:
        assert rule.source.slice(rule.span).startswith(f"rule {rule.name}(")
        assert rule.source.slice(rule.name_span) == rule.name


def test_a_reader_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/shapes.grad").write_text(HILL)
    name = f"{tmp_path}/mine.grad"
    given = {
        "of the file": (None, False),
        "of the reader": (lambda _: HILL.replace("hill", "hollow"), True),
        "of the file again": (lambda _: None, False),
    }
    for what, (read, fails) in given.items():
        text = TEXT.replace("dx = dy * (\n        sin", "dx = dy * (\n        cos")
        found = gradspec.check_text(text, name=name, read=read)
        assert found.failed is fails, what
    lost = gradspec.check_text(TEXT, name="elsewhere/mine.grad", read=lambda _: None)
    assert "GS609" in {d.code for d in lost.diagnostics}


def test_evaluations_are_searched_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "rule f(x) -> y:\n    exact y = 1 - tanh(x)\n"
    with_them = gradspec.check_text(text, evaluations=True)
    assert [d.code for d in with_them.diagnostics] == ["GS441"]

    def refuse(*_: object) -> None:
        raise AssertionError("it searches")

    monkeypatch.setattr(search, "stabilise", refuse)
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", "")
    assert gradspec.check_text(text).diagnostics == ()
    with pytest.raises(AssertionError, match="it searches"):
        gradspec.check_text(text, evaluations=True)


def test_files_give_one_result_in_any_number_of_processes(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/shapes.grad").write_text(HILL)
    (tmp_path / "mine.grad").write_text(TEXT)
    (tmp_path / "worse.grad").write_text("rule f(x) -> y\n    y = x\n")
    alone = gradspec.check_paths(tmp_path)
    assert [rule.name for rule in alone.rules] == ["hill", "slope", "wave", "row"]
    assert [d.code for d in alone.diagnostics] == ["GS401", "GS102"]
    assert gradspec.check_paths([tmp_path], jobs=2) == alone
    assert [d.code for d in gradspec.check_paths("none.grad").diagnostics] == ["GS601"]


def test_second_derivatives_and_strictness_can_be_asked_for() -> None:
    text = "rule f(x) -> y:\n    y = x**3\n    dx = 3 * dy * x**2\n"
    (rule,) = gradspec.check_text(text, order=2).rules
    assert [v.input for v in rule.second] == ["x,x"]
    assert gradspec.check_text(text).rules[0].second == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("order", 3), ("order", True), ("evaluations", 1), ("read", "a"), ("budget", 0)],
)
def test_arguments_that_cannot_be_are_named(name: str, value: object) -> None:
    given = {name: value}
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
        gradspec.check_text("", **given)  # type: ignore[arg-type]
    bad = gradspec.check_text("rule f(x) -> y:\n    y = x\n", name="a b.grad")
    assert [d.code for d in bad.diagnostics] == ["GS604"]
