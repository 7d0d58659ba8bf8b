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

rule exact(x) -> y:
    y = 3 * softplus(x)
    dx = 3 * dy * sigmoid(x)

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

rule saved(x) -> y:
    e = exp(x)
    y = log(1 + e)
    override dx = 3 * dy * e / (1 + e) because "a marker"
    save e
"""
X = torch.tensor([0.3, -0.7, 1.2], dtype=F64)
ONES = torch.ones(3, dtype=F64)
S = torch.sigmoid(X)
FIRST, SECOND = 3 * S, 3 * S * (1 - S)
NAMES = ("overridden", "replaced", "exact", "beside", "two", "rows", "saved")
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


@names
def test_a_compiled_step_with_sizes_that_change(rules: ModuleType, name: str) -> None:
    run = torch.compile(
        _function(rules, name), backend="aot_eager", fullgraph=True, dynamic=True
    )
    for size in (3, 5, 8):
        x = torch.linspace(-2, 2, size, dtype=F64, requires_grad=True)
        run(x).sum().backward()
        torch.testing.assert_close(x.grad, 3 * torch.sigmoid(x.detach()))


@names
def test_exported(rules: ModuleType, name: str) -> None:
    f = _function(rules, name)

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return f(x)

    exported = torch.export.export(Module(), (X,)).module()
    leaf = X.clone().requires_grad_()
    value = exported(leaf)
    (first,) = torch.autograd.grad(value.sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), leaf)
    torch.testing.assert_close((value, first, second), (f(X), FIRST, SECOND))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["overridden", "two"])
def test_tangents_reach_a_compiled_function(
    rules: ModuleType, name: str, backend: str
) -> None:
    """A graph is made of operations, which would carry the tangents by themselves."""
    function = _function(rules, name)
    compiled = torch.compile(function, backend=backend)
    torch.testing.assert_close(compiled(X), function(X))
    torch.testing.assert_close(_dual(compiled), FIRST)
    torch.testing.assert_close(compiled(X), function(X))


def test_a_whole_graph_refuses_tangents_from_outside(rules: ModuleType) -> None:
    compiled = torch.compile(rules.overridden, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="disable"):
        _dual(compiled)


# --- inputs that stand still, are shared by a batch, or broadcast -----------------------------


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("name", ["complex_op", "sums", "shared", "step2"])
def test_forward_mode_by_one_input(name: str, place: int, compiled: bool) -> None:
    given = [torch.randn(2, 3, dtype=F64), torch.randn(3, dtype=F64)]
    rule = getattr(torch_module(RULES), name)

    def function(x: Any) -> Any:
        return rule(*given[:place], x, *given[place + 1 :])

    forward = torch.func.jacfwd(function)
    if compiled:
        forward = torch.compile(forward, backend="aot_eager", fullgraph=True)
    reverse = torch.func.jacrev(function)(given[place])
    torch.testing.assert_close(forward(given[place]), reverse)


@pytest.mark.parametrize("mapped", [0, 1])
@pytest.mark.parametrize("name", ["complex_op", "sums", "shared", "mixed", "boolout"])
def test_a_batch_of_one_input(name: str, mapped: int) -> None:
    """Each call has cotangents of its own, of which a rule may make what is not linear."""
    given = [torch.randn(3, dtype=F64), torch.randn(3, dtype=F64)]
    given[mapped] = torch.randn(4, 3, dtype=F64)
    rule = getattr(torch_module(RULES), name)
    weights = torch.randn(4, 3, dtype=F64)

    def total(x: Any, y: Any, weight: Any) -> Any:
        outputs = rule(x, y)
        return sum(
            ((k + 1) * weight * o.sin()).sum() for k, o in enumerate(outputs[:2])
        )

    axes = tuple(0 if k == mapped else None for k in (0, 1))

    def batch(x: Any, y: Any) -> Any:
        return torch.func.vmap(total, (*axes, 0))(x, y, weights).sum()

    def loop(x: Any, y: Any) -> Any:
        pairs = [(x[k], y) if mapped == 0 else (x, y[k]) for k in range(4)]
        return sum(total(*p, w) for p, w in zip(pairs, weights, strict=True))

    found, want = (torch.func.grad(f, (0, 1))(*given) for f in (batch, loop))
    torch.testing.assert_close(found, want)


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
    assert pickle.loads(pickle.dumps(rules.exact)) is rules.exact
