"""What a rule of the corpus must compute, by mpmath alone.

A case holds the function, sample points and, where the gradient is not the derivative of
the function, what it is. Names of outputs, and what has no gradient, are read from the
header of the rule. Nothing here knows the compiler.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mpmath

DIGITS = 40
_UPSTREAM = (0.75, -1.25, 2.0, 0.5, -0.375, 1.5)

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """``surrogate`` is differentiated in place of ``forward``; ``gradients`` maps an input
    to a function of everything, upstream gradients (``dy``) included. The inputs in
    ``without`` take no gradient, the outputs in ``discrete`` have no upstream one (they
    come last).
    """

    forward: Function
    points: Mapping[str, tuple[Any, ...]]
    statics: tuple[Mapping[str, Any], ...] = ({},)
    surrogate: Function | None = None
    gradients: Mapping[str, Function] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    discrete: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(next(iter(self.points.values())))

    def upstream(self) -> dict[str, tuple[float, ...]]:
        """An upstream gradient for each differentiable output, different everywhere."""
        chosen = {}
        for shift, name in enumerate(self.outputs):
            if name in self.discrete:
                continue
            values = itertools.islice(itertools.cycle(_UPSTREAM), shift, None)
            chosen[name] = tuple(itertools.islice(values, self.count))
        return chosen


def case(
    forward: Function,
    *,
    statics: tuple[Mapping[str, Any], ...] = ({},),
    surrogate: Function | None = None,
    gradients: Mapping[str, Function] | None = None,
    **points: tuple[Any, ...],
) -> Case:
    """Points are columns: the i-th value of every input is one point."""
    assert len({len(column) for column in points.values()}) == 1, points
    return Case(forward, points, statics, surrogate, gradients or {})


def with_header(spec: Case, path: Path, rule: str) -> Case:
    """The case with what the header of its rule says."""
    text = re.sub(r"#[^\n]*", "", path.read_text("utf-8"))
    head = rf"^rule {rule}\s*\((.*?)\)\s*->\s*(.*?):[ ]*\n"
    found = re.search(head, text, re.MULTILINE | re.DOTALL)
    assert found, rule
    inputs, outputs = map(_kinds, found.groups())
    return replace(
        spec,
        outputs=tuple(outputs),
        without=tuple(n for n, kind in inputs.items() if kind == "nograd"),
        discrete=tuple(n for n, kind in outputs.items() if kind),
    )


def _kinds(variables: str) -> dict[str, str]:
    each = r"(\w+)(?:\[[^\]]*\])?\s*(?::\s*([a-z ]+))?[^,]*(?:,|$)"
    found = re.findall(each, variables.strip("() \n"))
    return {name: kind.strip() for name, kind in found}


@dataclass(frozen=True)
class Truth:
    """Values by output, gradients by input (None: takes none); each a row per point."""

    values: dict[str, list[mpmath.mpf]]
    gradients: dict[str, list[mpmath.mpf] | None]


def truth(spec: Case, statics: Mapping[str, Any]) -> Truth:
    """The reference, with at least 40 digits."""
    with mpmath.workdps(DIGITS + 10):
        fixed = {name: _exact(value) for name, value in statics.items()}
        rows = [_row(spec, index) for index in range(spec.count)]
        values = {
            name: [_outputs(spec.forward, row | fixed)[k] for row in rows]
            for k, name in enumerate(spec.outputs)
        }
        gradients = {name: _gradient(spec, name, rows, fixed) for name in spec.points}
    return Truth(values, gradients)


def _exact(value: Any) -> Any:
    return value if isinstance(value, int) else mpmath.mpf(value)


def _row(spec: Case, index: int) -> dict[str, Any]:
    return {name: _exact(column[index]) for name, column in spec.points.items()}


def _outputs(function: Function, values: Mapping[str, Any]) -> tuple[mpmath.mpf, ...]:
    result = function(**values)
    return result if isinstance(result, tuple) else (mpmath.mpf(result),)


def _gradient(
    spec: Case, name: str, rows: list[dict[str, Any]], fixed: Mapping[str, Any]
) -> list[mpmath.mpf] | None:
    if name in spec.without or isinstance(spec.points[name][0], int):
        return None
    upstream = spec.upstream()
    made = []
    for index, row in enumerate(rows):
        above = {f"d{out}": mpmath.mpf(dys[index]) for out, dys in upstream.items()}
        made.append(_cotangent(spec, name, row | fixed, above))
    return made


def _cotangent(
    spec: Case, name: str, values: dict[str, Any], above: Mapping[str, mpmath.mpf]
) -> mpmath.mpf:
    if name in spec.gradients:
        return mpmath.mpf(spec.gradients[name](**values, **above))
    smooth = spec.surrogate or spec.forward
    total = mpmath.mpf(0)
    for k, upstream in enumerate(above.values()):

        def along(t: mpmath.mpf, k: int = k) -> mpmath.mpf:
            return _outputs(smooth, values | {name: t})[k]

        total += upstream * mpmath.diff(along, values[name])
    return total
