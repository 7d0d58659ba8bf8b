"""Long statements and docstrings as text."""

from __future__ import annotations

import ast
import inspect
import random
import re
import subprocess
import sys
import textwrap

import pytest

from gradspec.targets.layout import WIDTH, statement
from gradspec.targets.lines import literal

_NAMES = ["x", "beta", "denominator", "one_minus_p", "2.0", "sigmoid_x", "k", "t"]
_INFIX = [("+", 9), ("-", 9), ("*", 10), ("/", 10), (">", 4), ("&", 7)]


def expression(r: random.Random, depth: int) -> tuple[str, int]:
    """A random expression and its precedence."""

    def part(least: int) -> str:
        text, precedence = expression(r, depth - 1)
        return text if precedence >= least else f"({text})"

    kind = r.random()
    if depth == 0 or kind < 0.1:
        return r.choice(_NAMES), 14
    if kind < 0.6:
        symbol, precedence = r.choice(_INFIX)
        return f"{part(precedence)} {symbol} {part(precedence + 1)}", precedence
    if kind < 0.65:
        return f"{part(14)} ** ({part(0)} + x)", 12
    if kind < 0.7:
        return f"-({part(0)} + x)", 11
    if kind < 0.75:
        return f"({part(9)} + x).astype(x.dtype)", 14
    if kind < 0.8:
        return f"{part(1)} if k > 0 else {part(0)}", 0
    if kind < 0.9:
        return f"np.exp({part(0)})", 14
    return f"np.where({part(0)}, {part(0)}, {part(0)})", 14


def statements(seed: int) -> str:
    r = random.Random(seed)
    one = expression(r, r.randint(2, 5))[0]
    two = expression(r, r.randint(1, 4))[0]
    return r.choice(
        [
            f"y = {one}",
            f"return {one}",
            f"return {one}, {two}",
            f"return _gradient(x, {one}), _gradient(y, {two})",
            f"z, w = _f({one}, {two})",
            f"ctx.save_for_backward(x, {one})",
            f"return (_gradient(x, {one}),)",
            f"if {one}:",
            f"while {one}:",
            f"y += {one}",
            f"y = tuple({one} for x, k in zip({two}, y) if x > k)",
            f"return any(f(x, {one}) for x in ({two}))",
        ]
    )


def tree(text: str) -> str:
    text = textwrap.dedent(text)
    body = "\n    pass" if text.endswith(":") else ""
    return ast.dump(ast.parse(f"{text}{body}"))


def joined(text: str) -> str:
    """The statement on one line again, without commas before closing brackets."""
    line = " ".join(line.strip() for line in text.splitlines())
    return re.sub(r",? ([)\]}])", r"\1", re.sub(r"([(\[{]) ", r"\1", line))


@pytest.mark.parametrize("depth", [1, 2])
def test_lines_are_short_and_mean_the_same(depth: int) -> None:
    for seed in range(300):
        text = statements(seed)
        lines = statement(text, depth)
        assert tree(lines) == tree(text), (seed, text)
        assert all(len(line) <= WIDTH for line in lines.splitlines()), (seed, text)
        assert ",)" in text or statement(joined(lines), depth) == lines, (seed, text)


def test_lines_are_those_of_ruff() -> None:
    texts = (statements(seed) for seed in range(500))
    lines = "\n\n\n".join(
        f"def f():\n{statement(text, 1)}" + "\n        pass" * text.endswith(":")
        for text in texts
    )
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "-"],
        input=lines + "\n",
        capture_output=True,
        check=True,
        text=True,
    )
    assert formatted.stdout == lines + "\n"


LAYOUTS = [
    "y = first_operand * second_operand",
    """
y = (
    np.exp(first_operand_of_a_sum) * second_operand_of_a_sum
    + third_operand_of_a_sum
    - fourth_operand
)
""",
    """
dx = dy * np.where(
    condition_of_a_choice > 0.0, value_if_it_holds_at_the_point, value_otherwise_there
)
""",
    """
y = np.where(
    condition_of_a_choice > 0.0,
    first_operand_of_a_sum
    * np.square(second_operand_of_a_sum + third_operand_of_a_sum + fourth_operand),
    value_if_k_is_positive if k > 0 else value_if_k_is_negative,
)
""",
    """
def a_rather_long_name_of_a_rule(
    x: npt.ArrayLike, y: npt.ArrayLike, *, beta: float = 1.0
) -> tuple[tuple[np.ndarray, np.ndarray], Callable[..., tuple[np.ndarray]]]:
""",
    """
def a_rather_long_name_of_a_rule(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    scale_of_x: npt.ArrayLike,
    scale_of_y: npt.ArrayLike,
) -> np.ndarray:
""",
    """
(
    the_first_of_many_residuals,
    the_second_of_many_residuals,
    the_third_of_many_residuals,
) = residuals
""",
]


@pytest.mark.parametrize("lines", [text.strip() for text in LAYOUTS])
def test_layouts(lines: str) -> None:
    assert (
        statement(joined(lines).replace("(the", "the").replace("als) =", "als ="))
        == lines
    )


def test_comments_wrap() -> None:
    lines = statement("# " + "word " * 40, 1).splitlines()
    assert len(lines) > 1
    assert all(line.startswith("    # word") and len(line) <= WIDTH for line in lines)


HOSTILE = [
    "plain",
    'three """ quotes',
    'ends in a quote"',
    'ends in a backslash and a quote\\"',
    '"begins with one',
    'four """" of them',
    '"""',
    "a backslash \\ and \\n not a line end",
    "ends in a backslash\\",
    "a tab\t, a bell \x07 and a form feed \x0c end",
    "right to left \u202e override, line separator \u2028, zero width \u200b",
    'evil"""\nimport os\n"""',
    "\\frac{1}{2}",
    '\\"\\"\\" and \\\\"""',
    "first\n\n    indented\nlast",
    "\U000e0001 a tag",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_docstrings_show_the_text_and_nothing_else(text: str) -> None:
    source = f"def f():\n{literal(text, 1)}\n"
    space: dict[str, object] = {}
    exec(compile(source, "m", "exec"), space)
    function = space["f"]
    assert inspect.getdoc(function) == inspect.cleandoc(text)
    assert list(space) == ["__builtins__", "f"]
