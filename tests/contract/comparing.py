"""One target's modules against the tables: what its functions give, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.calling import called
from tests.contract.call import Call, call
from tests.contract.call import faults as differing
from tests.contract.files import File, module
from tests.contract.names import ABSENT, names
from tests.contract.tables import Row, differences, read
from tests.corpus.texts import is_tried

SHARES = {"jax": 6}
"""Of how many rules one is called: JAX compiles each operation at each shape."""


def changed(target: str, files: Iterable[File], folder: Path) -> list[str]:
    """A line for each difference: file, rule, column, was, is."""
    values, named = _by_file(read("values")), _by_file(read("names"))
    faults: list[str] = []
    for file in files:
        emitted = module(file, file.placed(folder), target)
        faults += _values(target, file, emitted, values.get(file.name, []))
        if file.name in named:
            faults += _names(target, file, emitted, named[file.name])
    return faults


def _by_file(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["file"], []).append(row)
    return found


def _values(
    target: str, file: File, emitted: ModuleType, rows: Iterable[Row]
) -> Iterator[str]:
    for row in rows:
        spec, rule = call(row), row["rule"]
        if not is_tried(f"{target} {rule}", SHARES.get(target, 1)):
            continue
        try:
            outputs, gradients = found(target, emitted, rule, spec)
        except Exception as fault:  # the other rules are to be compared as well
            yield f"{target}: {file.name} {rule}: {type(fault).__name__}: {fault}"
            continue
        for told in differing(spec, outputs, gradients):
            yield f"{target}: {file.name} {rule} {row['call']}: {told}"


def found(target: str, emitted: ModuleType, rule: str, spec: Call) -> Any:
    """Outputs, and gradients by input; zeros where a framework has none to give."""
    outputs, gradients = called(
        target,
        emitted,
        rule,
        spec.inputs.values(),
        [spec.upstream.get(name) for name in spec.outputs],
        [name in spec.gradients for name in spec.inputs],
        spec.statics,
    )
    named = dict(zip(spec.inputs, gradients, strict=True))
    for name, want in spec.gradients.items():
        if named[name] is None and target != "numpy":
            named[name] = np.zeros_like(want)
    return outputs, named


def _names(
    target: str, file: File, emitted: ModuleType, rows: Iterable[Row]
) -> list[str]:
    was = [row for row in rows if row[target] != ABSENT]
    own = names(emitted).items()
    now = [{"file": file.name, "name": n, target: told} for n, told in own]
    return [f"{target}: {line}" for line in differences("names", was, now)]
