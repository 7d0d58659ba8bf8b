"""Inputs of several shapes: an output has the shape to which all broadcast that has a part
in it: its definition as written, its surrogate, and what its gradients are made of.

A rule given inputs of several shapes must do what it does of the same inputs broadcast
beforehand, with each gradient summed over what was broadcast. So does every elementwise
primitive for each of its arguments.
"""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir.expr import Apply, Ref, const, show
from gradspec.primitives.lookup import ROWS
from gradspec.primitives.row import Primitive
from tests.calling import Array, by_target, called, cotangent
from tests.targets.emission import module_of, own_rules

RULES = own_rules("broadcasting")


def _rule(row: Primitive) -> str:
    """A rule that is the primitive; an integer argument (an order) is 1."""
    kinds = dict(zip(row.params, row.argument_types, strict=True))
    floats = [name for name, kind in kinds.items() if kind == "real"]
    given = (Ref(name) if name in floats else const(1) for name in row.params)
    domain = "y > 0" if row.name == "polygamma" else row.domain
    lines = [f"rule p_{row.name}({', '.join(floats)}) -> out:"]
    lines += [f"    assume {domain}"] if domain else []
    return "\n".join([*lines, f"    out = {show(Apply(row.name, tuple(given)))}", ""])


SEVERAL = [r for r in ROWS if r.result == "real" and r.argument_types.count("real") > 1]
PRIMITIVES = "\n".join(map(_rule, SEVERAL))
RNG = np.random.default_rng(0)


def _floats(*shape: int) -> Array:
    return RNG.uniform(0.3, 0.9, shape)


Case = tuple[str, tuple[Array, ...], tuple[int, ...]]


def _apart(name: str, arity: int, prefix: str = "") -> dict[str, Case]:
    """Each argument in turn has another shape than the others."""
    return {
        f"{prefix}{name}, {place}": (
            prefix + name,
            tuple(_floats(*((2,) if k == place else (3, 1))) for k in range(arity)),
            (0,) * arity,
        )
        for place in range(arity)
    }


A, B = _floats(3), 1 - _floats(2, 3)
COUNT, ON = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[True], [False]])
CASES: dict[str, Case] = {
    **_apart("select", 3),
    **_apart("choice", 2),
    **_apart("power", 2),
    "through, wider soft": ("through", (B, A), (0, 0)),
    "through, wider hard": ("through", (A, B), (0, 0)),
    "through, both": ("through", (_floats(2, 1), A), (0, 0)),
    "through, empty": ("through", (_floats(), _floats(0, 3)), (0, 0)),
    "level": ("level", (A, B), (0, 0)),
    "weighted": ("weighted", (A, B), (0, 0)),
    "counted": ("counted", (A, COUNT, ON), (0, 0, 0)),
    "cancelled": ("cancelled", (A, B), (0, 0)),
    "quantised, wider z": ("quantised", (B, A), (0, 0)),
    "quantised, wider e": ("quantised", (A, B), (0, 0)),
    "clipped": ("clipped", (A, 4 * B), (0, 0)),
    "rows": ("rows", (_floats(4, 1, 3), B), (1, 1)),
    "tables": ("tables", (A, _floats(2, 3, 5), _floats(4, 1)), (1, 2, 0)),
}
for primitive in SEVERAL:
    CASES |= _apart(primitive.name, primitive.argument_types.count("real"), "p_")


def _broadcast(args: tuple[Array, ...], core: tuple[int, ...]) -> tuple[Array, ...]:
    """All in one batch; the last ``core`` axes of each are its own."""
    ends = [a.ndim - count for a, count in zip(args, core, strict=True)]
    batch = np.broadcast_shapes(*(a.shape[:e] for a, e in zip(args, ends, strict=True)))
    return tuple(
        np.array(np.broadcast_to(a, batch + a.shape[end:]))
        for a, end in zip(args, ends, strict=True)
    )


def _summed(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Over the axes that were broadcast."""
    ahead = gradient.ndim - len(shape)
    gradient = gradient.sum(tuple(range(ahead)))
    ones = tuple(k for k, size in enumerate(shape) if size == 1)
    return gradient.sum(ones, keepdims=True)


@by_target
@pytest.mark.parametrize("case", CASES)
def test_as_of_inputs_that_were_broadcast_beforehand(target: str, case: str) -> None:
    name, args, core = CASES[case]
    module = module_of(PRIMITIVES if name.startswith("p_") else RULES, target)
    outputs, gradients = called(target, module, name, args)
    wanted, whole = called(target, module, name, _broadcast(args, core))
    for output, want in zip(outputs, wanted, strict=True):
        assert output.shape == want.shape
        np.testing.assert_allclose(output, want, rtol=1e-12)
    for arg, gradient, want in zip(args, gradients, whole, strict=True):
        assert (gradient is None) == (want is None)
        if gradient is not None and want is not None:
            assert gradient.shape == arg.shape
            np.testing.assert_allclose(
                gradient, _summed(want, arg.shape), rtol=1e-12, atol=1e-12
            )


@by_target
def test_an_output_of_a_scalar_alone_is_a_scalar(target: str) -> None:
    """Its upstream gradient counts once, and not for each element of another input. So
    does what a static decides.
    """
    given = A, _floats(2, 1)
    (y, z), (dx, _) = called(target, module_of(RULES, target), "decided", given)
    assert (y.shape, z.shape, dx.shape) == ((3,), (2, 3), (3,)) and not dx.any()
    x, s = A, np.array(0.7)
    (y, z), (_, gradient) = called(target, module_of(RULES, target), "apart", (x, s))
    assert (y.shape, z.shape) == (x.shape, ())
    wanted = np.sum(x * cotangent(y)) + 2 * s * cotangent(z)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-12)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_jagged_tensors_of_one_shape() -> None:
    torch = pytest.importorskip("torch")
    offsets = torch.tensor([0, 2, 5])
    values = torch.arange(10.0, dtype=torch.float64).reshape(5, 2)
    soft = values.clone().requires_grad_()
    jagged = torch.nested.nested_tensor_from_jagged
    through = module_of(RULES, "torch").through
    y = through(jagged(soft, offsets), jagged(2 * values, offsets))
    assert torch.equal(y.values(), 2 * values)
    (3 * y.values()).sum().backward()
    assert torch.equal(soft.grad, torch.full_like(values, 3))
