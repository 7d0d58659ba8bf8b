"""`torch.compile` of forward mode within forward mode: tangents of tangents are not lost.

torch calls a rule's `jvp` with forward mode off, under a compiler as elsewhere. A rule that
leaves it off, or takes what it kept with its tangents, has second derivatives of 0, or of
another function.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import torch_module

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
torch = pytest.importorskip("torch")
F64 = torch.float64

RULES = """
rule exact(x) -> y:
    y = sin(x) * exp(x)

rule spike(v, k: static = 4.0) -> s:
    s = 1 if v > 0 else 0
    surrogate s = tanh(k * v) / 2

rule tripled(x, y) -> (z, w):
    z = x * sin(y)
    w = y**3
    override dx = 3 * dz * sin(y) because "a marker"
    override dy = 3 * dz * x * cos(y) + 9 * dw * y**2 because "a marker"

rule unit(x[..., n]) -> y[..., n]:
    s = sqrt(sum(x[j]**2 for j) + 0.01)
    y[i] = x[i] / s
    save s
"""
X = torch.tensor([0.7, -0.3, 0.1], dtype=F64)
ONES = torch.ones(3, dtype=F64)

Function = Callable[[Any], Any]


@pytest.fixture(scope="module")
def numbers() -> dict[str, Function]:
    """A number made of each rule's outputs, as a function of ``x``."""
    rules: ModuleType = torch_module(RULES)
    return {
        "exact": lambda x: rules.exact(x).sum(),
        "surrogate": lambda x: rules.spike(x).sum(),
        "override": lambda x: sum(y.sum() for y in rules.tripled(x, 1 + x)),
        "rows": lambda x: (rules.unit(x) ** 2)[1:].sum(),
    }


NAMES = ("exact", "surrogate", "override", "rows")


def _along(function: Function) -> Function:
    return lambda x: torch.func.jvp(function, (x,), (ONES,))[1]


def _batch(function: Function) -> Function:
    """At three points, one of which is 0."""
    scaled = torch.vmap(lambda factor, x: function(factor * x), (0, None))
    return lambda x: scaled(torch.arange(3, dtype=F64), x)


jacfwd, grad = torch.func.jacfwd, torch.func.grad
NESTINGS: dict[str, Callable[[Function], Function]] = {
    "jvp of jvp": lambda f: _along(_along(f)),
    "jacfwd of jacfwd": lambda f: jacfwd(jacfwd(f)),
    "jacfwd of jvp": lambda f: jacfwd(_along(f)),
    "vmap of jvp of jvp": lambda f: _batch(_along(_along(f))),
    "grad of jvp of jvp": lambda f: grad(_along(_along(f))),
    "jvp of grad of jvp": lambda f: _along(grad(_along(f))),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nesting", NESTINGS)
def test_compiled_is_eager(
    numbers: dict[str, Function], nesting: str, name: str
) -> None:
    function = NESTINGS[nesting](numbers[name])
    want = function(X)
    assert want.abs().max() > 0.1
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), want)


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_the_derivative_of_the_gradient(
    numbers: dict[str, Function], name: str
) -> None:
    """What is compared with, from reverse mode alone."""
    second = torch.func.jacrev(grad(numbers[name]))(X)
    torch.testing.assert_close(jacfwd(jacfwd(numbers[name]))(X), second)
    torch.testing.assert_close(_along(_along(numbers[name]))(X), second.sum())


@pytest.mark.parametrize("name", NAMES)
def test_traced_alone(numbers: dict[str, Function], name: str) -> None:
    """Not all that the compiler takes is one graph; and its first backend is Python."""
    function = _along(_along(numbers[name]))
    torch._dynamo.reset()
    found = torch.compile(function, backend="eager")(X)
    torch.testing.assert_close(found, function(X))
