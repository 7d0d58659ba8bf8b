"""Whole files: items, inputs and outputs, statements, layout, names and places."""

from __future__ import annotations

import pytest

from gradspec.source import Source, Span
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse

FIRST = '''\
# activations.grad

def sigma(t) = 1 / (1 + exp(-t))

rule log1pexp(x) -> y:
    """Softplus: the logarithm of one plus e to the x."""
    y = log(1 + exp(x))
    dx = dy * (1 - 1 / (1 + exp(x)))
    example x = 100: y = 100, dx = 1

rule complex_op(x, y) -> (z, w):
    z = x * y + sin(x)
    w = y**2
    dx = dz * (y + cos(x))
    dy = dz * x + dw * 2 * y

rule swish(x, beta: static = 1.0) -> y:
    y = x * sigma(beta * x)

rule spike(v, k: static = 25.0) -> s:
    """Heaviside step forward, fast sigmoid backward."""
    s = 1 if v > 0 else 0
    surrogate s = v / (1 + k * abs(v))

rule reverse_gradient(x, scale: static = 1.0) -> y:
    y = x
    override dx = -scale * dy because "domain-adversarial training"

rule bce(p, t: nograd) -> loss:
    assume 0 < p, p < 1, 0 <= t, t <= 1
    loss = -(t * log(p) + (1 - t) * log(1 - p))

rule softmax(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i] - max(x[j] for j))
    y[i] = e[i] / sum(e[j] for j)
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))

rule linear(x[..., k], w[m, k], b[m]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l) + b[i]
'''


def module_of(text: str) -> nodes.Module:
    outcome = parse(Source("a.grad", text))
    assert [d.headline for d in outcome.diagnostics] == []
    assert outcome.value is not None
    return outcome.value


def rule_of(text: str) -> nodes.RuleDef:
    (rule,) = module_of(text).items
    assert isinstance(rule, nodes.RuleDef)
    return rule


def statement_of(line: str) -> nodes.Statement:
    return rule_of(f"rule f(x) -> y:\n    {line}\n").body[0]


def test_the_first_file() -> None:
    module = module_of(FIRST)
    assert [
        item.name for item in module.items if not isinstance(item, nodes.Import)
    ] == [
        "sigma",
        "log1pexp",
        "complex_op",
        "swish",
        "spike",
        "reverse_gradient",
        "bce",
        "softmax",
        "linear",
    ]
    assert [comment.text for comment in module.comments] == ["# activations.grad"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n", "  \n") + "\n\n  \n# end",
        lambda text: text.replace("    ", " "),
        lambda text: text.replace("\n", "\n\t# a comment\n   \n"),
    ],
    ids=["crlf", "bom", "no line end", "blanks", "one space", "odd comments"],
)
def test_layout_that_changes_nothing(change) -> None:  # type: ignore[no-untyped-def]
    text = FIRST.replace('"""', '"')  # docstrings keep what is in them
    text = text.replace('    "S', '    """S').replace('x."', 'x."""')
    text = text.replace('    "H', '    """H').replace('backward."', 'backward."""')
    assert module_of(change(text)).items == module_of(FIRST).items


def test_inputs() -> None:
    rule = rule_of(
        "rule f(a, b[], c[n], d[..., n, 3], e[...], g: nograd, h: int, i: bool,\n"
        "       j: static, k: static int = 3, l[..., n]: nograd, m: static = -1/2,\n"
        ") -> (y[..., n], z: int, w: nograd,):\n    y = a\n"
    )
    shown = [
        (p.name, p.axes and (p.axes.batch, p.axes.axes), p.kind) for p in rule.inputs
    ]
    assert shown == [
        ("a", None, ""),
        ("b", (False, ()), ""),
        ("c", (False, ("n",)), ""),
        ("d", (True, ("n", 3)), ""),
        ("e", (True, ()), ""),
        ("g", None, "nograd"),
        ("h", None, "int"),
        ("i", None, "bool"),
        ("j", None, "static"),
        ("k", None, "static int"),
        ("l", (True, ("n",)), "nograd"),
        ("m", None, "static"),
    ]
    assert isinstance(rule.inputs[-1].default, nodes.Binary)
    assert [(p.name, p.kind) for p in rule.outputs] == [
        ("y", ""),
        ("z", "int"),
        ("w", "nograd"),
    ]


def test_imports() -> None:
    (found,) = module_of('from "../a/b.grad" import f, g\n').items
    assert isinstance(found, nodes.Import)
    assert found.path == "../a/b.grad"
    assert [name.id for name in found.names] == ["f", "g"]
    (same,) = module_of("from '../a/b.grad' import (\n  f,\n  g,\n)").items
    assert same == found


def test_statements() -> None:
    match statement_of("y[i, j + 1] = x[i]"):
        case nodes.Assign("y", (nodes.Name("i"), nodes.Binary()), nodes.Indexed()):
            pass
        case other:
            raise AssertionError(other)
    match statement_of("assume x > 0, sum(x[i] for i) <= 1"):
        case nodes.Assume((nodes.Compare(), nodes.Compare())):
            pass
        case other:
            raise AssertionError(other)
    match statement_of("surrogate y[i] = x[i]"):
        case nodes.Surrogate("y", (nodes.Name("i"),), nodes.Indexed()):
            pass
        case other:
            raise AssertionError(other)
    match statement_of(r'override dx = -dy because "a \"b\" {c} \d"'):
        case nodes.Override("dx", None, nodes.Unary(), 'a "b" {c} \\d'):
            pass
        case other:
            raise AssertionError(other)
    match statement_of("recompute u, v"):
        case nodes.Keep("recompute", (nodes.Name("u"), nodes.Name("v"))):
            pass
        case other:
            raise AssertionError(other)


