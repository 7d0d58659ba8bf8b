"""FPCore, the exchange format of floating-point benchmarks (https://fpbench.org), as rules.

    python benchmarks/fpcore.py FILE.fpcore… > rules.grad

Each core without loops becomes a rule with one output and derived gradients; what it
presupposes (``:pre``) is assumed. A core that has a loop, an array, or an operation that
the language lacks is named on standard error and left out.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Tree: TypeAlias = "str | list[Tree]"

_TOKEN = re.compile(r';[^\n]*|"(?:[^"\\]|\\.)*"|[()\[\]]|[^\s()\[\];"]+')
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE)
_RATIO = re.compile(r"([-+]?\d+)/(\d+)$")

_COMPARE = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "==", "!=": "!="}
_FUNCTIONS = {
    **{name: name for name in ("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2")},
    **{name: name for name in ("log10", "log1p", "sin", "cos", "tan", "asin", "acos")},
    **{name: name for name in ("atan", "atan2", "sinh", "cosh", "tanh", "asinh")},
    **{name: name for name in ("acosh", "atanh", "erf", "erfc", "hypot", "floor")},
    **{"fabs": "abs", "fmin": "min", "fmax": "max", "tgamma": "gamma"},
    "lgamma": "lgamma",
}
_CONSTANTS = {"PI": "pi", "E": "exp(1)", "PI_2": "(pi / 2)", "PI_4": "(pi / 4)"}
_TAKEN = frozenset([*_FUNCTIONS.values(), "pi", "inf", "y", "rule", "sum", "beta"])


class Unsupported(ValueError):
    """What the language of rules lacks."""


def main(paths: list[str]) -> int:
    for path in paths:
        for core in parsed(Path(path).read_text(encoding="utf-8")):
            try:
                print(rule(core), end="\n\n")
            except Unsupported as fault:
                print(f"{path}: {_title(core)}: {fault}", file=sys.stderr)
    return 0


def parsed(text: str) -> Iterator[list[Tree]]:
    """The cores of a file."""
    stack: list[list[Tree]] = [[]]
    for token in _TOKEN.findall(text):
        if token in "([":
            stack.append([])
        elif token in ")]":
            done = stack.pop()
            stack[-1].append(done)
        elif not token.startswith(";"):
            stack[-1].append(token)
    for tree in stack[0]:
        if isinstance(tree, list) and tree[:1] == ["FPCore"]:
            yield tree


def rule(core: list[Tree]) -> str:
    """The rule of a core."""
    start = 2 if isinstance(core[1], list) else 3
    arguments = core[start - 1]
    properties = dict(zip(core[start:-1:2], core[start + 1 : -1 : 2], strict=True))
    writer = _Writer(_inputs(arguments))
    value = writer.text(core[-1], writer.inputs)
    header = f"rule {_name(_title(core))}({', '.join(writer.inputs.values())}) -> y:"
    assumed = writer.assumed(properties.get(":pre", "TRUE"))
    lines = [f"    assume {', '.join(assumed)}"] if assumed else []
    lines += [f"    {name} = {text}" for name, text in writer.locals.items()]
    return "\n".join([header, *lines, f"    y = {value}"])


def _inputs(arguments: Tree) -> dict[str, str]:
    if not all(isinstance(name, str) for name in arguments):
        raise Unsupported("an argument that is annotated")
    found: dict[str, str] = {}
    for argument in map(str, arguments):
        name = _name(argument)
        while name in found.values():
            name += "_"
        found[argument] = name
    return found


def _title(core: list[Tree]) -> str:
    """The name of a core: it may stand before the arguments, or among the properties."""
    if isinstance(core[1], str):
        return core[1]
    given = (str(b) for a, b in itertools.pairwise(core) if a == ":name")
    return next(given, "unnamed").strip('"')


def _name(text: str) -> str:
    name = re.sub(r"\W+", "_", text.replace("*", "_star")).strip("_").lower()
    if name in _TAKEN:
        name += "_"
    return f"x{name}" if name[:1].isdigit() else name


class _Writer:
    """Writes expressions; what ``let`` binds becomes a local of the rule."""

    def __init__(self, inputs: dict[str, str]) -> None:
        self.inputs = inputs
        self.locals: dict[str, str] = {}

    def text(self, tree: Tree, scope: dict[str, str]) -> str:
        if isinstance(tree, str):
            return _atom(tree, scope)
        head, *rest = tree
        if head in ("let", "let*"):
            return self._let(str(head), rest, scope)
        if head == "!":
            return self.text(rest[-1], scope)
        args = [self.text(arg, scope) for arg in rest]
        return _applied(str(head), args)

    def _let(self, head: str, rest: list[Tree], scope: dict[str, str]) -> str:
        inner = dict(scope)
        for pair in rest[0]:
            name, value = list(pair)
            text = self.text(value, inner if head == "let*" else scope)
            inner[str(name)] = self._local(_name(str(name)), text)
        return self.text(rest[1], inner)

    def _local(self, name: str, text: str) -> str:
        if _NUMBER.match(text):
            return text
        while name in self.locals or name in self.inputs.values():
            name += "_"
        self.locals[name] = text
        return name

    def assumed(self, tree: Tree) -> list[str]:
        """The conjunction as a list."""
        if tree == "TRUE":
            return []
        if isinstance(tree, list) and tree[0] == "and":
            return [part for arm in tree[1:] for part in self.assumed(arm)]
        if isinstance(tree, list) and tree[0] in _COMPARE:
            terms = [self.text(arm, self.inputs) for arm in tree[1:]]
            op = _COMPARE[str(tree[0])]
            pairs = itertools.pairwise(terms)
            return [f"{_bare(a)} {op} {_bare(b)}" for a, b in pairs]
        return [_bare(self.text(tree, self.inputs))]


def _atom(token: str, scope: dict[str, str]) -> str:
    if token in scope:
        return scope[token]
    ratio = _RATIO.match(token)
    if ratio:
        return f"({token.replace('/', ' / ')})"
    if _NUMBER.match(token):
        return token.lstrip("+")
    if token in _CONSTANTS:
        return _CONSTANTS[token]
    raise Unsupported(f"`{token}`")


def _applied(head: str, args: list[str]) -> str:
    match (head, args):
        case ("-", [arg]):
            return f"(-{arg})"
        case (("+" | "-" | "*" | "/"), [_, *rest]) if rest:
            return f"({f' {head} '.join(args)})"
        case (("and" | "or"), _):
            return f"({f' {head} '.join(args)})"
        case ("not", [arg]):
            return f"(not {arg})"
        case ("if", [condition, then, other]):
            return f"({then} if {_bare(condition)} else {other})"
        case ("pow", [base, exponent]):
            return f"({base}**{exponent})"
        case ("fma", [a, b, c]):
            return f"({a} * {b} + {c})"
        case _ if head in _COMPARE:
            return f"({f' {_COMPARE[head]} '.join(args)})"
        case _ if head in _FUNCTIONS:
            return f"{_FUNCTIONS[head]}({', '.join(map(_bare, args))})"
    raise Unsupported(f"`{head}`")


def _bare(text: str) -> str:
    """Without brackets about all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 else text
    return text


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
