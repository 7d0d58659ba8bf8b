"""Our layout of long statements is Black's."""

from __future__ import annotations

import random

import black
import pytest

from gradspec.targets.docstring import literal
from gradspec.targets.layout import WIDTH, statement

_NAMES = ["x", "beta", "denominator", "one_minus_p", "2.0", "sigmoid_x", "k", "t"]
_INFIX = [("+", 9), ("-", 9), ("*", 10), ("/", 10), (">", 4), ("&", 7)]


def expression(r: random.Random, depth: int) -> tuple[str, int]:
    """A random expression in Black's spacing, and its precedence."""

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


def blackened(text: str, depth: int) -> str:
    lines = [f"{'    ' * level}def f{level}():" for level in range(depth)]
    body = "    " * depth + text
    if text.endswith(":"):
        body += f"\n{'    ' * (depth + 1)}pass"
    source = "\n".join(["from __future__ import annotations", *lines, body]) + "\n"
    formatted = black.format_str(source, mode=black.Mode()).splitlines()
    kept = [line for line in formatted if line.strip() and line.strip() != "pass"]
    return "\n".join(kept[1 + depth :])


@pytest.mark.parametrize("depth", [1, 2])
def test_statements(depth: int) -> None:
    for seed in range(150):
        text = statements(seed)
        assert statement(text, depth) == blackened(text, depth), (seed, text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: npt.ArrayLike, *, beta: float = 1.0) -> np.ndarray:",
        "def a_rather_long_name_of_a_rule_vjp(x: npt.ArrayLike) -> tuple[np.ndarray, int]:",
        "def a_rather_long_name_of_a_rule(x: npt.ArrayLike, y: npt.ArrayLike, *, beta: float"
        " = 1.0) -> tuple[tuple[np.ndarray, np.ndarray], Callable[..., tuple[np.ndarray]]]:",
        "def a_rather_long_name_of_a_rule(x: npt.ArrayLike, y: npt.ArrayLike, scale_x: "
        "npt.ArrayLike, scale_y: npt.ArrayLike, *, beta: float = 1.0) -> np.ndarray:",
    ],
)
def test_definitions(text: str) -> None:
    source = f"from __future__ import annotations\n\n\n{text}\n    pass\n"
    formatted = black.format_str(source, mode=black.Mode()).splitlines()
    expected = "\n".join(line for line in formatted[3:] if line.strip() != "pass")
    assert statement(text) == expected


def test_all_is_exploded_where_it_is_long() -> None:
    names = ", ".join(f'"a_name_of_some_length_{i}"' for i in range(6))
    text = f"__all__ = [{names}]"
    assert statement(text) == black.format_str(text, mode=black.Mode()).rstrip("\n")


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
    import inspect

    assert inspect.getdoc(function) == inspect.cleandoc(text)
    assert list(space) == ["__builtins__", "f"]
    assert black.format_str(source, mode=black.Mode()) == source
