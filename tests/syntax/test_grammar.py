"""The grammar itself: LALR(1) without conflicts, found in a checkout and in a wheel."""

from __future__ import annotations

import logging
import sys
from importlib import resources
from pathlib import Path

import lark
import pytest

from gradspec.syntax import grammar

ROOT = Path(__file__).parents[2]


def test_it_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    level = lark.logger.level
    lark.logger.setLevel(logging.DEBUG)
    lark.logger.addHandler(caplog.handler)
    try:
        lark.Lark(
            grammar.grammar_text(),
            parser="lalr",
            lexer="basic",
            start=list(grammar.STARTS),
            debug=True,
        )
    finally:
        lark.logger.removeHandler(caplog.handler)
        lark.logger.setLevel(level)
    assert "onflict" not in caplog.text


def test_it_is_the_file_of_the_checkout() -> None:
    path = ROOT / "grammars" / "gradspec.lark"
    assert grammar.grammar_text() == path.read_text("utf-8")


def test_it_is_found_where_a_wheel_puts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "gradspec"
    (installed / "_grammars").mkdir(parents=True)
    (installed / "syntax").mkdir()
    (installed / "_grammars" / "gradspec.lark").write_text("of the wheel", "utf-8")
    monkeypatch.setattr(grammar, "__file__", str(installed / "syntax" / "grammar.py"))
    monkeypatch.setattr(resources, "files", lambda _: installed)
    assert grammar.grammar_text() == "of the wheel"


def test_the_builder_has_a_method_for_each_rule() -> None:
    parser = grammar._parser()
    for rule in parser.rules:
        name = rule.alias or rule.origin.name
        if not name.startswith("_") and not rule.options.expand1:
            assert hasattr(grammar.Builder, name), name


def test_the_parser_is_made_once() -> None:
    assert grammar._parser() is grammar._parser()


def test_lark_is_not_imported_before_it_is_needed() -> None:
    import subprocess

    code = "import sys, gradspec.syntax.parse; print('lark' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.strip() == "False"
