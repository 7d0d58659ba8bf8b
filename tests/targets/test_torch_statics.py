"""Static parameters and other numbers of a call: what is made of them, and that a compiler
which knows one only as a symbol, the size of a tensor say, keeps the symbol.

The gradients of `spike` and `levels` are not those of their forward passes, so that they
are operations of their own in an exported graph.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.targets.emission import module_of, own_rules

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
torch = pytest.importorskip("torch")

RULES = own_rules("torch_statics")

SYMBOLS: dict[str, Callable[[ModuleType, Any], Any]] = {
    "a ratio for an operation": lambda m, x: m.spike(x, beta=2.0 / x.shape[0]),
    "a static integer": lambda m, x: m.levels(x, n=x.shape[0] + 1),
    "the size of a result": lambda m, x: m.windows(x, x[:2], m=x.shape[0] - 1),
    "a size for a tensor": lambda m, x: m.damped(x, x.shape[0]),
}
SIZES = (5, 6, 8)


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return module_of(RULES, "torch")


@pytest.fixture(autouse=True)
def _anew() -> None:
    torch.compiler.reset()


def _of_size(size: int) -> Any:
    return torch.linspace(-0.3, 1.2, size)


def _results(function: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """The value, and a gradient with another upstream gradient in every place."""
    leaf = x.clone().requires_grad_()
    value = function(leaf)
    (gradient,) = torch.autograd.grad(value, leaf, torch.arange(1.0, len(value) + 1))
    return value.detach(), gradient


def _exported(function: Callable[..., Any], x: Any, **options: Any) -> Any:
    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return function(x)

    return torch.export.export(Module(), (x,), **options)


def _for_all_sizes(function: Callable[..., Any], strict: bool = False) -> Any:
    sizes = ({0: torch.export.Dim("n", min=3, max=64)},)
    return _exported(function, _of_size(5), dynamic_shapes=sizes, strict=strict)


# --- numbers that a compiler knows as symbols ----------------------------------------------


@pytest.mark.parametrize("case", SYMBOLS)
def test_one_graph_for_all_sizes(rules: ModuleType, case: str) -> None:
    from torch._dynamo.testing import CompileCounterWithBackend

    def function(x: Any) -> Any:
        return SYMBOLS[case](rules, x)

    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(function, backend=counter, fullgraph=True, dynamic=True)
    programs = [_for_all_sizes(function, strict).module() for strict in (False, True)]
    for size in SIZES:
        want = _results(function, _of_size(size))
        for found in (compiled, *programs):
            torch.testing.assert_close(_results(found, _of_size(size)), want)
    assert counter.frame_count == 1


def test_a_saved_program_has_symbols_and_finds_its_operation(
    rules: ModuleType, tmp_path: Path
) -> None:
    def function(x: Any) -> Any:
        return rules.spike(x, beta=2.0 / x.shape[0]) + rules.levels(x, n=x.shape[0])

    torch.export.save(_for_all_sizes(function), tmp_path / "program.pt2")
    (tmp_path / "rules.grad").write_text(RULES)
    gradspec.compile_paths(tmp_path / "rules.grad", "torch", tmp_path / "emitted")
    value, gradient = _results(function, _of_size(8))
    torch.save((_of_size(8), value, gradient), tmp_path / "results.pt")
    script = (
        "import emitted.torch.rules, torch\n"
        "program = torch.export.load('program.pt2').module()\n"
        "x, value, gradient = torch.load('results.pt')\n"
        "found = program(x.requires_grad_())\n"
        "found.backward(torch.arange(1.0, 9.0))\n"
        "torch.testing.assert_close((found, x.grad), (value, gradient))\n"
        "print('as before')\n"
    )
    run = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(
        run, cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.stdout == "as before\n", done.stderr


def test_an_operation_is_named_for_what_it_takes() -> None:
    """Two rules of one text, one of which takes whole numbers only, are two operations;
    a module that is imported again has the first one's."""
    text = (
        "rule step(x, k: static{}) -> y:\n"
        "    y = 1 if x > 0 else 0\n"
        '    override dx = k * dy because "a marker"\n'
    )
    for kind, k in ((" int", 2), ("", 2.5), (" int", 3)):
        step = module_of(text.format(kind), "torch").step
        program = _exported(lambda x, step=step, k=k: step(x, k=k), _of_size(4))
        _, gradient = _results(program.module(), _of_size(4))
        assert gradient.tolist() == [k, 2 * k, 3 * k, 4 * k]


# --- numbers of other libraries, and what is none ---------------------------------------------

NUMBERS = (np.float32(2), np.int64(2), np.array(2.0))


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: type(n).__name__)
def test_numbers_of_all_kinds(rules: ModuleType, number: Any) -> None:
    def function(x: Any, beta: Any = number) -> Any:
        return rules.spike(x, beta=beta)

    want = _results(lambda x: function(x, 2.0), _of_size(5))
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    found = [function, _exported(function, _of_size(5)).module()]
    if not isinstance(number, np.ndarray):
        found.append(compiled)
    for each in found:
        torch.testing.assert_close(_results(each, _of_size(5)), want)


def test_what_numbers_there_are(rules: ModuleType) -> None:
    x = _of_size(5)
    assert torch.equal(rules.levels(x, n=np.int64(3)), rules.levels(x, n=3))
    for wrong in (3.0, np.float64(3.0), "3", None):
        with pytest.raises(TypeError):
            rules.levels(x, n=wrong)
    torch.testing.assert_close(rules.smooth(x, beta=2**70), torch.relu(x))
    for wrong in ("2.0", None, 2j, torch.tensor(2j), np.full(5, 2.0), torch.ones(5)):
        with pytest.raises(TypeError):
            rules.smooth(x, beta=wrong)


@pytest.mark.parametrize("name", ["smooth", "spike"])
def test_a_tensor_that_asks_for_a_gradient_is_refused(
    rules: ModuleType, name: str
) -> None:
    def function(beta: Any) -> Any:
        return getattr(rules, name)(_of_size(5), beta=beta).sum()

    message = rf"{name}: beta is static .* beta\.item\(\)"
    asking = torch.nn.Parameter(_of_size(5))
    with pytest.raises(TypeError, match=message):
        function(asking)
    with pytest.raises(Exception, match="beta is static"):
        torch.compile(function, fullgraph=True, backend="aot_eager")(asking)
    with pytest.raises(TypeError, match="beta is static"):
        torch.func.grad(function)(torch.tensor(2.0))


# --- tensors ----------------------------------------------------------------------------------

GIVEN: dict[str, tuple[Any, Any]] = {
    "two types": (torch.tensor(-0.5, dtype=torch.float64), torch.tensor(0.75)),
    "tensor, number": (torch.tensor(-0.5), 0.75),
}
X = torch.tensor([-1.5, -0.25, 0.125, 0.625, 1.75])


@pytest.mark.parametrize("name", ["limited", "chosen"])
@pytest.mark.parametrize("kind", GIVEN)
def test_numbers_and_tensors_are_mixed(rules: ModuleType, kind: str, name: str) -> None:
    rule, (low, high) = getattr(rules, name), GIVEN[kind]

    def function(x: Any) -> Any:
        return rule(high=high, x=x, low=low)

    ways = [
        function,
        torch.compile(function, backend="aot_eager", fullgraph=True),
        _exported(function, X, strict=False).module(),
    ]
    want = _results(lambda x: rule(x, low=-0.5, high=0.75), X)
    for way in ways:
        torch.testing.assert_close(_results(way, X), want)
