"""Every elementwise primitive broadcasts every argument, on every target."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np
import pytest

from gradspec.ir.expr import Apply, Ref, const
from gradspec.ir.text import show
from gradspec.primitives.lookup import ROWS
from gradspec.primitives.row import Primitive
from gradspec.targets import emit
from tests.targets.emission import imported
from tests.targets.ranked_numpy import lowered, planned
from tests.targets.vjps import TARGETS, upstream_of


def rule(row: Primitive) -> str:
    """A rule that is the primitive; an integer argument (an order) is 1."""
    kinds = dict(zip(row.params, row.argument_types, strict=True))
    floats = [name for name, kind in kinds.items() if kind == "real"]
    given = (Ref(name) if name in floats else const(1) for name in row.params)
    domain = "y > 0" if row.name == "polygamma" else row.domain
    lines = [f"rule p_{row.name}({', '.join(floats)}) -> out:"]
    lines += [f"    assume {domain}"] if domain else []
    lines += [f"    out = {show(Apply(row.name, tuple(given)))}", ""]
    return "\n".join(lines)


OTHERS = {
    "select": "rule p_select(x, y, z) -> out:\n    out = x if y < 0.7 else z\n",
    "choice": "rule p_choice(x, y) -> out:\n    out = 1 if x < y and y >= 0.5 else 2\n",
    "unused": "rule p_unused(x, y) -> out:\n    out = x + 0 * y\n",
    "power": "rule p_power(x, y) -> out:\n    assume x > 0\n    out = x**2 * y**0\n",
    "stopped": "rule p_stopped(x, y) -> out:\n    out = x\n    surrogate out = x * y\n",
}
SEVERAL = [r for r in ROWS if r.result == "real" and r.argument_types.count("real") > 1]
RULES = "\n".join([*map(rule, SEVERAL), *OTHERS.values()])
ARITY = {r.name: r.argument_types.count("real") for r in SEVERAL}
ARITY |= {name: text.partition(")")[0].count(",") + 1 for name, text in OTHERS.items()}
CASES = [(name, place) for name, arity in ARITY.items() for place in range(arity)]
SHAPES = (3, 1), (2,)


@cache
def emitted(target: str) -> ModuleType:
    outcome = emit(planned(lowered(RULES)), target)
    assert outcome.value is not None and not outcome.diagnostics, outcome.diagnostics
    return imported(outcome.value)


@pytest.mark.parametrize(
    "target",
    [
        "numpy",
        *(
            pytest.param(t, marks=getattr(pytest.mark, t))
            for t in ("torch", "tf", "jax")
        ),
    ],
)
@pytest.mark.parametrize(("name", "place"), CASES)
def test_an_argument_of_another_shape(name: str, place: int, target: str) -> None:
    """As at arguments of one shape: so the output, and the gradients once summed."""
    library, _, vjp = TARGETS[target]
    pytest.importorskip(library)
    draw = np.random.Generator(np.random.PCG64(place))
    shapes = [SHAPES[k != place] for k in range(ARITY[name])]
    small = tuple(draw.uniform(0.3, 0.9, shape) for shape in shapes)
    large = tuple(np.broadcast_to(a, (3, 2)).copy() for a in small)
    module = emitted(target)
    (value,), gradients = vjp(module, f"p_{name}", small)
    (whole,), each = vjp(module, f"p_{name}", large)
    assert value.shape == (3, 2) == upstream_of(value).shape
    np.testing.assert_allclose(value, whole, rtol=1e-14)
    for argument, gradient, full in zip(small, gradients, each, strict=True):
        assert gradient is not None and full is not None
        assert gradient.shape == argument.shape
        axis = 0 if argument.ndim == 1 else 1
        summed = full.sum(axis, keepdims=argument.ndim == 2)
        np.testing.assert_allclose(gradient, summed, rtol=1e-12, atol=1e-14)
