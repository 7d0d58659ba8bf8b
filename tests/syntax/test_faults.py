"""Each syntax fault: its code, the guilty piece, and words that help."""

from __future__ import annotations

import pytest

from gradspec.diagnostics import Diagnostic
from gradspec.source import Source
from gradspec.syntax.parse import parse

HEAD = "rule f(x) -> y:\n"


def found(text: str) -> tuple[Source, tuple[Diagnostic, ...]]:
    source = Source("a.grad", text)
    return source, parse(source).diagnostics


def only(text: str) -> tuple[str, str, str]:
    """The code, the guilty text and all the words of the only fault."""
    source, diagnostics = found(text)
    assert len(diagnostics) == 1, [d.headline for d in diagnostics]
    (fault,) = diagnostics
    assert fault.is_error
    words = f"{fault.headline} | {fault.help}"
    return fault.code, source.slice(fault.labels[0].span), words


BODY_FAULTS = [
    # a line that cannot be read
    ("y = ", "GS101", "", "expected an expression"),
    ("y = x +", "GS101", "", "expected an expression"),
    ("y = 1 + * x", "GS101", "*", "expected an expression"),
    ("y = f(x,, y)", "GS101", ",", "expected an expression"),
    ("y = x = 3", "GS101", "=", "one line assigns one name"),
    ("y, z = x", "GS101", ",", "one line assigns one name"),
    ("y", "GS101", "y", "assigns nothing"),
    ("y == x", "GS101", "y == x", "assigns nothing"),
    ("f(x) + 1", "GS101", "f(x) + 1", "assigns nothing"),
    ("save", "GS101", "save", "save name, other"),
    ("assume", "GS101", "assume", "assume x > 0"),
    ("surrogate y", "GS101", "surrogate y", "surrogate y = expression"),
    ("solve y", "GS131", "", "solve x: left == right"),
    ("solve y = x", "GS131", "=", "solve x: left == right"),
    ("solve y: y + x = 1", "GS131", "=", "solve x: left == right"),
    ("solve y: y + x", "GS131", "y + x", "solve x: left == right"),
    ("solve y: y < x", "GS131", "y < x", "solve x: left == right"),
    ("solve y: y == x == 1", "GS131", "y == x == 1", "solve x: left == right"),
    ("save u v", "GS101", "v", "`,`"),
    ("y = x[j] for j", "GS101", "for", "end of the line"),
    ("example x = 2 dx = 3: y = 1", "GS101", "dx", "`:` or `,`"),
    # exact
    ("exact y", "GS750", "exact", "exact y = expression"),
    ("exact y, z", "GS750", "exact", "exact y = expression"),
    ("save exact y", "GS750", "exact", "exact y = expression"),
    ("y = exact x", "GS750", "exact", "exact y = expression"),
    ("exact override dx = dy because 'r'", "GS750", "exact", "never rewritten"),
    ("override exact dx = dy because 'r'", "GS750", "exact", "never rewritten"),
    ("exact surrogate y = x", "GS750", "exact", "exact dx = …"),
    # colons, brackets
    ("example x = 2, y = 3", "GS102", "", "what must come out"),
    ("y = (x + 1", "GS103", "(", "close it with `)`"),
    ("y = x[i", "GS103", "[", "close it with `]`"),
    ("y = x)", "GS104", ")", "closes nothing"),
    ("y = (x]", "GS104", "]", "cannot close `(`"),
    # layout
    ("y = x +\n        1", "GS106", "1", "only inside brackets"),
    ("y = x\n        + 1", "GS106", "+", "only inside brackets"),
    # conditions
    ("y = 1 if x = 2 else 3", "GS108", "=", "write `==`"),
    ("assume x = 2", "GS108", "=", "write `==`"),
    ("y = 1 if x > 0 and x = 2 else 3", "GS108", "=", "write `==`"),
    ("y = 1 if x > 0", "GS118", "if", "if condition else"),
    ("y = (1 if x > 0) + 2", "GS118", "if", "if condition else"),
    ("y = f(1 if x > 0, 2)", "GS118", "if", "if condition else"),
    # operators of other languages
    ("y = x^2", "GS109", "^", "x**2"),
    ("y = 1 if x > 0 && x < 1 else 2", "GS109", "&&", "write `and`"),
    ("y = 1 if x > 0 || x < 1 else 2", "GS109", "||", "write `or`"),
    ("y = 1 if !(x > 0) else 2", "GS109", "!", "write `not`"),
    ("y = x // 2", "GS109", "//", "floor(x / y)"),
    ("y = x @ x", "GS109", "@", "sum(a[i, l]"),
    ("y += x", "GS109", "+=", "whole sum"),
    ("y = 1 if x <> 2 else 3", "GS109", "<>", "!="),
    # overrides
    ("override dx = -dy", "GS110", "", "because"),
    ("override dx = -dy because reversal", "GS110", "reversal", "quotes"),
    ("override dx = -dy because", "GS110", "", "quotes"),
    ("override dx = -dy 'reversal'", "GS110", "'reversal'", "because"),
    # texts
    ('override dx = -dy because "oh', "GS113", '"oh', "never ends"),
    ("'''doc'''", "GS113", "'''", '"""'),
    ('"doc"', "GS126", '"doc"', "three quotes"),
    ("y = 'a'", "GS119", "'a'", "no place in an expression"),
    # characters
    ("y = x × 2", "GS114", "×", "MULTIPLICATION SIGN"),
    ("y = 2 − x", "GS114", "−", "write `-`"),
    ("y = π * x", "GS114", "π", "write `pi`"),
    ("y = β * x", "GS114", "β", "write `beta`"),
    ("y = xé", "GS114", "xé", "write `xe`"),
    ("y = x²", "GS114", "²", "**2"),
    ("y = x ≤ 2", "GS114", "≤", "<="),
    ("y = x;", "GS114", ";", "one line"),
    ("y = x \\\n + 1", "GS114", "\\", "inside brackets"),
    ("y = x $ 2", "GS114", "$", "letters"),
    ("y = x\u00a0+ 1", "GS114", "\u00a0", "NO-BREAK SPACE"),
    ("y = x\x00", "GS114", "\x00", "U+0000"),
    # names
    ("lambda = x", "GS115", "lambda", "lambda_"),
    ("if = x", "GS115", "if", "if_"),
    ("y = _x", "GS116", "_x", "write `x`"),
    # what Python has
    ("y = lambda t: t", "GS119", "lambda", "def f(x)"),
    ("y = sum(x[j] for j if j in x)", "GS119", "in", "for j in k"),
    ("y = sum(x[j] for (i, j))", "GS119", "(", "for i, j"),
    ("y = x is x", "GS119", "is", "=="),
    ("y = None", "GS119", "None", "`t: nograd`"),
    ("return x", "GS119", "return", "assigns its outputs"),
    ("pass", "GS119", "pass", "assigns its outputs"),
    ("for i in x:\n        y = x", "GS119", "for", "an index runs over its axis"),
    ("if x > 0:\n        y = x", "GS119", "if", "if condition else"),
    ("y = x.shape", "GS119", "x.shape", "of `x[n]` it is `n`"),
    ("y = x.T + 1", "GS119", "x.T", "x[j, i]"),
    ("y = jax.lax.stop_gradient(x)", "GS119", "jax.lax.stop_gradient", "import stop_g"),
    ("y = x + np.finfo(np.float32).eps", "GS119", "np.float32", "every dtype"),
    ("let t = exp(x)", "GS119", "t", "write `t = …`"),
    ("backward:\n        dx = dy", "GS119", ":", "no sections"),
    ("// a comment", "GS109", "//", "begins with `#`"),
    ("dL/dx = 2 * dL/dy", "GS101", "dL/dx = 2 * dL/dy", "write `dx = dy * …`"),
    ("y = np.linalg.norm(x)", "GS119", "np.linalg.norm", "write `norm(…)`"),
    ("y = x[1:2]", "GS119", ":", "no slices"),
    ("y = x[i][j]", "GS119", "[", "one bracket"),
    ("y = [1, 2]", "GS119", "[", "no lists"),
    # size
    ("y = " + "-" * 500 + "x", "GS120", "-" * 200 + "x", "300 levels"),
    ("y = " + "(" * 301 + "x" + ")" * 301, "GS120", "(", "300 levels"),
    ("y = " + "x + " * 300 + "x", "GS120", "x", "300 terms"),
    ("y = f(" + "x, " * 5000 + "x)", "GS120", "y", "10000 words"),
    ("y = 1e999999999", "GS121", "1e999999999", "float64"),
    ("example x = 1e-999: y = 1", "GS121", "1e-999", "float64"),
    # calls
    ("y = sin(x[j] for j)", "GS123", "sin", "logsumexp"),
    ("y = sum(k, x[j] for j)", "GS123", "sum", "sum(… for j)"),
    ("y = nth(x[j] for j)", "GS123", "nth", "a place"),
    ("y = nth(k=1, x[j] for j)", "GS128", "x[j]", "named"),
    ("y = nth(1, x[i, j] for i, j)", "GS123", "j", "a place"),
    ("y = nth(1, x[j] for j if x[j] > 0)", "GS123", "x[j] > 0", "inf"),
    ("y = 2x", "GS125", "2x", "2 * x"),
    ("y = 2 x", "GS125", "x", "write `*`"),
    ("y = x y", "GS125", "y", "write `*`"),
    ("y = 3(x + 1)", "GS125", "(", "write `*`"),
    ("y = f(k=3, x)", "GS128", "x", "before the named ones"),
    # examples
    ("example x = 1/3: y = 1", "GS127", "/", "write digits"),
    ("example x = pi: y = 1", "GS127", "pi", "write digits"),
    ("example x = True: y = 1", "GS119", "True", "true"),
]


