"""Arguments that the functions of the package refuse, with their names."""

from __future__ import annotations

import math
from typing import Any

import pytest

import gradspec

GOOD = "rule f(x) -> y:\n    y = x**2\n"
BAD = [
    *({"budget": value} for value in (0, -1, math.inf, math.nan, 10**400, "3", None)),
    *({"target": value} for value in ("all", "caffe", "", None, ("numpy",), 5)),
    {"strict": "no"},
]
NAMES = [
    "a\nprint('harm')\n#.grad",
    *(f"a{char}b.grad" for char in "\r\0\x1b\x85\u2028\u202e\ud800"),
    *('a" + str(print(1)) + ".grad', "a b.grad", "_gradspec.grad", "", "..", "/"),
]


@pytest.mark.parametrize("given", BAD, ids=repr)
def test_an_argument_that_cannot_be_is_named(given: dict[str, Any]) -> None:
    (name,) = given
    for function in (gradspec.compile_text, gradspec.load):
        with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
            function(GOOD, **given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("jobs", value) for value in (-1, 2.5, True, None)),
        *(("paths", value) for value in (None, 5, [5], b"a.grad")),
        *(("out", value) for value in (None, 5, "a\0b", "a\ud800")),
        *(("targets", value) for value in (None, [], [5], 5)),
    ],
)
def test_so_is_one_of_compile_paths(name: str, value: Any) -> None:
    given = {"paths": "none.grad", name: value}
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
        gradspec.compile_paths(given.pop("paths"), **given)


@pytest.mark.parametrize("text", [None, [GOOD], b"a", 5])
def test_a_text_is_one(text: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^text must be a text"):
        gradspec.compile_text(text)
    with pytest.raises((TypeError, ValueError), match=r"^source must be"):
        gradspec.load(text)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("target", ["numpy", "tf"])
def test_a_name_never_leaves_its_place_in_the_module(name: str, target: str) -> None:
    with pytest.raises(gradspec.CompileError, match=r"GS604"):
        gradspec.compile_text(GOOD, target, name=name)


def test_texts_are_read_as_files_are() -> None:
    plain = gradspec.compile_text(GOOD)
    for text in (GOOD.replace("\n", "\r\n"), GOOD.replace("\n", "\r"), f"\ufeff{GOOD}"):
        assert gradspec.compile_text(text) == plain
    for function in (gradspec.compile_text, gradspec.load):
        with pytest.raises(gradspec.CompileError, match=r"GS606.*\s.*rules\.grad:3:3"):
            function(f"{GOOD}# \ud800\n")
        with pytest.raises(gradspec.CompileError, match=r"GS106.*\s.*rules\.grad:1:17"):
            function("rule f(x) -> y: y = x**2")
        with pytest.raises(ValueError, match="no module"):
            function("def half(t) = t / 2\n")
    with pytest.raises(gradspec.CompileError, match="GS601"):
        gradspec.load("a=1/none.grad")
