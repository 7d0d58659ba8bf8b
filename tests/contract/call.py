"""A call of an emitted function, with what must come of it, as text of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tests.contract.tables import Row

TYPES = {"float": np.float64, "int": np.int64, "bool": np.bool_}
RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""The points are moderate: any sensible evaluation has these digits. The absolute room is
in units of the largest element, from whose size a small one comes."""

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """Python numbers by keyword, arrays in the order of the parameters; upstream gradients
    by output, gradients by input: an input without one takes none.
    """

    statics: Mapping[str, float | int]
    inputs: Arrays
    upstream: Arrays
    outputs: Arrays
    gradients: Arrays


def row(file: str, rule: str, number: int, call: Call) -> Row:
    """A call as a row of the table."""
    arrays = {f.name: getattr(call, f.name) for f in fields(call)}
    statics = " ".join(f"{k}={v!r}" for k, v in arrays.pop("statics").items())
    told = {name: "; ".join(map(_told, v, v.values())) for name, v in arrays.items()}
    named = {"file": file, "rule": rule, "call": str(number), "statics": statics}
    return named | told


def call(row: Row) -> Call:
    """A row of the table as a call."""
    statics = dict(part.split("=") for part in row["statics"].split())
    numbers = {k: _number(v) for k, v in statics.items()}
    names = ("inputs", "upstream", "outputs", "gradients")
    return Call(numbers, *(_arrays(row[name]) for name in names))


def _number(text: str) -> float | int:
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _told(name: str, array: Any) -> str:
    kind = {"i": ":int", "b": ":bool", "f": ""}[array.dtype.kind]
    shape = ",".join(map(str, array.shape))
    # as few digits as name the double: 17 at most
    values = " ".join(repr(v).removesuffix(".0") for v in array.ravel().tolist())
    return f"{name}{kind}[{shape}] {values}"


def _arrays(text: str) -> Arrays:
    return dict(map(_array, text.split("; "))) if text else {}


def _array(text: str) -> tuple[str, Any]:
    match = re.fullmatch(r"(\w+)(?::(\w+))?\[([\d,]*)\] ?(.*)", text)
    assert match, text
    name, kind, sizes, values = match.groups()
    shape = tuple(map(int, sizes.split(","))) if sizes else ()
    words = [v == "True" if kind == "bool" else float(v) for v in values.split()]
    return name, np.array(words, TYPES[kind or "float"]).reshape(shape)


def faults(call: Call, outputs: tuple[Any, ...], gradients: Arrays) -> list[str]:
    """What differs: column and name, was, is."""
    found = []
    for name, want, got in zip(
        call.outputs, call.outputs.values(), outputs, strict=True
    ):
        found += _fault("outputs", name, want, got)
    for name in call.inputs:
        want, got = call.gradients.get(name), gradients.get(name)
        found += _fault("gradients", name, want, got)
    return found


def _fault(column: str, name: str, want: Any, got: Any) -> list[str]:
    said = f"{column}: {name}"
    if want is None or got is None:
        if want is None and got is None:
            return []
        return [f"{said}: was {_shown(want)}, is {_shown(got)}"]
    got = np.asarray(got)
    if got.shape == want.shape and _is_close(want, got):
        return []
    return [f"{said}: was {_shown(want)}, is {_shown(got)}"]


def _is_close(want: Any, got: Any) -> bool:
    room = ABSOLUTE * max(1.0, float(np.max(np.abs(want), initial=0)))
    numbers = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return bool(np.allclose(*numbers, rtol=RELATIVE, atol=room))


def _shown(array: Any) -> str:
    return "none" if array is None else f"{np.asarray(array).tolist()}"
