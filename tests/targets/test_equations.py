"""Emitted solutions of equations, beside PyTorch's derivatives of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gradspec
from tests.targets.test_recurrences import RUNS, _tupled

pytestmark = pytest.mark.filterwarnings("ignore:GS465")
"""The matrix of a system has more axes than its solution."""

RULES = Path(__file__).with_name("equations.grad")
SHIPPED = Path(__file__).parents[2] / "rules" / "linalg" / "factor.grad"
Tensor = torch.Tensor


def vector(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)


def columns(a: Tensor, b: Tensor) -> Tensor:
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return torch.linalg.solve(
        a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])
    )


def ridge(x: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    return vector(x.mT @ x + lam * torch.eye(x.shape[-1], dtype=x.dtype), x.mT @ y)


def sylvester(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    own, other = (torch.eye(x.shape[-1], dtype=x.dtype) for x in (a, b))
    whole = torch.kron(a, other) + torch.kron(own, b.mT.contiguous())
    return vector(whole, c.flatten(-2)).reshape(c.shape)


def _newton(step: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
    """The last steps differentiated, which gives the derivative of the root."""
    with torch.no_grad():
        for _ in range(60):
            start = step(start)
    return step(start)


def kepler(m: Tensor, e: Tensor) -> Tensor:
    def step(u: Tensor) -> Tensor:
        return u - (u - e * torch.sin(u) - m) / (1 - e * torch.cos(u))

    return _newton(step, torch.zeros(()) + m)


def equilibrium(w: Tensor, x: Tensor, c: Tensor) -> Tensor:
    z = torch.zeros_like(x)
    for _ in range(200):
        z = torch.tanh(z @ w.mT + x)
    return z @ c


def cubes(a: Tensor, b: Tensor) -> Tensor:
    cubic = torch.linalg.solve(a, b.mT).mT
    return _newton(lambda x: x - (x**3 + x - cubic) / (3 * x**2 + 1), cubic)


def symmetric(a: Tensor) -> Tensor:
    return torch.tril(a) + torch.tril(a, -1).mT


def factor(a: Tensor) -> Tensor:
    return torch.linalg.cholesky(symmetric(a))


def upper_factor(a: Tensor) -> Tensor:
    return torch.linalg.cholesky(symmetric(a.mT)).mT


def toeplitz(r: Tensor) -> Tensor:
    places = torch.arange(len(r))
    return torch.linalg.cholesky(r[(places - places.unsqueeze(-1)).abs()])


CASES: tuple[tuple[str, Callable[..., Tensor], tuple[tuple[int, ...], ...]], ...] = (
    ("vector", vector, ((4, 4), (4,))),
    ("rows", vector, ((4, 4), (3, 4))),
    ("rows", vector, ((1, 1, 1), (1, 1))),
    ("columns", columns, ((3, 4, 4), (4, 2))),
    ("columns", columns, ((3, 3, 3), (3, 3))),
    ("lower", lambda a, b: vector(torch.tril(a), b), ((2, 1, 3, 3), (3, 3))),
    ("upper", lambda a, b: columns(torch.triu(a), b), ((3, 3), (3, 2))),
    ("ridge", ridge, ((5, 3), (5,), ())),
    ("sylvester", sylvester, ((2, 2), (3, 3), (2, 2, 3))),
    ("implicit", lambda a, b: b / (1 + a), ((3,), (3,))),
    ("kepler", kepler, ((2, 1), (3,))),
    ("equilibrium", equilibrium, ((3, 3), (2, 3), (3,))),
    ("cubes", cubes, ((2, 2), (3, 2))),
    ("factor", factor, ((2, 3, 3),)),
    ("upper_factor", upper_factor, ((2, 3, 3),)),
    ("toeplitz", toeplitz, ((3,),)),
    ("cholesky", factor, ((2, 1, 4, 4),)),
    ("cholesky", factor, ((1, 1),)),
    ("log_det", lambda a: torch.logdet(symmetric(a)), ((2, 4, 4),)),
)
"""The rule, the same in PyTorch, and the shapes of its inputs."""


def _given(name: str, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    """Inputs within the domain of a rule: diagonals that dominate, and the like."""
    generator = np.random.default_rng(len(name))
    given = [generator.uniform(0.1, 0.9, size=shape) for shape in shapes]
    if name == "equilibrium":
        return [given[0] / 3, *given[1:]]
    if name == "toeplitz":
        return [given[0] + 2 * (np.arange(len(given[0])) == 0)]
    square = [x.ndim > 1 and x.shape[-1] == x.shape[-2] for x in given]
    eyes = (
        3 * np.eye(x.shape[-1]) if s else 0 for x, s in zip(given, square, strict=True)
    )
    return [x + eye for x, eye in zip(given, eyes, strict=True)]


def _run(target: str, module: Any, name: str, given: list[Any], up: Any) -> Any:
    """The value and the gradients."""
    value, found = RUNS[target](module, name, given, [up])
    return _tupled(value)[0], _tupled(found if target == "numpy" else tuple(found))


@pytest.mark.parametrize("target", RUNS)
def test_values_and_gradients(target: str) -> None:
    own, shipped = (gradspec.load(path, target) for path in (RULES, SHIPPED))
    for name, reference, shapes in CASES:
        module = own if hasattr(own, name) else shipped
        given = _given(name, shapes)
        leaves = [torch.tensor(one, requires_grad=True) for one in given]
        true = reference(*leaves)
        up = np.random.default_rng(1).normal(size=true.shape)
        slopes = torch.autograd.grad(true, leaves, torch.tensor(up))
        value, found = _run(target, module, name, given, up)
        np.testing.assert_allclose(np.asarray(value), true.detach(), rtol=1e-9)
        for got, wanted in zip(found, slopes, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


NO_ROOT = """
rule no_root(x) -> y:
    solve y from 1: y**2 == x

rule no_roots(x[n]) -> y[n]:
    solve y from 1: y[i]**2 + sum(y[j]**2 for j) == x[i]
"""


@pytest.mark.parametrize("target", RUNS)
def test_no_solution_is_nan_after_so_many_steps(target: str) -> None:
    module = gradspec.load(NO_ROOT, target)
    for name in ("no_root", "no_roots"):
        value = getattr(module, name)(-np.arange(1.0, 4.0))
        assert np.isnan(np.asarray(value)).all()


@pytest.mark.parametrize("target", RUNS)
def test_no_elements(target: str) -> None:
    module = gradspec.load(RULES, target)
    for name, shapes in (
        ("vector", ((0, 0), (0,))),
        ("rows", ((0, 2, 2), (0, 2))),
        ("columns", ((2, 2), (2, 0))),
        ("equilibrium", ((0, 0), (2, 0), (0,))),
    ):
        given = _given(name, shapes)
        up = np.ones(shapes[1][:1] if name == "equilibrium" else shapes[1])
        _, found = _run(target, module, name, given, up)
        for got, shape in zip(found, shapes, strict=True):
            assert np.shape(got) == shape
