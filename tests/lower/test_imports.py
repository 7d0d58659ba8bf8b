"""Files that import one another."""

from __future__ import annotations

import pytest

from gradspec.ir.expr import Call, show
from gradspec.lower.lowering import order, resolve
from tests.lower.grad_text import guilt, parsed, program

RULE = "rule {}(x) -> y:\n    y = {}\n"


@pytest.mark.parametrize(
    ("importer", "path", "target"),
    [
        ("a.grad", "b.grad", "b.grad"),
        ("a/b.grad", "../c.grad", "c.grad"),
        ("a/b.grad", "c/d.grad", "a/c/d.grad"),
        ("./a.grad", "./b.grad", "b.grad"),
        ("/r/a.grad", "../b.grad", "/b.grad"),
        ("../r/a.grad", "../../b.grad", "../../b.grad"),
    ],
)
def test_paths_are_relative_to_the_importer(
    importer: str, path: str, target: str
) -> None:
    assert resolve(importer, path) == target


def test_files_come_after_what_they_import() -> None:
    files = {
        "top.grad": 'from "mid.grad" import m\nfrom "low.grad" import g\n'
        + RULE.format("t", "m(x)"),
        "mid.grad": 'from "low.grad" import g\n' + RULE.format("m", "g(x)"),
        "low.grad": RULE.format("g", "2 * x"),
        "alone.grad": RULE.format("a", "x"),
    }
    modules = {path: parsed(text, path) for path, text in files.items()}
    outcome = order(modules)
    assert outcome.diagnostics == ()
    assert outcome.value == ("low.grad", "mid.grad", "top.grad", "alone.grad")


@pytest.mark.parametrize("first", ["a.grad", "b.grad", "c.grad"])
def test_a_circle_is_told_once_and_in_one_way(first: str) -> None:
    texts = {
        "a.grad": 'from "b.grad" import b\n' + RULE.format("a", "b(x)"),
        "b.grad": 'from "c.grad" import c\n' + RULE.format("b", "c(x)"),
        "c.grad": 'from "a.grad" import a\n' + RULE.format("c", "a(x)"),
    }
    paths = [first, *(path for path in texts if path != first)]
    outcome = order({path: parsed(texts[path], path) for path in paths})
    (found,) = outcome.diagnostics
    assert guilt(found) == ("GS220", '"a.grad"')
    assert "a.grad -> b.grad -> c.grad -> a.grad" in found.headline


def test_a_file_that_imports_itself() -> None:
    text = 'from "./a.grad" import a, nope\n' + RULE.format("a", "x")
    modules = {"a.grad": parsed(text)}
    assert [guilt(d) for d in order(modules).diagnostics] == [("GS220", '"./a.grad"')]


def test_rules_and_defs_are_imported() -> None:
    made = program(
        {
            "a/m.grad": 'from "../b.grad" import g, sigma\n'
            + RULE.format("f", "g(x) + sigma(x)"),
            "b.grad": "def sigma(x) = 1 / (1 + exp(-x))\n" + RULE.format("g", "x"),
        }
    )
    module, codes = made["a/m.grad"]
    assert codes == []
    value = module.rules[0].forward[0].value
    assert show(value) == "g(x) + 1 / (1 + exp(-x))"
    assert module.names == ("f",), "what is imported is not passed on"


def test_own_names_shadow_imported_ones_which_shadow_built_ins() -> None:
    made = program(
        {
            "a.grad": 'from "b.grad" import exp, g\ndef g(x) = 3 * x\n'
            + RULE.format("f", "exp(x) + g(x)"),
            "b.grad": RULE.format("exp", "2 * x") + RULE.format("g", "x"),
        }
    )
    module, codes = made["a.grad"]
    assert codes == []
    value = module.rules[0].forward[0].value
    assert show(value) == "exp(x) + 3 * x"
    assert isinstance(value.args[0], Call)  # type: ignore[union-attr]


def test_names_that_are_not_there() -> None:
    made = program(
        {
            "a.grad": 'from "b.grad" import swich, bad\n'
            + RULE.format("f", "swich(x)")
            + RULE.format("g", "bad(x) + bad(x)")
            + RULE.format("h", "x"),
            "b.grad": RULE.format("swish", "x") + RULE.format("bad", "foo(x)"),
        }
    )
    module, codes = made["a.grad"]
    assert codes == ["GS221", "GS222", "GS222"]
    assert [rule.name for rule in module.rules] == ["h"]


def test_a_file_that_could_not_be_read_is_not_reported_again() -> None:
    text = 'from "gone.grad" import g\n' + RULE.format("f", "g(x)")
    module, codes = program({"a.grad": text})["a.grad"]
    assert codes == ["GS222"]
    assert module.rules == ()
