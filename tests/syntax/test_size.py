"""Texts made to exhaust: time, memory or the stack."""

from __future__ import annotations

import pytest

from gradspec.source import Source
from gradspec.syntax.parse import parse, parse_expression

HEAD = "rule f(x) -> y:\n    y = "


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (HEAD + "(" * 10_000 + "x" + ")" * 10_000, "GS120"),
        (HEAD + "(" * 100_000, "GS103"),
        (HEAD + "f(" * 5_000 + "x" + ")" * 5_000, "GS120"),
        (HEAD + "-" * 9_000 + "x", "GS120"),
        (HEAD + "not " * 9_000 + "x", "GS120"),
        (HEAD + "x**" * 4_000 + "x", "GS120"),
        (HEAD + "x+" * 4_000 + "x", "GS120"),
        (HEAD + "1 if x else " * 2_000 + "x", "GS120"),
        (HEAD + "x + " * 50_000 + "x", "GS120"),
        ("rule f(x) -> y:\n" + "    y = f(x\n" * 10_000, "GS103"),
        ("rule f(x) -> y:\n" + "\ty = x\n" * 10_000, "GS105"),
        ("y = x\n" * 10_000, "GS112"),
        ('rule f(x) -> y:\n    """' + "\\" * 100_000, "GS113"),
        (HEAD + "1e" + "9" * 100_000, "GS121"),
        ("\n" * 500_000, "GS117"),
        ("a" * 11_000_000, "GS608"),
    ],
    ids=lambda value: value if len(value) < 9 else repr(value[20:30]),
)
@pytest.mark.timeout(100)  # a second or less, on an idle machine
def test_a_text_that_is_too_much_is_refused(text: str, code: str) -> None:
    outcome = parse(Source("a.grad", text))
    assert code in {fault.code for fault in outcome.diagnostics}


def test_the_deepest_expression_that_is_taken() -> None:
    parse_expression("(" * 300 + "x" + ")" * 300)
    parse_expression("+".join(["x"] * 300))
    with pytest.raises(ValueError, match="300 terms"):
        parse_expression("+".join(["x"] * 301))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("+".join(["x"] * 500), "in a row"),
        ("-".join(["2*sin(x)**2"] * 500), "in a row"),
        ("*".join(["x"] * 500), "in a row"),
        ("x if x > 0 else " * 500 + "x", "in a row"),
        ("sin(" * 9 + "+".join(["x"] * 500) + ")" * 9, "in a row"),
        ("x+(" * 301 + "x" + ")" * 301, "nested"),
        ("x**" * 500 + "x", "nested"),
        ("-" * 500 + "x", "nested"),
    ],
)
def test_a_chain_is_not_called_nested(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_expression(text)


def test_a_deep_tree_can_be_compared_and_hashed_and_printed() -> None:
    from gradspec.syntax.printer import print_expression

    text = "-" * 299 + "x"
    first, second = parse_expression(text), parse_expression(text)
    assert first == second
    assert hash(first) == hash(second)
    assert print_expression(first) == text


def test_many_rules_are_read_in_linear_time() -> None:
    rule = "rule f{}(x) -> y:\n    y = x * 2 + exp(x)\n    dx = dy\n"
    outcome = parse(Source("a.grad", "".join(rule.format(n) for n in range(2000))))
    assert not outcome.diagnostics
    assert outcome.value is not None
    assert len(outcome.value.items) == 2000
