"""No transform of torch loses the rule: forward mode, nested in every order, under
compilation and export.

The rules are markers: what they declare is three times the derivative of softplus (or a
surrogate that says so), so that a transform which differentiates the forward pass instead
gives another number, without an error.
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
forward_ad = torch.autograd.forward_ad

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
"""
X = torch.tensor([0.3, -0.7, 1.2], dtype=F64)
ONES = torch.ones(3, dtype=F64)
S = torch.sigmoid(X)
FIRST, SECOND = 3 * S, 3 * S * (1 - S)

Function = Callable[[Any], Any]


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(MARKERS)


def _function(rules: ModuleType, name: str) -> Function:
    match name:
        case "beside":
            return lambda x: rules.beside(x, torch.arange(x.shape[-1]))[0]
        case "two":
            return lambda x: rules.two(x, torch.ones(3, dtype=F64))[0]
        case _:
            return lambda x: getattr(rules, name)(x)


def _sum(f: Function, x: Any) -> Any:
    return f(x).sum()


def _jvp(f: Function, x: Any) -> Any:
    return torch.func.jvp(f, (x,), (ONES,))[1]


def _dual(f: Function, x: Any) -> Any:
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        return forward.unpack_dual(f(forward.make_dual(x, ONES))).tangent


def _dual_over_reverse(f: Function, x: Any) -> Any:
    forward = torch.autograd.forward_ad
    leaf = x.clone().requires_grad_()
    with forward.dual_level():
        loss = f(forward.make_dual(leaf, ONES)).sum()
        (gradient,) = torch.autograd.grad(loss, leaf, create_graph=True)
        return forward.unpack_dual(gradient).tangent


def _batched(f: Function, x: Any) -> Any:
    leaf = x.clone().requires_grad_()
    eye = torch.eye(3, dtype=F64)
    return torch.autograd.grad(f(leaf), leaf, eye, is_grads_batched=True)[0]


def _vmapped(f: Function, x: Any) -> Any:
    gradients = torch.func.vmap(torch.func.grad(partial(_sum, f)))
    return gradients(torch.stack([x, x]))[1]


def _linearized(f: Function, x: Any) -> Any:
    return torch.func.linearize(f, x)[1](ONES)


def _of_func(name: str, f: Function, x: Any) -> Any:
    return getattr(torch.func, name)(f)(x)


def _twice(outer: str, inner: str, f: Function, x: Any) -> Any:
    def loss(x: Any) -> Any:
        return f(x).sum()

    return getattr(torch.func, outer)(getattr(torch.func, inner)(loss))(x)


TRANSFORMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "jvp": (_jvp, FIRST),
    "jvp of jvp": (lambda f, x: _jvp(partial(_jvp, f), x), SECOND),
    "dual numbers": (_dual, FIRST),
    "dual numbers over reverse": (_dual_over_reverse, SECOND),
    "batched upstream gradients": (_batched, torch.diag(FIRST)),
    "vmap of grad": (_vmapped, FIRST),
    "linearize": (_linearized, FIRST),
    "jacrev": (partial(_of_func, "jacrev"), torch.diag(FIRST)),
    "jacfwd": (partial(_of_func, "jacfwd"), torch.diag(FIRST)),
    "jvp of vmap": (
        lambda f, x: torch.func.jvp(torch.func.vmap(f), (x[None],), (ONES[None],))[1][
            0
        ],
        FIRST,
    ),
    "forward over forward": (partial(_twice, "jacfwd", "jacfwd"), torch.diag(SECOND)),
    "forward over reverse": (partial(_twice, "jacfwd", "jacrev"), torch.diag(SECOND)),
    "reverse over forward": (partial(_twice, "jacrev", "jacfwd"), torch.diag(SECOND)),
    "reverse over reverse": (partial(_twice, "jacrev", "jacrev"), torch.diag(SECOND)),
}
NAMES = ("overridden", "replaced", "exact", "beside", "two", "rows")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_eager(rules: ModuleType, transform: str, name: str) -> None:
    apply, expected = TRANSFORMS[transform]
    torch.testing.assert_close(apply(_function(rules, name), X), expected)


@pytest.mark.parametrize(
    "transform", ["jvp", "vmap of grad", "jacfwd", "jacrev", "forward over reverse"]
)
@pytest.mark.parametrize("name", ["overridden", "replaced", "rows"])
def test_compiled(rules: ModuleType, transform: str, name: str) -> None:
    apply, expected = TRANSFORMS[transform]
    torch._dynamo.reset()
    run = torch.compile(
        partial(apply, _function(rules, name)), backend="aot_eager", fullgraph=True
    )
    torch.testing.assert_close(run(X), expected)


@pytest.mark.parametrize("name", ["overridden", "replaced", "exact", "beside", "rows"])
def test_a_compiled_step_with_sizes_that_change(rules: ModuleType, name: str) -> None:
    torch._dynamo.reset()
    run = torch.compile(
        _function(rules, name), backend="aot_eager", fullgraph=True, dynamic=True
    )
    for size in (3, 5, 8):
        x = torch.linspace(-2, 2, size, dtype=F64, requires_grad=True)
        run(x).sum().backward()
        torch.testing.assert_close(x.grad, 3 * torch.sigmoid(x.detach()))


