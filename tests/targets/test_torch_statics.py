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

from tests.targets.emission import torch_module, torch_text

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
torch = pytest.importorskip("torch")

RULES = """
rule smooth(x, beta: static = 1.0) -> y:
    y = log(1 + exp(beta * x)) / beta

rule swish(x, beta: static = 1.0) -> y:
    y = x / (1 + exp(-beta * x))

rule spike(v, k: static = 25.0) -> s:
    s = 1 if v > 0 else 0
    surrogate s = v / (1 + k * abs(v))

rule levels(x, n: static int = 4) -> y:
    y = round(x * n) / n
    override dx = n * dy because "a marker"

rule power(x, n: static int = 2) -> y:
    y = x**n

rule damped(x, t) -> y:
    y = x * exp(-t)

rule times(x, n: int) -> y:
    y = x * n

rule windows(x[..., n], w[k], m: static int) -> y[..., m]:
    y[i] = sum(x[i + j] * w[j] for j)

rule trigamma(x, n: static int = 1) -> y:
    assume x > 0, n >= 1
    y = polygamma(n, x)
"""

SYMBOLS: dict[str, Callable[[ModuleType, Any], Any]] = {
    "a size for a float": lambda m, x: m.swish(x, beta=x.shape[0]),
    "a ratio for a float": lambda m, x: m.swish(x, beta=2.0 / x.shape[0]),
    "a size for torch's own": lambda m, x: m.smooth(x, beta=x.shape[0]),
    "a ratio for torch's own": lambda m, x: m.smooth(x, beta=2.0 / x.shape[0]),
    "a size for an operation": lambda m, x: m.spike(x, k=x.shape[0]),
    "a ratio for an operation": lambda m, x: m.spike(x, k=2.0 / x.shape[0]),
    "a static integer": lambda m, x: m.levels(x, n=x.shape[0] + 1),
    "the size of a result": lambda m, x: m.windows(x, x[:2], m=x.shape[0] - 1),
    "a size for a tensor": lambda m, x: m.damped(x, x.shape[0]),
    "a ratio for a tensor": lambda m, x: m.damped(x, 2.0 / x.shape[0]),
    "a size before a tensor": lambda m, x: m.damped(x.shape[0], x),
    "a size alone": lambda m, x: x * m.swish(x.shape[0]),
    "a size for integers": lambda m, x: m.times(x, x.shape[0]),
}
EXPONENT = {"an exponent": lambda m, x: m.power(x, n=x.shape[0])}
SIZES = (5, 6, 8)


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


@pytest.fixture(autouse=True)
def _anew() -> None:
    torch.compiler.reset()


def _of_size(size: int) -> Any:
    return torch.linspace(-0.3, 1.2, size)


def _results(function: Callable[..., Any], x: Any, *more: Any) -> tuple[Any, Any]:
    """The value, and a gradient with another upstream gradient in every place."""
    leaf = x.clone().requires_grad_()
    value = function(leaf, *more)
    (gradient,) = torch.autograd.grad(value, leaf, torch.arange(1.0, len(value) + 1))
    return value.detach(), gradient


def _compiled(function: Callable[..., Any], dynamic: bool | None = None) -> Any:
    """The function compiled without a break, and what counts its graphs."""
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("aot_eager")
    options = {"backend": counter, "fullgraph": True, "dynamic": dynamic}
    return torch.compile(function, **options), counter


def _module(function: Callable[..., Any]) -> Any:
    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return function(x)

    return Module()


def _exported(function: Callable[..., Any], strict: bool = False) -> Any:
    size = torch.export.Dim("n", min=3, max=64)
    sizes = {"dynamic_shapes": ({0: size},), "strict": strict}
    return torch.export.export(_module(function), (_of_size(5),), **sizes)


# --- numbers that a compiler knows as symbols ----------------------------------------------


@pytest.mark.parametrize("case", SYMBOLS)
def test_one_graph_for_all_sizes(rules: ModuleType, case: str) -> None:
    def function(x: Any) -> Any:
        return SYMBOLS[case](rules, x)

    compiled, counter = _compiled(function, dynamic=True)
    for size in SIZES:
        want = _results(function, _of_size(size))
        torch.testing.assert_close(_results(compiled, _of_size(size)), want)
    assert counter.frame_count == 1


