"""Forward mode by some inputs only, compiled: those that stand still have no tangents.

torch makes zeros of what is missing where a rule asks for it, which a compiler does not see:
a rule that keeps locals makes them itself, and its backward pass is given none.
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
rule normed(x[..., n], g[n], b[n]) -> y[..., n]:
    m = mean(x[j] for j)
    v = mean((x[j] - m)**2 for j)
    s = 1 / sqrt(v + 0.1)
    y[i] = (x[i] - m) * s * g[i] + b[i]
    save m, s

rule stepped(x[..., n], g[n]) -> y[..., n]:
    m = max(abs(x[j]) for j)
    y[i] = round(4 * x[i] / (m + 1)) / 4 * g[i]
    surrogate y[i] = x[i] / (m + 1) * g[i]

rule swish(x, beta) -> y:
    s = 1 / (1 + exp(-beta * x))
    y = x * s
    save s

rule plain(x, y) -> z:
    z = x * sin(y)

rule several(x, y) -> (z, w):
    z = x * y
    w = y**2
    override dx = 3 * dz * y because "a marker"
"""
X = torch.tensor([[0.3, -0.7, 1.2], [0.1, 0.8, -0.4]], dtype=F64)
G = torch.tensor([0.5, 2.0, -1.0], dtype=F64)

ARGUMENTS = {
    "normed": (X, G, G + 1),
    "stepped": (X, G),
    "swish": (X, G),
    "plain": (X, G),
    "several": (X, G),
}
CASES = [(name, k) for name, given in ARGUMENTS.items() for k in range(len(given))]


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


def _alone(rules: ModuleType, name: str, place: int) -> Callable[[Any], Any]:
    """The first output as a function of one input."""
    given = ARGUMENTS[name]

    def function(x: Any) -> Any:
        made = getattr(rules, name)(*given[:place], x, *given[place + 1 :])
        return made[0] if isinstance(made, tuple) else made

    return function


def _jvp(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: torch.func.jvp(function, (x,), (torch.ones_like(x),))


def _hessian(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return torch.func.hessian(lambda x: (function(x) ** 3).sum())


TRANSFORMS = {"jvp": _jvp, "jacfwd": torch.func.jacfwd, "hessian": _hessian}


@pytest.mark.parametrize(("name", "place"), CASES)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_compiled_is_eager(
    rules: ModuleType, transform: str, backend: str, name: str, place: int
) -> None:
    x = ARGUMENTS[name][place]
    function = TRANSFORMS[transform](_alone(rules, name, place))
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))


@pytest.mark.parametrize(("name", "place"), CASES)
def test_forward_mode_is_reverse_mode(rules: ModuleType, name: str, place: int) -> None:
    x, function = ARGUMENTS[name][place], _alone(rules, name, place)
    forward, reverse = torch.func.jacfwd(function)(x), torch.func.jacrev(function)(x)
    torch.testing.assert_close(forward, reverse)


def test_dual_numbers_beside_plain_ones(rules: ModuleType) -> None:
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(X, torch.ones_like(X))
        made = rules.normed(dual, G, G + 1)
        tangent = forward.unpack_dual(made).tangent
    want = _jvp(_alone(rules, "normed", 0))(X)[1]
    torch.testing.assert_close(tangent, want)
