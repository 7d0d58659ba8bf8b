"""`vmap` over some inputs of a rule: an output that depends on none of them is in the batch.

torch sums the upstream gradient of an output outside the batch before the rule sees it; what
the rule makes of that for each element would be counted once for each. The rule called row by
row says what must come out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
rule pair(x, y) -> (z, w):
    z = x * y + sin(x)
    w = y**2

rule tripled(x, y) -> (z, w):
    z = x * y
    w = y**2
    override dx = 3 * dz * y because "a marker"
    override dy = 3 * dz * x + 6 * dw * y because "a marker"

rule weighted(x, w: nograd) -> y:
    y = x
    override dx = w * dy because "a marker"

rule through(soft, hard: nograd) -> y:
    y = hard
    surrogate y = soft

rule counted(x, n: int, on: bool) -> y:
    y = x
    override dx = n * dy if on else dy because "a marker"

rule rows(x[..., n], g[n]) -> (y[..., n], s[n]):
    y[i] = x[i] * g[i]
    s[i] = g[i]**2
"""
X = torch.tensor([[0.3, -0.7, 1.2], [0.1, 0.8, -0.4], [2.0, -1.5, 0.6]], dtype=F64)
Y = torch.tensor([1.5, -2.0, 0.5], dtype=F64)
N = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
ON = torch.tensor([True, False, True])

CASES: dict[str, tuple[str, tuple[int | None, ...], tuple[Any, ...]]] = {
    "exact, first": ("pair", (0, None), (X, Y)),
    "exact, second": ("pair", (None, 0), (Y, X)),
    "override": ("tripled", (0, None), (X, Y)),
    "override, weights": ("weighted", (None, 0), (Y, X)),
    "override, integers": ("counted", (None, 0, None), (Y, N, ON)),
    "surrogate": ("through", (0, None), (X, Y)),
    "rows": ("rows", (0, None), (X, Y)),
}
"""A rule, the axes that are mapped, and its arguments."""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


def _outputs(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _weighed(outputs: tuple[Any, ...]) -> Any:
    """A number to which every element of every output adds with a weight of its own."""
    return sum(
        (y * torch.linspace(1 + k, 9, y.numel(), dtype=F64).reshape(y.shape)).sum()
        for k, y in enumerate(outputs)
    )


def _functions(rules: ModuleType, case: str) -> tuple[Any, Any, list[Any]]:
    """Mapped, row by row, and the floating arguments of both."""
    name, axes, arguments = CASES[case]
    rule = getattr(rules, name)
    places = [k for k, x in enumerate(arguments) if x.is_floating_point()]

    def given(floats: tuple[Any, ...]) -> list[Any]:
        mixed = dict(zip(places, floats, strict=True))
        return [mixed.get(k, x) for k, x in enumerate(arguments)]

    def mapped(*floats: Any) -> Any:
        return _outputs(torch.vmap(rule, axes)(*given(floats)))

    def looped(*floats: Any) -> Any:
        pairs = list(zip(given(floats), axes, strict=True))
        calls = [
            _outputs(rule(*(x if axis is None else x[k] for x, axis in pairs)))
            for k in range(3)
        ]
        return tuple(map(torch.stack, zip(*calls, strict=True)))

    return mapped, looped, [arguments[k] for k in places]


def _reverse(function: Callable[..., Any], floats: list[Any]) -> Any:
    leaves = [x.clone().requires_grad_() for x in floats]
    total = _weighed(function(*leaves))
    return torch.autograd.grad(total, leaves, materialize_grads=True)


def _grad(function: Callable[..., Any], floats: list[Any]) -> Any:
    def total(*floats: Any) -> Any:
        return _weighed(function(*floats))

    return torch.func.grad(total, tuple(range(len(floats))))(*floats)


def _jvp(function: Callable[..., Any], floats: list[Any]) -> Any:
    tangents = tuple(torch.linspace(-1, 2, x.numel()).reshape(x.shape) for x in floats)
    tangents = tuple(t.to(F64) for t in tangents)
    return torch.func.jvp(function, tuple(floats), tangents)


def _jacobian(name: str, function: Callable[..., Any], floats: list[Any]) -> Any:
    return getattr(torch.func, name)(function, tuple(range(len(floats))))(*floats)


def _second(function: Callable[..., Any], floats: list[Any]) -> Any:
    def total(*floats: Any) -> Any:
        return sum((y**2).sum() for y in function(*floats))

    return torch.func.hessian(total, tuple(range(len(floats))))(*floats)


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "the values": lambda function, floats: function(*floats),
    "backward": _reverse,
    "grad": _grad,
    "jvp": _jvp,
    "jacrev": partial(_jacobian, "jacrev"),
    "jacfwd": partial(_jacobian, "jacfwd"),
    "hessian": _second,
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_around_a_batch(rules: ModuleType, transform: str, case: str) -> None:
    mapped, looped, floats = _functions(rules, case)
    run = TRANSFORMS[transform]
    torch.testing.assert_close(run(mapped, floats), run(looped, floats))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transform", ["backward", "grad", "jvp"])
def test_compiled(rules: ModuleType, transform: str, case: str) -> None:
    """What is compiled is the batch alone, or the transform with the batch within."""
    mapped, looped, floats = _functions(rules, case)
    run = TRANSFORMS[transform]
    torch._dynamo.reset()
    options = {"backend": "aot_eager", "fullgraph": True}
    if transform == "backward":
        found = run(torch.compile(mapped, **options), floats)
    else:
        found = torch.compile(partial(run, mapped), **options)(floats)
    torch.testing.assert_close(found, run(looped, floats))


@pytest.mark.parametrize("run", [_reverse, _grad, _jvp])
@pytest.mark.parametrize("name", ["pair", "tripled", "weighted", "through"])
def test_a_batch_in_a_batch(
    rules: ModuleType, name: str, run: Callable[..., Any]
) -> None:
    """The outer batch has the first input, the inner one the second."""
    rule = getattr(rules, name)

    def mapped(x: Any, y: Any) -> Any:
        within = torch.vmap(rule, (None, 0))
        return _outputs(torch.vmap(within, (0, None))(x, y))

    def looped(x: Any, y: Any) -> Any:
        calls = [_outputs(rule(a, b)) for a in x for b in y]
        outputs = map(torch.stack, zip(*calls, strict=True))
        return tuple(output.reshape(3, 2, 3) for output in outputs)

    floats = [X, X[:2] + 1]
    torch.testing.assert_close(run(mapped, floats), run(looped, floats))


def test_what_joins_a_batch_is_the_same_number(rules: ModuleType) -> None:
    """Also a zero with a sign, and beside inputs that are no numbers."""
    x = torch.tensor([-0.0, 0.0, torch.nan, torch.inf, -torch.inf, 1e-40])
    w = torch.tensor([torch.nan, torch.inf, -1.0])[:, None].expand(3, 6)
    made = torch.vmap(rules.weighted, (None, 0))(x, w)
    assert made.dtype == x.dtype
    for row in made:
        assert torch.equal(row.view(torch.int32), x.view(torch.int32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_type_is_that_of_the_call(rules: ModuleType, dtype: Any) -> None:
    x, y = X.to(dtype), Y.to(dtype)
    for mapped, plain in zip(
        torch.vmap(rules.pair, (0, None))(x, y), rules.pair(x, y), strict=True
    ):
        assert mapped.dtype == dtype
        torch.testing.assert_close(mapped, plain.expand(3, 3))
