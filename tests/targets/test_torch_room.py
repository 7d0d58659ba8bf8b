"""Large tensors: a pass that is one function of torch writes its result where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

SOURCE = """
def sigma(t) = 1 / (1 + exp(-t))

rule softplus(x, beta: static = 1.0) -> y:
    assume beta > 0
    y = log(1 + exp(beta * x)) / beta
    dx = dy * sigma(beta * x)

rule arc(out) -> y:
    y = atan(out)

rule pair(a, b) -> y:
    y = logaddexp(a, b)

rule error(x) -> y:
    y = erf(x)

rule bound(x, low: static = -1.0) -> y:
    y = max(x, low)

rule by_flag(x, on: bool) -> y:
    y = tanh(x) if on else 0

rule doubled(x, c: nograd) -> y:
    y = hypot(x, c)
"""

SIZE = 3 * (1 << 16) + (1 << 10)


@pytest.fixture(scope="module")
def rules() -> Iterator[ModuleType]:
    """Tensors are large from two blocks on, and one thread computes: where threads meet
    inside a tensor, torch rounds some elements otherwise.
    """
    module = torch_module(SOURCE)
    threads, sizes = torch.get_num_threads(), (module._LARGE, module._MEDIUM)
    torch.set_num_threads(1)
    module._LARGE = module._MEDIUM = 1 << 17
    yield module
    module._LARGE, module._MEDIUM = sizes
    torch.set_num_threads(threads)


@pytest.fixture
def rooms(rules: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The places that were given out."""
    made: list[Any] = []
    room = rules._room

    def spy(like: Any, shape: Any) -> Any:
        made.append(room(like, shape))
        return made[-1]

    monkeypatch.setattr(rules, "_room", spy)
    return made


def _x(*shape: int, seed: int = 0) -> Any:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _pass(function: Callable[..., Any], *inputs: Any) -> list[Any]:
    leaves = [x.detach().requires_grad_() for x in inputs]
    y = function(*leaves)
    return [y, *torch.autograd.grad(y, leaves, _x(*y.shape, seed=9).to(y.dtype))]