@pytest.mark.parametrize("name", ["overridden", "replaced", "exact", "beside", "rows"])
def test_exported(rules: ModuleType, name: str) -> None:
    f = _function(rules, name)

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return f(x)

    exported = torch.export.export(Module(), (X,)).module()
    leaf = X.clone().requires_grad_()
    value = exported(leaf)
    value.sum().backward()
    torch.testing.assert_close(value, f(X))
    torch.testing.assert_close(leaf.grad, FIRST)


def test_a_gradient_that_is_not_linear_is_exported() -> None:
    module = torch_module(
        "rule clipped(x) -> y:\n    y = x\n"
        '    override dx = clip(dy, -1, 1) because "a limit"\n'
    )

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return module.clipped(x)

    exported = torch.export.export(Module(), (X,)).module()
    leaf = X.clone().requires_grad_()
    (exported(leaf) * torch.tensor([3.0, 0.5, -2.0])).sum().backward()
    assert leaf.grad.tolist() == [1.0, 0.5, -1.0]


@pytest.mark.parametrize("name", ["overridden", "replaced", "exact", "beside", "rows"])
def test_the_second_derivative_of_what_was_exported(
    rules: ModuleType, name: str
) -> None:
    f = _function(rules, name)

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return f(x)

    exported = torch.export.export(Module(), (X,)).module()
    leaf = X.clone().requires_grad_()
    (first,) = torch.autograd.grad(exported(leaf).sum(), leaf, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(first.sum(), leaf)[0], SECOND)


def test_an_exported_rule_is_registered_once() -> None:
    """Importing a module again, or the same rule elsewhere, is no conflict."""
    for _ in range(2):
        module = torch_module(
            "rule twice(x) -> y:\n    y = x\n"
            '    override dx = 2 * dy because "a marker"\n'
        )
        leaf = X.clone().requires_grad_()
        module._twice_exported(leaf).sum().backward()
        torch.testing.assert_close(leaf.grad, 2 * ONES)


def test_an_input_that_stands_still_beside_one_that_moves(rules: ModuleType) -> None:
    z = torch.tensor([2.0, 3.0, 4.0], dtype=F64)
    _, (y_dot, v_dot) = torch.func.jvp(lambda z: rules.two(X, z), (z,), (ONES,))
    torch.testing.assert_close(y_dot, torch.zeros(3, dtype=F64))
    torch.testing.assert_close(v_dot, X)


def test_a_tangent_has_the_shape_of_its_output() -> None:
    module = torch_module("rule shifted(x, t: nograd) -> y:\n    y = x + t\n")
    t = torch.zeros(4, 1, dtype=F64)
    _, tangent = torch.func.jvp(lambda x: module.shifted(x, t), (X,), (ONES,))
    torch.testing.assert_close(tangent, torch.ones(4, 3, dtype=F64))


def test_half_precision_is_rounded_once(rules: ModuleType) -> None:
    x = X.to(torch.bfloat16)
    _, tangent = torch.func.jvp(rules.exact, (x,), (torch.ones_like(x),))
    assert tangent.dtype == torch.bfloat16
    expected = (3 * torch.sigmoid(x.double())).to(torch.bfloat16)
    torch.testing.assert_close(tangent, expected, rtol=0, atol=0)


def test_an_input_named_like_a_tangent_has_no_forward_mode() -> None:
    module = torch_module("rule product(x, x_dot) -> z:\n    z = x * x_dot\n")
    with pytest.raises(NotImplementedError):
        torch.func.jvp(lambda x: module.product(x, X), (X,), (ONES,))


# --- dual numbers from outside of what is compiled ------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", NAMES)
def test_tangents_reach_a_compiled_function(
    rules: ModuleType, name: str, backend: str
) -> None:
    """A graph is made of operations, which would carry the tangents by themselves."""
    function = _function(rules, name)
    compiled = torch.compile(function, backend=backend)
    torch.testing.assert_close(compiled(X), function(X))
    with forward_ad.dual_level():
        y = compiled(forward_ad.make_dual(X, ONES))
        torch.testing.assert_close(forward_ad.unpack_dual(y).tangent, FIRST)
    jacobian = partial(
        torch.autograd.functional.jacobian, vectorize=True, strategy="forward-mode"
    )
    torch.testing.assert_close(jacobian(compiled, X), torch.diag(FIRST))
    torch.testing.assert_close(compiled(X), function(X))


def test_a_whole_graph_refuses_tangents_from_outside(rules: ModuleType) -> None:
    torch._dynamo.reset()  # what another test has compiled in parts would do
    compiled = torch.compile(rules.overridden, fullgraph=True, backend="aot_eager")
    with forward_ad.dual_level(), pytest.raises(Exception, match="disable"):
        compiled(forward_ad.make_dual(X, ONES))
