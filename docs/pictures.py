"""Pictures of the gallery: value and gradient of an elementwise rule, the Jacobian of
one over axes."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot

import gradspec
from gradspec.ir.elements import OutOfRange
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.unroll import axis_names, unroll
from gradspec.measure.cases import attempt
from gradspec.symbolic.enclose import enclose

SIZES = ((8, 8), (8, 3), (4, 2), (3, 1))
"""Sizes of axes, and of statics that are sizes, in the order in which they are tried."""
LARGEST = 128
"""Rows and columns of a Jacobian that can be seen."""
STYLE = {
    "figure.figsize": (4.8, 2.9),
    "svg.fonttype": "none",
    "svg.hashsalt": "gradspec",
    "font.size": 11,
}


def draw_rule(rule: Rule, code: ModuleType, path: Path) -> str:
    """Draw a rule; the picture in words, or nothing if there is none to draw."""
    with (
        matplotlib.rc_context(STYLE),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        figure, ax = pyplot.subplots()
        try:
            words = _jacobian_drawn(rule, code, ax) if rule.has_axes else ""
            if not rule.has_axes:
                gradspec.plot(getattr(code, rule.name), ax=ax)
                words = "Value and gradient"
        except (ValueError, TypeError, AttributeError):
            words = ""
        if words:
            meta = {"Date": None, "Creator": None}
            figure.savefig(path, bbox_inches="tight", transparent=True, metadata=meta)
        pyplot.close(figure)
    return words


def _jacobian_drawn(rule: Rule, code: ModuleType, ax: Any) -> str:
    """Draw the derivative of the first output by the first input, at random arguments."""
    x = next(i for i in rule.tensor_inputs if i.takes_gradient)
    found = next(filter(None, (_jacobian(rule, code, x.name, s) for s in SIZES)), None)
    if found is None:
        return ""
    matrix, size = found
    reach = float(np.abs(matrix).max()) or 1.0
    shown = ax.imshow(matrix, cmap="RdBu", vmin=-reach, vmax=reach, aspect="auto")
    ax.figure.colorbar(shown, ax=ax)
    y = next(o for o in rule.outputs if o.takes_gradient)
    ax.set_title(f"∂{y.name}/∂{x.name} at size {size}")
    ax.set_xlabel(f"elements of {x.name}")
    ax.set_ylabel(f"elements of {y.name}")
    return "Jacobian"


def _jacobian(
    rule: Rule, code: ModuleType, x: str, choice: tuple[int, int]
) -> tuple[Any, int] | None:
    """The matrix and the size of the axes; None where no arguments are found at it."""
    numbers = {i.name for i in rule.static_inputs}
    sizes = {name: choice[name in numbers] for name in axis_names(rule)}
    batches = {
        name: ()
        for v in (*rule.inputs, *rule.outputs)
        for name in (v.name, v.cotangent)
    }
    rng = random.Random(rule.name)
    places = [i.name for i in rule.tensor_inputs]
    for _ in range(40):
        drawn = attempt(rule, sizes, batches, rng)
        try:
            assumed = unroll(rule, sizes).rule.assumes if rule.assumes else ()
            if not all(
                enclose(a.condition, p) is True
                for a in assumed
                for _, p in drawn.points
            ):
                continue
            given = {
                i.name: _argument(rule, i, sizes, drawn.cells) for i in rule.inputs
            }
            tensors = [given.pop(name) for name in places]
            values, pullback = getattr(code, f"{rule.name}_vjp")(*tensors, **given)
        except (OutOfRange, ValueError, IndexError):
            return None
        moving = [o.takes_gradient for o in rule.outputs]
        several = values if isinstance(values, tuple) else (values,)
        outputs = [v for v, moves in zip(several, moving, strict=True) if moves]
        count = outputs[0].size
        if max(count, tensors[places.index(x)].size) > LARGEST:
            return None
        zeros = [np.zeros_like(v) for v in outputs[1:]]
        units = np.eye(count).reshape(count, *outputs[0].shape)
        rows = [np.ravel(pullback(u, *zeros)[places.index(x)]) for u in units]
        if count and np.isfinite(rows).all() and np.any(rows):
            return np.array(rows), choice[0]
    return None


def _argument(rule: Rule, variable: Any, sizes: dict[str, int], cells: Any) -> Any:
    if variable.name in sizes:
        return sizes[variable.name]
    numbers = [float(n) for n in cells[variable.name].values()]
    if variable.kind.is_static:
        return int(numbers[0]) if variable.kind is Kind.STATIC_INT else numbers[0]
    dtype = {Kind.INT: np.int64, Kind.BOOL: np.bool_}.get(variable.kind, np.float64)
    shape = [a if isinstance(a, int) else sizes[a] for a in variable.shape.axes]
    return np.array(numbers, dtype).reshape(shape)
