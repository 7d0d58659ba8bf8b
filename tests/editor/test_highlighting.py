"""Colours: every shipped rule is read, and the grammar of editors is up to date."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path

from pygments.token import Error, Keyword, Name

from gradspec.editor.highlighting import GradLexer, textmate
from gradspec.primitives.lookup import function_names
from gradspec.syntax.grammar import lexicon

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "docs" / "editors" / "vscode"
FILES = sorted((ROOT / "rules").rglob("*.grad"))


def test_every_shipped_rule_is_read() -> None:
    kinds = set()
    for path in FILES:
        text = path.read_text("utf-8")
        tokens = list(GradLexer().get_tokens(text))
        assert "".join(word for _, word in tokens).strip() == text.strip(), path
        assert not [word for kind, word in tokens if kind is Error], path
        kinds |= {(word, kind) for kind, word in tokens if word in lexicon().words}
    words = {word for word, kind in kinds if kind in Keyword}
    rare = {"solve", "exact", "extern", "derivative", "with", "not"}
    assert {*lexicon().words} - words <= rare


def test_words_are_names_where_they_are_given_values() -> None:
    text = "rule f(save, t: static int = 3) -> y:\n    exact = dy * sum(save) ? 1\n"
    kinds = {word: kind for kind, word in GradLexer().get_tokens(text)}
    assert kinds["rule"] is Keyword.Declaration and kinds["f"] is Name.Function
    assert kinds["static"] is kinds["int"] is Keyword.Type
    assert kinds["exact"] is Name and kinds["dy"] is Name.Variable
    assert kinds["sum"] is Name.Builtin and kinds["?"] is Error


def test_pygments_finds_the_lexer() -> None:
    found = importlib.metadata.entry_points(group="pygments.lexers")
    ours = [one.value for one in found if one.name == "grad"]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    said = re.search(r'^grad = "(.*)"$', project, re.MULTILINE)
    assert said and said[1] == f"{GradLexer.__module__}:{GradLexer.__name__}"
    assert ours in ([], [said[1]])  # none where gradspec is not installed


def test_the_grammar_of_editors_is_up_to_date() -> None:
    made = textmate()
    assert (EXTENSION / "syntaxes" / "grad.tmLanguage.json").read_text("utf-8") == made
    patterns = json.loads(made)["patterns"]
    every = " ".join(p.get("match", p.get("begin", "")) for p in patterns)
    assert {*lexicon().words, *function_names()} <= {*re.findall(r"\w+", every)}
    for pattern in patterns:
        re.compile(pattern.get("match", pattern.get("begin", "")))
    package = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    (grammar,) = package["contributes"]["grammars"]
    assert (EXTENSION / grammar["path"]).is_file()
    assert grammar["scopeName"] == json.loads(made)["scopeName"]
