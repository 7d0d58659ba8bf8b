"""Large tensors are evaluated in blocks, with the results of whole ones, bit for bit; what
cannot be split goes the plain way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

SIZE = 3 * (1 << 16) + (1 << 10)
"""Several blocks, the last of them longer, and no element left over by vector loops."""


@pytest.fixture(scope="module")
def rules() -> Iterator[ModuleType]:
    """Tensors are large from two blocks on, and one thread computes: where threads meet
    inside a tensor, torch rounds some elements otherwise.
    """
    module = torch_module(RULES)
    threads, sizes = torch.get_num_threads(), (module._LARGE, module._MEDIUM)
    torch.set_num_threads(1)
    module._LARGE = module._MEDIUM = 1 << 17
    yield module
    module._LARGE, module._MEDIUM = sizes
    torch.set_num_threads(threads)


@pytest.fixture
def splits(rules: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The results of every evaluation in blocks."""
    made: list[Any] = []
    joined = rules._joined

    def spy(compute: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        made.append(joined(compute, values))
        return made[-1]

    monkeypatch.setattr(rules, "_joined", spy)
    return made


def _pass(function: Callable[..., Any], *inputs: Any, ones: bool = False) -> list[Any]:
    """Outputs, then gradients."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    outputs = function(*leaves)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    generator = torch.Generator().manual_seed(1)
    upstream = [
        (
            torch.ones((), dtype=y.dtype).expand(y.shape)
            if ones
            else torch.randn(y.shape, generator=generator).to(y.dtype)
        )
        for y in outputs
    ]
    return [*outputs, *torch.autograd.grad(outputs, leaves, upstream)]


def _plain(rules: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_LARGE", 1 << 60)
    monkeypatch.setattr(rules, "_MEDIUM", 1 << 60)


def _randn(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "exact": (lambda m, x: m.swish(x), (_randn(SIZE),)),
    "static": (lambda m, x: m.swish(x, beta=1.7), (_randn(SIZE),)),
    "two axes": (lambda m, x: m.swish(x), (_randn(SIZE // 64, 64),)),
    "float64": (lambda m, x: m.swish(x), (_randn(SIZE, dtype=torch.float64),)),
    "bfloat16": (lambda m, x: m.swish(x), (_randn(SIZE, dtype=torch.bfloat16),)),
    "several": (
        lambda m, x, y: m.complex_op(x, y),
        (_randn(SIZE), _randn(SIZE).cos()),
    ),
    "surrogate": (lambda m, x: m.spike(x), (_randn(SIZE),)),
    "saved local": (lambda m, x: m.saver(x), (_randn(SIZE),)),
    "shared": (lambda m, x, y: m.shared(x, y), (_randn(SIZE), _randn(SIZE).cos())),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ones", (False, True), ids=("dense", "expanded"))
def test_blocks_give_the_bits_of_whole_tensors(
    rules: ModuleType,
    splits: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    case: str,
    ones: bool,
) -> None:
    rule, inputs = CASES[case]

    def function(*xs: Any) -> Any:
        return rule(rules, *xs)

    blocked = _pass(function, *inputs, ones=ones)
    assert splits
    count = len(splits)
    _plain(rules, monkeypatch)
    plain = _pass(function, *inputs, ones=ones)
    assert len(splits) == count
    for one, other in zip(blocked, plain, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_both_passes_of_a_rule_are_split(rules: ModuleType, splits: list[Any]) -> None:
    _pass(rules.swish, _randn(SIZE))
    assert len(splits) == 2


def test_small_tensors_are_not_split(rules: ModuleType, splits: list[Any]) -> None:
    _pass(rules.swish, _randn(1000))
    assert not splits


def test_an_upstream_gradient_that_is_missing(
    rules: ModuleType, splits: list[Any]
) -> None:
    x, y = (_randn(SIZE).requires_grad_() for _ in range(2))
    _, w = rules.complex_op(x, y)
    dx, dy = torch.autograd.grad(w.sum(), (x, y), allow_unused=True)
    assert dx is None or not dx.any()
    assert torch.equal(dy, 2 * y)
    assert len(splits) == 2


def test_gradients_that_are_not_asked_for_are_not_computed(
    rules: ModuleType, splits: list[Any]
) -> None:
    x, y = _randn(SIZE).requires_grad_(), _randn(SIZE)
    z, _ = rules.complex_op(x, y)
    z.sum().backward()
    dx, dy = splits[-1]
    assert torch.equal(dx, x.grad)
    assert dy is None


def test_inputs_that_broadcast_go_the_plain_way(
    rules: ModuleType, splits: list[Any]
) -> None:
    x, y = _randn(SIZE // 64, 64).requires_grad_(), _randn(64).requires_grad_()
    z, w = rules.complex_op(x, y)
    (z.sum() + w.sum()).backward()
    assert not splits
    expected = x.detach().double().sum(0) + 2 * y.detach().double()
    assert y.grad is not None
    assert torch.allclose(y.grad.double(), expected, rtol=1e-3, atol=1e-2)


def test_second_derivatives_go_the_plain_way(
    rules: ModuleType, splits: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def second(x: Any) -> Any:
        (dx,) = torch.autograd.grad(rules.swish(x).sum(), x, create_graph=True)
        return torch.autograd.grad((dx * dx).sum(), x)[0]

    x = _randn(SIZE).requires_grad_()
    found = second(x)
    assert len(splits) == 1  # the forward pass
    _plain(rules, monkeypatch)
    assert torch.equal(found, second(x))


def _transposed() -> Any:
    return _randn(SIZE // 64, 64).t()


@pytest.mark.parametrize(
    "way",
    (
        lambda m: _pass(m.swish, _transposed()),
        lambda m: torch.func.grad(lambda x: m.swish(x).sum())(_randn(SIZE)),
        lambda m: torch.func.vmap(m.swish)(_randn(2, SIZE)),
        lambda m: torch.func.jvp(m.swish, (_randn(SIZE),), (_randn(SIZE),)),
        lambda m: m.swish(torch.empty(SIZE, device="meta")),
    ),
    ids=("transposed", "func.grad", "vmap", "jvp", "meta"),
)
def test_what_cannot_be_split_goes_the_plain_way(
    rules: ModuleType, splits: list[Any], way: Callable[[ModuleType], Any]
) -> None:
    way(rules)
    assert not splits


def test_batched_gradients_are_not_split(rules: ModuleType, splits: list[Any]) -> None:
    x = _randn(SIZE).requires_grad_()
    y = rules.swish(x)
    (found,) = torch.autograd.grad(y, x, torch.ones(2, SIZE), is_grads_batched=True)
    assert len(splits) == 1
    assert torch.equal(found[0], torch.autograd.grad(rules.swish(x).sum(), x)[0])


def test_modes_and_subclasses_go_the_plain_way(
    rules: ModuleType, splits: list[Any]
) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils.flop_counter import FlopCounterMode

    with FakeTensorMode():
        assert rules.swish(torch.empty(SIZE)).shape == (SIZE,)
    with FlopCounterMode(display=False):
        _pass(rules.swish, _randn(SIZE))
    whole, small = (make_fx(lambda x: rules.swish(x))(_randn(n)) for n in (SIZE, 3))
    assert [n.target for n in whole.graph.nodes] == [
        n.target for n in small.graph.nodes
    ]

    class Own(torch.Tensor):
        pass

    assert isinstance(rules.swish(_randn(SIZE).as_subclass(Own)), torch.Tensor)
    assert not splits


def test_saved_tensors_are_asked_for_once(rules: ModuleType, splits: list[Any]) -> None:
    """Checkpoints refuse a second time."""
    x = _randn(SIZE).requires_grad_()
    y = torch.utils.checkpoint.checkpoint(rules.swish, x, use_reentrant=False)
    y.sum().backward()
    assert len(splits) == 3
    assert torch.equal(x.grad, torch.autograd.grad(rules.swish(x).sum(), x)[0])


def test_a_compiled_backward_sees_no_blocks(
    rules: ModuleType, splits: list[Any]
) -> None:
    x = _randn(SIZE).requires_grad_()
    compiled = torch.compile(rules.swish, backend="aot_eager", fullgraph=True)
    compiled(x).sum().backward()
    assert not splits


def test_inference_mode_and_parameters(rules: ModuleType, splits: list[Any]) -> None:
    x = _randn(SIZE)
    with torch.inference_mode():
        found = rules.swish(x)
    assert torch.equal(found, rules.swish(x))
    assert splits
    _pass(rules.swish, torch.nn.Parameter(x))


def test_an_exception_leaves_nothing_behind(
    rules: ModuleType, splits: list[Any]
) -> None:
    x, y = _randn(SIZE).requires_grad_(), _randn(SIZE - 1)
    with pytest.raises(RuntimeError, match="size"):
        rules.complex_op(x, y)
    _pass(rules.swish, x)
    assert len(splits) == 2


def test_forward_mode_through_large_tensors(
    rules: ModuleType, splits: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    forward_ad = torch.autograd.forward_ad

    def tangent() -> Any:
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(_randn(SIZE), torch.ones(SIZE))
            return forward_ad.unpack_dual(rules.swish(dual)).tangent

    found = tangent()
    _plain(rules, monkeypatch)
    assert torch.equal(found, tangent())


@pytest.mark.parametrize("left", ("x", torch.Size([3])), ids=("text", "size"))
def test_what_is_left_at_the_node_of_the_graph_does_no_harm(
    rules: ModuleType, left: Any
) -> None:
    x = _randn(SIZE).requires_grad_()
    (wanted,) = torch.autograd.grad(rules.swish(x, beta=1.7).sum(), x)
    y = rules.swish(x, beta=1.7)
    y.grad_fn.tag = left
    (found,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(found, wanted)
