"""The `torch.nn.Module` of a rule with params: what a user of layers expects of it."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType

import pytest

from tests.targets.emission import torch_module
from tests.targets.layer_rules import LEARNED

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(LEARNED)


def network(rules: ModuleType):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 8), rules.LayerNorm(8), rules.Prelu(shape=8)
    )


def trained(model, steps: int) -> list[float]:
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


def test_layers_and_functions_are_public(rules):
    assert set(rules.__all__) == {
        *("prelu", "layer_norm", "mixture"),
        *("Prelu", "LayerNorm", "Mixture"),
    }


def test_training_lowers_the_loss_and_moves_every_parameter(rules):
    model = network(rules)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    losses = trained(model, 8)
    assert losses[-1] < 0.9 * losses[0]
    for name, parameter in model.named_parameters():
        assert not torch.equal(parameter, before[name]), name


def test_compiled_whole_it_trains_the_same(rules):
    expected = trained(network(rules), 3)
    compiled = torch.compile(network(rules), fullgraph=True, backend="aot_eager")
    assert trained(compiled, 3) == pytest.approx(expected, rel=1e-4)


def test_it_is_copied_pickled_and_loaded(rules):
    model = network(rules)
    trained(model, 2)
    x = torch.randn(4, 6)
    loaded = network(rules)
    loaded.load_state_dict(model.state_dict())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), loaded):
        assert torch.equal(other(x), model(x))
        trained(other, 1)
        assert not torch.equal(other(x), model(x))


def test_it_says_what_it_was_made_with(rules):
    assert repr(rules.LayerNorm(5)) == ("LayerNorm(d=5, eps=1e-05, gain=1.0, bias=0.0)")
    assert repr(rules.Prelu(a=0.1, shape=3)) == "Prelu(shape=(3,), a=0.1)"


def test_parameters_start_where_told_and_start_again(rules):
    layer = rules.Prelu(a=0.5, shape=(4, 1))
    assert layer.a.shape == (4, 1)
    assert torch.equal(layer.a, torch.full((4, 1), 0.5))
    with torch.no_grad():
        layer.a.add_(1.0)
    layer.reset_parameters()
    assert torch.equal(layer.a, torch.full((4, 1), 0.5))


def test_device_and_type_are_the_callers(rules):
    layer = rules.LayerNorm(5, device="meta", dtype=torch.float64)
    assert layer.gain.is_meta
    assert layer.gain.dtype is torch.float64
    real = layer.to_empty(device="cpu")
    real.reset_parameters()
    assert torch.equal(real.gain, torch.ones(5, dtype=torch.float64))


def test_names_that_a_module_has_for_itself_get_an_underscore(rules):
    layer = rules.Mixture(3, 4, device_=2)
    assert sorted(layer.state_dict()) == ["s", "to_", "w"]
    assert layer.w.shape == (3, 4)
    assert torch.equal(layer.w, torch.full((3, 4), -1 / 3))
    u, v = layer(torch.ones(2), torch.ones(2, 4))
    assert torch.equal(u, torch.full((2,), 2.0))
    torch.testing.assert_close(v, torch.full((2, 3), -4 / 3))
    with pytest.raises(TypeError):
        rules.Mixture(3, 4)


def test_no_name_of_the_class_is_forgotten():
    from gradspec.targets.torch.layer import OWN

    public = {name for name in dir(torch.nn.Module()) if not name.startswith("_")}
    assert public <= OWN


def test_a_class_never_takes_the_name_of_a_rule():
    rules = torch_module(
        "rule prelu(x, a: param = 1) -> y:\n    y = a * x\n\n"
        "rule Prelu(x) -> y:\n    y = 2 * x\n"
    )
    assert set(rules.__all__) == {"prelu", "Prelu", "Prelu2"}
    assert rules.Prelu2()(torch.ones(2)).tolist() == [1.0, 1.0]