def test_one_graph_for_all_numbers(rules: ModuleType) -> None:
    def function(x: Any, k: float, n: int) -> Any:
        return rules.spike(rules.levels(x, n=n), k=k) + rules.swish(x, beta=k)

    compiled, counter = _compiled(function, dynamic=True)
    for k, n in ((0.5, 3), (2.5, 4), (7.25, 6)):
        want = _results(function, _of_size(5), k, n)
        torch.testing.assert_close(_results(compiled, _of_size(5), k, n), want)
    assert counter.frame_count == 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("case", SYMBOLS | EXPONENT)
def test_exported_for_all_sizes(rules: ModuleType, case: str, strict: bool) -> None:
    def function(x: Any) -> Any:
        return (SYMBOLS | EXPONENT)[case](rules, x)

    program = _exported(function, strict).module()
    for size in SIZES:
        want = _results(function, _of_size(size))
        torch.testing.assert_close(_results(program, _of_size(size)), want)


def test_an_exponent_is_known(rules: ModuleType) -> None:
    """torch differentiates no power of a tensor with a symbol for its exponent: each has
    a graph, so that second derivatives are compiled too."""

    def second(x: Any) -> Any:
        first = torch.func.grad(lambda x: rules.power(x, n=x.shape[0]).sum())
        return torch.func.grad(lambda x: first(x).sum())(x)

    compiled, counter = _compiled(second, dynamic=True)
    for size in SIZES:
        x = _of_size(size)
        torch.testing.assert_close(compiled(x), size * (size - 1) * x ** (size - 2))
    assert counter.frame_count == len(SIZES)


def test_an_order_is_known(rules: ModuleType) -> None:
    def function(x: Any) -> Any:
        return rules.trigamma(x + 1, n=x.shape[0] - 4)

    compiled, _ = _compiled(function, dynamic=True)
    for size in SIZES:
        want = _results(function, _of_size(size))
        torch.testing.assert_close(_results(compiled, _of_size(size)), want)


# --- programs that are saved ------------------------------------------------------------------


