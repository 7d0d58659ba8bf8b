"""The public signature of a rule, and names reserved for it."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.ir.rule import Input, Kind
from gradspec.plan.program import Program
from gradspec.targets.numerals import numeral


def parameters(program: Program, tensor: str) -> str:
    """Tensors, then keyword-only statics: ``x: T, *, k: float = 1.0``."""
    tensors = [f"{i.name}: {tensor}" for i in program.tensors]
    statics = [_static(i) for i in program.statics]
    return ", ".join([*tensors, *(["*"] if statics else []), *statics])


def _static(i: Input) -> str:
    kind = "int" if i.kind is Kind.STATIC_INT else "float"
    if i.default is None:
        return f"{i.name}: {kind}"
    if kind == "int" and i.default.denominator == 1:
        return f"{i.name}: int = {i.default.numerator}"
    return f"{i.name}: {kind} = {numeral(i.default)[0]}"


def pattern(i: Input) -> str:
    """The declared axes of an input as a string: ``"... n"``, ``"n d"``, ``""``."""
    return " ".join(["..."] * i.shape.batch + [str(axis) for axis in i.shape.axes])


def shaped(program: Program) -> tuple[Input, ...]:
    """The tensor inputs whose declared shape has more than batch axes."""
    return tuple(i for i in program.tensors if not i.shape.is_elementwise)


def pairs(found: Iterable[tuple[str, str]]) -> str:
    """``"x": "... n", "t": ""``: the entries of a dictionary display."""
    return ", ".join(f'"{name}": "{word}"' for name, word in found)


def returned(program: Program, tensor: str) -> str:
    """The type of the results."""
    if len(program.outputs) == 1:
        return tensor
    return f"tuple[{', '.join(tensor for _ in program.outputs)}]"


def listed(names: Iterable[str]) -> str:
    """``x`` of one name, ``(x, y)`` of several."""
    names = tuple(names)
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def tupled(names: Iterable[str]) -> str:
    """``(x,)`` of one name, ``x, y`` of several."""
    names = tuple(names)
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)
