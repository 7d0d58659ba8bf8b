"""Strings and docstrings: what they mean, and how they are written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.syntax.tokens import (
    docstring_literal,
    docstring_value,
    string_literal,
    string_value,
    tidy,
)

texts = st.text(
    st.sampled_from("ab\"\\\n \t'{n") | st.characters(exclude_categories=["Cs"])
)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'"a\"b"', 'a"b'),
        (r"'a\'b'", "a'b"),
        (r'"a\\n"', r"a\n"),
        (r'"a\nb\t"', "a\nb\t"),
        (r'"\d \x41 {x} %s"', r"\d \x41 {x} %s"),
    ],
)
def test_escapes(literal: str, value: str) -> None:
    assert string_value(literal) == value


@given(texts)
@settings(max_examples=200, deadline=None)
def test_a_string_means_what_it_was_made_from(value: str) -> None:
    literal = string_literal(value)
    assert string_value(literal) == value
    assert "\n" not in literal


@given(texts)
@settings(max_examples=300, deadline=None)
def test_a_docstring_means_what_it_was_made_from(text: str) -> None:
    value = tidy(text)
    assert tidy(value) == value
    literal = docstring_literal(value, "    ")
    assert docstring_value(literal) == value
    assert '"""' not in literal[3:-3].replace(r"\"", "")


def test_indentation_of_a_docstring_is_not_part_of_it() -> None:
    assert docstring_value('"""\n    One.\r\n\r\n      two\n    three  \n    """') == (
        "One.\n\n  two\nthree"
    )
