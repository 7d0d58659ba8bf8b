"""What a user of layers expects of rules with params: `torch.nn.Module`, the arrays to start
from in JAX; those of Keras are in `test_keras`."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import LEARNED, module_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


# --- PyTorch -------------------------------------------------------------------------------


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def layers() -> ModuleType:
    return module_of(LEARNED, "torch")


def _network(rules: ModuleType) -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 8), rules.LayerNorm(8), rules.Prelu(shape=8)
    )


def _trained(model: Any, steps: int) -> list[float]:
    import torch

    torch.manual_seed(1)
    x, wanted = torch.randn(16, 6), torch.randn(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    losses = []
    for _ in range(steps):
        loss = torch.nn.functional.mse_loss(model(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.torch
def test_training_lowers_the_loss_and_moves_every_parameter(
    torch: Any, layers: ModuleType
) -> None:
    model = _network(layers)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    losses = _trained(model, 8)
    assert losses[-1] < 0.9 * losses[0]
    for name, parameter in model.named_parameters():
        assert not torch.equal(parameter, before[name]), name
    compiled = torch.compile(_network(layers), fullgraph=True, backend="aot_eager")
    assert _trained(compiled, 3) == pytest.approx(losses[:3], rel=1e-4)


@pytest.mark.torch
def test_it_is_copied_pickled_and_loaded(torch: Any, layers: ModuleType) -> None:
    model = _network(layers)
    _trained(model, 2)
    x = torch.randn(4, 6)
    loaded = _network(layers)
    loaded.load_state_dict(model.state_dict())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), loaded):
        assert torch.equal(other(x), model(x))
        _trained(other, 1)
        assert not torch.equal(other(x), model(x))


@pytest.mark.torch
def test_what_it_was_made_with(torch: Any, layers: ModuleType) -> None:
    assert {*layers.__all__} == {
        *("prelu", "layer_norm", "mixture", "Prelu", "LayerNorm", "Mixture")
    }
    norm, slope = layers.LayerNorm(5), layers.Prelu(a=0.1, shape=3)
    assert repr(norm) == "LayerNorm(d=5, eps=1e-05, gain=1.0, bias=0.0)"
    assert repr(slope) == "Prelu(shape=(3,), a=0.1)"
    assert torch.equal(slope.a, torch.full((3,), 0.1))
    with torch.no_grad():
        slope.a.add_(1.0)
    slope.reset_parameters()
    assert torch.equal(slope.a, torch.full((3,), 0.1))
    layer = layers.LayerNorm(5, device="meta", dtype=torch.float64)
    assert layer.gain.is_meta and layer.gain.dtype is torch.float64
    real = layer.to_empty(device="cpu")
    real.reset_parameters()
    assert torch.equal(real.gain, torch.ones(5, dtype=torch.float64))


@pytest.mark.torch
def test_several_inputs_and_sizes(torch: Any, layers: ModuleType) -> None:
    layer = layers.Mixture(3, 4, device_=2)
    assert torch.equal(layer.w, torch.full((3, 4), -1 / 3))
    u, v = layer(torch.ones(2), torch.ones(2, 4))
    assert torch.equal(u, torch.full((2,), 2.0))
    torch.testing.assert_close(v, torch.full((2, 3), -4 / 3))
    with pytest.raises(TypeError):
        layers.Mixture(3, 4)


# --- JAX -----------------------------------------------------------------------------------


@pytest.mark.jax
def test_training_from_the_initial_arrays_lowers_a_loss() -> None:
    jax = pytest.importorskip("jax")
    rules = module_of(LEARNED, "jax")
    x, wanted = (jax.random.normal(jax.random.key(k), (16, 8)) for k in (0, 1))
    weights = {"norm": rules.init_layer_norm(8), "slope": rules.init_prelu(shape=8)}

    @jax.jit
    def loss(w: Any) -> Any:
        y = rules.prelu(rules.layer_norm(x, **w["norm"]), **w["slope"])
        return jax.numpy.mean((y - wanted) ** 2)

    losses = []
    for _ in range(5):
        value, slopes = jax.value_and_grad(loss)(weights)
        losses.append(float(value))
        weights = jax.tree.map(lambda w, d: w - 0.5 * d, weights, slopes)
    assert losses[-1] < losses[0]


@pytest.mark.jax
def test_the_arrays_have_the_names_shapes_and_types_asked_for() -> None:
    jnp = pytest.importorskip("jax.numpy")
    rules = module_of(LEARNED, "jax")
    start = rules.init_mixture(3, 4, s=0.5, shape=(2, 1), dtype=jnp.bfloat16)
    shapes = {name: array.shape for name, array in start.items()}
    assert shapes == {"w": (3, 4), "s": (), "to": (2, 1)}
    assert all(array.dtype == jnp.bfloat16 for array in start.values())
    assert float(start["s"]) == 0.5
    assert not rules.init_prelu()["a"].weak_type
