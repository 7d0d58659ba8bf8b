"""Rows of `values.tsv` for a rule that is added, from a function that is independent of it.

An elementwise rule's function is of mpmath, an indexed rule's of torch in float64: written
from a formula in a paper or a library, never from the rule. Print its rows and append them:

    python - >>tests/corpus/values.tsv <<END
    from mpmath import exp
    from tests.corpus.reference import elementwise
    points = {"x": (-9.5, 0.25, 3.0), "z": (0.5, 2.0, -1.25)}
    print(elementwise("rules/odd", "f", lambda x, z, a=1: x * exp(a * z), points, {"a": 2.0}))
    END
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from tests.calling import tuple_of
from tests.contract.call import Call, row
from tests.contract.tables import COLUMNS

UPSTREAM = (0.75, -1.25, 2.0, 0.5, -0.375, 1.5)
"""Cotangents, in turn: each output begins at another one."""

Function = Callable[..., Any]
Columns = Mapping[str, Sequence[Any]]


def elementwise(
    file: str,
    rule: str,
    forward: Function,
    points: Columns,
    statics: Mapping[str, float] | None = None,
    gradients: Mapping[str, Function] | None = None,
    names: Sequence[str] = ("y",),
) -> str:
    """``gradients`` holds, by input, functions of the inputs, the statics and the cotangents
    (``dy``), for a gradient that is not the derivative. Without it mpmath differentiates by
    every floating input."""
    count, given = len(next(iter(points.values()))), gradients or {}
    fixed = {name: _exact(value) for name, value in (statics or {}).items()}
    above = {
        name: list(itertools.islice(itertools.cycle(UPSTREAM), k, k + count))
        for k, name in enumerate(names)
    }
    outputs: dict[str, list[Any]] = {name: [] for name in names}
    slopes: dict[str, list[Any]] = {
        name: [] for name, column in points.items() if isinstance(column[0], float)
    }
    with mpmath.workdps(50):
        for k in range(count):
            at = {name: _exact(column[k]) for name, column in points.items()} | fixed
            dys = {f"d{name}": mpmath.mpf(above[name][k]) for name in names}
            for name, value in zip(names, tuple_of(forward(**at)), strict=True):
                outputs[name].append(value)
            for name, slope in slopes.items():
                slope.append(
                    given[name](**at, **dys)
                    if name in given
                    else _cotangent(forward, name, at, dys.values())
                )
    told = (_arrays(part) for part in (points, above, outputs, slopes))
    return _line(file, rule, Call(statics or {}, *told))


def _exact(value: Any) -> Any:
    return value if isinstance(value, int) else mpmath.mpf(value)


def _cotangent(forward: Function, name: str, at: Any, dys: Any) -> Any:
    return sum(
        dy
        * mpmath.diff(lambda t, k=k: tuple_of(forward(**at | {name: t}))[k], at[name])
        for k, dy in enumerate(dys)
    )


def _arrays(columns: Columns) -> dict[str, Any]:
    kinds = {bool: bool, int: int}
    return {
        name: np.array([kinds.get(type(v), float)(v) for v in column])
        for name, column in columns.items()
    }


def indexed(
    file: str,
    rule: str,
    forward: Function,
    inputs: Mapping[str, Any],
    statics: Mapping[str, float] | None = None,
) -> str:
    """The gradients are those of autograd, by every floating array of ``inputs``."""
    import torch

    given = {
        k: torch.tensor(v, requires_grad=v.dtype == float) for k, v in inputs.items()
    }
    outputs = tuple_of(forward(**given, **(statics or {})))
    rng = np.random.default_rng(7)
    above = [np.round(rng.standard_normal(tuple(o.shape)), 2) for o in outputs]
    leaves = {name: x for name, x in given.items() if x.requires_grad}
    upstream = [torch.as_tensor(dy, dtype=torch.float64) for dy in above]
    found = torch.autograd.grad(outputs, [*leaves.values()], upstream)
    names = [f"y{k}" for k in range(len(outputs))]
    made = (
        dict(inputs),
        dict(zip(names, above, strict=True)),
        dict(zip(names, (o.detach().numpy() for o in outputs), strict=True)),
        dict(zip(leaves, (g.numpy() for g in found), strict=True)),
    )
    return _line(file, rule, Call(statics or {}, *made))


def _line(file: str, rule: str, call: Call) -> str:
    found = row(file, rule, 0, call)
    return "\t".join(found[column] for column in COLUMNS["values"])