@pytest.mark.parametrize(("line", "code", "guilty", "words"), BODY_FAULTS)
def test_a_fault_in_a_body(line: str, code: str, guilty: str, words: str) -> None:
    text = f"{HEAD}    u = x\n    {line}\n    v = x\n"
    assert only(text)[:2] == (code, guilty)
    assert words in only(text)[2]


FILE_FAULTS = [
    ("rule f(x) -> y\n    y = x\n", "GS102", "", "add `:`"),
    ("rule f(x -> y:\n    y = x\n", "GS103", "(", "close it"),
    (f"{HEAD}\ty = x\n\tdx = dy\n", "GS105", "\t", "1 more line"),
    (f"{HEAD}    y = x\n      dx = dy\n", "GS106", "dx", "nothing above it"),
    (f"{HEAD}    y = x\n  dx = dy\n", "GS106", "dx", "by 4 spaces"),
    (f"{HEAD}y = x\ndx = dy\n", "GS106", "y", "body of a rule is indented"),
    ("  rule f(x) -> y:\n    y = x\n", "GS106", "rule", "at the margin"),
    ("rule f(x) -> y: y = x\n", "GS106", "y", "a line of its own"),
    ("def f(x) = x\n    y = 2\n", "GS106", "y", "nothing above it"),
    ("def f(x) =\n    x + 1\n", "GS106", "x", "only inside brackets"),
    ("rule f(x):\n    y = x\n", "GS107", ":", "-> y:"),
    ("rule f(x)\n    y = x\n", "GS107", "", "-> y:"),
    (HEAD, "GS111", "f", "has no body"),
    (f'{HEAD}    """Only words."""\n', "GS111", "f", "has no body"),
    (f"{HEAD}    # only a comment\n", "GS111", "f", "has no body"),
    (f"{HEAD}    y = x\ndx = dy\n", "GS112", "dx = dy", "indent it"),
    ("y = 1\nz = 2\n", "GS112", "y = 1", "outside every rule"),
    ("rul f(x) -> y:\n    y = x\n", "GS112", "rul f(x) -> y:", "begins with `rule`"),
    (
        '"""About the file."""\n' + HEAD + "    y = x\n",
        "GS112",
        '"""About the file."""',
        "comments",
    ),
    ("import numpy\n", "GS112", "import numpy", "from … import"),
    (f'{HEAD}    """Never\n    y = x\n', "GS113", '"""', "never ends"),
    (
        f'{HEAD}    y = x\n    """Late."""\n',
        "GS126",
        '"""Late."""',
        "first in the body",
    ),
    ("rule lambda(x) -> y:\n    y = x\n", "GS115", "lambda", "lambda_"),
    ("rule f(if) -> y:\n    y = x\n", "GS115", "if", "if_"),
    ("rule f(x) -> class:\n    y = x\n", "GS115", "class", "class_"),
    ("rule __import__('os')(x) -> y:\n    y = x\n", "GS116", "__import__", "import_"),
    ("rule _f(x) -> y:\n    y = x\n", "GS116", "_f", "write `f`"),
    ("", "GS117", "", "rule square(x)"),
    ("# nothing\n\n", "GS117", "", "rule square(x)"),
    ("\ufeff", "GS117", "", "rule square(x)"),
    ("class A:\n    pass\n", "GS119", "class", "a file holds rules"),
    ("rule f(x: float) -> y:\n    y = x\n", "GS124", "float", "`static int`"),
    ("rule f(x:) -> y:\n    y = x\n", "GS124", ")", "a kind is missing"),
    ("rule f(x) -> m: int:\n    m = x\n", "GS124", "int", "-> (m: int):"),
    (
        "rule f(x) -> (m: static):\n    m = x\n",
        "GS124",
        "static",
        "`nograd`, `int` or `bool`",
    ),
    ("rule f(x) -> (m = 2):\n    m = x\n", "GS124", "=", "no default"),
    ("rule f(x[1.5]) -> y:\n    y = x\n", "GS121", "1.5", "whole number"),
    ("rule f(x[n:2]) -> y:\n    y = x\n", "GS119", ":", "no slices"),
    ("rule f x -> y:\n    y = x\n", "GS101", "x", "`(`"),
    ("def f(x):\n", "GS101", ":", "def f(x) = expression"),
    ("from foo import bar\n", "GS101", "foo", "path in quotes"),
    ("from 'a.grad' import *\n", "GS101", "*", "one by one"),
    ("from 'a.grad' import\n", "GS101", "", "expected a name"),
    ("x" * (2 << 20), "GS608", "x", "1024 KiB"),
]