def test_examples() -> None:
    found = statement_of(
        "example x = [[1, -2.50], [+3e-2, -inf]], t = true: y = [nan], dx = 1_0,".rstrip(
            ","
        )
    )
    assert isinstance(found, nodes.Example)

    def plain(value: nodes.Literal) -> object:
        match value:
            case nodes.Scalar(text):
                return text
            case nodes.Vector(items):
                return [plain(item) for item in items]

    assert [(b.name, plain(b.value)) for b in found.given] == [
        ("x", [["1", "-2.50"], ["3e-2", "-inf"]]),
        ("t", "true"),
    ]
    assert [(b.name, plain(b.value)) for b in found.expected] == [
        ("y", ["nan"]),
        ("dx", "1_0"),
    ]


@pytest.mark.parametrize(
    "word",
    [
        "assume",
        "surrogate",
        "solve",
        "override",
        "save",
        "recompute",
        "exact",
        "example",
        "rule",
    ],
)
def test_a_statement_word_may_be_assigned(word: str) -> None:
    assert isinstance(statement_of(f"{word} = {word} + 1"), nodes.Assign)
    assert isinstance(statement_of(f"{word}[i] = {word}[i] + 1"), nodes.Assign)


def test_an_equation() -> None:
    match statement_of("solve y[i] from x[i] if i > 0: y[i]**2 == x[i]"):
        case nodes.Solve("y", (nodes.Name("i"),), nodes.Compare(), start, condition):
            assert isinstance(start, nodes.Indexed)
            assert isinstance(condition, nodes.Compare)
        case other:
            pytest.fail(str(other))
    bare = statement_of("solve y: y**2 == x")
    assert isinstance(bare, nodes.Solve)
    assert (bare.indices, bare.start, bare.condition) == (None, None, None)


def test_a_definition_may_be_exact() -> None:
    for text in ("exact y = x", "exact y[i] = x[i]", "exact exact = x"):
        statement = statement_of(text)
        assert isinstance(statement, nodes.Assign) and statement.exact
        assert statement != statement_of(text.removeprefix("exact "))
        assert statement.span.start == statement.name_span.start - len("exact ")


def test_words_may_name_everything() -> None:
    rule = rule_of(
        "rule rule(static: static, int[save]: int, because) -> example:\n"
        "    save = because\n"
        "    override dbecause = because because 'because'\n"
        "    save save\n"
        "    example = save\n"
        "    example static = 1: example = 2\n"
    )
    assert rule.name == "rule"
    assert [type(line).__name__ for line in rule.body] == [
        "Assign",
        "Override",
        "Keep",
        "Assign",
        "Example",
    ]


def test_a_docstring_keeps_its_text() -> None:
    rule = rule_of(
        'rule f(x) -> y:\n    """Title of \\"""f\\""".\n\n'
        '    $\\frac{1}{x}$ \\\\\n      deeper   \n    """\n    y = x\n'
    )
    assert rule.doc == 'Title of """f""".\n\n$\\frac{1}{x}$ \\\n  deeper'
    assert rule_of('rule f(x) -> y:\n    """"""\n    y = x\n').doc == ""
    assert rule_of("rule f(x) -> y:\n    y = x\n").doc is None


def _spans(node: object, seen: list[tuple[str, Span]]) -> list[tuple[str, Span]]:
    """All spans in a tree, by the node's type."""
    if isinstance(node, tuple):
        for item in node:
            _spans(item, seen)
    elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Span | Source):
        for name in node.__dataclass_fields__:
            value = getattr(node, name)
            if isinstance(value, Span):
                seen.append((f"{type(node).__name__}.{name}", value))
            else:
                _spans(value, seen)
    return seen


def test_spans_are_exact() -> None:
    text = (
        "def g(t) = -t  # c\n"
        "rule f(x[n], k: static = (2)) -> y[n]:\n"
        '    """d"""\n'
        "    y[i] = (x[i] + 1) * f.z(i, k=3)\n"
        "    assume x > 0 , k > 1\n"
        "    override dx = (x) because 'r'\n"
        "    example x = [1, - 2]: y = 3\n"
    )
    module = module_of(text)
    found = [
        (kind, text[span.start : span.end]) for kind, span in _spans(module.items, [])
    ]
    for expected in [
        ("FunctionDef.span", "def g(t) = -t"),
        ("FunctionDef.name_span", "g"),
        ("Unary.span", "-t"),
        ("RuleDef.name_span", "f"),
        ("RuleDef.doc_span", '"""d"""'),
        ("Parameter.span", "x[n]"),
        ("Parameter.name_span", "k"),
        ("Parameter.span", "k: static = (2)"),
        ("Number.span", "(2)"),
        ("Axes.span", "[n]"),
        ("Assign.span", "y[i] = (x[i] + 1) * f.z(i, k=3)"),
        ("Assign.name_span", "y"),
        ("Binary.span", "(x[i] + 1) * f.z(i, k=3)"),
        ("Binary.span", "(x[i] + 1)"),
        ("Indexed.span", "x[i]"),
        ("Call.span", "f.z(i, k=3)"),
        ("Call.function_span", "f.z"),
        ("Keyword.span", "k=3"),
        ("Assume.span", "assume x > 0 , k > 1"),
        ("Compare.span", "k > 1"),
        ("Override.span", "override dx = (x) because 'r'"),
        ("Override.name_span", "dx"),
        ("Example.span", "example x = [1, - 2]: y = 3"),
        ("Binding.span", "x = [1, - 2]"),
        ("Vector.span", "[1, - 2]"),
        ("Scalar.span", "- 2"),
    ]:
        assert expected in found
    assert [text[c.span.start : c.span.end] for c in module.comments] == ["# c"]
