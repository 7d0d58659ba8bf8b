"""No transform of torch loses the rule. The conformance suite runs many more of them.

The rules are markers: what they declare is not the derivative of the forward pass, so that
a transform which differentiates that instead gives another number, without an error.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import RULES, torch_module

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
torch = pytest.importorskip("torch")
forward_ad = torch.autograd.forward_ad
F64 = torch.float64

MARKERS = """
rule overridden(x) -> y:
    y = softplus(x)
    override dx = 3 * dy * sigmoid(x) because "a marker"

rule replaced(x, k: static = 3.0) -> y:
    y = softplus(x)
    surrogate y = k * softplus(x)

rule beside(x, n: int) -> (y, m: int):
    y = softplus(x)
    m = n + 1
    override dx = 3 * dy * sigmoid(x) because "a marker"

rule two(x, z) -> (y, v):
    y = softplus(x)
    v = x * z
    override dx = 3 * dy * sigmoid(x) because "a marker"

rule rows(x[..., n]) -> y[..., n]:
    y[i] = softplus(x[i]) + 0 * sum(x[j] for j)
    override dx[i] = 3 * dy[i] * sigmoid(x[i]) because "a marker"
"""
X = torch.tensor([0.3, -0.7, 1.2], dtype=F64)
ONES = torch.ones(3, dtype=F64)
S = torch.sigmoid(X)
FIRST, SECOND = 3 * S, 3 * S * (1 - S)
NAMES = ("overridden", "replaced", "beside", "two", "rows")
names = pytest.mark.parametrize("name", NAMES)

Function = Callable[[Any], Any]


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(MARKERS)


@pytest.fixture(autouse=True)
def _anew() -> None:
    torch._dynamo.reset()


def _function(rules: ModuleType, name: str) -> Function:
    match name:
        case "beside":
            return lambda x: rules.beside(x, torch.arange(x.shape[-1]))[0]
        case "two":
            return lambda x: rules.two(x, torch.ones_like(x))[0]
        case _:
            return lambda x: getattr(rules, name)(x)


def _jvp(f: Function, x: Any = X) -> Any:
    return torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]


def _dual(f: Function) -> Any:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(X, ONES))).tangent


def _dual_over_reverse(f: Function) -> Any:
    """Over a backward pass of which no graph is made."""
    leaf = X.clone().requires_grad_()
    with forward_ad.dual_level():
        loss = f(forward_ad.make_dual(leaf, ONES)).sum()
        (gradient,) = torch.autograd.grad(loss, leaf)
        return forward_ad.unpack_dual(gradient).tangent


def _batched(f: Function) -> Any:
    leaf = X.clone().requires_grad_()
    eye = torch.eye(3, dtype=F64)
    return torch.autograd.grad(f(leaf), leaf, eye, is_grads_batched=True)[0]


def _twice(f: Function, outer: str, inner: str) -> Any:
    first = getattr(torch.func, inner)(lambda x: f(x).sum())
    return getattr(torch.func, outer)(first)(X).diag()


def _per_sample(f: Function) -> Any:
    gradients = torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))
    return gradients(torch.stack([X, X]))[1]


TRANSFORMS: dict[str, tuple[Function, Any]] = {
    "jvp": (_jvp, FIRST),
    "jvp of jvp": (lambda f: _jvp(lambda x: _jvp(f, x)), SECOND),
    "jvp of vmap": (lambda f: _jvp(torch.func.vmap(f), X[None])[0], FIRST),
    "dual numbers": (_dual, FIRST),
    "dual numbers over reverse": (_dual_over_reverse, SECOND),
    "batched upstream gradients": (_batched, FIRST.diag()),
    "vmap of grad": (_per_sample, FIRST),
    "linearize": (lambda f: torch.func.linearize(f, X)[1](ONES), FIRST),
    "jacrev": (lambda f: torch.func.jacrev(f)(X), FIRST.diag()),
    "jacfwd": (lambda f: torch.func.jacfwd(f)(X), FIRST.diag()),
    "forward over forward": (lambda f: _twice(f, "jacfwd", "jacfwd"), SECOND),
    "forward over reverse": (lambda f: _twice(f, "jacfwd", "jacrev"), SECOND),
    "reverse over forward": (lambda f: _twice(f, "jacrev", "jacfwd"), SECOND),
    "reverse over reverse": (lambda f: _twice(f, "jacrev", "jacrev"), SECOND),
}
GRAPHS = ("jvp", "vmap of grad", "jacfwd", "jacrev", "forward over reverse")


@names
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_eager(rules: ModuleType, transform: str, name: str) -> None:
    apply, expected = TRANSFORMS[transform]
    torch.testing.assert_close(apply(_function(rules, name)), expected)


@pytest.mark.parametrize("transform", GRAPHS)
@pytest.mark.parametrize("name", ["overridden", "two", "rows"])
def test_compiled(rules: ModuleType, transform: str, name: str) -> None:
    apply, expected = TRANSFORMS[transform]
    function = _function(rules, name)
    run = torch.compile(lambda: apply(function), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(run(), expected)


def test_a_whole_graph_refuses_tangents_from_outside(rules: ModuleType) -> None:
    compiled = torch.compile(rules.overridden, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="disable"):
        _dual(compiled)


@pytest.mark.parametrize("shape", [(), (1,), (2, 1)])
@pytest.mark.parametrize("name", ["complex_op", "sums", "mixed", "shared"])
def test_sizes_that_a_compiler_does_not_know(name: str, shape: tuple[int, ...]) -> None:
    """As many elements as there are positive ones, beside an input that is broadcast."""
    rule = getattr(torch_module(RULES), name)

    def function(x: Any, y: Any) -> Any:
        return sum(z.square().sum() for z in rule(x[x > 0], y))

    inputs = (
        torch.tensor([0.5, -1.0, 2.0, 1.5], requires_grad=True),
        torch.full(shape, 0.75, requires_grad=True),
    )
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        found = torch.autograd.grad(compiled(*inputs), inputs)
    torch.testing.assert_close(found, torch.autograd.grad(function(*inputs), inputs))


def test_public_functions_are_picklable(rules: ModuleType) -> None:
    assert pickle.loads(pickle.dumps(rules.two)) is rules.two