@pytest.mark.parametrize(("text", "code", "guilty", "words"), FILE_FAULTS)
def test_a_fault_of_a_file(text: str, code: str, guilty: str, words: str) -> None:
    assert only(text)[:2] == (code, guilty)
    assert words in only(text)[2]


def test_a_label_shows_where_the_other_bracket_is() -> None:
    source, (fault,) = found(f"{HEAD}    y = (x]\n")
    assert [source.slice(label.span) for label in fault.labels] == ["]", "("]


def test_a_docstring_that_ran_on_to_the_next_one() -> None:
    text = (
        f'{HEAD}    """One.\n    y = x\n\nrule g(x) -> y:\n    """Two."""\n    y = x\n'
    )
    assert only(text)[:2] == ("GS113", '"""')
    outcome = parse(Source("a.grad", text))
    assert outcome.value is not None
    assert [getattr(item, "name", "") for item in outcome.value.items] == ["g"]


def test_messages_stay_short() -> None:
    for line in (
        "é" * 5000,
        "y = 2" + "x" * 5000,
        "y = " + "1" * 5000,
        "_" + "x" * 5000,
    ):
        _, diagnostics = found(f"{HEAD}    {line}\n")
        for fault in diagnostics:
            assert len(fault.headline) + len(fault.help) < 300
