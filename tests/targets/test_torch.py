"""PyTorch modules where torch is unlike the others: what is kept and skipped, vmap, half
precision, devices, nested tensors, DTensors, results that are the caller's own."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.ir.rule import Kind, Rule
from gradspec.ir.unroll import axis_names
from tests.targets.emission import ELEMENTWISE, INDEXED, module_of, own_rules
from tests.targets.ranked_numpy import lowered

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
F64 = torch.float64

OWN = own_rules("torch")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return module_of(ELEMENTWISE, "torch")


@pytest.fixture(scope="module")
def own() -> ModuleType:
    return module_of(OWN, "torch")


# --- what is kept, and what is not needed --------------------------------------------------


def test_what_is_not_needed_is_skipped(rules: ModuleType) -> None:
    x, y = torch.ones(3), torch.ones(3, requires_grad=True)
    (dy,) = torch.autograd.grad(rules.complex_op(x, y)[0].sum(), y)
    assert dy.tolist() == [1.0, 1.0, 1.0]
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    w = rules.complex_op(a, b)[1]
    assert torch.autograd.grad(w.sum(), a, allow_unused=True) == (None,)
    y, *others = rules.parts(a)
    assert y.requires_grad and not any(t.requires_grad for t in others)
    assert rules.levels(a).requires_grad


def test_nothing_is_kept_beyond_inputs_and_outputs(
    rules: ModuleType, own: ModuleType
) -> None:
    x = torch.ones(1000, dtype=torch.bfloat16, requires_grad=True)
    kept = rules.log1pexp(x).grad_fn.saved_tensors
    assert [t.data_ptr() for t in kept] == [x.data_ptr()]
    for dtype, which in ((torch.float32, "output"), (torch.float16, "input")):
        x = torch.ones(3, dtype=dtype, requires_grad=True)
        y = own.exp2_of(x)
        (saved,) = y.grad_fn.saved_tensors
        assert saved.data_ptr() == {"output": y, "input": x}[which].data_ptr()


BY_OUTPUT = {"exp2_of": torch.exp2, "scaled_exp": lambda x: torch.exp(2.0 * x)}
"""Gradients in terms of the output, which has been rounded: from half an input is kept."""


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", BY_OUTPUT)
def test_half_gradients_by_the_output_are_rounded_once(
    own: ModuleType, name: str, dtype: Any, order: int
) -> None:
    """Also where the output is infinite in float16, and the gradient is not."""
    points = torch.linspace(-6.0, 16.5, 400).to(dtype)
    ways = (getattr(own, name), points), (BY_OUTPUT[name], points.double())
    found = []
    for function, x in ways:
        leaf = x.clone().requires_grad_()
        made = function(leaf)
        for _ in range(order):
            (made,) = torch.autograd.grad(made.sum(), leaf, create_graph=True)
        found.append(made.detach())
    room = torch.finfo(dtype).eps
    torch.testing.assert_close(found[0], found[1].to(dtype), rtol=room, atol=0.0)


LOW, HIGH = torch.tensor(-0.5), torch.tensor([[0.5, 0.7, 0.9], [-1.5, 0.05, 4.0]])
XS = torch.tensor([-2.0, 0.1, 3.0])
CLIPS: dict[str, tuple[tuple[Any, ...], Callable[..., Any]]] = {
    "within": ((XS, LOW, HIGH), lambda x, low, high: x.maximum(low).minimum(high)),
    "below": ((XS, HIGH), lambda x, high: x.clamp_min(-1).minimum(high)),
}


@pytest.mark.parametrize("name", CLIPS)
def test_second_derivatives_of_a_clip_of_which_a_bound_has_more_axes(
    own: ModuleType, name: str
) -> None:
    """`torch.clamp` with two tensor bounds is an error there."""
    values, slope = CLIPS[name]
    args = [value.double().requires_grad_() for value in values]
    total = getattr(own, name)(*args).sum()
    (gradient,) = torch.autograd.grad(total, args[0], create_graph=True)
    wanted = slope(*args).sum_to_size(args[0].shape)
    torch.testing.assert_close(gradient, wanted)
    second, expected = (
        torch.autograd.grad(g.sin().sum(), args) for g in (gradient, wanted)
    )
    torch.testing.assert_close(second, expected)


# --- every rule over named axes in a batch of calls ----------------------------------------


def _arguments(rule: Rule, sizes: dict[str, int]) -> list[Any]:
    """Positive, so that logarithms and roots are defined."""
    rng, made = np.random.default_rng(7), []
    for given in rule.tensor_inputs:
        shape = [sizes[a] if isinstance(a, str) else a for a in given.shape.axes]
        draw = rng.uniform(0.1, 0.9, shape)
        kinds = {Kind.INT: draw.round().astype(int), Kind.BOOL: draw < 0.5}
        made.append(torch.tensor(kinds.get(given.kind, draw)))
    return made


@pytest.mark.parametrize(
    "rule", lowered(INDEXED.read_text("utf-8")), ids=lambda rule: rule.name
)
def test_gradients_under_vmap(rule: Rule) -> None:
    """Both ways of batching: that of `torch.func` and that of `is_grads_batched`."""
    sizes = dict.fromkeys(axis_names(rule), 3) | {"m": 2, "k": 2}
    given = _arguments(rule, sizes)
    rows = [torch.stack([x, x / 2]) if x.is_floating_point() else x for x in given]
    axes = tuple(0 if x.is_floating_point() else None for x in given)
    places = tuple(k for k, i in enumerate(rule.tensor_inputs) if i.takes_gradient)
    numbers = {i.name: sizes[i.name] for i in rule.static_inputs if i.name in sizes}
    function = getattr(module_of(INDEXED, "torch"), rule.name)

    def total(*inputs: Any) -> Any:
        made = function(*inputs, **numbers)
        outputs = made if isinstance(made, tuple) else (made,)
        return sum(y.cos().sum() for y in outputs)

    gradients = torch.func.grad(total, places)
    alone = [
        gradients(*(x if a is None else x[k] for x, a in zip(rows, axes, strict=True)))
        for k in range(2)
    ]
    together = torch.func.vmap(gradients, axes)(*rows)
    for found, wanted in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(found, torch.stack(wanted))
    for place in places:
        given[place].requires_grad_()
    leaves, upstream = [given[k] for k in places], torch.tensor([1.0, 2.0], dtype=F64)
    batched = torch.autograd.grad(
        total(*given), leaves, upstream, is_grads_batched=True
    )
    for found, wanted in zip(batched, alone[0], strict=True):
        torch.testing.assert_close(found, torch.stack([wanted, 2 * wanted]))


# --- results that are the caller's own, devices, kinds of tensors --------------------------

Shapes = tuple[tuple[int, ...], ...]
PLAIN: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "matvec": (lambda a, x: (a @ x[..., None])[..., 0], ((2, 3, 4), (2, 4))),
    "form": (
        lambda x, w, z: torch.einsum("...j,ijl,...l->...i", x, w, z),
        ((2, 3), (5, 3, 4), (2, 4)),
    ),
    "turned": (lambda a, b: (a @ b).mT, ((2, 3, 4), (2, 4, 5))),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_result_can_be_changed_in_place(own: ModuleType, name: str) -> None:
    """A contraction may be a view."""
    plain, shapes = PLAIN[name]
    ours, theirs = ([torch.ones(s).cumsum(-1) for s in shapes] for _ in "ot")
    for x in (*ours, *theirs):
        x.requires_grad_()
    y = getattr(own, name)(*ours)
    y += 1
    y.mul_(2).square().sum().backward()
    (2 * (plain(*theirs) + 1)).square().sum().backward()
    for x, z in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.grad, z.grad)


def test_positions_along_an_axis_of_a_dtensor(own: ModuleType) -> None:
    """No plain tensor may be compared with them."""
    tensors = pytest.importorskip("torch.distributed.tensor")
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = tensors.init_device_mesh("cpu", (1,))
        x, k = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0])
        for place in ([tensors.Replicate()], [tensors.Shard(0)]):
            spread, at = (tensors.distribute_tensor(t, mesh, place) for t in (x, k))
            own.picked(spread.requires_grad_(), at).sum().backward()
            found = spread.grad.full_tensor()
            assert found.tolist() == [[0.0, 4.0], [6.0, 0.0]]
    finally:
        torch.distributed.destroy_process_group()


def test_a_default_device_is_for_what_is_made(own: ModuleType) -> None:
    """Integers and booleans, too, stay where they are."""
    x, n = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]]), torch.tensor([1, 2, 3])
    found = []
    for device in ("cpu", "meta"):
        leaf = x.clone().requires_grad_()
        with torch.device(device):
            y, k = own.masked(leaf, x + 1, x > 1, n)
            found.append((y.detach(), k, *torch.autograd.grad(y.sum(), leaf)))
    torch.testing.assert_close(*found)
    with torch.device("meta"):
        y, k = own.masked(torch.empty(2, 3), 1.5, True, 2)
    assert y.device.type == k.device.type == "meta" and y.shape == (2, 3)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(
    "name", ["spike", "levels", "keep_positive", "guarded", "counted", "pair"]
)
def test_nested_tensors_are_their_values(
    rules: ModuleType, own: ModuleType, name: str, dtype: Any
) -> None:
    """What is constant in a rule is made as they can be."""
    rule = getattr(own, name, None) or getattr(rules, name)
    count = 2 if name == "pair" else 1
    values = [torch.linspace(-1, k, 6, dtype=dtype)[:, None] for k in (1, 2)][:count]
    nest, offsets = torch.nested.nested_tensor_from_jagged, torch.tensor([0, 2, 6])
    nested = [nest(v, offsets) for v in values]
    found = []
    for given in (nested, values):
        leaves = [x.requires_grad_() for x in given]
        made = rule(*leaves)
        outputs = made if isinstance(made, tuple) else (made,)
        ones = torch.ones_like(outputs[0])
        found.append((*outputs, *torch.autograd.grad(outputs[0], leaves, ones)))
    for one, other in zip(*found, strict=True):
        assert one.is_nested and one.dtype == other.dtype
        assert torch.equal(one.values(), other)


def test_a_function_that_is_no_node_is_told_of(rules: ModuleType) -> None:
    by_name = rules.complex_op
    with pytest.raises(TypeError, match=r"torch\.fx\.wrap"):
        torch.fx.symbolic_trace(lambda x: by_name(x, x))