def test_a_saved_program_has_symbols_and_finds_its_operation(
    rules: ModuleType, tmp_path: Path
) -> None:
    def function(x: Any) -> Any:
        return rules.spike(x, k=2.0 / x.shape[0]) + rules.levels(x, n=x.shape[0])

    torch.export.save(_exported(function), tmp_path / "program.pt2")
    (tmp_path / "emitted.py").write_text(torch_text(RULES), encoding="utf-8")
    value, gradient = _results(function, _of_size(8))
    torch.save((_of_size(8), value, gradient), tmp_path / "results.pt")
    script = (
        "import emitted, torch\n"
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
    """Two rules of one text, one of which takes whole numbers only, are two operations."""
    text = (
        "rule step(x, k: static{}) -> y:\n"
        "    y = 1 if x > 0 else 0\n"
        '    override dx = k * dy because "a marker"\n'
    )
    whole, any_number = (torch_module(text.format(kind)) for kind in (" int", ""))
    assert whole._step_exported is not any_number._step_exported
    for module, k in ((whole, 2), (any_number, 2.5)):
        program = _exported(lambda x, step=module.step, k=k: step(x, k=k)).module()
        _, gradient = _results(program, _of_size(4))
        assert gradient.tolist() == [k, 2 * k, 3 * k, 4 * k]


# --- numbers of other libraries ---------------------------------------------------------------


@pytest.mark.parametrize("number", [np.float64(2.0), np.float32(2.0), np.int64(2)])
@pytest.mark.parametrize("name", ["smooth", "swish", "spike"])
def test_numbers_of_numpy(rules: ModuleType, name: str, number: Any) -> None:
    (parameter,) = {"beta", "k"} & {*getattr(rules, name).__kwdefaults__}

    def function(x: Any, number: Any) -> Any:
        return getattr(rules, name)(x, **{parameter: number})

    want = _results(function, _of_size(5), 2.0)
    torch.testing.assert_close(_results(function, _of_size(5), number), want)
    compiled, _ = _compiled(function)
    torch.testing.assert_close(_results(compiled, _of_size(5), number), want)
    program = _exported(lambda x: function(x, number)).module()
    torch.testing.assert_close(_results(program, _of_size(5)), want)


def test_integers_of_numpy(rules: ModuleType) -> None:
    def function(x: Any, n: Any) -> Any:
        return rules.levels(x, n=n)

    want = _results(function, _of_size(5), 3)
    torch.testing.assert_close(_results(function, _of_size(5), np.int64(3)), want)
    compiled, _ = _compiled(function)
    torch.testing.assert_close(_results(compiled, _of_size(5), np.int64(3)), want)
    for wrong in (3.0, np.float64(3.0), "3", None):
        with pytest.raises(TypeError):
            rules.levels(_of_size(5), n=wrong)


@pytest.mark.parametrize("number", [2, np.array(2.0), True + 1])
def test_other_numbers(rules: ModuleType, number: Any) -> None:
    x = _of_size(5)
    torch.testing.assert_close(rules.smooth(x, beta=number), rules.smooth(x, beta=2.0))


def test_a_number_may_be_large(rules: ModuleType) -> None:
    x = _of_size(5)
    torch.testing.assert_close(rules.swish(x, beta=2**70), rules.swish(x, beta=2.0**70))


@pytest.mark.parametrize("wrong", ["2.0", None, 2j, torch.tensor(2j), np.full(5, 2.0)])
def test_what_is_no_number_is_refused(rules: ModuleType, wrong: Any) -> None:
    with pytest.raises(TypeError):
        rules.swish(_of_size(5), beta=wrong)


# --- tensors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["smooth", "swish", "spike"])
def test_a_tensor_that_asks_for_a_gradient_is_refused(
    rules: ModuleType, name: str
) -> None:
    (parameter,) = {"beta", "k"} & {*getattr(rules, name).__kwdefaults__}

    def function(x: Any, number: Any) -> Any:
        return getattr(rules, name)(x, **{parameter: number})

    for asking in (torch.tensor(2.0).requires_grad_(), torch.nn.Parameter(_of_size(5))):
        with pytest.raises(TypeError, match=f"{name}: {parameter} is static"):
            function(_of_size(5), asking)
        with pytest.raises(Exception, match=f"{parameter} is static"):
            _compiled(function)[0](_of_size(5), asking)
    with pytest.raises(TypeError, match=f"{parameter} is static"):
        torch.func.grad(lambda k: function(_of_size(5), k).sum())(torch.tensor(2.0))


TENSORS = {
    "one number": torch.tensor(2.0),
    "one element": torch.tensor([2.0]),
    "elements": torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),
}


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("name", ["swish", "spike"])
def test_other_tensors_stay_tensors(rules: ModuleType, name: str, kind: str) -> None:
    (parameter,) = {"beta", "k"} & {*getattr(rules, name).__kwdefaults__}
    given = TENSORS[kind]

    def function(x: Any) -> Any:
        return getattr(rules, name)(x, **{parameter: given})

    def each(x: Any) -> Any:
        numbers = given.expand(5).tolist()
        parts = zip(x, numbers, strict=True)
        rule = getattr(rules, name)
        return torch.stack([rule(part, **{parameter: n}) for part, n in parts])

    x = _of_size(5)
    want = _results(each, x)
    torch.testing.assert_close(_results(function, x), want)
    torch.testing.assert_close(_results(_compiled(function)[0], x), want)
    torch.testing.assert_close(
        _results(torch.export.export(_module(function), (x,)).module(), x), want
    )


def test_a_batch_of_numbers(rules: ModuleType) -> None:
    x, numbers = _of_size(5), torch.tensor([0.5, 2.0])
    found = torch.func.vmap(lambda beta: rules.swish(x, beta=beta))(numbers)
    want = torch.stack([rules.swish(x, beta=beta) for beta in numbers.tolist()])
    torch.testing.assert_close(found, want)


# --- what a call pays -------------------------------------------------------------------------


def test_a_float_is_looked_at_once() -> None:
    text = torch_text(RULES)
    for name, kind in (("beta", "float"), ("k", "float"), ("n", "int")):
        assert f"    if type({name}) is not {kind}:\n" in text
    one_look = torch_text(
        "rule between(x, low: static = 0.0, high: static = 1.0) -> y:\n"
        "    y = low + (high - low) * tanh(x)\n"
    )
    assert "    if not (type(low) is type(high) is float):\n" in one_look
