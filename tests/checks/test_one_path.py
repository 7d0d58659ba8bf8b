"""A rule says the same of itself elementwise and with an index for each of its names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import pytest

from tests.checks.written import checked

_BLOCK = re.compile(r"```grad\n(.*?)```", re.DOTALL)
_HEADER = re.compile(r"rule (\w+)\((.*?)\) -> (.*?):\n", re.DOTALL)


def _written() -> Iterator[tuple[str, str]]:
    """The examples of the explain pages that are one elementwise rule."""
    for page in sorted(files("gradspec").joinpath("explain").iterdir(), key=str):
        code = page.name.removesuffix(".md")
        if not code.startswith(("GS40", "GS41", "GS43", "GS44")):
            continue
        for number, text in enumerate(_BLOCK.findall(page.read_text("utf-8"))):
            is_one = text.count("rule ") == 1 and "[" not in text
            if is_one and "def " not in text and "import" not in text:
                yield f"{code} {number}", text


def _indexed(text: str) -> str:
    """``y = x * a`` as ``y[i] = x[i] * a[i]``; statics have no axes."""
    header = _HEADER.search(text)
    assert header is not None
    name, inputs, outputs = header.groups()
    body = text[header.end() :]
    tensors = []
    for part in inputs.split(","):
        variable, _, kind = (word.strip() for word in part.partition(":"))
        if "static" not in kind:
            tensors.append(variable)
            inputs = re.sub(rf"\b{variable}\b", f"{variable}[n]", inputs)
    results = [r.strip() for r in outputs.strip("()").split(",")]
    outputs = f"({', '.join(f'{r}[n]' for r in results)})"
    lets = re.findall(r"^    (?:surrogate )?(\w+) = ", body, re.MULTILINE)
    known = {*tensors, *results, *lets} | {f"d{v}" for v in (*tensors, *results)}
    lines = [_line(line, known) for line in body.splitlines()]
    return f"rule {name}({inputs}) -> {outputs}:\n" + "\n".join(lines) + "\n"


def _line(line: str, known: set[str]) -> str:
    if line.strip().startswith("example"):
        return re.sub(r"(\w+) = (-?[\d.e]+|-?inf)(?=[,:]|$)", r"\1 = [\2]", line)
    quoted = r'(?=[^"]*(?:"[^"]*"[^"]*)*$)'  # not in the reason of an override
    for one in sorted(known):
        line = re.sub(rf"\b{one}\b{quoted}", f"{one}[i]", line)
    return line


MORE = {
    "sign by division": "rule f(x) -> y:\n    y = x / abs(x)\n",
    "logarithm": "rule f(x) -> y:\n    y = log(x)\n",
    "unused": "rule f(x, z) -> y:\n    y = x\n",
    "step": "rule f(x) -> y:\n    y = floor(x)\n",
    "cancels": "rule f(x, z) -> y:\n    y = x + z - z\n",
    "constant": "rule f(x) -> y:\n    y = x * (1 / 0)\n",
    "wrong": "rule f(x) -> y:\n    y = x**3\n    dx = 2 * dy * x**2\n",
    "hole": "rule f(x) -> y:\n    y = x**2\n    dx = 2 * dy * y / x\n",
    "jump": "rule f(x) -> y:\n    y = x if x < 1 else x + 2\n",
    "kink": "rule f(x) -> y:\n    y = abs(x)\n    dx = dy if x >= 0 else 2 - dy\n",
    "outside": "rule f(x) -> y:\n    y = abs(x)\n"
    "    dx = dy * (1 if x > 0 else -1 if x < 0 else 3)\n",
    "no limit": "rule f(x) -> y:\n    y = x**2\n"
    "    dx = 2 * dy * x if x != 1 else 5 * dy\n",
    "rounding": "rule f(x) -> y:\n    y = x / 3\n    dx = dy / 3 + dy * 1e-19\n",
}
TABLE = {**dict(_written()), **MORE}


@cache
def _codes(text: str) -> list[str]:
    return sorted({d.code for d in checked(text).diagnostics})


@pytest.mark.parametrize("name", TABLE)
def test_both_ways_of_writing_a_rule_have_the_same_findings(name: str) -> None:
    assert _codes(_indexed(TABLE[name])) == _codes(TABLE[name])


def test_the_table_has_findings() -> None:
    """Most kinds of them."""
    found = {code for text in TABLE.values() for code in _codes(text)}
    assert len(found) > 20
