"""A static integer must be one, on every target, and stays a Python integer."""

from __future__ import annotations

import pytest

from tests.targets.emission import module_of

RULE = "rule power(x, n: static int = 2) -> y:\n    y = x**n\n"


@pytest.mark.parametrize(
    ("target", "framework"),
    [("numpy", "numpy"), ("torch", "torch"), ("tf", "tensorflow"), ("jax", "jax")],
)
def test_a_fraction_is_refused(target: str, framework: str) -> None:
    pytest.importorskip(framework)
    power = module_of(RULE, target).power
    assert float(power(-2.0, n=3)) == -8.0
    with pytest.raises(TypeError):
        power(-2.0, n=2.5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own tracing
def test_it_is_checked_under_compilation_too() -> None:
    torch = pytest.importorskip("torch")
    power = module_of(RULE, "torch").power
    compiled = torch.compile(
        lambda x: power(x, n=3).sum(), fullgraph=True, backend="aot_eager"
    )
    x = torch.tensor([-2.0, 1.0], requires_grad=True)
    compiled(x).backward()
    assert x.grad.tolist() == [12.0, 3.0]
