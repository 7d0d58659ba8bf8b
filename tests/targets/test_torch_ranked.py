"""Rules over named axes in PyTorch: values, derivatives, shapes, transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import torch_module
from tests.targets.ranked_rules import RULES

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
F64 = torch.float64

Shapes = tuple[tuple[int, ...], ...]

LABELS = torch.tensor([0, 2])


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v


def _cross_entropy(x: Any, t: Any = LABELS) -> Any:
    shape = torch.broadcast_shapes(x.shape[:-1], t.shape)
    logs = torch.log_softmax(x, -1).expand((*shape, x.shape[-1]))
    return -logs.gather(-1, t.expand(shape).unsqueeze(-1)).squeeze(-1)


def _aim(x: Any) -> Any:
    return torch.arange(x.shape[-1], dtype=x.dtype) / 7


REFERENCES: dict[str, tuple[Callable[..., Any], tuple[Shapes, ...]]] = {
    "softmax": (
        lambda x: torch.softmax(x, -1),
        (((4,),), ((2, 3),), ((1, 1),), ((3, 1),), ((2, 1, 3),)),
    ),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), (((4,),), ((2, 3),))),
    "linear": (
        torch.nn.functional.linear,
        (
            ((3,), (4, 3), (4,)),
            ((2, 3), (4, 3), (4,)),
            ((2, 1, 3), (4, 3), (4,)),
            ((2, 1), (1, 1), (1,)),
        ),
    ),
    "layer_norm": (
        lambda x, g, b: torch.nn.functional.layer_norm(x, x.shape[-1:], g, b),
        (((4,), (4,), (4,)), ((2, 3), (3,), (3,)), ((2, 1, 3), (3,), (3,))),
    ),
    "cross_entropy": (
        _cross_entropy,
        (((2, 3),), ((1, 3),), ((3,),), ((4, 2, 3),), ((4, 1, 3),)),
    ),
    "attention": (
        _attention,
        (
            ((2, 3), (4, 3), (4, 5)),
            ((2, 2, 3), (4, 3), (2, 4, 5)),
            ((2, 1, 2, 3), (3, 4, 3), (1, 4, 1)),
        ),
    ),
    "trace": (
        lambda x: torch.diagonal(x, dim1=-2, dim2=-1).sum(-1),
        (((3, 3),), ((2, 1, 1),), ((2, 3, 3),)),
    ),
    "outer": (
        lambda x, y: x[..., :, None] * y[..., None, :],
        (((2,), (3,)), ((4, 2), (3,)), ((4, 1, 2), (3, 1))),
    ),
    "mse": (lambda x: torch.mean((x - _aim(x)) ** 2), (((3,),), ((1,),))),
    "scaled_rows": (
        lambda x, a: a[..., None] * x,
        (((3,), ()), ((2, 3), (2,)), ((3,), (2,)), ((4, 1, 3), (2,)), ((2, 3), (1,))),
    ),
    "third": (lambda x: x[..., 2], (((4,),), ((2, 4),))),
    "prefix": (lambda x: torch.cumsum(x, -1), (((4,),), ((2, 3),))),
    "total": (lambda x: x.sum(-1), (((4,),), ((2, 3),), ((2, 1),))),
    "positions": (
        lambda x: (x * torch.arange(x.shape[-1])).sum(-1) / x.shape[-1],
        (((4,),), ((2, 3),)),
    ),
    "two": (
        lambda x, w: ((x * w).sum(-1), x**2),
        (((3,), (3,)), ((2, 3), (3,)), ((2, 1, 1), (1,))),
    ),
    "smoothness": (
        lambda x: (torch.diff(x, dim=-1) ** 2).sum(-1),
        (((4,),), ((2, 3),), ((2, 1),)),
    ),
    "embedding": (lambda w: w[LABELS], (((3, 4),), ((3, 1),))),
    "conv1d": (
        lambda x, w: sum(w[j] * x[..., j : j + 3] for j in range(w.shape[0])),
        (((4,), (2,)), ((2, 5), (3,)), ((2, 3), (1,))),
    ),
    "window": (lambda x: x.sum(-1) / 2, (((2,),), ((3, 2),))),
    "largest": (lambda x: torch.amax(x, -1), (((4,),), ((2, 3),))),
}

_EINSUM = ("conv1d",)
"""Written with `torch.einsum`, which this way of batching does not know."""

CASES = [(name, shapes) for name, (_, every) in REFERENCES.items() for shapes in every]


def _inputs(shapes: Shapes) -> tuple[Any, ...]:
    made = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return tuple(
        torch.randn(shape, dtype=F64, generator=made, requires_grad=True)
        for shape in shapes
    )


def _rule(rules: ModuleType, name: str) -> Callable[..., Any]:
    rule = getattr(rules, name)
    match name:
        case "cross_entropy" | "embedding":
            return lambda x: rule(x, LABELS)
        case "mse":
            return lambda x: rule(x, _aim(x))
        case _:
            return rule  # type: ignore[no-any-return]


@pytest.mark.parametrize(("name", "shapes"), CASES)
def test_values_and_derivatives_are_those_of_pytorch(
    rules: ModuleType, name: str, shapes: Shapes
) -> None:
    rule, reference, inputs = _rule(rules, name), REFERENCES[name][0], _inputs(shapes)
    torch.testing.assert_close(rule(*inputs), reference(*inputs))
    found, known = (
        torch.autograd.grad(_weighted(f(*inputs)), inputs) for f in (rule, reference)
    )
    torch.testing.assert_close(found, known, rtol=1e-10, atol=1e-12)
    assert torch.autograd.gradcheck(rule, inputs, check_undefined_grad=True)
    assert torch.autograd.gradgradcheck(rule, inputs)


def _weighted(outputs: Any) -> Any:
    """A number that depends on each output in its own way."""
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return sum((torch.sin(o * (k + 1))).sum() for k, o in enumerate(outputs))


# torch batches the derivative of `unfold` one by one, and says that it is slow.
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", REFERENCES)
def test_transforms_keep_the_rule(rules: ModuleType, name: str) -> None:
    rule = _rule(rules, name)
    inputs = tuple(i.detach() for i in _inputs(REFERENCES[name][1][0]))
    rule, reference = (
        lambda *a, f=f: _weighted(f(*a)) for f in (rule, REFERENCES[name][0])
    )
    stacks = tuple(torch.stack([i, 2 * i, -i]) for i in inputs)
    for transform in (torch.func.grad, lambda f: torch.func.jacrev(torch.func.grad(f))):
        ways = [torch.func.vmap(transform(f)) for f in (rule, reference)]
        torch.testing.assert_close(*(way(*stacks) for way in ways))


@pytest.mark.parametrize("name", [n for n in REFERENCES if n not in _EINSUM])
def test_gradients_batched_in_the_old_way(rules: ModuleType, name: str) -> None:
    inputs = _inputs(REFERENCES[name][1][0])
    outputs = _rule(rules, name)(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    ahead = [torch.randn((3, *o.shape), dtype=F64) for o in outputs]
    found = torch.autograd.grad(
        outputs, inputs, ahead, is_grads_batched=True, retain_graph=True
    )
    for row in range(3):
        one = torch.autograd.grad(
            outputs, inputs, [a[row] for a in ahead], retain_graph=True
        )
        torch.testing.assert_close(tuple(f[row] for f in found), one)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", REFERENCES)
def test_compiled_whole_with_sizes_that_vary(rules: ModuleType, name: str) -> None:
    torch._dynamo.reset()
    rule, (_, every) = _rule(rules, name), REFERENCES[name]
    compiled = torch.compile(rule, fullgraph=True, backend="aot_eager", dynamic=True)
    for shapes in every[:2]:
        inputs = _inputs(shapes)
        found, known = (
            torch.autograd.grad(_weighted(f(*inputs)), inputs) for f in (compiled, rule)
        )
        torch.testing.assert_close(found, known)


@pytest.mark.parametrize("name", REFERENCES)
def test_half_precision_is_rounded_once(rules: ModuleType, name: str) -> None:
    inputs = [i.detach().bfloat16() for i in _inputs(REFERENCES[name][1][0])]
    rule = _rule(rules, name)
    found = rule(*inputs)
    exact = rule(*(i.double() for i in inputs))
    pairs = zip(
        found if isinstance(found, tuple) else (found,),
        exact if isinstance(exact, tuple) else (exact,),
        strict=True,
    )
    for half, double in pairs:
        assert half.dtype == torch.bfloat16
        torch.testing.assert_close(half.double(), double, rtol=2**-8, atol=1e-30)


def test_arguments_that_are_not_contiguous(rules: ModuleType) -> None:
    x, w, b = (torch.randn(s, dtype=F64) for s in ((3, 2), (3, 4), (8,)))
    x, w, b = x.mT, w.mT, b[::2]
    assert not any(i.is_contiguous() for i in (x, w, b))
    inputs = tuple(i.requires_grad_() for i in (x, w, b))
    assert torch.autograd.gradcheck(rules.linear, inputs)


def test_only_wanted_gradients_are_computed(rules: ModuleType) -> None:
    x, w, b = _inputs(((2, 3), (4, 3), (4,)))
    y = rules.linear(x.detach(), w, b.detach()).sum()
    assert y.grad_fn.next_functions[0][0] is not None
    (dw,) = torch.autograd.grad(y, [w])
    torch.testing.assert_close(dw, x.sum(0).expand(4, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: m.linear(torch.ones(2, 3), torch.ones(4, 5), torch.ones(4)),
            r"linear: w must have the shape \[m, k\] with m = 4, k = 3, not \(4, 5\)",
        ),
        (
            lambda m: m.linear(torch.ones(2, 3), torch.ones(3), torch.ones(4)),
            r"linear: w must have the shape \[m, k\] with k = 3, not \(3,\)",
        ),
        (
            lambda m: m.softmax(torch.tensor(1.0)),
            r"softmax: x must have the shape \[\.\.\., n\], not \(\)",
        ),
        (
            lambda m: m.mse(torch.ones(2, 3), torch.ones(3)),
            r"mse: x must have the shape \[n\], not \(2, 3\)",
        ),
        (
            lambda m: m.third(torch.ones(2, 3)),
            r"third: x must have the shape \[\.\.\., 4\], not \(2, 3\)",
        ),
        (
            lambda m: m.window(torch.ones(2, 3)),
            r"window: x must have the shape \[\.\.\., 2\], not \(2, 3\)",
        ),
        (
            lambda m: m.trace(torch.ones(2, 3)),
            r"trace: x must have the shape \[\.\.\., n, n\] with n = 2, not \(2, 3\)",
        ),
    ],
)
def test_shapes_other_than_declared_are_refused(
    rules: ModuleType, call: Callable[[ModuleType], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(rules)


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_outside_is_an_error(rules: ModuleType, label: int) -> None:
    with pytest.raises((IndexError, RuntimeError)):
        rules.cross_entropy(torch.ones(2, 3), torch.tensor([0, label]))


def test_masked_positions_have_no_probability(rules: ModuleType) -> None:
    x = torch.tensor([0.0, -math.inf, 1.0], dtype=F64, requires_grad=True)
    y = rules.softmax(x)
    y[0].backward()
    assert y[1] == 0 and x.grad[1] == 0 and bool(torch.isfinite(x.grad).all())


def test_no_elements_at_all(rules: ModuleType) -> None:
    x, w, b = _inputs(((0, 3), (4, 3), (4,)))
    y = rules.linear(x, w, b)
    dx, dw, db = torch.autograd.grad(y.sum(), (x, w, b))
    assert y.shape == (0, 4) and dx.shape == (0, 3)
    assert not dw.any() and not db.any()
