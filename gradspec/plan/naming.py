"""Short and apt names for values that the author did not name."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable, Iterator

from gradspec.plan.array import Expr, Literal, Name, Op, ToFloat, Where
from gradspec.plan.ranked import Pick, Softmax

_LONGEST = 20
_FUNCTIONS = {"neg": "neg", "square": "square", "abs": "abs", "not": "not"}
_PAIRS = {"add": "plus", "sub": "minus", "mul": "times", "div": "over"}
_ROLES = {
    "add": "total",
    "sub": "difference",
    "mul": "product",
    "div": "ratio",
    "pow": "power",
    "square": "squared",
}
_MASKS = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"}
_LETTERS = "tuvwrsq"
_NUMBERS = {0: "zero", 1: "one", 2: "two"}


class Namer:
    """Gives each value a name of its own; the same questions get the same answers."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken) | set(keyword.kwlist) | set(dir(builtins))

    def name(self, value: Expr) -> str:
        """An unused name for ``value``."""
        return self._first(_candidates(value))

    def _first(self, candidates: Iterator[str]) -> str:
        name = next(name for name in candidates if name not in self._taken)
        self._taken.add(name)
        return name


def _candidates(value: Expr) -> Iterator[str]:
    apt = _apt(value)
    if apt:
        yield apt
    role = _role(value)
    if role:
        yield role
    yield from _LETTERS
    number = 2
    while True:
        yield f"{role or 't'}{number}"
        number += 1


def _role(value: Expr) -> str:
    match value:
        case Op(primitive=op) if op in _MASKS:
            return "mask"
        case Op(primitive=op):
            return _ROLES.get(op, op)
        case ToFloat(arg=Op()):
            return "indicator"
        case Where():
            return "branch"
        case Softmax():
            return "softmax"
        case _:
            return ""


def _apt(value: Expr) -> str:
    """What it is, if that is short: ``exp_x``, ``one_minus_p``, ``x_squared``, ``x0``."""
    match value:
        case ToFloat(arg=Name(id=a)):
            return _short(f"float_{a}")
        case Pick(arg=Name(id=a), at=Literal(value=at)):
            return _short(f"{a}{at}")
        case Op(primitive="mul", args=(Name(id=a), Name(id=b))) if a == b:
            return _short(f"{a}_squared")
        case Op(primitive="square", args=(Name(id=a),)):
            return _short(f"{a}_squared")
        case Op(primitive="div", args=(Literal(value=one), Name(id=a))) if one == 1:
            return _short(f"inv_{a}")
        case Op(primitive="mul", args=(Name(id=a), Name(id=b))):
            return _short(f"{a}_{b}")
        case Op(primitive=op, args=(left, right)) if op in _PAIRS:
            a, b = _word(left), _word(right)
            return _short(f"{a}_{_PAIRS[op]}_{b}") if a and b else ""
        case Op(primitive=op, args=(arg,)) if op not in _MASKS:
            word = _word(arg)
            return _short(f"{_FUNCTIONS.get(op, op)}_{word}") if word else ""
        case _:
            return ""


def _word(value: Expr) -> str:
    match value:
        case Name(id=name):
            return name
        case Literal(value=number) if number in _NUMBERS:
            return _NUMBERS[int(number)]
        case Op(primitive="neg", args=(Name(id=name),)):
            return f"neg_{name}"
        case _:
            return ""


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else ""
