"""The texts that name foreign functions: names and numbers, and nothing else."""

from __future__ import annotations

import pytest

import gradspec

REFUSED = {
    "__import__('os').system('ls')": ("GS130", "not the path"),
    "os.system('ls')": ("GS130", "`'` is neither"),
    "math.sin(x); import os": ("GS130", "`;` has no place"),
    "math.sin(x)(x)": ("GS130", "`(` has no place"),
    "math.sin(x) + 1": ("GS130", "`+` has no place"),
    "math.sin(x[0])": ("GS130", "`[` has no place"),
    "math.sin(f(x))": ("GS130", "`(` has no place"),
    "math": ("GS130", "not the path"),
    "": ("GS130", "not the path"),
    "math..sin": ("GS130", "not the path"),
    "math.lambda": ("GS130", "not the path"),
    "math.sin\\n(x)": ("GS130", "has no place"),
    "math.sin(x": ("GS130", "not closed"),
    "math.sin(x,)": ("GS130", "neither a name nor a number"),
    "math.sin(1e999, x)": ("GS130", "`1e999` is neither"),
    "math.sin(0x10, x)": ("GS130", "`0x10` is neither"),
    "math.sin(None)": ("GS130", "`None` is neither"),
    "math.sin({x})": ("GS130", "`{` is neither"),
    "math.sin(x, y)": ("GS264", "`y` is no argument"),
    "math.sin(2)": ("GS264", "`x` is not passed"),
    "mäth.sin(x)": ("GS130", "not the path"),
}

IN_RULE = {
    'extern y = "a.b(x)"': "GS265",
    'extern y = "a.b(x)" for jax': "GS265",
    'extern y = "a.b(x)" for numpy, torhc': "GS265",
    'extern y = "a.b" for torch': "GS267",
    'extern y = "a.b(s)" for torch': "GS267",
    'extern y = "a.b(dy)" for torch': "GS267",
    'extern s = "a.b(x)" for torch': "GS267",
    'extern (y, dx) = "a.b(x)" for torch': "GS267",
    'extern (dx, dx) = "a.b(x)" for torch': "GS267",
    'extern dn = "a.b(x)" for torch': "GS267",
    'extern dx = "a.b(x)" for torch\n    extern dx = "a.c(x)" for torch': "GS267",
    'extern dx = "a.b(x, y, dy[0])" for torch': "GS130",
    'extern dx = "a.b(x; y)" for torch': "GS130",
    "extern dx = a.b(x) for torch": "GS101",
}

WRONG = {
    'extern def f(x) = "a.b" for numpi': "GS265",
    'extern def f(x) = "a.b" for numpy, "c.d" for numpy': "GS265",
    'extern def f(x, x) = "a.b"': "GS205",
    'extern def f(x, y) = "a.b" with derivative x': "GS264",
    'extern def f(x) = "a.b" with derivative sum(x[i] for i)': "GS232",
    'extern def f(x) = "a.b" with derivative z': "GS201",
    'extern def sin(x) = "a.b"': "GS264",
    'extern def f() = "a.b"': "GS101",
    "extern def f(x) = a.b": "GS101",
    'extern def f(x) = "a.b" with': "GS101",
    'extern def f(x) = "a.b"\nextern def f(x) = "a.c"': "GS204",
    'extern def f(x) = "a.b"\n    y = 3': "GS106",
}


def _fault(text: str) -> gradspec.CompileError:
    with pytest.raises(gradspec.CompileError) as caught:
        gradspec.compile_text(f"{text}\n\nrule g(t) -> y:\n    y = t\n")
    return caught.value


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_name_or_number_is_refused_where_it_stands(text: str) -> None:
    code, headline = REFUSED[text]
    told = str(_fault(f'extern def f(x) = "{text}"'))
    assert code in told
    assert headline in told
    assert "^" in told


@pytest.mark.parametrize("text", WRONG)
def test_definitions_that_cannot_be(text: str) -> None:
    assert WRONG[text] in str(_fault(text))


@pytest.mark.parametrize("text", IN_RULE)
def test_kernels_that_cannot_be(text: str) -> None:
    rule = "rule g(x, n: nograd) -> y:\n    s = x * n\n    y = s + 1\n    "
    with pytest.raises(gradspec.CompileError) as caught:
        gradspec.compile_text(f"{rule}{text}\n")
    assert IN_RULE[text] in str(caught.value)


def test_the_words_are_names_elsewhere() -> None:
    text = "rule f(extern, derivative) -> y:\n    y = extern * derivative\n"
    assert "extern * derivative" in gradspec.compile_text(text, "numpy")