CASES: dict[str, tuple[Callable[..., Any], int, int]] = {
    "softplus": (lambda m, x: m.softplus(x), 1, 2),
    "a rate": (lambda m, x: m.softplus(x, beta=2.5), 1, 2),
    "a name of the text": (lambda m, x: m.arc(x), 1, 2),
    "two inputs": (lambda m, x, y: m.pair(x, y), 2, 3),
    "beside float64": (lambda m, x: m.error(x), 1, 2),
    "a number": (lambda m, x: m.bound(x, low=-0.5), 1, 2),
}
"""With how many inputs, and how many results are given a place."""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", ((SIZE,), (SIZE // 64, 64)), ids=("one axis", "two"))
def test_results_are_those_of_short_tensors_and_stay_where_they_are_written(
    rules: ModuleType,
    rooms: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    case: str,
    shape: tuple[int, ...],
) -> None:
    rule, count, places = CASES[case]
    inputs = [_x(*shape, seed=seed) for seed in range(count)]

    def function(*xs: Any) -> Any:
        return rule(rules, *xs)

    found = _pass(function, *inputs)
    assert len(rooms) == places
    assert found[0].data_ptr() == rooms[0].data_ptr()
    monkeypatch.setattr(rules, "_LARGE", 1 << 60)
    monkeypatch.setattr(rules, "_MEDIUM", 1 << 60)
    plain = _pass(function, *inputs)
    assert len(rooms) == places
    for one, other in zip(found, plain, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("dtype", ("float64", "bfloat16"))
def test_other_types(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    inputs = [_x(SIZE, seed=seed).to(getattr(torch, dtype)) for seed in range(2)]
    found = [*_pass(rules.softplus, inputs[0]), *_pass(rules.pair, *inputs)]
    monkeypatch.setattr(rules, "_LARGE", 1 << 60)
    monkeypatch.setattr(rules, "_MEDIUM", 1 << 60)
    plain = [*_pass(rules.softplus, inputs[0]), *_pass(rules.pair, *inputs)]
    for one, other in zip(found, plain, strict=True):
        assert one.dtype == other.dtype == inputs[0].dtype
        assert torch.equal(one, other)


def test_a_choice_and_numbers_that_take_no_gradient_are_left_alone(
    rules: ModuleType,
) -> None:
    assert hasattr(rules._Arc, "forward_into")
    assert not hasattr(rules._ByFlag, "forward_into")
    assert not hasattr(rules._Doubled, "forward_into")
    assert hasattr(rules._Softplus, "backward_into")
    assert not hasattr(rules._Arc, "backward_into")


@pytest.mark.parametrize(
    "way",
    (
        lambda m, x: torch.func.grad(lambda x: m.softplus(x).sum())(x),
        lambda m, x: torch.func.vmap(m.softplus)(x.reshape(2, -1)),
        lambda m, x: torch.func.jvp(m.softplus, (x,), (x,))[1],
        lambda m, x: _pass(m.softplus, x.reshape(64, -1).t())[1],
        lambda m, x: m.pair(x.reshape(-1, 64), x[:64]),
    ),
    ids=("func.grad", "vmap", "jvp", "transposed", "broadcast"),
)
def test_what_looks_on_goes_the_plain_way(
    rules: ModuleType, rooms: list[Any], way: Callable[[ModuleType, Any], Any]
) -> None:
    found = way(rules, _x(SIZE))
    assert not rooms
    assert found.isfinite().all()


def test_second_derivatives(rules: ModuleType, rooms: list[Any]) -> None:
    x = _x(SIZE).double().requires_grad_()
    (dx,) = torch.autograd.grad(rules.softplus(x).sum(), x, create_graph=True)
    assert len(rooms) == 1  # of the forward pass
    (found,) = torch.autograd.grad(dx.sum(), x)
    s = torch.sigmoid(x)
    assert torch.allclose(found, s * (1 - s), rtol=1e-10, atol=0)


def test_batched_gradients(rules: ModuleType, rooms: list[Any]) -> None:
    x = _x(SIZE).requires_grad_()
    y = rules.softplus(x)
    (found,) = torch.autograd.grad(y, x, torch.ones(2, SIZE), is_grads_batched=True)
    assert len(rooms) == 1
    assert torch.equal(found[1], torch.autograd.grad(rules.softplus(x).sum(), x)[0])


def test_saved_tensors_are_asked_for_once(rules: ModuleType, rooms: list[Any]) -> None:
    """Checkpoints refuse a second time, also where the upstream gradient is no plain
    tensor."""
    for upstream in (torch.ones(SIZE), torch.ones(64, SIZE // 64).t().reshape(SIZE)):
        x = _x(SIZE).requires_grad_()
        y = torch.utils.checkpoint.checkpoint(rules.softplus, x, use_reentrant=False)
        y.backward(upstream)
        assert torch.equal(x.grad, torch.autograd.grad(rules.softplus(x).sum(), x)[0])
    assert rooms


def test_a_transposed_upstream_gradient(rules: ModuleType, rooms: list[Any]) -> None:
    x = _x(SIZE // 64, 64).requires_grad_()
    dy = _x(64, SIZE // 64, seed=3).t()
    (found,) = torch.autograd.grad(rules.softplus(x), x, dy)
    assert len(rooms) == 1
    assert torch.allclose(found, dy * torch.sigmoid(x), rtol=1e-5, atol=0)


def test_forward_mode_through_large_tensors(rules: ModuleType) -> None:
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        for rule, slope in (
            (rules.softplus, torch.sigmoid),
            (rules.arc, lambda x: 1 / (1 + x * x)),
        ):
            x = _x(SIZE)
            dual = forward_ad.make_dual(x, torch.ones(SIZE))
            found = forward_ad.unpack_dual(rule(dual)).tangent
            assert torch.allclose(found, slope(x), rtol=1e-5, atol=0)


def test_pages_that_are_shared_hold_the_bits_of_whole_tensors() -> None:
    """Of 32 MiB, which are touched before they are filled a block at a time."""
    module = torch_module("rule swish(x) -> y:\n    y = x / (1 + exp(-x))\n")
    x, threads = _x((1 << 23) + 77), torch.get_num_threads()
    torch.set_num_threads(1)
    found = _pass(module.swish, x)
    module._LARGE = module._MEDIUM = 1 << 60
    plain = _pass(module.swish, x)
    torch.set_num_threads(threads)
    for one, other in zip(found, plain, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    "left", ("x", torch.Size([3]), None), ids=("text", "size", "none")
)
def test_what_is_left_at_the_node_of_the_graph_is_not_taken_for_its_own(
    rules: ModuleType, rooms: list[Any], left: Any
) -> None:
    x = _x(SIZE).requires_grad_()
    (wanted,) = torch.autograd.grad(rules.softplus(x, beta=2.5).sum(), x)
    y = rules.softplus(x, beta=2.5)
    y.grad_fn.tag = left  # as libraries of hooks do
    (found,) = torch.autograd.grad(y.sum(), x)
    assert len(rooms) == 4
    assert torch.equal(found, wanted)
