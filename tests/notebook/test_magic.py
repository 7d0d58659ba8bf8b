"""The cell magic without a kernel: what is defined, what is shown, what is refused."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import gradspec
from gradspec.notebook.page import CellOutput

GOOD = '''
def sigma(t) = 1 / (1 + exp(-t))

rule swish(x, beta: static = 1.0) -> y:
    """Swish, <b>after</b> $x$ & others."""
    y = x * sigma(beta * x)

rule turned(x, scale: static = 1.0) -> y:
    y = x
    override dx = -scale * dy because "<i>adversary</i>"

rule softmax(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
    s = sum(dy[j] * y[j] for j)
    dx[i] = y[i] * (dy[i] - s)

rule spike(v) -> s:
    assume v < 10
    s = 1 if v > 0 else 0
    surrogate s = v / (1 + abs(v))
'''
WRONG = """rule f(x) -> y:
    y = sin(x)
    dx = dy * sin(x)  # <script>alert("x")</script>
"""
UNUSED = "rule half(x, z) -> y:\n    y = x / 2\n"


class _Shell:
    """As much of IPython's shell as the extension uses."""

    def __init__(self) -> None:
        self.magics: dict[tuple[str, str], Any] = {}
        self.names: dict[str, Any] = {}

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magics[kind, name] = function

    def push(self, names: dict[str, Any]) -> None:
        self.names.update(names)


def _run(line: str, cell: str) -> tuple[CellOutput | None, dict[str, Any]]:
    shell = _Shell()
    gradspec.load_ipython_extension(shell)
    return shell.magics["cell", "gradspec"](line, cell), shell.names


class _Page(HTMLParser):
    """Tags in order, and the text outside of ``<code>`` and ``<pre>``."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.plain = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"code", "pre"} & {*self.open}:
            self.plain += data


TAGS = {"table", "tr", "th", "td", "code", "br", "div", "span", "p", "pre"}


def test_a_cell_defines_the_public_functions() -> None:
    shown, names = _run("", GOOD)
    assert shown is not None
    assert names["swish"](0.0) == 0.0
    _, pullback = names["softmax_vjp"]([0.0, 0.0])
    assert pullback([1.0, 0.0])[0].tolist() == [0.25, -0.25]
    assert {*shown.defined} == {*names}
    assert not [name for name in names if name.startswith("_")]


def test_the_table_has_formulas_gradients_and_verdicts() -> None:
    shown, _ = _run("--target numpy", GOOD)
    assert shown is not None
    page = _Page(shown._repr_html_())
    for part in (
        r"$\displaystyle \sigma\left(t\right) = \frac{1}{1 + e^{-t}}$",
        r"$\displaystyle y = x \, \sigma\left(\beta \, x\right)$",
        r"$\displaystyle y_{i} = \frac{e^{x_{i}}}{\sum_{j} e^{x_{j}}}$",
        r"$\displaystyle s = \sum_{j} \mathit{dy}_{j} \, y_{j}$",
        r"$\displaystyle \mathit{dx}_{i} = y_{i} \, \left(\mathit{dy}_{i} - s\right)$",
        r"$\displaystyle \text{assume } v < 10$",
        r"$\displaystyle \text{surrogate } s = \frac{v}{1 + \left|v\right|}$",
        r"$\displaystyle \mathit{dx} = -\mathit{scale} \, \mathit{dy}$",
        r"$\displaystyle \mathit{dv} = ",
        "dx proved at every size",
        "dv derived from the surrogate",
        "dx override",
    ):
        assert part in page.plain
    assert "softmax  dx proved at every size" in repr(shown)


def test_text_of_the_user_is_neither_html_nor_latex() -> None:
    for cell in (GOOD, WRONG):
        shown, _ = _run("", cell)
        assert shown is not None
        page = _Page(shown._repr_html_())
        assert {*page.tags} <= TAGS
        assert page.plain.count("$") == 2 * page.plain.count(r"$\displaystyle")
    assert "&lt;script&gt;" in shown._repr_html_()


def test_an_error_is_shown_and_nothing_is_defined() -> None:
    shown, names = _run("", f"{GOOD}\n{WRONG}")
    assert shown is not None
    assert names == {}
    html = shown._repr_html_()
    assert "table" not in _Page(html).tags
    assert "GS401" in html and "^^^^^^^^^^^" in html and "Nothing is defined." in html


def test_lines_are_those_of_the_notebook() -> None:
    """The line of the magic is the first."""
    shown, _ = _run("", WRONG)
    assert "cell.grad:4:10" in repr(shown)


def test_warnings_are_shown_beside_what_is_defined() -> None:
    shown, names = _run("", UNUSED)
    assert "warning[GS408]" in repr(shown) and "half" in names
    shown, names = _run("--ignore GS408", UNUSED)
    assert "GS408" not in repr(shown) and "half" in names


def test_options_reach_the_compiler() -> None:
    shown, _ = _run("--as-written --strict", "rule f(x) -> y:\n    y = log(1 + x)\n")
    assert shown is not None and shown.rules[0].rule.name == "f"
    _, names = _run("--as-written", "rule f(x) -> y:\n    y = log(1 + exp(x))\n")
    assert names["f"](1000.0) == float("inf")


@pytest.mark.parametrize("line", ["--target caffe", "--quick", "more words", "'", "-h"])
def test_a_wrong_line_is_told_without_a_traceback(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, names = _run(line, GOOD)
    assert (shown, names) == (None, {})
    assert "%%gradspec" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--help", "")[0] is None
    assert "--as-written" in capsys.readouterr().out


@pytest.mark.torch
def test_torch() -> None:
    pytest.importorskip("torch")
    _, names = _run(
        "--target torch", "rule scaled(x, w: param = 2.0) -> y:\n    y = w * x\n"
    )
    assert names["Scaled"]().forward(3.0) == 6.0
    assert {*names} == {"Scaled", "scaled"}
